"""Parts of a training in a checkpoint, each under its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[np.generic]]


class Part(Protocol):
    """What can be saved and go on: a learner, a watch."""

    def state(self) -> Arrays: ...

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None: ...


def pack_parts(parts: Mapping[str, Part]) -> Arrays:
    """The arrays of all parts by name of the part, a point, and name of the array."""
    return {
        f"{name}.{key}": array
        for name, part in parts.items()
        for key, array in part.state().items()
    }


def unpack_parts(parts: Mapping[str, Part], arrays: Mapping[str, NDArray[Any]]) -> None:
    """The inverse of :func:`pack_parts`, in place; there may be other arrays."""
    for name, part in parts.items():
        start = f"{name}."
        part.restore({k.removeprefix(start): v for k, v in arrays.items() if k.startswith(start)})
