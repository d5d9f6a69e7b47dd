"""Evaluate synthetic rows: fidelity, utility, and attacks on privacy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, cast

import pandas as pd

from fedsynth.agreed import demand_whole
from fedsynth.data.images import demand_rows
from fedsynth.demands import demand_flag, demand_kind, demand_names, demand_path
from fedsynth.errors import ConfigError, DataError
from fedsynth.evaluation.attacks.anonymity import Anonymity, anonymity
from fedsynth.evaluation.attacks.suite import Privacy
from fedsynth.evaluation.comparing import (
    Data,
    Models,
    Progress,
    compare_images,
    compare_tables,
    seconds,
)
from fedsynth.evaluation.findings.results import Results, successful_attacks
from fedsynth.evaluation.findings.summary import Summary, summarise
from fedsynth.evaluation.measures.fidelity import Fidelity
from fedsynth.evaluation.measures.images import ImageFidelity
from fedsynth.evaluation.measures.utility import Utility
from fedsynth.evaluation.reading.labelled import task_of
from fedsynth.evaluation.reading.notes import Note, texts_by_part
from fedsynth.evaluation.reading.released import (
    Released,
    errors_of,
    is_release,
    read_released,
)
from fedsynth.evaluation.yardsticks import Yardstick, demand_yardsticks
from fedsynth.markup import Html
from fedsynth.plain import make_jsonable
from fedsynth.privacy.trail.certificate import Certificate, version_of
from fedsynth.progress import Display, showing
from fedsynth.schema import ImageSchema, Schema, demand_schema
from fedsynth.schema.cells import read_keys
from fedsynth.schema.drafting import draft
from fedsynth.views import Shown, View

FORMAT = 1
PRIVATE = "computed on real data: not covered by epsilon, do not publish beside the release"
PUBLIC = "computed on real rows that were declared public"
_DRAFTED = Note(
    "data",
    "",
    "No schema was given: kinds, bounds and categories were read off the real rows, so values "
    "outside them are those that the real rows lack.",
)


@dataclass(frozen=True, repr=False)
class Evaluation(Shown):
    """What an evaluation found; `save` writes it as a page and as JSON.

    Attributes:
        fidelity, utility: of tables; None for images, utility also where there is no target.
        images: of images.
        privacy: attacks.
        summary: the verdict, four figures, what to beware of.
        public: whether it was computed on public rows alone, so that it may be published.
        about: what was compared, as in the JSON's "data".
        certificate: the release's, in brief; None without one.
        clients: scores by owner, if some were computed.
        yardsticks: the rows beside those of synthesizers without privacy, where some were asked.
        errors: how far counts of columns and pairs may be off by the noise in them, of a model that
            tells (:meth:`fedsynth.AIM.errors`).
        notes: what was sampled, left out or drafted, as sentences that know their part.
    """

    title: str
    fidelity: Fidelity | None
    utility: Utility | None
    images: ImageFidelity | None
    privacy: Privacy
    summary: Summary
    public: bool
    about: dict[str, Any]
    certificate: dict[str, Any] | None
    notes: tuple[Note, ...]
    seed: int
    clients: tuple[dict[str, Any], ...] | None = None
    yardsticks: tuple[Yardstick, ...] = ()
    errors: tuple[dict[str, Any], ...] | None = None

    @property
    def caught(self) -> list[str]:
        """Names of the attacks that told training rows from others."""
        return successful_attacks(self.privacy)

    def _view(self) -> View:
        from fedsynth.evaluation.report import brief

        return brief.view(self._first_screen(), self.caught)

    def _html(self) -> Html:
        from fedsynth.evaluation.report import brief

        return brief.html(self._first_screen(), self.caught)

    def _first_screen(self) -> dict[str, Any]:
        """Of :meth:`to_dict` what needs no pass over all figures."""
        summary = make_jsonable(asdict(self.summary))
        return {
            "title": self.title,
            "data": self.about,
            "disclosure": self._disclosure,
            "summary": summary,
            "notes": [note for note in self.notes if note.part == "utility"],
        }

    @property
    def _disclosure(self) -> dict[str, Any]:
        return {"public": self.public, "text": PUBLIC if self.public else PRIVATE}

    def to_dict(self) -> dict[str, Any]:
        """All of it, as the report's JSON: plain values, None for what is no finite number."""
        content = {
            "format": FORMAT,
            "fedsynth": version_of("fedsynth"),
            "seed": self.seed,
            "title": self.title,
            "data": self.about,
            "disclosure": self._disclosure,
            "certificate": self.certificate,
            "summary": asdict(self.summary),
            "fidelity": None if self.fidelity is None else asdict(self.fidelity),
            "utility": None if self.utility is None else asdict(self.utility),
            "privacy": asdict(self.privacy),
            "images": None if self.images is None else asdict(self.images),
            "clients": None if self.clients is None else list(self.clients),
            "yardsticks": [asdict(one) for one in self.yardsticks] or None,
            "errors": None if self.errors is None else list(self.errors),
            "notes": list(self.notes),
            "reasons": texts_by_part([*self.privacy.skipped, *self.notes]),
        }
        return dict(make_jsonable(content))

    def save(self, folder: str | Path) -> tuple[Path, Path]:
        """Write `report.html`, one page that needs nothing else, and `report.json`; their paths.

        Unless they are public they, and a folder that is made for them, are this user's alone.
        """
        from fedsynth.evaluation.report import save

        return save(self.to_dict(), demand_path("folder", folder), private=not self.public)


