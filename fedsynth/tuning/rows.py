"""A table, or images, cut into what models see and what they predict, as scikit-learn takes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.data.conforming import conform
from fedsynth.data.images import Images
from fedsynth.data.persons import number
from fedsynth.demands import demand_known
from fedsynth.errors import ConfigError, DataError
from fedsynth.evaluation.models.learners import scores_of, silence_warnings
from fedsynth.evaluation.reading.labelled import label_features, why_no_task
from fedsynth.evaluation.reading.scores import score, score_numbers
from fedsynth.schema import Boolean, Categorical, ImageSchema, Schema
from fedsynth.schema.cells import read_cells
from fedsynth.schema.columns import Modelled
from fedsynth.schema.spelling import spell

Metric = str
AnySchema = Schema | ImageSchema
Rows = pd.DataFrame | Images
CLASSIFICATION = ("auroc", "accuracy", "balanced_accuracy", "f1", "average_precision")
REGRESSION = ("r2", "mae")


@dataclass(frozen=True, eq=False)
class Supervised:
    """n > 0 rows whose target is known.

    Attributes:
        x: the schema's other modelled columns, in their dtypes and spelling; or pixels uint8
            [n, height, width(, channels)].
        y: [n] int64 codes into the target's categories, or float64 numbers (dates in units since
            the lower bound).
        left_out: rows beside these, whose target is missing or that the schema cannot hold.
        persons: [n] int64, whose each row is; None where nobody says.
    """

    x: pd.DataFrame | NDArray[np.uint8]
    y: NDArray[Any]
    left_out: int = 0
    persons: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.y)

    def take(self, positions: NDArray[np.int64]) -> Supervised:
        """The rows at these positions."""
        x = self.x.iloc[positions] if isinstance(self.x, pd.DataFrame) else self.x[positions]
        persons = None if self.persons is None else self.persons[positions]
        return Supervised(x, self.y[positions], persons=persons)


def demand_task(schema: AnySchema) -> AnySchema:
    """The schema, of something to predict. Raises ConfigError where there is nothing."""
    if (why := why_no_task(schema)) is not None:
        raise ConfigError(why)
    return schema


def features_of(schema: Schema) -> tuple[Modelled, ...]:
    """The columns that the target is predicted by."""
    return tuple(column for column in schema.observed if column.name != schema.target)


def supervise(data: Rows, schema: AnySchema, where: str = "table") -> Supervised:
    """Cut a table or images into what models see and answers; the schema's rules handle what it
    does not allow.

    Raises:
        DataError: the data do not fit the schema, or no row has an answer, or all have one.
    """
    if isinstance(schema, ImageSchema) or isinstance(data, Images):
        known = label_features(data, schema, where)
        assert isinstance(data, Images)
        found = Supervised(data.pixels, known.y)
    else:
        found = _supervise_table(data, schema, where)
    if (found.y == found.y[0]).all():
        raise DataError(
            f"{where}: every row has the same value of the target {_name_target(schema)!r}, so "
            f"settings cannot be told apart"
        )
    return found


def _supervise_table(frame: pd.DataFrame, schema: Schema, where: str) -> Supervised:
    conformed, target = conform(frame, schema, where), schema.target_column
    assert target is not None
    answers = conformed.columns[target.name]
    known = answers >= 0 if answers.dtype == np.int64 else ~np.isnan(answers)
    if not known.any():
        raise DataError(f"{where}: no row has a value of the target {target.name!r}")
    columns = features_of(schema)
    x = pd.DataFrame({one.name: spell(conformed.columns[one.name][known], one) for one in columns})
    y = answers[known]
    persons = None if conformed.persons is None else conformed.persons[known]
    return Supervised(x, y, len(frame) - len(y), persons)


def _name_target(schema: AnySchema) -> str | None:
    if isinstance(schema, Schema):
        return schema.target
    return None if schema.target is None else schema.target.name


def fold(
    rows: Supervised, folds: int, schema: AnySchema, seed: int
) -> list[tuple[Supervised, Supervised]]:
    """Rows to learn from and others to be scored on, each row once among the others; classes in
    equal shares where they have as many rows as there are folds. A person's rows are on one side.

    Raises:
        DataError: fewer rows, persons, or rows of every class, than folds.
    """
    from sklearn.model_selection import KFold, StratifiedGroupKFold, StratifiedKFold

    told: dict[str, Any] = {"shuffle": True, "random_state": seed}
    people = np.arange(len(rows)) if rows.persons is None else number(rows.persons)
    with silence_warnings():
        try:
            # Of classes, too: fewer persons than folds raise here.
            cut = list(KFold(folds, **told).split(np.arange(people.max() + 1)))
            if not schema.classes:
                parts = [tuple(np.flatnonzero(np.isin(people, k)) for k in part) for part in cut]
            elif rows.persons is None:
                parts = list(StratifiedKFold(folds, **told).split(rows.y, rows.y))
            else:
                parts = list(
                    StratifiedGroupKFold(folds, **told).split(rows.y, rows.y, rows.persons)
                )
        except ValueError:
            what = "rows" if rows.persons is None else "persons' rows"
            raise DataError(
                f"{len(rows)} real {what} are too few for {folds} folds: ask for fewer"
            ) from None
    return [(rows.take(learned), rows.take(others)) for learned, others in parts]


def name_answers(y: NDArray[Any], schema: AnySchema) -> NDArray[Any]:
    """Answers [n] as the target's declared values, of one type; numbers as they are."""
    target = schema.target_column if isinstance(schema, Schema) else schema.target
    if not isinstance(target, Categorical | Boolean):
        return y
    values = list(target.categories)
    alike = len({type(value) for value in values}) == 1
    named: NDArray[Any] = np.array(values if alike else list(map(str, values)))
    return np.asarray(named[y])


def score_model(model: Any, rows: Supervised, schema: AnySchema, metric: Metric) -> float:
    """The score on rows of a model that was fitted to codes or numbers: more is better, so that
    errors count negative.

    metric: of `CLASSIFICATION` or `REGRESSION`. A class that the model has not seen is the least
    likely everywhere.
    """
    # What a pipeline takes, which need not be numbers.
    seen: Any = rows.x
    answered = scores_of(model, seen, schema.classes)
    if schema.classes:
        return float(getattr(score(answered, rows.y), metric))
    found = score_numbers(answered, rows.y)
    return found.r2 if metric == "r2" else -found.mae


def demand_metric(metric: Metric | None, schema: AnySchema) -> Metric:
    """The metric, by default the first. Raises ConfigError where there is none of that name."""
    allowed = CLASSIFICATION if schema.classes else REGRESSION
    return allowed[0] if metric is None else demand_known("metric", metric, allowed)


def encode(
    frame: pd.DataFrame, columns: Sequence[Modelled], missing_values: Sequence[str]
) -> NDArray[np.float64]:
    """Cells [n, d] as their schema means them, whatever they are written in: numbers, moments in
    units since the lower bound, codes of categories; NaN for gaps and what cannot be read."""
    matrix = np.empty((len(frame), len(columns)))
    for place, column in enumerate(columns):
        cells = read_cells(frame[column.name], column, missing_values)
        matrix[:, place] = np.where(cells.missing | cells.unreadable, np.nan, cells.values)
    return matrix
