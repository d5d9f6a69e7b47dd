"""What every aggregation function is."""

from __future__ import annotations

from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


class Aggregation(Protocol):
    """How weights move by the released mean of how far the clients' moved.

    The mean is over the expected number of clients, each alike: a weight by its records would be
    the largest that anybody may have, and tell how many there are.
    """

    name: ClassVar[str]
    """In settings."""
    answers: ClassVar[int]
    """Vectors as long as the weights in a client's row."""

    def start(self, dim: int) -> Floats:
        """What it remembers before the first round, [vectors, dim]; none has 0 vectors."""
        ...

    def step(self, weights: Floats, moved: Floats, memory: Floats) -> None:
        """One round.

        Args:
            weights: [dim], changed in place.
            moved: the clipped, noisy mean of the clients' rows [answers * dim], which begin with
                their differences to them.
            memory: of the rounds before [vectors, dim], changed in place.
        """
        ...
