"""Values agreed between parties: immutable, validated at construction, errors say what to do."""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from numbers import Integral, Number, Real
from pathlib import Path
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from fedsynth.errors import ConfigError, FedsynthError, SchemaError


class Agreed(BaseModel):
    """A frozen record with known keys only; a fault at construction is raised as `fault`.

    Subclasses describe each field (`Field(description="a whole number")`): the message says what
    the field must be in those words, since pydantic's own text is not written for the reader.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    fault: ClassVar[type[FedsynthError]] = SchemaError
    renamed: ClassVar[Mapping[str, str]] = {}
    """Names that fields had before, and those that they have now: files of then still load."""

    unnamed: ClassVar[str] = ""
    """What to do in place of giving something without a name."""

    def __init__(self, *given: object, **values: object) -> None:
        if given:
            fields = ", ".join(self.__class__.model_fields)
            raise self.fault(
                f"{type(self).__name__} takes its fields by name ({fields}), not "
                f"{shown(given[0])}{self.unnamed}"
            )
        for before, now in self.renamed.items():
            if before in values:
                if now in values:
                    raise self.fault(
                        f"{self.whereabouts(values)}: `{before}` is now called `{now}`: give one"
                    )
                values[now] = values.pop(before)
        try:
            super().__init__(**values)
        except ValidationError as error:
            where = self.whereabouts(values)
            # A union reports one fault for each of its members.
            faults = dict.fromkeys(_fault(type(self), details) for details in error.errors())
            raise self.fault(f"{where}: {'; '.join(faults)}") from None

    def __repr_args__(self) -> Iterator[tuple[str, object]]:
        return self.changed()

    def __str__(self) -> str:
        return repr(self)

    def changed(self) -> Iterator[tuple[str, object]]:
        """What differs from the defaults, cut short where it is long."""
        for name, info in type(self).model_fields.items():
            value = getattr(self, name)
            if info.is_required() or value != info.get_default(call_default_factory=True):
                yield name, _Cut(value)

    @classmethod
    def whereabouts(cls, values: Mapping[str, Any]) -> str:
        """Name what is being built, for the head of an error message."""
        return cls.__name__


class _Cut:
    """A value whose repr is that of its beginning, where it is long."""

    _short = reprlib.Repr()
    _short.maxtuple = _short.maxlist = _short.maxdict = 10
    _short.maxstring = _short.maxother = 80

    def __init__(self, value: object) -> None:
        self._value = value

    def __repr__(self) -> str:
        return self._short.repr(self._value)


def suggestion(word: object, known: Iterable[str]) -> str:
    """`"; did you mean 'lower'?"` where a known word is near, in whatever case, else the
    list of known words."""
    import difflib

    words = sorted(known)
    folded = {each.casefold(): each for each in words}
    near = difflib.get_close_matches(str(word).casefold(), folded, n=1, cutoff=0.6)
    return f"; did you mean {folded[near[0]]!r}?" if near else f"; known are {', '.join(words)}"


def demand_whole(name: str, value: object, least: int) -> int:
    """The value as an int; ConfigError for what is no whole number of at least ``least``."""
    whole: int | None = None
    # NumPy's are Integral and Real too; 1e6 is a whole number.
    if isinstance(value, Integral):
        whole = None if isinstance(value, bool) else int(value)
    elif isinstance(value, Real) and float(value).is_integer():
        whole = int(float(value))
    if whole is None or whole < least:
        raise ConfigError(f"{name} must be a whole number of at least {least}, not {shown(value)}")
    return whole


def shown(value: object) -> str:
    """What was given, for an error: plain values as they are written; of all else the kind alone,
    for tables and lists may hold private cells."""
    if value is None or isinstance(value, str | Number | Path):
        return f"{value!r:.80}"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    kind = type(value).__name__
    return f"{'an' if kind[0].lower() in 'aeiou' else 'a'} {kind}"


def plain(value: object) -> object:
    """Turn NumPy scalars and arrays into Python's own, so that types are kept as declared."""
    # Where nobody imported NumPy, no value is of it.
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic):
        return value.item()
    if numpy is not None and isinstance(value, numpy.ndarray):
        return value.tolist()
    if isinstance(value, list | tuple | range):
        return [plain(entry) for entry in value]
    return value


def _fault(model: type[BaseModel], details: ErrorDetails) -> str:
    location = details["loc"]
    field = str(location[0]) if location else ""
    kind = details["type"]
    if kind == "extra_forbidden":
        known = [info.alias or name for name, info in model.model_fields.items()]
        return f"unknown key {field!r}{suggestion(field, known)}"
    if kind == "missing":
        return f"`{field}` is needed: {_expected(model, field)}"
    if kind == "value_error":
        # Raised by our own validators, hence already written for the reader.
        message = str(details["ctx"]["error"])
        return f"`{field}` {message}" if field else message
    entry = details["input"]
    given = f"{entry!r:.80}" if isinstance(entry, list | tuple | dict) else shown(entry)
    position = next((f" (entry {part + 1})" for part in location[1:] if isinstance(part, int)), "")
    return f"`{field}`{position} must be {_expected(model, field)}, not {given}"


def _expected(model: type[BaseModel], field: str) -> str:
    named = (info for name, info in model.model_fields.items() if field in (name, info.alias))
    info = next(named, None)
    return (info.description if info is not None else None) or "of another type"
