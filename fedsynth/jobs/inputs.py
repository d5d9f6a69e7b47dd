"""What a job reads, in its job file: data, owners and public rows; files and databases.

Paths are relative to the file that names them. `${FEDSYNTH_DATA}` in a path stands for the folder
of data sets: the environment variable, or `../shared/data` beside the project. In an address of a
database any environment variable may stand, and a password must.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar
from urllib.parse import quote, unquote

from pydantic import BeforeValidator, Field, model_validator

from fedsynth.agreed import plain
from fedsynth.data.dialect import Dialect
from fedsynth.data.translation import Translation
from fedsynth.demands import demand_path
from fedsynth.errors import ConfigError
from fedsynth.jobs.sections import Count, Section, Text

DATA_VARIABLE = "FEDSYNTH_DATA"
_BESIDE_PROJECT = Path("..", "shared", "data")

_VARIABLE = re.compile(r"\$\{(\w*)\}")
_LOGIN = re.compile(r"//[^/?]*?:(.*)@")
_SECRET_KEY = re.compile(r"pass|pwd|secret|token|key|credential", re.IGNORECASE)
_FILE_URL = re.compile(r"((?:sqlite|duckdb)(?:\+\w+)?:///)(?!file:|:memory:)([^?]+)(.*)")

Keys = Annotated[
    tuple[str, str],
    BeforeValidator(plain),
    Field(description="the keys of pixels and labels, such as [x, y]"),
]


def _check_path(value: object) -> object:
    # Not quoted: it may hold a password.
    if value is not None and not isinstance(value, str):
        raise ValueError("must be a path")
    if value is not None and "://" in value:
        raise ValueError("holds an address, not a path: databases are read by `url` and `query`")
    return value


def _check_url(value: object) -> object:
    if value is None:
        return None
    # Nothing of it is quoted, for the same reason.
    if not isinstance(value, str):
        raise ValueError("must be a text, the address of a database")
    login = _LOGIN.search(value)
    secrets = [login[1]] if login else []
    for pair in value.partition("?")[2].split("&"):
        key, _, text = pair.partition("=")
        if _SECRET_KEY.search(key) or "pwd" in unquote(text).lower():
            secrets.append(text)
    if any(_VARIABLE.sub("", secret) for secret in secrets):
        raise ValueError(
            "holds a password, which would be handed on with the job file and its release, or stay "
            "in a shell's history: put it into an environment variable, and write ${VARIABLE} in "
            "its place (in single quotes, in a shell)"
        )
    return value


Place = Annotated[str | None, BeforeValidator(_check_path), Field(description="a path")]


class Origin(Section, Dialect):
    """Where a table comes from, a file or a query to a database, and how a file is written.

    Attributes:
        path: a table's file, or a .yaml file that says it and how the table is translated.
        url: a database's address, as SQLAlchemy takes it; give an account that may only read.
        query: whose rows are the table.
    """

    place: ClassVar[str] = "table"

    path: Place = None
    url: Annotated[str | None, BeforeValidator(_check_url)] = None
    query: Text = None

    @model_validator(mode="before")
    @classmethod
    def _check_untranslated(cls, values: Any) -> Any:
        # A job file is part of the release, and whose words these are may have read them in cells.
        for key in () if issubclass(cls, Translation) else Translation.model_fields:
            if key in values:
                raise ValueError(
                    f"`{key}` holds an owner's own words, and a job file is released: put it, with "
                    "the table's `path`, into a .yaml file of the owner's, and name that as `path`"
                )
        return values

    @model_validator(mode="after")
    def _check_origin(self) -> Origin:
        if (self.url is None) != (self.query is None):
            raise ValueError("`url` and `query` go together")
        if self.url is not None and self.path is not None:
            raise ValueError("give `path`, or `url` with `query`")
        if self.url is not None and self.said:
            raise ValueError(f"`{next(iter(self.said))}` is of files: leave it away")
        return self


class Own(Origin, Translation):
    """A table of an owner's file, which is not released: also in which words it is written."""


class Data(Origin):
    """Where the rows are: a file, a database, or a data set that an install brings along.

    Attributes:
        separator, decimal, encoding, sheet: beside `sites.paths`, of every file that does not say
            otherwise.
        keys: of pixels and labels in a .npz file.
        test_keys: of the test images there, which take the place of a holdout.
        source: where the data can be had, for the message when they are not there.
    """

    place: ClassVar[str] = "data"

    builtin: Text = None
    keys: Keys = ("x", "y")
    test_keys: Keys | None = None
    source: Text = None

    @model_validator(mode="after")
    def _check_builtin(self) -> Data:
        if self.builtin is not None and self.said:
            raise ValueError(f"`{next(iter(self.said))}` is of files: leave it away")
        return self


class OwnData(Data, Own):
    """`data` of a site file."""


def origin_of(given: str | Origin) -> Origin:
    """A file's path alone, or more about it."""
    return given if isinstance(given, Origin) else Origin(path=given)


def _build_origin(value: object) -> object:
    """A path stays one, so that a job is saved as it was written."""
    if isinstance(value, Mapping):
        try:
            value = Origin(**{str(key): entry for key, entry in value.items()})
        except ConfigError as error:
            raise ValueError(str(error).removeprefix(f"{Origin.place}: ")) from None
    if isinstance(value, Origin):
        if value.path is None and value.url is None:
            raise ValueError("give `path`, or `url` with `query`")
        return value
    return _check_path(value)


def _build_origins(value: object) -> object:
    if not isinstance(value, Mapping) or not value:
        raise ValueError("must be a path for each owner's name, or `path`, or `url` and `query`")
    built = {}
    for name, entry in value.items():
        try:
            if entry is None:
                raise ValueError("must be a path, or keys: `path`, or `url` and `query`")
            built[str(name)] = _build_origin(entry)
        except ValueError as error:
            raise ValueError(f"of {name}: {error}") from None
    return built


