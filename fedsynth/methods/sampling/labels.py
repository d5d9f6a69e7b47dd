"""Labels of synthetic rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsynth.agreed import shown, suggestion
from fedsynth.demands import demand_number
from fedsynth.errors import ConfigError, ReleaseError
from fedsynth.schema import Boolean, Categorical, ImageSchema, Schema

Floats = NDArray[np.float64]


def draw_labels(
    schema: Schema | ImageSchema,
    frequencies: Floats,
    rows: int,
    where: Mapping[str, Any] | None,
    proportions: Mapping[Any, float] | None,
    rng: np.random.Generator,
) -> NDArray[np.int64] | None:
    """Codes of the target for ``rows`` synthetic rows, or None where the model has no classes.

    Raises:
        ConfigError: a condition on anything but the target, an unknown value, or bad shares.
    """
    if where and proportions:
        raise ConfigError("give either where or proportions: where fixes every row's target")
    if not len(frequencies):
        if where or proportions:
            why = (
                "its schema names no categorical target"
                if not schema.classes
                else "its target is the only column, so there is nothing to draw given it"
            )
            raise ConfigError(f"this model has no classes to condition on: {why}")
        return None
    if where:
        return np.full(rows, _code(schema, where), np.int64)
    shares = label_shares(schema, proportions) if proportions else frequencies
    return rng.choice(len(shares), size=rows, p=shares / shares.sum()).astype(np.int64)


def draw_codes(chances: Floats, rng: np.random.Generator) -> NDArray[np.int64]:
    """A code for each row [n], with probabilities proportional to ``chances`` [n, codes]."""
    bars = chances.cumsum(axis=1)
    codes: NDArray[np.int64] = (bars < rng.random(len(bars))[:, None] * bars[:, -1:]).sum(axis=1)
    return codes.clip(max=chances.shape[1] - 1)


def demand_shares(frequencies: Floats, classes: int) -> None:
    """Raises ReleaseError where a model's frequencies are no shares of so many classes."""
    fits = frequencies.shape == (classes,) and np.isfinite(frequencies).all()
    if not fits or (frequencies < 0).any() or (classes and not frequencies.sum() > 0):
        raise ReleaseError("the model's frequencies are no shares of the schema's classes")


def label_shares(schema: Schema | ImageSchema, proportions: Mapping[Any, float]) -> Floats:
    """The share of each of the target's categories that ``proportions`` name by value.

    Raises:
        ConfigError: no categorical target, an unknown value, or bad shares.
    """
    if not schema.classes:
        raise ConfigError("proportions need a target of categories, and the schema names none")
    shares = np.zeros(schema.classes)
    for value, share in proportions.items():
        given = demand_number(f"the share of {shown(value)}", share)
        shares[_code(schema, {_target(schema).name: value})] = given
    if not (np.isfinite(shares).all() and (shares >= 0).all() and shares.sum() > 0):
        raise ConfigError("proportions must be finite, not negative, and not all zero")
    total = float(shares.sum())
    return np.asarray(shares / total)


def _target(schema: Schema | ImageSchema) -> Categorical | Boolean:
    target = schema.target if isinstance(schema, ImageSchema) else schema.target_column
    assert isinstance(target, Categorical | Boolean)
    return target


def _code(schema: Schema | ImageSchema, where: Mapping[str, Any]) -> int:
    target = _target(schema)
    others = sorted(set(where) - {target.name})
    if others:
        raise ConfigError(
            f"cannot condition on {', '.join(others)}: this model conditions on its target "
            f"{target.name!r} alone"
        )
    value = where[target.name]
    spelled = [str(category) for category in target.categories]
    if str(value) not in spelled:
        raise ConfigError(f"{target.name} has no value {value!r}{suggestion(str(value), spelled)}")
    return spelled.index(str(value))
