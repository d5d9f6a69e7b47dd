"""A proposal of columns from the rows of a table: convenient, private, and to be reviewed.

Bounds, categories and decimals are read off private rows, which no epsilon covers. A schema made
of them says `private-data` until its owner has replaced them by public knowledge. What is not
learned, cut or outside the draft is told beside it: nothing is dropped without a word.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.errors import DataError, SchemaError
from fedsynth.schema.columns import (
    Boolean,
    Categorical,
    Continuous,
    Datetime,
    Identifier,
    Integer,
    Modelled,
    text_of,
)
from fedsynth.schema.differences import compare
from fedsynth.schema.findings import Finding, percent
from fedsynth.schema.frames import demand_frame
from fedsynth.schema.reading import (
    Reading,
    describe_reading,
    is_endless,
    means_missing,
    read_series,
)
from fedsynth.schema.screening import screen
from fedsynth.schema.table import Schema
from fedsynth.views import Shown, View

_LARGEST_EXACT = 2**53
_MOST_CATEGORIES = 5_000
_FEW_NUMBERS, _FEW_LABELS = 10, 50
_FEWEST_KEYS = 10
"""So many distinct values at least make a key: fewer may be distinct by chance."""

_KEY_NAME = re.compile(r"(^|[\W_])(id|key|index|uuid)$", re.IGNORECASE)
_NUMBERED = re.compile(r"(.*?)0*[1-9]\d*")


@dataclass(frozen=True, repr=False)
class Draft(Shown):
    """A proposed schema and what its owner is to look at, column by column.

    The findings quote private cells: for the owner's eyes only.
    """

    schema: Schema
    findings: tuple[Finding, ...]

    def _view(self) -> View:
        from fedsynth.schema.showing import view_draft

        return view_draft(self)


def draft(tables: pd.DataFrame | Mapping[str, pd.DataFrame], target: str | None = None) -> Draft:
    """Propose a schema from a table's rows, with provenance `private-data`, and say what is odd.

    The schema allows every row, but for the cells that the findings name.

    Args:
        tables: one table, or each owner's, by name: then the draft is of all their rows together,
            and how the owners differ is told first.
        target: the column to predict.

    Raises:
        DataError: if a table has no rows, or columns without or with the same name.
        SchemaError: if there is no such target, or it has missing values.
    """
    given = tables if isinstance(tables, Mapping) else {"table": tables}
    if not given:
        raise DataError("there is no table to draft a schema from")
    owners = {owner: demand_frame(table, owner) for owner, table in given.items()}
    for owner, frame in owners.items():
        if frame.empty:
            raise DataError(f"{owner}: has no rows to draft a schema from")
    names = list(dict.fromkeys(name for frame in owners.values() for name in frame.columns))
    differences: list[Finding] = []
    proposals = []
    for name in names:
        found, differ = _propose_together(name, owners, is_target=name == target)
        proposals.append(found)
        differences += differ
    seen = Counter[str]()
    for proposal in proposals:
        seen.update(proposal.markers)
    # The first is how a missing cell is written, so no date is.
    told = sorted(seen, key=lambda marker: (is_endless(marker), -seen[marker]))
    if told and is_endless(told[0]):
        told.insert(0, "")
    schema = Schema(
        columns=[proposal.column for proposal in proposals],
        target=target,
        missing_values=told or ("",),
        provenance="private-data",
    )
    findings = [one for proposal in proposals for one in proposal.findings]
    return Draft(schema, (*differences, *findings))


@dataclass(frozen=True)
class Proposal:
    """A column, what its cells were read as, and what is odd about it."""

    column: Modelled | Identifier
    read: Reading
    findings: tuple[Finding, ...]

    @property
    def markers(self) -> dict[str, int]:
        """The texts in it that mean missing, with their counts."""
        return self.read.markers


def _propose_together(
    name: str, owners: Mapping[str, pd.DataFrame], *, is_target: bool
) -> tuple[Proposal, list[Finding]]:
    """One column of all who have it, and how they differ."""
    parts = {owner: frame[name] for owner, frame in owners.items() if name in frame}
    if len(owners) == 1:
        return propose(next(iter(parts.values())), is_target=is_target), []
    apart = {owner: propose(part, is_target=is_target) for owner, part in parts.items()}
    columns = {owner: one.column for owner, one in apart.items()}
    readings = {owner: one.read for owner, one in apart.items()}
    absent = [owner for owner in owners if owner not in parts]
    differences = list(compare(name, columns, readings, absent))
    together = pd.concat(list(parts.values()), ignore_index=True)
    # Keys of two owners may both count from 1.
    keys = [column for column in columns.values() if isinstance(column, Identifier)]
    if len(keys) < len(columns):
        return propose(together, is_target=is_target), differences
    found = propose(together, kind="identifier")
    return (replace(found, column=keys[0]) if len(set(keys)) == 1 else found), differences


def draft_column(
    series: pd.Series, *, is_target: bool = False, kind: str | None = None
) -> Modelled | Identifier:
    """Propose a column for one series; `kind` asks for a categorical or an identifier."""
    return propose(series, is_target=is_target, kind=kind).column


def propose(series: pd.Series, *, is_target: bool = False, kind: str | None = None) -> Proposal:
    """Propose a column for one series and say what is odd about its cells."""
    _demand_single(series)
    name = str(series.name)
    read = read_series(series, typed=kind is None)
    missing = len(read.known) < len(series) or bool(read.odd)
    column: Modelled | Identifier | None = None
    if kind == "identifier":
        column = Identifier(name=name, prefix=_prefix(read.known, name))
    elif kind is None:
        column = _draft_plain(read, name, missing, is_target)
        if read.odd and (isinstance(column, Categorical) or _KEY_NAME.search(name)):
            # These numbers are labels or codes, and the words among them are too.
            read = read_series(series, typed=False)
            missing, column = len(read.known) < len(series), None
        if column is None and not (is_target or missing) and _is_key(read.known):
            column = Identifier(name=name, prefix=_prefix(read.known, name))
    if not isinstance(column, Identifier):
        column = _set_dtype(column or _draft_categorical(read.known, name, missing), series)
    findings = (
        *describe_reading(name, read, len(series)),
        *_describe_loss(column, read.known),
        *screen(column, read.known),
    )
    return Proposal(column, read, findings)


def _describe_loss(column: Modelled | Identifier, known: pd.Series) -> Iterator[Finding]:
    """What of the column will not be learned."""
    if known.empty:
        yield Finding(column.name, "empty", "holds no value: there is nothing to learn")
    elif isinstance(column, Categorical) and column.other is not None:
        texts = known.map(text_of)
        kept = texts.isin({text_of(value) for value in column.values})
        yield Finding(
            column.name,
            "cut",
            f"{texts.nunique():,} values, {len(column.values):,} kept: "
            f"{percent((~kept).mean())} of the rows become {column.other!r}",
        )


def enclose(name: str, lowest: float, highest: float, decimals: int, missing: bool) -> Continuous:
    """A continuous column whose bounds enclose two numbers, with decimals that float64 holds."""
    while decimals > 0 and max(abs(lowest), abs(highest)) * 10**decimals > _LARGEST_EXACT / 2:
        decimals -= 1
    lower, upper = round(lowest, decimals), round(highest, decimals)
    return Continuous(
        name=name,
        lower=lower if lower <= lowest else round(lowest - 10**-decimals, decimals),
        upper=upper if upper >= highest else round(highest + 10**-decimals, decimals),
        decimals=decimals,
        missing=missing,
    )


def _demand_single(series: pd.Series) -> None:
    """Raises DataError for cells that no column of a table can hold."""
    kind = pd.api.types.infer_dtype(series, skipna=True)
    if kind in ("complex", "timedelta", "timedelta64", "interval", "period"):
        raise DataError(
            f"column {series.name!r} holds {kind} values; give it numbers, dates or texts"
        )
    try:
        pd.factorize(series)
    except TypeError:
        raise DataError(
            f"column {series.name!r} holds lists or other compound cells; give it single values"
        ) from None


def _draft_plain(
    read: Reading, name: str, missing: bool, is_target: bool
) -> Modelled | Identifier | None:
    """A column for numbers, moments and truth values; None for texts."""
    if read.known.empty:
        return Continuous(name=name, lower=0, upper=0, decimals=0, missing=True)
    if read.meaning == "boolean":
        return Boolean(name=name, missing=missing)
    if read.meaning == "date":
        return _draft_datetime(read.values, name, missing, read.pattern)
    if read.meaning == "number":
        values = read.values.to_numpy(dtype=np.float64)
        return _draft_number(values, read.known, name, missing, is_target)
    return None


def _draft_number(
    values: NDArray[np.float64], known: pd.Series, name: str, missing: bool, is_target: bool
) -> Modelled | Identifier | None:
    lowest, highest = float(values.min()), float(values.max())
    if not (values == np.rint(values)).all():
        decimals = _decimals(values, known)
        lower, upper = _round_outwards(lowest, highest, decimals)
        return enclose(name, float(lower), float(upper), decimals, missing)
    if max(abs(lowest), abs(highest)) > _LARGEST_EXACT:
        return None
    distinct = np.unique(values)
    counted = highest - lowest == len(values) - 1
    unique = not missing and len(distinct) == len(values) >= _FEWEST_KEYS
    if unique and not is_target and (counted or _KEY_NAME.search(name)):
        return Identifier(name=name)
    enough = len(values) >= 10 * len(distinct)
    if (is_target and len(distinct) <= _FEW_LABELS) or (len(distinct) <= _FEW_NUMBERS and enough):
        return Categorical(name=name, values=[int(value) for value in distinct], missing=missing)
    lower, upper = _round_outwards(int(lowest), int(highest), 0)
    least, most = _limits(known)
    lower, upper = max(lower, Decimal(least)), min(upper, Decimal(most))
    return Integer(name=name, lower=int(lower), upper=int(upper), missing=missing)


def _round_outwards(lowest: float, highest: float, decimals: int) -> tuple[Decimal, Decimal]:
    """Round numbers around two: multiples of 1, 2 or 5 times a power of ten, in 4 to 12 steps."""
    low, high = Decimal(str(lowest)), Decimal(str(highest))
    if low == high:
        return low, high
    quarter = (high - low) / 4
    power = Decimal(1).scaleb(quarter.adjusted())
    steps = [factor * power for factor in map(Decimal, (1, 2, 5)) if factor * power <= quarter]
    step = max(*steps, Decimal(1).scaleb(-decimals))
    lower = (low / step).to_integral_value(ROUND_FLOOR) * step
    return lower, (high / step).to_integral_value(ROUND_CEILING) * step


def _limits(known: pd.Series) -> tuple[int, int]:
    """What whole numbers of the series' dtype, and float64, can hold."""
    if not pd.api.types.is_integer_dtype(known.dtype):
        return -_LARGEST_EXACT, _LARGEST_EXACT
    held = np.iinfo(str(known.dtype).lower())
    return max(int(held.min), -_LARGEST_EXACT), min(int(held.max), _LARGEST_EXACT)


