"""Settings of scikit-learn's models as those of the federated classifier."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedsynth.errors import ConfigError

_BATCH = 200
"""Rows of a step of scikit-learn's perceptron, at most, over which it spreads its penalty."""
_WITHOUT_MEANING = {"model__learning_rate_init"}
"""Adam's; the federated classifier takes its own from signal and noise."""


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
    found: dict[str, Any] = {}
    if model == "logistic regression":
        # Half the squared weights over C times the rows. Of two classes scikit-learn has the
        # difference of two logits, half of whose square is the sum of the halves' squares.
        C = settings.get("model__C", 1.0)
        found["weight_decay"] = (2 if classes == 2 else 1) / (C * rows)
        carried = {"model__C"}
    elif model == "multilayer perceptron":
        hidden = settings.get("model__hidden_layer_sizes", (100,))
        found["hidden"] = [hidden] if isinstance(hidden, int) else list(hidden)
        found["weight_decay"] = settings.get("model__alpha", 1e-4) / min(_BATCH, rows)
        carried = {"model__hidden_layer_sizes", "model__alpha"}
    else:
        raise ConfigError(
            f"{model} has no federated form here: search logistic regression or multilayer "
            "perceptron, which fs.FederatedClassifier trains on owners' rows, or train this one on "
            "synthetic rows"
        )
    for name in settings:
        if name not in carried | _WITHOUT_MEANING:
            raise ConfigError(
                f"the setting {name.removeprefix('model__')!r} has no federated form: search "
                "without it, or make fs.FederatedClassifier(schema) with settings of its own"
            )
    return found
