"""Decimal commas in a table of texts, turned into points where a column leaves no doubt.

A column is written in one way. Where commas stand before its decimals, points part its thousands;
where numbers of both kinds stand in it, it is not touched, or refused if it is to hold numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fedsynth.errors import DataError
from fedsynth.schema import Categorical
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
    table: pa.Table,
    decimal: str | None,
    declared: Mapping[str, Modelled | Identifier],
    where: str,
) -> tuple[pa.Table, str]:
    """The table with every number's decimal comma turned into a point, and what its decimals are.

    Args:
        table: columns of texts.
        decimal: "," or "."; None finds out, and takes commas only where some column's numbers have
            them, none of it says otherwise, and one cannot be a number with thousands parted.
        declared: columns, whose numbers are looked at, and whose dates and texts are let be. Those
            that are not declared hold numbers if half of their cells do.
        where: how to call the table in messages.

    Raises:
        DataError: a column of numbers has commas and points before decimals; or points that part
            thousands, or stand before decimals: nobody said.
    """
    if decimal == ".":
        return table, decimal
    looked_at = {
        place: _Column(table.column(place), _is_number(declared.get(name)))
        for place, name in enumerate(table.column_names)
        if not _is_text(declared.get(name))
        and _any(pc.match_substring_regex(table.column(place), "[.,]"))
    }
    if decimal is None and not any(column.votes for column in looked_at.values()):
        return table, "."
    columns = list(table.columns)
    for place, column in looked_at.items():
        here = f"{where}: column {table.column_names[place]!r}"
        if column.signed and not column.declared:
            # A draft finds the notation of amounts and percentages, and reads them by it.
            continue
        if column.holds_numbers and column.is_read_by_commas(sure=decimal is not None, where=here):
            columns[place] = column.with_points()
    return pa.table(columns, names=table.column_names), ","


def _is_number(column: Modelled | Identifier | None) -> bool:
    return isinstance(column, Integer | Continuous)


def _is_text(column: Modelled | Identifier | None) -> bool:
    """Whether no comma of the column is one of a number."""
    if isinstance(column, Categorical):
        return any("," in str(value) for value in column.categories)
    if isinstance(column, Integer | Continuous) and column.format is not None:
        # Its notation says what its commas and points are.
        return True
    return column is not None and not _is_number(column)


def _any(mask: Any) -> bool:
    return bool(pc.any(mask).as_py())


def _row(mask: Any) -> int:
    """The first row that it holds of, as rows of a file are counted."""
    return int(pc.index(mask, True).as_py()) + 2


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
    def signed(self) -> bool:
        return _any(pc.match_substring_regex(self.texts, "[%€$£¥]"))

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

    def is_read_by_commas(self, *, sure: bool, where: str) -> bool:
        """Whether its numbers have decimal commas, or points between thousands, in such a file.

        sure: whether somebody said that the file has.

        Raises:
            DataError: nobody can tell.
        """
        if _any(self.others):
            if self.declared and _any(self.commas):
                raise DataError(
                    f"{where} has numbers with decimal commas, and in row {_row(self.others)} one "
                    "without; write all alike"
                )
            return False
        if _any(self.commas) or sure:
            return True
        if _any(self.groups):
            raise DataError(
                f"{where} has points where thousands would be parted (row {_row(self.groups)}), "
                'and other columns have decimal commas: say `decimal: ","` if these points part '
                "thousands, else write the file in one way"
            )
        return False

    def with_points(self) -> Any:
        """The texts with a decimal point and nothing between thousands."""
        written = pc.or_(self.commas, self.groups)
        whole = pc.replace_substring(self.texts, ".", "")
        return pc.if_else(written, pc.replace_substring(whole, ",", "."), self.texts)

    def _match(self, number: str) -> Any:
        return pc.match_substring_regex(
            self.texts, rf"^{_BESIDE}[-+]?{_BESIDE}(?:{number}){_BESIDE}$"
        )
