"""Further rows of persons of whom a row each was drawn from a graphical model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fedsynth.marginals import Clique, Model
from fedsynth.methods.sampling.persons import deal_sizes

_REDRAWS = 10
"""Draws of a further row until one in an empty cell is left there."""


def draw_further(
    model: Model,
    whole: NDArray[np.int32],
    sizes: NDArray[np.int64],
    own: NDArray[np.bool_],
    empty: Sequence[tuple[Clique, NDArray[np.bool_]]],
    rng: np.random.Generator,
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Codes [rows, columns] of all persons' rows, and whose each is [rows], from 0.

    A person's further rows are exact and independent draws of the model given what of the person's
    row is its own; those in empty cells are drawn again.

    Args:
        whole: a row of each person [persons, columns].
        sizes: how many rows some persons have, [persons], to be dealt to these.
        own: columns that are `of: person`, [columns].
        empty: cells of pairs of columns that rows are to keep out of.
    """
    persons = np.repeat(np.arange(len(sizes)), deal_sizes(sizes, whole[:, own], rng))
    further, codes = np.flatnonzero(np.diff(persons, prepend=-1) == 0), whole[persons]
    for _ in range(_REDRAWS):
        codes[np.ix_(further, ~own)] = -1
        codes[further] = model.impute(codes[further], rng)
        hurt = [mask[codes[further, a], codes[further, b]] for (a, b), mask in empty]
        further = further[np.logical_or.reduce([np.zeros(len(further), bool), *hurt])]
    return codes, persons