def evaluate(
    release: Released | Data | None = None,
    /,
    synthetic: Data | None = None,
    schema: Schema | ImageSchema | None = None,
    *,
    real: Data | None = None,
    train: Data | None = None,
    target: str | None = None,
    public: bool = False,
    certificate: Certificate | None = None,
    models: Models = "standard",
    secrets: Sequence[str] | str | None = None,
    quasi_identifiers: Sequence[str] | str = (),
    sensitive: Sequence[str] | str = (),
    against: Sequence[str] | str = (),
    title: str = "Synthetic rows",
    seed: int = 0,
    progress: Progress | bool = True,
) -> Evaluation:
    """Score synthetic rows, of any tool, against real ones.

    `evaluate(release, real=held_out)` judges a release's rows, or as many as there are real ones
    that a synthesizer draws; `evaluate(real=.., synthetic=..)`, or without the names in this order,
    the rows of any tool.

    Args:
        release: the folder of one, or a synthesizer, fitted or loaded: it brings its schema and
            certificate along.
        synthetic: the rows to judge, in place of a release.
        schema: of all tables; None drafts one from `real` and says so.
        real: real rows that the generator never saw: everything is measured against them.
        train: the rows that the generator learned from. Attacks need them; without them the
            reference "other real rows" is one half of `real`, and the other half is what all is
            measured against.
        target: the column to predict, where a schema is drafted; other schemas name theirs.
        public: whether all real rows given are public. If not, the result is itself private.
        certificate: of the release, to be quoted.
        models: the models to train: "standard", a handful; "thorough", all; or names (see
            `utility`).
        secrets: columns that attackers try to infer; by default the target and five more.
        quasi_identifiers, sensitive: columns for the k-anonymity family, which is computed where
            they are named (needs the extra `anonymity`).
        against: yardsticks to score beside the rows: "copula", "ctgan", "tvae", SDV's synthesizers
            (needs the extra `sdv`), which learn from `train` without any privacy.
        title: how the report calls the rows.
        seed: of every sample and model.
        progress: True shows it on a terminal or in a notebook, False nowhere; or what is to be
            called with a part's name, its steps done and all of them.

    Raises:
        ConfigError: arguments that do not go together.
        DataError: a table that does not fit the schema, or is too small: at least two real rows.
        ReleaseError: a release that cannot be read.
    """
    seed = _demand_plain(seed, title, models, public)
    if release is not None and not is_release(release, synthetic):
        if real is not None:
            raise ConfigError("real rows are given twice: once without a name, once as real=..")
        real = cast(Data, release)
    elif release is not None:
        beside: dict[str, object] = {
            "synthetic": synthetic,
            "schema": schema,
            "target": target,
            "certificate": certificate,
        }
        synthetic, schema, certificate = read_released(release, seed, real, beside)
    sides = _demand_data({"real": real, "synthetic": synthetic, "train": train})
    agreed = schema is not None
    schema, notes = _agree(schema, sides, target)
    if certificate is not None:
        demand_kind("certificate", certificate, Certificate, "a Certificate")
    attacked = _attacked(schema, secrets, quasi_identifiers, sensitive)
    yardsticks = _demand_against(against, schema, train)
    with showing(progress) as report:
        if isinstance(report, Display) and isinstance(schema, Schema):
            report.expect(*seconds(sides, len(schema.observed), models))
        results, more = _compare(sides, schema, agreed, attacked, yardsticks, models, seed, report)
    brief = None if certificate is None else _brief(certificate)
    return Evaluation(
        title=title,
        fidelity=results.fidelity,
        utility=results.utility,
        images=results.images,
        privacy=results.privacy,
        summary=_summarise(results, public, brief),
        public=public,
        about=_about(schema, sides),
        certificate=brief,
        notes=(*notes, *more),
        seed=seed,
        yardsticks=results.yardsticks,
        errors=errors_of(release),
    )


def _demand_against(
    against: Sequence[str] | str, schema: Schema | ImageSchema, train: Data | None
) -> tuple[str, ...]:
    """The yardsticks' names, which go with tables, and with rows to learn from."""
    names = demand_yardsticks(against)
    if names and isinstance(schema, ImageSchema):
        raise ConfigError("yardsticks are of tables: leave `against` away for images")
    if names and train is None:
        raise ConfigError("yardsticks learn from the rows that were learned from: give `train`")
    return names


