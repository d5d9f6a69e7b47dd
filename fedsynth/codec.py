"""Frozen dataclasses as named arrays and plain JSON, and back, by their fields and type hints.

An array field is an array of its name, and every other field a plain value of its name. A dataclass
that holds arrays is written as if its fields were its owner's. Items of a tuple of such dataclasses
are numbered: `measured 3` where an item has one array, else `3 records`; their plain values are
rows of a list. A mapping is a list of rows, each a key (or the parts of one) and its value.
`Annotated[T, GIVEN]` is not written, and `Annotated[T, Named("other")]` under another name.

A class may say itself how it is written: by `to_dict` and `from_dict` as plain values, by
`to_arrays() -> (arrays, plain)` and `from_arrays(arrays, plain)` as both.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import FedsynthError, ReleaseError

Arrays = Mapping[str, NDArray[Any]]
T = TypeVar("T")

GIVEN = "given"
"""Of a field that is not written: whoever reads the rest knows it, as a schema."""


@dataclass(frozen=True)
class Named:
    """Of a field that is written under another name than its own."""

    name: str


@dataclass(frozen=True)
class _Field:
    """A field that is written: its own name, the one it is written under, type and default."""

    own: str
    name: str
    hint: Any
    default: Any


def pack(value: Any) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """A dataclass's arrays and its plain values, by name; :func:`unpack` is the inverse."""
    arrays: dict[str, NDArray[Any]] = {}
    plain: dict[str, Any] = {}
    for field in _written(value.__class__):
        name, held = field.name, getattr(value, field.own)
        if hasattr(held, "to_arrays"):
            more, plain[name] = held.to_arrays()
            _add(arrays, more)
        elif isinstance(held, np.ndarray):
            _add(arrays, {name: held})
        elif not _has_arrays(field.hint):
            plain[name] = _plain(held)
        elif isinstance(held, tuple):
            rows = [pack(item) for item in held]
            for number, (more, _) in enumerate(rows):
                _add(arrays, {_numbered(name, number, k, more): v for k, v in more.items()})
            plain[name] = [list(row.values()) for _, row in rows]
        elif held is not None:
            more, told = pack(held)
            _add(arrays, more)
            plain |= told
    return arrays, plain


def unpack(kind: type[T], arrays: Arrays, plain: Mapping[str, Any], known: Mapping[str, Any]) -> T:
    """The inverse of :func:`pack`; there may be other arrays and values.

    Args:
        kind: of dataclass; or a union, of which the first that can be read is taken.
        known: the values of :data:`GIVEN` fields, by name.

    Raises:
        ReleaseError: something is missing, or of another kind than the dataclass says.
    """
    found: T = _read(kind, "", arrays, plain, known)
    return found


def _read(hint: Any, name: str, arrays: Arrays, plain: Mapping[str, Any], known: Any) -> Any:
    """What is written under ``name``, as ``hint`` says."""
    if _is_union(hint):
        return _first(hint, name, arrays, plain, known)
    if hint is types.NoneType:
        if name in arrays or plain.get(name) is not None:
            raise ReleaseError(f"{name} is more than nothing")
        return None
    if get_origin(hint) is np.ndarray:
        return _array(hint, name, arrays)
    if hasattr(hint, "from_arrays"):
        return _by_itself(hint.from_arrays, arrays, plain.get(name))
    if get_origin(hint) is tuple and _has_arrays(hint):
        return _items(get_args(hint)[0], name, arrays, plain, known)
    if _has_arrays(hint) or (not name and _has_fields(hint)):
        return _dataclass(hint, arrays, plain, known)
    if name not in plain:
        raise ReleaseError(f"the model's {name} is missing")
    return _value(hint, plain[name], name)


def _dataclass(kind: Any, arrays: Arrays, plain: Mapping[str, Any], known: Any) -> Any:
    written = _written(kind)
    names = {field.own for field in written}
    found = {own.name: known[own.name] for own in fields(kind) if own.name not in names}
    for field in written:
        absent = field.name not in plain and not _has_arrays(field.hint)
        if field.default is not MISSING and absent:
            found[field.own] = field.default
        else:
            found[field.own] = _read(field.hint, field.name, arrays, plain, known)
    return _by_itself(kind, **found)


def _first(hint: Any, name: str, arrays: Arrays, plain: Mapping[str, Any], known: Any) -> Any:
    """As the first member of a union that can be read; nothing first, where it is one."""
    members = sorted(get_args(hint), key=lambda member: member is not types.NoneType)
    fault = None
    for member in members:
        try:
            return _read(member, name, arrays, plain, known)
        except ReleaseError as error:
            fault = fault or (None if member is types.NoneType else error)
    raise fault or ReleaseError(f"the model's {name} is missing")


def _array(hint: Any, name: str, arrays: Arrays) -> NDArray[Any]:
    if name not in arrays:
        raise ReleaseError(f"the model's {name} is missing")
    kind = get_args(get_args(hint)[1])[0]
    if not isinstance(kind, type) or not issubclass(kind, np.number | np.bool_):
        return np.asarray(arrays[name])
    try:
        return np.asarray(arrays[name]).astype(kind, casting="same_kind")
    except TypeError:
        raise ReleaseError(f"the model's {name} is of another kind of numbers") from None


