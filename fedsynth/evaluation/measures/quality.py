"""SDMetrics' own quality and diagnostic scores, so that figures compare with what people quote."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fedsynth.evaluation.reading.rows import Rows
from fedsynth.schema import Boolean, Categorical, Datetime
from fedsynth.schema.moments import moments

MOST_ROWS, MOST_COLUMNS = 50_000, 60
"""What SDMetrics is given of larger tables: of more rows it draws 50,000 without a seed, and it
compares every pair of columns."""


@dataclass(frozen=True)
class Quality:
    """SDMetrics' quality score, in [0, 1], and its two parts; None where it has no figure.

    Columns shuffled each on its own score high too (.88 on Adult): never quote it alone. Newer
    versions of SDMetrics count only pairs that hang together in the real rows (|r| > .5, Cramer's
    V > .3). Gaps count in pairs of categories only; all undeclared values are one category.

    real: the score of other real rows. trivial: of independent columns.
    """

    score: float | None
    column_shapes: float | None
    column_pair_trends: float | None
    real: float | None
    trivial: float | None


@dataclass(frozen=True)
class Diagnostic:
    """SDMetrics' diagnostic score, in [0, 1]: 1 if every value lies where real ones do."""

    score: float | None
    data_validity: float | None
    data_structure: float | None


def quality(synthetic: Rows, train: Rows, independent: Rows, real: Rows) -> Quality:
    """The quality report's figures for synthetic rows, other real rows and independent columns."""
    told = _choose_columns(real, synthetic)
    scores, beside, trivial = (
        _report("QualityReport", rows, real, told) for rows in (synthetic, train, independent)
    )
    return Quality(
        score=scores.get("score"),
        column_shapes=scores.get("Column Shapes"),
        column_pair_trends=scores.get("Column Pair Trends"),
        real=beside.get("score"),
        trivial=trivial.get("score"),
    )


def diagnostic(synthetic: Rows, real: Rows) -> Diagnostic:
    """The diagnostic report's figures."""
    scores = _report("DiagnosticReport", synthetic, real, _choose_columns(real, synthetic))
    return Diagnostic(
        scores.get("score"), scores.get("Data Validity"), scores.get("Data Structure")
    )


def metadata(rows: Rows, columns: list[int]) -> dict[str, Any]:
    """What SDMetrics is told about these columns."""
    modelled = rows.schema.observed
    kinds = {}
    for j in columns:
        column = modelled[j]
        kind = "numerical" if not rows.sizes[j] else "categorical"
        kinds[column.name] = {"sdtype": "datetime" if isinstance(column, Datetime) else kind}
    return {"columns": kinds}


def plain_frame(rows: Rows, columns: list[int]) -> pd.DataFrame:
    """Rows as SDMetrics takes them: floats, dates, categories by their spelling, gaps as None."""
    modelled = rows.schema.observed
    return pd.DataFrame({modelled[j].name: _plain(rows, j) for j in columns})


def _plain(rows: Rows, j: int) -> Any:
    column, values = rows.schema.observed[j], rows.values[:, j]
    if isinstance(column, Datetime):
        return moments(values, column)
    if not rows.sizes[j]:
        return values
    assert isinstance(column, Categorical | Boolean)
    texts = [str(value) for value in column.categories]
    spelled = np.array([*texts, "(not in the schema)", None], dtype=object)
    return spelled[np.where(np.isnan(values), len(texts) + 1, values).astype(np.int64)]


def _choose_columns(real: Rows, synthetic: Rows) -> list[int]:
    """The columns to compare: those with a value in both tables, at most `MOST_COLUMNS`."""
    known = [~np.isnan(rows.values).all(axis=0) for rows in (real, synthetic)]
    columns = np.flatnonzero(known[0] & known[1])
    if len(columns) > MOST_COLUMNS:
        spread = np.linspace(0, len(columns) - 1, MOST_COLUMNS).round().astype(np.int64)
        columns = columns[spread]
    return [int(j) for j in columns]


def _report(kind: str, rows: Rows, real: Rows, columns: list[int]) -> dict[str, float]:
    """A report's score and those of its properties, without the ones that are not numbers."""
    if not columns:
        return {}
    tables = [plain_frame(part.sample(MOST_ROWS, 0), columns) for part in (real, rows)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from sdmetrics.reports import single_table

        report = getattr(single_table, kind)()
        report.generate(*tables, metadata(real, columns), verbose=False)
        properties = report.get_properties()
        scores = dict(zip(properties["Property"], properties["Score"], strict=True))
        scores["score"] = report.get_score()
    return {name: float(value) for name, value in scores.items() if np.isfinite(value)}