def _decimals(values: NDArray[np.float64], known: pd.Series) -> int:
    """The fewest decimals that hold every number, or eight significant digits where none do."""
    stored = np.float32 if str(known.dtype).lower() == "float32" else np.float64
    for decimals in range(13):
        if (np.round(values, decimals).astype(stored) == values.astype(stored)).all():
            return decimals
    return min(max(8 - math.ceil(math.log10(np.abs(values).max())), 0), 12)


def _draft_datetime(moments: pd.Series, name: str, missing: bool, pattern: str | None) -> Datetime:
    """Moments between bounds rounded outwards, to whole years, months or days by their range."""
    naive = moments.dt.tz_localize(None)
    seconds = naive.dt.hour * 3600 + naive.dt.minute * 60 + naive.dt.second
    resolution = "second"
    for length, word in ((60, "minute"), (3_600, "hour"), (86_400, "day")):
        if not (seconds % length).any():
            resolution = word
    unit = {"second": "s", "minute": "min", "hour": "h", "day": "D"}[resolution]
    first, last = naive.min(), naive.max()
    # pandas' own difference ends at 292 years.
    days = (last.to_pydatetime() - first.to_pydatetime()).days
    period = "Y" if days >= 2 * 365 else "M" if days >= 60 else "D"
    lower = first.to_period(period).start_time
    upper = last.to_period(period).end_time
    return Datetime(
        name=name,
        lower=lower.to_pydatetime(),
        upper=upper.floor(unit).to_pydatetime(),
        resolution=resolution,
        format=pattern,
        missing=missing,
    )