def _items(kind: Any, name: str, arrays: Arrays, plain: Mapping[str, Any], known: Any) -> Any:
    """A tuple of dataclasses that hold arrays."""
    names = [field.name for field in _written(kind) if not _has_arrays(field.hint)]
    leaves = list(_leaves(kind))
    rows = plain.get(name)
    if rows is None:
        # Written before plain values were; then there are as many as there are arrays.
        rows = [()] * sum(one.endswith(f" {leaves[-1]}") for one in arrays)
    if not isinstance(rows, list):
        raise ReleaseError(f"the model's {name} is no list")
    found = []
    for number, row in enumerate(rows):
        if not isinstance(row, list | tuple) or len(row) > len(names):
            raise ReleaseError(f"the model's {name} are of another form")
        own = {
            leaf: arrays[_numbered(name, number, leaf, leaves)]
            for leaf in leaves
            if _numbered(name, number, leaf, leaves) in arrays
        }
        found.append(_dataclass(kind, own, dict(zip(names, row, strict=False)), known))
    return tuple(found)


def _value(hint: Any, plain: Any, name: str) -> Any:
    """A plain value as ``hint`` says. Raises ReleaseError where it is another."""
    origin, parts = get_origin(hint), get_args(hint)
    if hint is Any:
        return plain
    if hasattr(hint, "from_dict"):
        return _by_itself(hint.from_dict, plain)
    if _is_union(hint):
        return _first(hint, name, {}, {name: plain}, {})
    if origin is Literal:
        if plain in parts:
            return plain
    elif origin is tuple and isinstance(plain, list | tuple):
        kinds = [parts[0]] * len(plain) if parts[1:] == (...,) else list(parts)
        if len(kinds) == len(plain):
            return tuple(_value(k, v, name) for k, v in zip(kinds, plain, strict=True))
    elif origin is not None and issubclass(origin, Mapping) and isinstance(plain, list):
        return dict(_row(parts, row, name) for row in plain)
    elif _has_fields(hint) and isinstance(plain, Mapping):
        return _dataclass(hint, {}, plain, {})
    elif hint is float and isinstance(plain, int | float) and not isinstance(plain, bool):
        return float(plain)
    elif isinstance(hint, type) and type(plain) is hint:
        return plain
    raise ReleaseError(f"the model's {name} is not of the kind that it should be")


def _row(parts: tuple[Any, ...], row: Any, name: str) -> tuple[Any, Any]:
    """A mapping's key and value."""
    if not isinstance(row, list | tuple) or not row:
        raise ReleaseError(f"the model's {name} is of another form")
    key = row[:-1] if get_origin(parts[0]) is tuple else row[0]
    return _value(parts[0], key, name), _value(parts[1], row[-1], name)


def _plain(value: Any) -> Any:
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if _has_fields(value):
        written = _written(value.__class__)
        return {field.name: _plain(getattr(value, field.own)) for field in written}
    if isinstance(value, Mapping):
        keys = [list(key) if isinstance(key, tuple) else [key] for key in value]
        return [[*key, _plain(own)] for key, own in zip(keys, value.values(), strict=True)]
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _by_itself(make: Any, *args: Any, **named: Any) -> Any:
    """What a class makes of its parts: a fault of theirs is one of the release."""
    try:
        return make(*args, **named)
    except ReleaseError:
        raise
    except (FedsynthError, KeyError, TypeError, ValueError, AttributeError, IndexError):
        raise ReleaseError("the model's files do not fit together") from None


@cache
def _written(kind: Any) -> tuple[_Field, ...]:
    """The fields of a dataclass that are written."""
    hints = get_type_hints(kind, include_extras=True)
    found = []
    for field in fields(kind):
        hint, name = hints[field.name], field.name
        if get_origin(hint) is Annotated:
            hint, *marks = get_args(hint)
            if GIVEN in marks:
                continue
            name = next((mark.name for mark in marks if isinstance(mark, Named)), name)
        default = field.default
        if field.default_factory is not MISSING:
            default = field.default_factory()
        found.append(_Field(field.name, name, hint, default))
    return tuple(found)


@cache
def _has_arrays(hint: Any) -> bool:
    """Whether anything of the type is written as an array."""
    if get_origin(hint) is np.ndarray or hasattr(hint, "to_arrays"):
        return True
    if hasattr(hint, "to_dict"):
        return False
    if _has_fields(hint):
        return any(_has_arrays(field.hint) for field in _written(hint))
    return any(_has_arrays(part) for part in get_args(hint) if part is not ...)


def _leaves(kind: Any) -> Iterator[str]:
    """Names of a dataclass's arrays, those of dataclasses in it included."""
    for field in _written(kind):
        if get_origin(field.hint) is np.ndarray:
            yield field.name
        elif _has_arrays(field.hint):
            yield from _leaves(field.hint)


def _numbered(name: str, number: int, leaf: str, leaves: Any) -> str:
    return f"{name} {number}" if len(leaves) == 1 else f"{number} {leaf}"


def _has_fields(hint: Any) -> bool:
    return is_dataclass(hint)


def _is_union(hint: Any) -> bool:
    return get_origin(hint) in (Union, types.UnionType)


def _add(arrays: dict[str, NDArray[Any]], more: Arrays) -> None:
    twice = arrays.keys() & more.keys()
    assert not twice, f"two arrays of a name: {sorted(twice)}"
    arrays.update(more)
