"""The k-anonymity family, for tables whose reader asks for it: of rows, which are not people.

Figures are counted here and shown beside pyCANON's, which differ where its definitions do: its
enhanced beta and its delta stay finite where no finite one holds, its c takes the rarest value of a
class for the commonest, and its entropy l is rounded down.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.agreed import suggestion
from fedsynth.errors import ConfigError
from fedsynth.evaluation.attacks.classes import Diversity, diversity
from fedsynth.evaluation.attacks.vectors import group_rows
from fedsynth.evaluation.reading.rows import Rows, read_rows
from fedsynth.schema import Schema

_MOST_WORK = 4_000
"""Classes times sensitive values up to which pyCANON is asked: some seconds."""

_LIBRARY = {
    "k": "k_anonymity",
    "alpha": "alpha_k_anonymity",
    "l": "l_diversity",
    "entropy_l": "entropy_l_diversity",
    "c": "recursive_c_l_diversity",
    "t": "t_closeness",
    "beta": "basic_beta_likeness",
    "enhanced_beta": "enhanced_beta_likeness",
    "delta": "delta_disclosure",
}

NOTES = (
    "Figures of the k-anonymity family on synthetic rows prove nothing about privacy: a synthetic "
    "row is no person, so a class of one exposes nobody and a large class hides nobody. What the "
    "release gives away is measured by the attacks.",
    "Enhanced beta is infinite, which is not satisfied by any beta, where a class's share of a "
    "value is too large for every one, as in each class of a single value; delta is infinite where "
    "a class lacks a value. pyCANON gives finite numbers there.",
    "A gap is a value of its own; in a column of numbers it counts as the least.",
)


@dataclass(frozen=True)
class Figures:
    """One table's figures, over several sensitive columns the worst of each.

    rows, classes: how many rows, and how many different combinations of quasi-identifiers.
    k: rows of the smallest class. identified: 1 / k, the highest chance to name a row's person
        (the paper prints the largest class there). diversity: see `Diversity`.
    library: pyCANON's value of each measure; empty where it was not asked, and None where it has
        none.
    """

    rows: int
    classes: int
    k: int
    identified: float
    diversity: Diversity
    library: dict[str, float | None]


@dataclass(frozen=True)
class Anonymity:
    """Figures of each table, by the name it was given, and what to know about them."""

    quasi_identifiers: tuple[str, ...]
    sensitive: tuple[str, ...]
    tables: dict[str, Figures]
    notes: tuple[str, ...]


def anonymity(
    frames: Mapping[str, pd.DataFrame],
    schema: Schema,
    quasi_identifiers: tuple[str, ...],
    sensitive: tuple[str, ...],
    *,
    bins: int | None = None,
) -> Anonymity:
    """The k-anonymity family of several tables.

    Args:
        frames: the tables by name, say "synthetic" and "real".
        quasi_identifiers: columns that an outsider may know.
        sensitive: columns that he may not learn.
        bins: into so many equal parts of its declared range each quasi-identifier of numbers is
            cut; None takes numbers as they are.

    Raises:
        ConfigError: pyCANON is not installed, or the columns are none, unknown or named twice.
        DataError: a table that is empty or lacks columns.
    """
    _demand_columns(schema, quasi_identifiers, sensitive)
    if bins is not None and bins < 1:
        raise ConfigError(f"bins must be 1 or more and is {bins}")
    library = _pycanon()
    tables, notes = {}, list(NOTES)
    for name, frame in frames.items():
        rows = read_rows(frame, schema, name)
        classes = _classes(rows, quasi_identifiers, bins)
        values = {
            column: group_rows(rows.values[:, [rows.names.index(column)]]) for column in sensitive
        }
        tables[name] = _measure(classes, values, rows, library)
        if not tables[name].library:
            notes.append(
                f"pyCANON was not asked about {name}: its {tables[name].classes:,} classes would "
                f"take it minutes."
            )
    return Anonymity(quasi_identifiers, sensitive, tables, tuple(notes))


def _pycanon() -> ModuleType:
    try:
        return importlib.import_module("pycanon.anonymity")
    except ImportError:
        raise ConfigError(
            "the k-anonymity family needs pyCANON: pip install fedsynth[anonymity]"
        ) from None


def _demand_columns(
    schema: Schema, quasi_identifiers: tuple[str, ...], sensitive: tuple[str, ...]
) -> None:
    names = [column.name for column in schema.observed]
    for what, given in (("quasi-identifiers", quasi_identifiers), ("sensitive columns", sensitive)):
        if not given:
            raise ConfigError(f"{what}: name one column or more")
        for name in given:
            if name not in names:
                raise ConfigError(f"{what}: there is no column {name!r}{suggestion(name, names)}")
    given = (*quasi_identifiers, *sensitive)
    twice = sorted({name for name in given if given.count(name) > 1})
    if twice:
        raise ConfigError(
            f"name a column once, as a quasi-identifier or as sensitive: {', '.join(twice)}"
        )


def _classes(rows: Rows, columns: tuple[str, ...], bins: int | None) -> NDArray[np.int64]:
    """Of each row the number of its class, from 0."""
    seen = np.empty((len(rows), len(columns)))
    for place, column in enumerate(columns):
        j = rows.names.index(column)
        seen[:, place] = rows.values[:, j]
        if bins is not None and not rows.sizes[j]:
            declared: Any = rows.schema.observed[j]
            width = (declared.high - declared.low) / bins or 1.0
            parts = np.floor((seen[:, place] - declared.low) / width)
            seen[:, place] = np.clip(parts, 0, bins - 1)
    return group_rows(seen)


def _measure(
    classes: NDArray[np.int64],
    values: dict[str, NDArray[np.int64]],
    rows: Rows,
    library: ModuleType,
) -> Figures:
    numbers = {name: not rows.sizes[rows.names.index(name)] for name in values}
    diversities = [
        diversity(classes, codes, ordered=numbers[name]) for name, codes in values.items()
    ]
    sizes = np.bincount(classes)
    work = len(sizes) * sum(int(codes.max()) + 1 for codes in values.values())
    return Figures(
        rows=len(rows),
        classes=len(sizes),
        k=int(sizes.min()),
        identified=1 / int(sizes.min()),
        diversity=_worst(diversities),
        library=_ask_library(classes, values, numbers, library) if work <= _MOST_WORK else {},
    )


def _worst(diversities: list[Diversity]) -> Diversity:
    """Over sensitive columns, the least l and entropy l, the most of the others.

    c belongs to the least l, and is that of the columns that have it.
    """
    least = min(each.l for each in diversities)
    return Diversity(
        alpha=max(each.alpha for each in diversities),
        l=least,
        entropy_l=min(each.entropy_l for each in diversities),
        c=max(each.c for each in diversities if each.l == least),
        t=max(each.t for each in diversities),
        beta=max(each.beta for each in diversities),
        enhanced_beta=max(each.enhanced_beta for each in diversities),
        delta=max(each.delta for each in diversities),
        information=max(each.information for each in diversities),
    )


def _ask_library(
    classes: NDArray[np.int64],
    values: dict[str, NDArray[np.int64]],
    numbers: dict[str, bool],
    library: ModuleType,
) -> dict[str, float | None]:
    """pyCANON's value of each measure, None where it has none or fails."""
    frame = pd.DataFrame({"class": classes})
    for place, (name, codes) in enumerate(values.items()):
        frame[f"value {place}"] = codes if numbers[name] else codes.astype(str)
    sensitive = list(frame.columns[1:])
    answers: dict[str, float | None] = {}
    for name, function in _LIBRARY.items():
        arguments = [frame, ["class"]] if name == "k" else [frame, ["class"], sensitive]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                answer = getattr(library, function)(*arguments)
            except (ArithmeticError, ValueError):
                answer = np.nan
        answer = float(answer[0] if isinstance(answer, tuple) else answer)
        answers[name] = answer if np.isfinite(answer) else None
    return answers
