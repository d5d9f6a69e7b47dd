"""One score over several owners: its means, and how far they lie apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fedsynth.evaluation.federated.estimates import SURE, Figure, Scores, told
from fedsynth.evaluation.federated.recipe import Floats


@dataclass(frozen=True)
class Across:
    """One score over the owners that have it.

    Attributes:
        weighted: mean weighted by the owners' records (at the client level: by the weights in
            force).
        unweighted: plain mean; None at the client level where clients are weighted.
        spread: standard deviation over the owners with the noise's variance taken off, at least 0;
            None with fewer than two.
        owners: how many have the score; None at the client level, where nobody is told.
    """

    weighted: Figure | None
    unweighted: Figure | None
    spread: float | None
    owners: int | None


def across(scores: Sequence[Scores], pick: Callable[[Scores], Figure | None]) -> Across:
    """Mean and spread of one score over owners."""
    found = [
        (figure, s.records.value)
        for s in scores
        if s.records is not None and (figure := pick(s)) is not None
    ]
    if not found:
        return Across(None, None, None, 0)
    values = np.array([figure.value for figure, _ in found])
    errors = np.array([figure.error for figure, _ in found])
    weights = np.array([records for _, records in found])
    weights, count = weights / weights.sum(), len(found)
    # Independent noise of variance e^2 each adds its mean times (count - 1)/count.
    variance = values.var() - (count - 1) / count * (errors**2).mean()
    return Across(
        Figure(float(weights @ values), float(np.sqrt(weights**2 @ errors**2))),
        Figure(float(values.mean()), float(np.sqrt((errors**2).sum()) / count)),
        float(np.sqrt(max(variance, 0.0))) if count > 1 else None,
        count,
    )


def across_sums(sums: Floats, sigma: float, weighted: bool) -> Across:
    """Mean and spread from the noisy sums of ``weight * (1, c, c^2)``, c the score less one half.

    Args:
        sums: [3].
        weighted: weights differ from client to client.
    """
    weight, first, second = (float(value) for value in sums)
    if weight <= SURE * sigma or weight <= 0:
        return Across(None, None, None, None)
    centre, noise = first / weight, (sigma / weight) ** 2
    error = float(np.sqrt(noise * (1 + centre**2)))
    mean = told("", min(max(centre + 0.5, 0.0), 1.0), error, [])
    variance = second / weight - (centre**2 - noise)
    spread = float(np.sqrt(max(variance, 0.0))) if mean is not None else None
    return Across(mean, None if weighted else mean, spread, None)
