"""What of a column is not learned, or comes back otherwise than it went in."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pandas as pd

from fedsynth.schema.cells import read_cells, texts_of
from fedsynth.schema.columns import (
    Categorical,
    Continuous,
    Datetime,
    Identifier,
    Integer,
    Modelled,
    text_of,
)
from fedsynth.schema.columns.declaration import TEXTS
from fedsynth.schema.findings import Finding, percent
from fedsynth.schema.proposing import are_exact
from fedsynth.schema.reading import Reading
from fedsynth.schema.rounding import round_to_grid
from fedsynth.schema.spelling import draw_identifiers, spell, write_texts


def describe_losses(
    column: Modelled | Identifier, read: Reading, series: pd.Series
) -> Iterator[Finding]:
    """What is lost of a series that was read so and for which this column was drafted."""
    if read.known.empty:
        yield Finding(column.name, "empty", "holds no value: there is nothing to learn")
        return
    yield from _describe_cut(column, read)
    yield from _describe_dtype(column, read, series)
    if isinstance(column, Integer | Continuous):
        yield from _describe_sentinel(column, read)
    if isinstance(column, Continuous):
        values = read.values.to_numpy(dtype=np.float64)
        if not are_exact(values, read.known, column.decimals):
            text = f"numbers are rounded to {column.decimals} decimals"
            yield Finding(column.name, "rounded", text)
    if (
        isinstance(column, Datetime)
        and (read.values.dt.nanosecond + read.values.dt.microsecond).any()
    ):
        yield Finding(column.name, "rounded", "times are cut to whole seconds")
    if isinstance(column, Integer | Continuous | Datetime) and column.dtype in TEXTS:
        yield from _describe_spelling(column, read)


_PLAIN = (str, int, float, np.bool_, np.integer, np.floating)
_SENTINEL = re.compile(r"-?(?:9+|1|8+)")


def _describe_sentinel(column: Integer | Continuous, read: Reading) -> Iterator[Finding]:
    """A number such as -999, farther from all others than these are from each other."""
    found, counts = np.unique(read.values.to_numpy(dtype=np.float64), return_counts=True)
    if len(found) < 4:
        return
    for value, count, others in (
        (found[0], counts[0], found[1:]),
        (found[-1], counts[-1], found[:-1]),
    ):
        gap = np.abs(others - value).min()
        if count > 1 and gap > np.ptp(others) and _SENTINEL.fullmatch(f"{value:.15g}"):
            yield Finding(
                column.name,
                "sentinel",
                f"{count:,} cells are one number, far from all others: if it stands for missing, "
                f"add it to `missing_values` and narrow the bounds",
                (f"{value:.15g}",),
            )


def _describe_cut(column: Modelled | Identifier, read: Reading) -> Iterator[Finding]:
    if isinstance(column, Categorical) and column.other is not None:
        texts = texts_of(read.known)
        kept = texts.isin({text_of(value) for value in column.values})
        yield Finding(
            column.name,
            "cut",
            f"{texts.nunique():,} values, {len(column.values):,} kept: "
            f"{percent((~kept).mean())} of the rows become {column.other!r}",
        )


def _describe_dtype(
    column: Modelled | Identifier, read: Reading, series: pd.Series
) -> Iterator[Finding]:
    """That the dtype, or the type of a text column's cells, becomes another."""
    if isinstance(column, Identifier):
        made = draw_identifiers(column, 0, np.random.default_rng(0)).dtype
    else:
        made = spell(np.empty(0), column).dtype
    if not _is_same(series.dtype, made):
        if isinstance(column, Integer | Continuous) and isinstance(read.known.iloc[0], str):
            text = f"its texts are plain numbers, and come back as such ({made})"
        else:
            text = f"is {_word(series.dtype)}, and comes back as {_word(made)}"
        yield Finding(column.name, "dtype", text)
    elif isinstance(column, Categorical):
        others = {
            kind.__name__ for kind in {*map(type, read.known)} if not issubclass(kind, _PLAIN)
        }
        if others:
            text = f"its values of type {', '.join(sorted(others))} come back as texts"
            yield Finding(column.name, "dtype", text)


def _is_same(before: object, after: object) -> bool:
    if isinstance(before, pd.CategoricalDtype) and isinstance(after, pd.CategoricalDtype):
        # To pandas the order of unordered categories is no difference.
        return before.ordered == after.ordered and before.categories.equals(after.categories)
    # Time zones of two libraries differ in nothing but the library.
    return before == after or str(before) == str(after) != "category"


def _word(dtype: object) -> str:
    if isinstance(dtype, pd.CategoricalDtype):
        return f"a category of {len(dtype.categories):,} values ({dtype.categories.dtype})"
    return str(dtype)


def _describe_spelling(column: Integer | Continuous | Datetime, read: Reading) -> Iterator[Finding]:
    """How many texts do not come back letter by letter."""
    positions, distinct = pd.factorize(read.known)
    found = pd.Series(distinct, dtype=object, name=column.name)
    cells = read_cells(found, column, ())
    spelled = write_texts(round_to_grid(cells.values.astype(np.float64), column), column)
    other = (spelled != found.map(_stripped)).to_numpy()
    if other.any():
        first = int(np.flatnonzero(other)[0])
        yield Finding(
            column.name,
            "spelling",
            f"{other[positions].sum():,} of {len(positions):,} cells come back in the column's "
            f"common spelling",
            (text_of(found[first]), str(spelled[first])),
        )


def _stripped(cell: object) -> object:
    return cell.strip() if isinstance(cell, str) else cell