def _spell_names(value: object) -> object:
    """Names are texts, whatever YAML took them for."""
    return [str(plain(name)) for name in value] if isinstance(value, list | tuple) else value


def _names_in(text: str) -> list[str]:
    ends = re.fullmatch(r"(\d+)\.\.(\d+)", text)
    return [text] if ends is None else [str(k) for k in range(int(ends[1]), int(ends[2]) + 1)]


class Sites(Section):
    """Whose rows are whose: a cut among simulated clients, a column, or a file for each owner.

    Attributes:
        clients, scheme: a cut by :func:`fedsynth.partition`, whose options are the other keys.
        column: one client for each value of this column.
        names: those of the column's clients, also of clients without a row; "3..7" stands for five
            whole numbers. Without, a categorical column's values in the schema are the names; else
            they are read off the rows, and the certificate says so.
        path: a file of as many rows that holds `column` (an array of it, for a .npz), or an
            `Origin` of such a table.
        paths: a file, or an `Origin`, for each owner, by name; they take the place of `data.path`.
    """

    place: ClassVar[str] = "sites"

    clients: Count = None
    scheme: Text = None
    beta: Annotated[float | None, Field(description="a number")] = None
    minimum: Annotated[int | None, Field(description="a whole number")] = None
    a: Annotated[float | None, Field(description="a number")] = None
    per_client: Annotated[
        int | list[int] | None, Field(description="a whole number, or one for each client")
    ] = None
    sigma: Annotated[float | None, Field(description="a number")] = None
    column: Text = None
    names: Annotated[
        Annotated[tuple[str, ...], Field(min_length=1)] | None,
        BeforeValidator(_spell_names),
        Field(description="a list of names"),
    ] = None
    path: Annotated[str | Origin | None, BeforeValidator(_build_origin)] = None
    paths: Annotated[dict[str, str | Origin] | None, BeforeValidator(_build_origins)] = None

    @model_validator(mode="after")
    def _check_one_way(self) -> Sites:
        ways = [self.scheme is not None, self.column is not None, self.paths is not None]
        if sum(ways) != 1:
            raise ValueError("give one of `scheme` (with `clients`), `column` and `paths`")
        if self.path is not None and self.column is None:
            raise ValueError("`path` goes with `column`, which it holds")
        if self.names is not None and self.column is None:
            raise ValueError("`names` go with `column`, which holds them")
        if self.scheme is None and (self.clients is not None or self.options):
            raise ValueError("`clients` and options go with `scheme`")
        return self

    @property
    def options(self) -> dict[str, Any]:
        """Options of the scheme that were given."""
        names = ("beta", "minimum", "a", "per_client", "sigma")
        return {n: getattr(self, n) for n in names if getattr(self, n) is not None}

    @property
    def declared(self) -> tuple[str, ...] | None:
        """The names, one by one; None where they are not given."""
        if self.names is None:
            return None
        return tuple(name for text in self.names for name in _names_in(text))


class Public(Origin):
    """Rows that anybody may see, for the method that has its teachers label them (pate).

    A table, or a .npz file of images; labels in it are not looked at.

    Attributes:
        key: of the pixels in a .npz file.
    """

    place: ClassVar[str] = "public"

    key: Annotated[str, Field(description="the key of the pixels, such as x")] = "x"

    @model_validator(mode="after")
    def _check_given(self) -> Public:
        if self.path is None and self.url is None:
            raise ValueError("`path` is needed, or `url` with `query`")
        return self


def map_origin(content: Mapping[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    """A section's plain content with `change` applied to its path, or that of its database."""
    changed = dict(content)
    if isinstance(content.get("path"), str):
        changed["path"] = change(content["path"])
    file = _FILE_URL.fullmatch(content.get("url", ""))
    if file is not None:
        changed["url"] = file[1] + change(file[2]) + file[3]
    return changed


def expand_path(text: str, base: Path) -> Path:
    """A path of a job file that lies in `base`, with `${FEDSYNTH_DATA}` filled in.

    Raises:
        ConfigError: another variable, or no folder of data is known.
    """
    unknown = set(re.findall(r"\$\{(\w*)\}", text)) - {DATA_VARIABLE}
    if unknown:
        raise ConfigError(f"path {text!r}: only ${{{DATA_VARIABLE}}} is filled in")
    filled = text.replace(f"${{{DATA_VARIABLE}}}", str(_data_folder(base)))
    return demand_path("path", base / filled)


def expand_url(url: str, base: Path) -> str:
    """A database's address with variables filled in; a database in a file lies in `base`.

    Raises:
        ConfigError: a variable that is not set.
    """
    login_ends = url.rfind("@")

    def fill(found: re.Match[str]) -> str:
        name = found[1]
        value = str(_data_folder(base)) if name == DATA_VARIABLE else os.environ.get(name)
        if value is None:
            raise ConfigError(f"url: the environment variable {name!r} is not set: set it")
        # In a password any character may stand, and some mean something in an address.
        return quote(value, safe="") if found.start() < login_ends else value

    filled = _VARIABLE.sub(fill, url)
    file = _FILE_URL.fullmatch(filled)
    return filled if file is None else f"{file[1]}{base.absolute() / file[2]}{file[3]}"


def _data_folder(base: Path) -> Path:
    variable = os.environ.get(DATA_VARIABLE)
    if variable:
        return Path(variable).absolute()
    places = (base.absolute(), Path.cwd())
    folders = [up / _BESIDE_PROJECT for place in places for up in (place, *place.parents)]
    return next((folder for folder in folders if folder.is_dir()), folders[0])