def _agree(
    schema: Schema | ImageSchema | None, sides: Mapping[str, Data | None], target: str | None
) -> tuple[Schema | ImageSchema, list[Note]]:
    """The schema given, or one drafted from the real rows and a note of that."""
    real, train = sides["real"], sides["train"]
    if schema is not None:
        if target is not None:
            raise ConfigError("the schema names the target: leave `target` away, or the schema")
        return demand_schema(schema, "evaluate"), []
    if not isinstance(real, pd.DataFrame):
        raise ConfigError("images cannot be evaluated without a schema: give one")
    drafted = draft(real, target).schema
    if isinstance(train, pd.DataFrame) and drafted.person in train:
        codes, _ = read_keys(train[drafted.person], drafted.missing_values)
        if (codes < 0).any():
            # Nobody said that this is whose a row is, so gaps are no fault.
            drafted = drafted.model_copy(update={"person": None})
    return drafted, [_DRAFTED]


@dataclass(frozen=True)
class _Attacked:
    """The columns that attacks are about, as named in the arguments of `evaluate`."""

    secrets: Sequence[str] | None
    quasi_identifiers: tuple[str, ...]
    sensitive: tuple[str, ...]


def _compare(
    sides: Mapping[str, Data | None],
    schema: Schema | ImageSchema,
    agreed: bool,
    attacked: _Attacked,
    against: Sequence[str],
    models: Models,
    seed: int,
    progress: Progress,
) -> tuple[Results, list[Note]]:
    if isinstance(schema, ImageSchema):
        return compare_images(sides, schema, seed=seed, progress=progress)
    # First, since it is quick, and a column that it does not know would stop all.
    family = _anonymity(sides, schema, attacked)
    results, notes = compare_tables(
        sides,
        schema,
        agreed,
        models=models,
        secrets=attacked.secrets,
        against=against,
        seed=seed,
        progress=progress,
    )
    return replace(results, privacy=replace(results.privacy, anonymity=family)), notes


def _demand_data(sides: dict[str, Data | None]) -> dict[str, Data | None]:
    try:
        return {
            side: None if data is None and side == "train" else demand_rows(data, side)
            for side, data in sides.items()
        }
    except DataError as error:
        known = "evaluate(real=.., synthetic=..) or evaluate(release, real=..)"
        raise DataError(f"{error}. Call {known}") from None


def _demand_plain(seed: object, title: object, models: object, public: object) -> int:
    demand_kind("title", title, str, "a text")
    demand_flag("public", public)
    if not isinstance(models, str | Sequence):
        raise ConfigError('models must be "standard", "thorough" or a list of names')
    return demand_whole("seed", seed, 0)


def _attacked(
    schema: Schema | ImageSchema,
    secrets: Sequence[str] | str | None,
    quasi_identifiers: Sequence[str] | str,
    sensitive: Sequence[str] | str,
) -> _Attacked:
    names = [] if isinstance(schema, ImageSchema) else [one.name for one in schema.observed]
    if not names and any(len(given or ()) for given in (secrets, quasi_identifiers)):
        raise ConfigError("images have no quasi-identifiers and no secrets: leave them out")
    known = demand_names("quasi_identifiers", quasi_identifiers, names)
    hidden = demand_names("sensitive", sensitive, names)
    if hidden and not known:
        raise ConfigError(
            "sensitive columns are looked at beside quasi-identifiers: name those, too"
        )
    sought = None if secrets is None else demand_names("secrets", secrets, names)
    return _Attacked(sought, known, hidden)


def _summarise(results: Results, public: bool, brief: dict[str, Any] | None) -> Summary:
    epsilon = None if brief is None else brief["epsilon"]
    return summarise(results, public=public, epsilon=epsilon, certified=brief is not None)


def _anonymity(
    sides: Mapping[str, Data | None], schema: Schema, attacked: _Attacked
) -> Anonymity | None:
    if not attacked.quasi_identifiers:
        return None
    tables = {}
    for side in ("synthetic", "real"):
        data = sides[side]
        if not isinstance(data, pd.DataFrame):
            raise DataError(f"{side}: the schema is a table's and the data are images")
        tables[side] = data
    return anonymity(tables, schema, attacked.quasi_identifiers, attacked.sensitive)


def _about(schema: Schema | ImageSchema, sides: Mapping[str, Data | None]) -> dict[str, Any]:
    rows = {side: None if data is None else len(data) for side, data in sides.items()}
    if isinstance(schema, Schema):
        columns, target, kind = len(schema.observed), schema.target, "table"
    else:
        columns, kind = math.prod(schema.shape), "image"
        target = None if schema.target is None else schema.target.name
    return {
        "kind": kind,
        "columns": columns,
        "target": target,
        "task": task_of(schema),
        "rows": rows,
    }


def _brief(certificate: Certificate) -> dict[str, Any]:
    """What a report quotes of a certificate."""
    content = certificate.content
    guarantee, epsilon = content["guarantee"], certificate.epsilon
    holds = certificate.void is None and math.isfinite(epsilon)
    return {
        "sentence": certificate.sentence,
        "date": content.get("date"),
        "method": content.get("method"),
        "owners": content.get("clients"),
        "fedsynth": content["fedsynth"],
        "epsilon": epsilon if holds else None,
        "delta": guarantee["delta"],
        "unit": guarantee["unit"],
        "trust": guarantee["trust"],
        "head": content["ledger"]["head"],
        "adversaries": list(content.get("adversaries", ())),
        "not_covered": list(content["not_covered"]),
        "cautions": list(content["cautions"]),
    }