def _is_key(known: pd.Series) -> bool:
    return len(known) >= _FEWEST_KEYS and bool(known.is_unique)


def _prefix(known: pd.Series, name: str) -> str:
    """What stands before the numbers of keys such as P001; the column's name where they differ."""
    matches = [_NUMBERED.fullmatch(text_of(key)) for key in known]
    prefixes = {match.group(1) if match else None for match in matches}
    prefix = prefixes.pop() if len(prefixes) == 1 else None
    return f"{name}-" if prefix is None else prefix


def _draft_categorical(known: pd.Series, name: str, missing: bool) -> Modelled:
    """A categorical of the values found; beyond 5,000, of the commonest and `other`."""
    if known.empty:
        return Boolean(name=name, missing=True)
    cells = known.astype(object)
    # To pandas 0 and False are one; in the table of an owner who has one of them it is itself.
    flag = cells.map(lambda cell: isinstance(cell, bool | np.bool_)).astype(bool)
    commonest = [*cells[~flag].value_counts().index, *cells[flag].unique()]
    spelled: dict[str, object] = {}
    for value in commonest:
        plain = value.item() if isinstance(value, np.generic) else value
        value = plain if isinstance(plain, str | int | float) else str(plain)
        spelled.setdefault(text_of(value), value)
    kept = list(spelled)[:_MOST_CATEGORIES]
    # What means missing in another column is a value here, so it may not fall into `other`.
    texts = sorted({*kept, *(text for text in spelled if means_missing(text))})
    if isinstance(known.dtype, pd.CategoricalDtype) and len(spelled) <= _MOST_CATEGORIES:
        texts = sorted(texts, key=[text_of(value) for value in known.cat.categories].index)
    other = "other" if len(spelled) > _MOST_CATEGORIES else None
    return Categorical(
        name=name, values=[spelled[text] for text in texts], other=other, missing=missing
    )


def _set_dtype(column: Modelled | Identifier, series: pd.Series) -> Modelled | Identifier:
    """The column with the series' dtype, where that is another than its default and can hold it."""
    dtype = "string" if isinstance(series.dtype, pd.StringDtype) else str(series.dtype)
    if dtype == column.pandas_dtype:
        return column
    try:
        return type(column)(**{**column.model_dump(), "dtype": dtype})
    except SchemaError:
        return column
