"""A table cut into what models see and what they predict, as scikit-learn takes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.data.conforming import conform
from fedsynth.errors import ConfigError, DataError
from fedsynth.evaluation.reading.labelled import why_no_task
from fedsynth.evaluation.reading.scores import score, score_numbers
from fedsynth.schema import Boolean, Categorical, Schema
from fedsynth.schema.columns import Datetime
from fedsynth.schema.spelling import spell

Metric = str
CLASSIFICATION = ("auroc", "accuracy", "balanced_accuracy", "f1", "average_precision")
REGRESSION = ("r2", "mae")


@dataclass(frozen=True, eq=False)
class Supervised:
    """n > 0 rows whose target is known.

    Attributes:
        x: the schema's other modelled columns, in their dtypes and spelling.
        y: [n] the target's declared values, or float64 numbers (dates in units since the lower
            bound).
        left_out: rows beside these, whose target is missing or that the schema cannot hold.
    """

    x: pd.DataFrame
    y: NDArray[Any]
    left_out: int = 0

    def __len__(self) -> int:
        return len(self.y)


def demand_task(schema: object) -> Schema:
    """The schema, of a table with something to predict. Raises ConfigError for others."""
    if not isinstance(schema, Schema):
        raise ConfigError("settings are tuned on tables: these are images")
    if (why := why_no_task(schema)) is not None:
        raise ConfigError(why)
    return schema


def supervise(frame: pd.DataFrame, schema: Schema, where: str = "table") -> Supervised:
    """Cut a table into features and answers; the schema's rules handle what it does not allow.

    Raises:
        DataError: the table does not fit the schema, or no row has an answer, or all have one.
    """
    conformed, target = conform(frame, schema, where), schema.target_column
    assert target is not None
    answers = conformed.columns[target.name]
    known = answers >= 0 if answers.dtype == np.int64 else ~np.isnan(answers)
    if not known.any():
        raise DataError(f"{where}: no row has a value of the target {target.name!r}")
    x = pd.DataFrame(
        {
            column.name: spell(conformed.columns[column.name][known], column)
            for column in schema.modelled
            if column.name != target.name
        }
    )
    found = answers[known]
    if (found == found[0]).all():
        raise DataError(
            f"{where}: every row has the same value of the target {target.name!r}, so settings "
            f"cannot be told apart"
        )
    y = found
    if isinstance(target, Categorical | Boolean):
        y = _labels(schema)[found.astype(np.int64)]
    return Supervised(x, y, len(frame) - len(found))


def score_model(model: Any, rows: Supervised, schema: Schema, metric: Metric) -> float:
    """A fitted model's score on rows: more is better, so that errors count negative.

    metric: of `CLASSIFICATION` or `REGRESSION`. A class that the model has not seen is the least
    likely everywhere.
    """
    if not schema.classes:
        found = score_numbers(np.asarray(model.predict(rows.x), np.float64), rows.y)
        return found.r2 if metric == "r2" else -found.mae
    labels = {label: code for code, label in enumerate(_labels(schema).tolist())}
    truth = np.array([labels[label] for label in rows.y.tolist()], np.int64)
    seen = np.array([labels[label] for label in model.classes_.tolist()], np.int64)
    scores = _class_scores(model, rows.x)
    every = np.full((len(rows), schema.classes), min(0.0, float(scores.min()) - 1))
    every[:, seen] = scores
    return float(getattr(score(every, truth), metric))


def default_metric(schema: Schema) -> Metric:
    """What models are compared by."""
    return "auroc" if schema.classes else "r2"


def demand_metric(metric: Metric | None, schema: Schema) -> Metric:
    """The metric; the default for None. Raises ConfigError where there is none of that name."""
    if metric is None:
        return default_metric(schema)
    allowed = CLASSIFICATION if schema.classes else REGRESSION
    if metric not in allowed:
        raise ConfigError(f"metric {metric!r}: one of {', '.join(allowed)}")
    return metric


def to_numbers(frame: pd.DataFrame) -> NDArray[np.float64]:
    """Numbers and moments [n, d] as float64, moments in days, gaps as NaN."""
    return np.column_stack([_numbers(frame[name]) for name in frame]).astype(np.float64)


def to_texts(frame: pd.DataFrame) -> NDArray[np.object_]:
    """Categories [n, d] as texts, gaps as ""."""
    texts = frame.astype(object).where(frame.notna(), "")
    return texts.map(str).to_numpy(dtype=object)


def _numbers(series: pd.Series) -> NDArray[np.float64]:
    if series.dtype == object or pd.api.types.is_string_dtype(series.dtype):
        series = pd.to_datetime(series, errors="coerce")
    if pd.api.types.is_datetime64_any_dtype(series.dtype):
        days = (series - pd.Timestamp("2000-01-01")) / pd.Timedelta(days=1)
        return np.asarray(days, np.float64)
    return series.to_numpy(np.float64, na_value=np.nan)


def is_category(column: object) -> bool:
    """Whether a column holds categories, not numbers or moments."""
    return isinstance(column, Categorical | Boolean) and not isinstance(column, Datetime)


def _labels(schema: Schema) -> NDArray[Any]:
    """The target's values, by code, of one type."""
    target = schema.target_column
    assert isinstance(target, Categorical | Boolean)
    values = list(target.categories)
    kinds = {type(value) for value in values}
    return np.array(values if len(kinds) == 1 else list(map(str, values)))


def _class_scores(model: Any, x: pd.DataFrame) -> NDArray[np.float64]:
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(x), np.float64)
    decisions = np.asarray(model.decision_function(x), np.float64)
    return np.stack([-decisions, decisions], axis=1) if decisions.ndim == 1 else decisions
