"""A proposal of columns from the rows of a table: convenient, private, and to be reviewed.

Bounds, categories and decimals are read off private rows, which no epsilon covers. A schema made
of them says `private-data` until its owner has replaced them by public knowledge. What is not
learned, cut or outside the draft, or comes back otherwise than it went in, is told beside it:
nothing is dropped without a word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from fedsynth.demands import demand_kind
from fedsynth.errors import DataError
from fedsynth.schema.cells import without_storage
from fedsynth.schema.columns import Categorical, Continuous, Identifier, Integer, Modelled
from fedsynth.schema.differences import compare, fold_name
from fedsynth.schema.findings import Finding
from fedsynth.schema.following import describe_following
from fedsynth.schema.frames import demand_frame
from fedsynth.schema.keys import find_repeated_keys
from fedsynth.schema.losses import describe_losses
from fedsynth.schema.proposing import (
    KEY_NAME,
    is_key,
    propose_categorical,
    propose_key,
    propose_plain,
    set_dtype,
)
from fedsynth.schema.reading import Reading, describe_reading, is_endless, read_series
from fedsynth.schema.rounding import decimals_of
from fedsynth.schema.screening import hides_persons, screen
from fedsynth.schema.sharing import declare_shared
from fedsynth.schema.table import Schema
from fedsynth.views import Shown, View


@dataclass(frozen=True, repr=False)
class Draft(Shown):
    """A proposed schema and what its owner is to look at, column by column.

    The findings quote private cells: for the owner's eyes only. `differences`, between owners, are
    the first of them.
    """

    schema: Schema
    findings: tuple[Finding, ...]
    differences: tuple[Finding, ...] = ()

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
    if target is not None:
        demand_kind("target", target, str, "a column's name")
    owners = {owner: demand_frame(table, owner) for owner, table in given.items()}
    for owner, frame in owners.items():
        if frame.empty:
            raise DataError(f"{owner}: has no rows to draft a schema from")
    names = list(dict.fromkeys(name for frame in owners.values() for name in frame.columns))
    keys = {one.name: one for one in find_repeated_keys(owners, target)}
    likeliest = next(iter(keys.values()), None)
    person = None if likeliest is None or likeliest.gaps else likeliest.name
    differences: list[Finding] = []
    proposals = []
    for name in names:
        kind = "identifier" if name in keys else None
        found, differ = _propose_together(name, owners, is_target=name == target, kind=kind)
        if name in keys:
            about = keys[name].describe(person=name == person)
            kept = [one for one in found.findings if one.kind != "identifier"]
            found = replace(found, findings=(*kept, about))
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
        person=person,
        missing_values=told or ("",),
        provenance="private-data",
    )
    findings = [one for proposal in proposals for one in proposal.findings]
    findings += describe_following(schema, owners)
    schema, shared = declare_shared(schema, owners)
    findings += shared
    return Draft(schema, (*differences, *findings), tuple(differences))


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
    name: str, owners: Mapping[str, pd.DataFrame], *, is_target: bool, kind: str | None
) -> tuple[Proposal, list[Finding]]:
    """One column of all who have it, and how they differ."""
    parts = {owner: frame[name] for owner, frame in owners.items() if name in frame}
    if len(owners) == 1:
        return propose(next(iter(parts.values())), is_target=is_target, kind=kind), []
    apart = {owner: propose(part, is_target=is_target, kind=kind) for owner, part in parts.items()}
    columns = {owner: one.column for owner, one in apart.items()}
    readings = {owner: one.read for owner, one in apart.items()}
    absent = {
        owner: next((str(one) for one in frame if fold_name(one) == fold_name(name) != ""), None)
        for owner, frame in owners.items()
        if owner not in parts
    }
    differences = list(compare(name, columns, readings, absent))
    together = pd.concat(list(parts.values()), ignore_index=True)
    # Keys of two owners may both count from 1.
    keys = [
        one.column
        for one in apart.values()
        if isinstance(one.column, Identifier) and is_key(one.read.known)
    ]
    if len(keys) < len(columns):
        return propose(together, is_target=is_target, kind=kind), differences
    found = propose(together, kind="identifier")
    return (replace(found, column=keys[0]) if len(set(keys)) == 1 else found), differences


def draft_column(
    series: pd.Series, *, is_target: bool = False, kind: str | None = None
) -> Modelled | Identifier:
    """Propose a column for one series; `kind` asks for a categorical or an identifier."""
    return propose(series, is_target=is_target, kind=kind).column


def propose(found: pd.Series, *, is_target: bool = False, kind: str | None = None) -> Proposal:
    """Propose a column for one series and say what is odd about its cells."""
    series = without_storage(found)
    _demand_single(series)
    name = str(series.name)
    read = read_series(series, typed=kind is None)
    missing = len(read.known) < len(series) or bool(read.odd)
    column: Modelled | Identifier | None = None
    if kind == "identifier":
        column = propose_key(read.known, name)
    elif kind is None:
        column = propose_plain(read, name, missing, is_target)
        if read.odd and (isinstance(column, Categorical) or KEY_NAME.search(name)):
            # These numbers are labels or codes, and the words among them are too.
            read = read_series(series, typed=False)
            missing, column = len(read.known) < len(series), None
        keys = not missing and is_key(read.known)
        if column is None and not is_target and (keys or hides_persons(read.known)):
            column = propose_key(read.known, name)
    column = set_dtype(column or propose_categorical(read.known, name, missing), found)
    findings = (
        *describe_reading(name, read, len(series)),
        *describe_losses(column, read, found),
        *_describe_steps(column, read),
        *screen(column, read.known),
    )
    return Proposal(column, read, findings)


_FEWEST_STEPS = 10
"""Different values from which it is told that they are whole steps."""


def _describe_steps(column: Modelled | Identifier, read: Reading) -> Iterator[Finding]:
    """That all numbers are whole steps from the lower bound, which a schema may say."""
    if not isinstance(column, Integer | Continuous) or read.known.empty:
        return
    power = 10.0 ** decimals_of(column)
    units = np.rint((read.values.to_numpy(dtype=np.float64) - column.low) * power)
    step = int(np.gcd.reduce(units.astype(np.int64)))
    if step > 1 and len(np.unique(units)) >= _FEWEST_STEPS:
        text = (
            "every number is so many whole steps above `lower`: if that is its nature, declare the "
            "`step`, and no other number is counted or drawn"
        )
        yield Finding(column.name, "step", text, (f"{step / power:.15g}",))


def _demand_single(series: pd.Series) -> None:
    """Raises DataError for cells that no column of a table can hold."""
    kind = pd.api.types.infer_dtype(series, skipna=True)
    if kind in ("complex", "interval", "period"):
        raise DataError(
            f"column {series.name!r} holds {kind} values; give it numbers, dates, durations "
            f"or texts"
        )
    try:
        pd.factorize(series)
    except TypeError:
        raise DataError(
            f"column {series.name!r} holds lists or other compound cells; give it single values"
        ) from None
