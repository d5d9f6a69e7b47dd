"""Decimal commas in a table of texts, turned into points where a column leaves no doubt.

A column is written in one way. Where commas stand before its decimals, points part its thousands;
where numbers of both kinds stand in it, it is not touched, or refused if it is to hold numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fedsynth.errors import DataError
from fedsynth.schema import Categorical, Schema
from fedsynth.schema.columns import Continuous, Identifier, Integer, Modelled

_HALF = 0.5
_BESIDE = r"[\s\x{00a0}\x{202f}%€$£¥]*"
_GROUPS = r"[1-9]\d{0,2}(?:\.\d{3})+"
_COMMA = rf"(?:{_GROUPS}|\d*),\d+(?:[eE][-+]?\d+)?"
_THOUSAND = r"[1-9]\d{0,2},\d{3}"
_POINT = r"\d*\.\d+(?:[eE][-+]?\d+)?"
_ENGLISH = r"\d{1,3}(?:,\d{3})+\.\d+"
_LIST = r"\d+(?:,\d+){2,}"


def read_decimals(
    table: pa.Table, decimal: str | None, schema: Schema | None, where: str
) -> tuple[pa.Table, str]:
    """The table with every number's decimal comma turned into a point, and what its decimals are.

    Args:
        table: columns of texts.
        decimal: "," or "."; None finds out, and takes commas only where some column's numbers have
            them, none of it says otherwise, and one cannot be a number with thousands parted.
        schema: whose numbers are looked at, and whose dates and texts are let be. Columns that it
            does not declare hold numbers if half of their cells do.
        where: how to call the table in messages.

    Raises:
        DataError: a column of numbers has commas and points before decimals; or points that part
            thousands, or stand before decimals: nobody said.
    """
    columns = {
        name: _Column(values, _is_number(name, schema))
        for name, values in zip(table.column_names, table.columns, strict=True)
        if not _is_text(name, schema) and _any(pc.match_substring_regex(values, "[.,]"))
    }
    if decimal is None:
        decimal = "," if any(column.votes for column in columns.values()) else "."
        sure = False
    else:
        sure = True
    if decimal == ".":
        return table, decimal
    for name, column in columns.items():
        if not column.holds_numbers:
            continue
        place = table.column_names.index(name)
        if _any(column.commas) and _any(column.others):
            if column.declared:
                row = pc.index(column.others, True).as_py() + 2
                raise DataError(
                    f"{where}: column {name!r} has numbers with decimal commas, and in row {row} "
                    "one without; write all alike"
                )
        elif _any(column.commas) or (sure and _any(column.groups) and not _any(column.others)):
            table = table.set_column(place, name, column.with_points())
        elif _any(column.groups) and not _any(column.others):
            row = pc.index(column.groups, True).as_py() + 2
            raise DataError(
                f"{where}: column {name!r} has points where thousands would be parted (row {row}), "
                'and other columns have decimal commas: say `decimal: ","` if these points part '
                "thousands, else write the file in one way"
            )
    return table, decimal


def _is_number(name: str, schema: Schema | None) -> bool:
    return isinstance(_declared(name, schema), Integer | Continuous)


def _is_text(name: str, schema: Schema | None) -> bool:
    """Whether no comma of the column is one of a number."""
    column = _declared(name, schema)
    if isinstance(column, Categorical):
        return any("," in str(value) for value in column.categories)
    return column is not None and not isinstance(column, Integer | Continuous)


def _declared(name: str, schema: Schema | None) -> Modelled | Identifier | None:
    columns = () if schema is None else schema.columns
    return next((column for column in columns if column.name == name), None)


def _any(mask: Any) -> bool:
    return bool(pc.any(mask).as_py())


def _count(mask: Any) -> int:
    return int(pc.sum(mask).as_py() or 0)


@dataclass(frozen=True)
class _Column:
    """The texts of a column, and whether a schema says that they are numbers.

    commas, groups, others: masks of the cells that are numbers with a decimal comma, with points
    that may part thousands, with a decimal point or with several commas.
    """

    texts: Any
    declared: bool

    @cached_property
    def commas(self) -> Any:
        return self._match(_COMMA)

    @cached_property
    def groups(self) -> Any:
        return self._match(_GROUPS)

    @cached_property
    def others(self) -> Any:
        return pc.and_not(self._match(rf"{_POINT}|{_ENGLISH}|{_LIST}"), self.groups)

    @cached_property
    def holds_numbers(self) -> bool:
        if self.declared:
            return True
        numbers = _count(self._match(rf"\d+|{_COMMA}|{_GROUPS}|{_POINT}|{_ENGLISH}"))
        return numbers >= _HALF * max(1, _count(pc.not_equal(self.texts, "")))

    @property
    def votes(self) -> bool:
        """Whether it says that the file has decimal commas."""
        return (
            _any(pc.and_not(self.commas, self._match(_THOUSAND)))
            and not _any(self.others)
            and self.holds_numbers
        )

    def with_points(self) -> Any:
        """The texts with a decimal point and nothing between thousands."""
        written = pc.or_(self.commas, self.groups)
        whole = pc.replace_substring(self.texts, ".", "")
        return pc.if_else(written, pc.replace_substring(whole, ",", "."), self.texts)

    def _match(self, number: str) -> Any:
        return pc.match_substring_regex(
            self.texts, rf"^{_BESIDE}[-+]?{_BESIDE}(?:{number}){_BESIDE}$"
        )
