"""Answers as whole numbers of a public grid: what is added up modulo 2**64 or 2**32.

Noise puts a client's answer on a grid that follows from public terms alone. So answers are added
as whole numbers of its steps, exactly, and their sum is made a number again once: in the plain or
in secret, and in whatever order, it is the same to the last bit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import PrivacyError
from fedsynth.federation.client.tasks import GroupTask, lookup
from fedsynth.federation.request import Request
from fedsynth.privacy.integers import count_digits
from fedsynth.privacy.mechanisms.gaussian import Gaussian

Whole = NDArray[Any]
"""uint64 or uint32 [dim]."""

_FINE = 30
"""Binary digits behind the clip, of answers without noise."""
_HELD = 2.0**50
"""Steps at which Gaussian sums are held, before their noise."""


@dataclass(frozen=True)
class Grid:
    """How a round's answers are written as whole numbers.

    Attributes:
        step: positive.
        kind: "<u8" or "<u4", the type of the numbers.
        end: magnitude that no honest client's number exceeds, in steps; infinite where draws of
            the noise have no end.
    """

    step: float
    kind: str
    end: float

    def encode(self, values: NDArray[np.float64]) -> Whole:
        """Values of the grid as whole steps, modulo 2**64 or 2**32; others are rounded.

        Exact to 2**51 steps, and on grids of powers of two however far.

        Raises:
            PrivacyError: values that are not finite.
        """
        if not np.isfinite(values).all():
            raise PrivacyError("an answer that is not finite cannot be added up")
        steps = np.fmod(np.rint(values / self.step), 2.0**64)
        # Into the range of int64; a number beyond it has no digits to lose.
        steps = np.where(steps >= 2.0**63, steps - 2.0**64, steps)
        steps = np.where(steps < -(2.0**63), steps + 2.0**64, steps)
        return steps.astype(np.int64).view(np.uint64).astype(self.kind)

    def decode(self, total: Whole) -> NDArray[np.float64]:
        """A sum of what :meth:`encode` gave, with its sign, float64."""
        signed: Whole = total.view("<i8" if self.kind == "<u8" else "<i4")
        return np.asarray(signed * self.step, np.float64)


class Adder:
    """Adds a round's answers up in the plain: shares of noise as the whole numbers they are."""

    def __init__(self, request: Request, clients: int) -> None:
        shared = request.terms.trusts.shares and request.terms.client_scale > 0
        self._grid = grid_of(request, clients) if shared else None
        kind = None if self._grid is None else self._grid.kind
        self._total: NDArray[Any] = np.zeros(request.dim, kind)

    def add(self, values: NDArray[np.float64]) -> None:
        self._total += values if self._grid is None else self._grid.encode(values)

    @property
    def total(self) -> NDArray[np.float64]:
        return self._total if self._grid is None else self._grid.decode(self._total)


def grid_of(request: Request, clients: int) -> Grid:
    """The grid of a round that so many clients are asked in, by public terms alone.

    Numbers have 32 bits where a public cap proves that no sum of honest answers wraps: each client
    adds at most a clip for each of its units (one, or `most_records`), and the noise's table ends.
    """
    terms, count = request.terms, request.dim
    if terms.client_scale == 0:
        return Grid(2.0 ** (math.floor(math.log2(terms.clip)) - _FINE), "<u8", math.inf)
    step = terms.noise.step(count, terms.client_scale, terms.clip)
    if not isinstance(terms.noise, Gaussian):
        return Grid(step, "<u8", math.inf)
    digits = count_digits(count, terms.client_scale, terms.clip)
    # A digit of the noise is below 2**13 in magnitude.
    noise = 2.0**13 * sum(255.0**digit for digit in range(digits))
    units = request.most_records if terms.protects.per_record else 1
    if units is None or isinstance(lookup(request.task), GroupTask):
        return Grid(step, "<u8", _HELD + noise)
    end = min(_HELD, units * terms.clip / step * (1 + 1e-9) + 1) + noise
    return Grid(step, "<u4" if clients * end < 2.0**31 else "<u8", end)
