"""Train on synthetic rows, test on real ones: what a classifier loses by the exchange.

Tables are classified by scikit-learn's gradient boosting, which takes gaps and categories as they
are; images by the student network of paper 001.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.data.tables import Images
from fedsynth.evaluation.labelled import Labelled, features_of, labelled
from fedsynth.evaluation.scores import Scores, always, score
from fedsynth.schema import Boolean, Categorical, ImageSchema, Schema

_MOST_CATEGORIES = 255
"""scikit-learn's limit; the codes of a column with more are taken as numbers."""


@dataclass(frozen=True)
class Comparison:
    """Scores on the same real test rows of one kind of classifier trained on synthetic rows, of one
    trained on real rows, and of always answering the commonest class of the real training rows."""

    synthetic: Scores
    real: Scores
    majority: Scores


def compare(
    real_train: pd.DataFrame | Images,
    real_test: pd.DataFrame | Images,
    synthetic: pd.DataFrame | Images,
    schema: Schema | ImageSchema,
    seed: int = 0,
) -> Comparison:
    """Train-on-synthetic beside train-on-real beside the majority baseline.

    Raises:
        ConfigError: the schema has no target of categories.
        DataError: data that do not fit the schema, are empty or carry no labels.
    """
    test = labelled(real_test, schema, "real test")
    train = labelled(real_train, schema, "real train")
    made = labelled(synthetic, schema, "synthetic")
    majority = int(np.bincount(train.y, minlength=train.classes).argmax())
    return Comparison(
        synthetic=score(_probabilities(made, test, schema, seed), test.y),
        real=score(_probabilities(train, test, schema, seed), test.y),
        majority=score(always(majority, len(test.y), test.classes), test.y),
    )


def train_on_synthetic(
    synthetic: pd.DataFrame | Images,
    real_test: pd.DataFrame | Images,
    schema: Schema | ImageSchema,
    seed: int = 0,
) -> Scores:
    """Scores on real rows of a classifier trained on synthetic ones.

    Training rows of one class alone make that class the answer to everything, with AUROC .5.

    Raises:
        ConfigError: the schema has no target of categories.
        DataError: data that do not fit the schema, are empty or carry no labels.
    """
    made = labelled(synthetic, schema, "synthetic")
    test = labelled(real_test, schema, "real test")
    return score(_probabilities(made, test, schema, seed), test.y)


def _probabilities(
    train: Labelled, test: Labelled, schema: Schema | ImageSchema, seed: int
) -> NDArray[np.float64]:
    """Class probabilities [rows of test, classes] of a classifier fitted to `train`."""
    if len(np.unique(train.y)) == 1:
        return always(int(train.y[0]), len(test.y), test.classes)
    if isinstance(schema, Schema):
        return _boosted(train, test, schema, seed)
    from fedsynth.evaluation import students

    return students.image_probabilities(train, test.x, seed)


def _boosted(train: Labelled, test: Labelled, schema: Schema, seed: int) -> NDArray[np.float64]:
    from sklearn.ensemble import HistGradientBoostingClassifier

    # A column without one value teaches nothing, and scikit-learn cannot bin it.
    known = ~np.isnan(train.x).all(axis=0)
    if not known.any():
        shares = np.bincount(train.y, minlength=train.classes) / len(train.y)
        return np.tile(shares, (len(test.y), 1))
    categorical = [
        isinstance(column, Categorical | Boolean) and len(column.categories) <= _MOST_CATEGORIES
        for column in features_of(schema)
    ]
    # Early stopping would hold out a stratified part, which a class of one row makes impossible.
    model = HistGradientBoostingClassifier(
        categorical_features=np.array(categorical)[known], early_stopping=False, random_state=seed
    ).fit(train.x[:, known], train.y)
    probabilities = np.zeros((len(test.y), train.classes))
    probabilities[:, model.classes_] = model.predict_proba(test.x[:, known])
    return probabilities
