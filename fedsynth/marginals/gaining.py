"""What measuring a table would bring, by what a coarse sum tells of it."""

from __future__ import annotations

import math

import numpy as np

from fedsynth.marginals.domain import Array
from fedsynth.marginals.fitting import Measurement

# Counts below so many deviations of the noise weigh alike in a candidate's score.
_FLOOR = 2.0


def gain(
    m: Measurement, expected: Array, drawn: float, fine: float | Array, sure: float = 1.0
) -> float:
    """How much nearer the model would come to a marginal by measuring it, in records.

    The distance is estimated from the coarse sum m: squared errors, each less its expected noise
    and divided by about what the cell holds, bound the L1 distance (Cauchy-Schwarz). One deviation
    of that estimate is taken off, or large tables would win by their noise alone; and so is what
    measuring brings in noise, at most a cell's own count.

    Args:
        expected: the model's counts, estimated from rows that stand for ``drawn`` records each.
        fine: deviation of the noise that measuring would bring.
        sure: deviations by which squared errors must exceed their noise's to count at all.
    """
    noise = m.deviations**2 + expected * drawn
    weights = 1 / (expected + _FLOOR * m.deviations + 1.0)
    excess = float((weights * ((m.values - expected) ** 2 - noise)).sum())
    deviation = math.sqrt(2 * float(((weights * noise) ** 2).sum()))
    excess = excess - deviation if excess > sure * deviation else 0.0
    distance = math.sqrt(max(excess, 0.0) * float(expected.sum()))
    return distance - float(np.minimum(math.sqrt(2 / math.pi) * fine, expected).sum())
