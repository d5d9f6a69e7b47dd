"""The job file: data, schema, sites, privacy, method, sample; every key known.

What it reads is described by `inputs`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    field_serializer,
    field_validator,
    model_validator,
)

from fedsynth.agreed import Agreed, suggestion
from fedsynth.demands import demand_path
from fedsynth.durable import write_whole
from fedsynth.errors import ConfigError, FedsynthError
from fedsynth.jobs.clients import APART, Federation, demand_placed
from fedsynth.jobs.inputs import Data, Public, Sites, expand_path, map_origin, origin_of
from fedsynth.jobs.sections import Count, Section, Select, section
from fedsynth.privacy.budget import Budget
from fedsynth.registry import LABEL_PUBLIC, SETTINGS, SYNTHESIZERS
from fedsynth.yaml_files import parse_value, read_yaml, yaml_text

if TYPE_CHECKING:
    from fedsynth.release import Settings
else:
    # Which class it is, the method tells: see `_build_settings`.
    Settings = Agreed

AUTO = "auto"

Seed = Annotated[int, Field(ge=0, description="a whole number of at least 0")]


class Privacy(Section):
    """What the whole job may cost: the fields of :class:`fedsynth.Budget`."""

    place: ClassVar[str] = "privacy"

    epsilon: Annotated[float, Field(description="a number above 0, or inf for no privacy")]
    delta: Annotated[float | None, Field(description="a number between 0 and 1")] = None
    unit: Annotated[str, Field(description="record, person or client")] = "record"
    trust: Annotated[str, Field(description="central, distributed or local")] = "distributed"
    units: Count = None
    curious: Annotated[int | None, Field(ge=0, description="a whole number of at least 0")] = None
    weigh: Annotated[str | None, Field(description="person or row")] = None
    person_clip: Annotated[float | None, Field(description="a number above 0")] = None
    person_share: Annotated[float | None, Field(description="0 or a share below 1")] = None

    @model_validator(mode="after")
    def _check_budget(self) -> Privacy:
        try:
            self.budget  # noqa: B018
        except ConfigError as error:
            raise ConfigError(f"privacy: {error}") from None
        return self

    @property
    def budget(self) -> Budget:
        return Budget(**self.model_dump())


def _check_method(name: str) -> str:
    known = (AUTO, *SETTINGS)
    if name not in known:
        raise ValueError(f"{name!r} is not known{suggestion(name, known)}")
    return name


def _parse_privacy(value: object) -> object:
    """`privacy: none` says in one word that nothing is protected."""
    return Privacy(epsilon=math.inf) if value == "none" else value


class Sample(Section):
    """The synthetic rows to release; `rows` is a public choice, the true number being private."""

    place: ClassVar[str] = "sample"

    rows: Annotated[int, Field(ge=1, description="a whole number of at least 1")] = 10_000
    seed: Seed = 0
    format: Annotated[Literal["csv", "parquet"], Field(description="csv or parquet")] = "csv"
    where: Annotated[
        dict[str, Any] | None, Field(description="columns with a condition, such as {income: 1}")
    ] = None
    proportions: Annotated[
        dict[Any, float] | None, Field(description="a share for each value of the target")
    ] = None
    persons: Annotated[bool, Field(strict=True, description="true or false")] = False

    @field_validator("where")
    @classmethod
    def _check_kept(cls, where: dict[str, Any] | None) -> dict[str, Any] | None:
        if any(isinstance(given, tuple) for given in (where or {}).values()):
            raise ValueError("holds a tuple, which no job file keeps: write {from: 30, to: 40}")
        return where


class Config(Agreed):
    """A job. Attributes are the sections; `schema_` is the file's key `schema`.

    `outside`: the share of a column's cells that an owner may have outside the schema; one with
    more is refused before anything is asked.
    """

    fault: ClassVar[type[FedsynthError]] = ConfigError

    data: Annotated[Data, section(Data, "data"), Field(description="a section")] = Data()
    schema_: Annotated[str | None, Field(alias="schema", description="a path or a name")] = None
    holdout: Annotated[float, Field(ge=0, lt=1, description="a share from 0 to below 1")] = 0.2
    sites: Annotated[Sites | None, section(Sites, "sites"), Field(description="a section")] = None
    privacy: Annotated[
        Privacy,
        section(Privacy, "privacy"),
        BeforeValidator(_parse_privacy),
        Field(description="a section, or none"),
    ]
    method: Annotated[str, AfterValidator(_check_method), Field(description="a method's name")] = (
        AUTO
    )
    settings: Annotated[Settings | None, Field(description="a section")] = None
    public: Annotated[Public | None, section(Public, "public"), Field(description="a section")] = (
        None
    )
    federation: Annotated[
        Federation, section(Federation, "federation"), Field(description="a section")
    ] = Federation()
    outside: Annotated[
        Annotated[float, Field(ge=0, le=1)] | Literal["allow"],
        Field(description="a share of a column from 0 to 1, or allow"),
    ] = 0.05
    sample: Annotated[Sample, section(Sample, "sample"), Field(description="a section")] = Sample()
    select_privately: Annotated[
        Select | None, section(Select, "select_privately"), Field(description="a section")
    ] = None
    seed: Seed = 0

    @classmethod
    def whereabouts(cls, values: Mapping[str, Any]) -> str:
        return "job"

    @model_validator(mode="before")
    @classmethod
    def _build_settings(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Settings are their method's; rows over a network are their owners'."""
        demand_placed(values)
        settings, method = values.get("settings"), values.get("method", AUTO)
        if "sample" in values and method in SETTINGS and method not in SYNTHESIZERS:
            raise ValueError(f"`sample` is of rows, and {method} makes none: leave it out")
        if settings is None or method not in (*SETTINGS, AUTO):
            return {key: value for key, value in values.items() if key != "settings"}
        if method == AUTO:
            raise ValueError("`settings` go with a method: name it, instead of auto")
        if isinstance(settings, Mapping):
            settings = SETTINGS[method](**{str(key): entry for key, entry in settings.items()})
        if not isinstance(settings, SETTINGS[method]):
            raise ConfigError("settings: holds no keys; expected lines like `name: value` below it")
        return {**values, "settings": settings}

    @model_validator(mode="after")
    def _check_complete(self) -> Config:
        apart = self.federation.runtime is not None
        files = None if self.sites is None else self.sites.paths
        sources = [self.data.path, self.data.url, self.data.builtin, files]
        if not apart and sum(source is not None for source in sources) != 1:
            raise ValueError(
                "give one of `data.path`, `data.url`, `data.builtin` and `sites.paths`"
            )
        ledgers = self.federation.ledgers
        owned = (origin_of(one).path for one in (files or {}).values())
        if ledgers and ledgers.folder is None and (not files or None in owned):
            raise ValueError(
                "federation: `ledgers` need `folder`, a path: accounts lie beside owners' tables "
                "only where `sites.paths` has a file for each"
            )
        if self.public is not None and self.method not in LABEL_PUBLIC:
            takers = ", ".join(LABEL_PUBLIC)
            raise ValueError(f"`public` rows are for the method {takers}, not {self.method}")
        if self.schema_ is None and self.data.builtin is None:
            raise ValueError("`schema` is needed: the path of a schema file, see `fedsynth schema`")
        return self

    @field_serializer("settings")
    def _dump_settings(self, settings: Agreed | None) -> dict[str, Any] | None:
        return None if settings is None else settings.model_dump(mode="json", exclude_none=True)

    @property
    def makes_rows(self) -> bool:
        """Whether rows are drawn from what is learned."""
        return self.method == AUTO or self.method in SYNTHESIZERS

    def to_dict(self) -> dict[str, Any]:
        """Plain content that builds an equal config."""
        content = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        if not self.makes_rows:
            del content["sample"]
        if not self.privacy.budget.private:
            content["privacy"]["epsilon"] = "inf"
        if self.federation.runtime is not None:
            content = {key: part for key, part in content.items() if key not in APART}
        return content

    def save(self, path: Path) -> None:
        """Write a job file, the whole of it or nothing."""
        write_whole(path, yaml_text(self.to_dict()).encode())

    def carried_by(self, carrier: str) -> Config:
        """A copy that says what carries it between machines."""
        federation = self.federation.model_copy(update={"carrier": carrier})
        return self.model_copy(update={"federation": federation})

    def map_paths(self, change: Callable[[str], str]) -> Config:
        """A copy with `change` applied to every path of data."""
        content = self.to_dict()
        for name in {"data", "public"} & set(content):
            content[name] = map_origin(content[name], change)
        ledgers = content["federation"].get("ledgers")
        if ledgers is not None and "folder" in ledgers:
            ledgers["folder"] = change(ledgers["folder"])
        sites = content.get("sites", {})
        if "path" in sites:
            sites["path"] = _map(sites["path"], change)
        if "paths" in sites:
            sites["paths"] = {name: _map(one, change) for name, one in sites["paths"].items()}
        return Config(**content)


