"""Settings of scikit-learn's models as those of the federated classifier."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fedsynth.errors import ConfigError

_BATCH = 200
"""Rows of a step of scikit-learn's perceptron, at most, over which it spreads its penalty."""
_CARRIED = {
    "logistic regression": {"model__C"},
    "multilayer perceptron": {"model__hidden_layer_sizes", "model__alpha"},
}
_WITHOUT_MEANING = {"model__learning_rate_init"}
"""Adam's; the federated classifier takes its own from signal and noise."""


def demand_federated(model: str, settings: Iterable[str] = ()) -> None:
    """Raises ConfigError for a kind of model, or a setting of its pipeline, without a federated
    form."""
    if model not in _CARRIED:
        raise ConfigError(
            f"{model} has no federated form here: search logistic regression or multilayer "
            "perceptron, which fs.FederatedClassifier trains on owners' rows, or train this one on "
            "synthetic rows"
        )
    for name in settings:
        if name not in _CARRIED[model] | _WITHOUT_MEANING:
            raise ConfigError(
                f"the setting {name.removeprefix('model__')!r} has no federated form: search "
                "without it, or make fs.FederatedClassifier(schema) with settings of its own"
            )


def federate(model: str, settings: Mapping[str, Any], rows: int, classes: int) -> dict[str, Any]:
    """The settings of a federated classifier that mean the same.

    Args:
        model: name of the kind.
        settings: of its pipeline.
        rows: that they were found on.
        classes: of the target.

    Raises:
        ConfigError: a kind of model, or a setting, without a federated form.
    """
    demand_federated(model, settings)
    if model == "logistic regression":
        # Half the squared weights over C times the rows. Of two classes scikit-learn has the
        # difference of two logits, half of whose square is the sum of the halves' squares.
        C = settings.get("model__C", 1.0)
        return {"weight_decay": (2 if classes == 2 else 1) / (C * rows)}
    hidden = settings.get("model__hidden_layer_sizes", (100,))
    decay = settings.get("model__alpha", 1e-4) / min(_BATCH, rows)
    return {"hidden": [hidden] if isinstance(hidden, int) else list(hidden), "weight_decay": decay}
