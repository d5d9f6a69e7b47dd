"""The regressors that synthetic rows are tried on where the target is a number or a date."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsynth.evaluation.models.classifiers import TREES, train_boosting
from fedsynth.evaluation.models.learners import Learner, on_vectors


def _ridge(rows: int, seed: int) -> Any:
    from sklearn.linear_model import Ridge

    return Ridge()


def _forest(rows: int, seed: int) -> Any:
    from sklearn.ensemble import RandomForestRegressor

    # A third of the coordinates at each split, as Breiman advises; all of them take thrice as long.
    return RandomForestRegressor(TREES, max_features=1 / 3, random_state=seed)


def _tree(rows: int, seed: int) -> Any:
    from sklearn.tree import DecisionTreeRegressor

    return DecisionTreeRegressor(random_state=seed)


def _neighbours(rows: int, seed: int) -> Any:
    from sklearn.neighbors import KNeighborsRegressor

    return KNeighborsRegressor(n_neighbors=min(5, rows))


REGRESSORS = (
    Learner("gradient boosting (histogram)", train_boosting),
    Learner("ridge regression", on_vectors(_ridge, np.float64)),
    Learner("random forest", on_vectors(_forest), most=5_000),
    Learner("decision tree", on_vectors(_tree)),
    Learner("k nearest neighbours", on_vectors(_neighbours), most=10_000),
)
"""All of them; gradient boosting, which takes rows as they are, first."""