def _map(given: str | dict[str, Any], change: Callable[[str], str]) -> str | dict[str, Any]:
    return change(given) if isinstance(given, str) else map_origin(given, change)


def load_config(source: str | Path, changes: Sequence[str] = ()) -> tuple[Config, Path]:
    """Read a job file.

    Args:
        source: its path, or the name of a job that an install brings along ("demo").
        changes: texts such as "privacy.epsilon=1" that take the place of what the file says.

    Returns:
        The job, and the folder that its paths are relative to.

    Raises:
        ConfigError: naming the file, and the key at fault.
    """
    path = _find_job(source)
    content = read_yaml(path, ConfigError)
    for change in changes:
        _change(content, change)
    try:
        config = Config(**{str(key): value for key, value in content.items()})
        if config.settings is not None:
            settings = config.settings.map_paths(lambda text: str(expand_path(text, path.parent)))
            config = config.model_copy(update={"settings": settings})
        return config, path.parent
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def builtin_jobs() -> tuple[str, ...]:
    """Names of the jobs that an install brings along."""
    folder = resources.files("fedsynth") / "configs"
    return tuple(sorted(Path(f.name).stem for f in folder.iterdir() if f.name.endswith(".yaml")))


def _find_job(source: str | Path) -> Path:
    path = demand_path("job", source)
    if path.is_file():
        return path
    jobs = builtin_jobs()
    if str(source) in jobs:
        return Path(str(resources.files("fedsynth") / "configs" / f"{source}.yaml"))
    beside = [str(one) for one in path.parent.glob("*.yaml")]
    near = get_close_matches(str(source), [*jobs, *beside], n=1)
    raise ConfigError(
        f"{source}: no such file, nor a job that comes along{suggestion(source, near or jobs)}"
    )


def _change(content: dict[str, Any], change: str) -> None:
    key, equals, value = change.partition("=")
    steps = key.strip().split(".")
    if not equals or not all(steps):
        raise ConfigError(f"--set {change}: expected key=value, such as privacy.epsilon=1")
    known = [info.alias or name for name, info in Config.model_fields.items()]
    if steps[0] not in known:
        raise ConfigError(f"--set {change}: unknown key {steps[0]!r}{suggestion(steps[0], known)}")
    section = content
    for place, step in enumerate(steps[:-1]):
        section = section.setdefault(step, {})
        if not isinstance(section, dict):
            raise ConfigError(f"--set {change}: {'.'.join(steps[: place + 1])} holds no keys")
    section[steps[-1]] = parse_value(value)
