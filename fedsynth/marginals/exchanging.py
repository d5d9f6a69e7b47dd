"""Drawn rows kept out of cells that no factor of the model can empty, its tables as they were.

A model forbids combinations of columns that share a clique of its tree. Of others it can be rows
alone: two that agree on what separates the columns exchange one side of the tree.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fedsynth.marginals.domain import Clique, positions
from fedsynth.marginals.junction_tree import JunctionTree
from fedsynth.marginals.sampling import Codes

Empty = Sequence[tuple[Clique, NDArray[np.bool_]]]
"""Pairs of columns, and True where no row is to be, [sizes of the columns]."""

# Partners that a row tries on each separator, and how many rounds may better nothing.
_TRIES, _VAIN = 40, 6


def exchange(
    tree: JunctionTree, codes: Codes, empty: Empty, fixed: int | None, rng: np.random.Generator
) -> None:
    """Lead rows out of empty cells, in place, as far as there are partners for them.

    Rows of a model that agree on a separator of its tree are as likely with one side of it
    exchanged. So they are as if drawn under the condition that they keep out, and the tables of all
    cliques stay to the row what they were.

    Args:
        codes: int32 [n, d], drawn from a model on ``tree``.
        empty: cells of pairs of columns; those that share a clique cannot be led out of.
        fixed: a column whose codes stay in their rows; None for none.
        rng: a generator.
    """
    sides = _sides(tree)
    for pair, mask in empty:
        cuts = []
        for separator, side in zip(tree.separators, sides, strict=True):
            rest = set(range(len(tree.domain))) - side - set(separator)
            if len({*pair} & side) == 1 and len({*pair} & rest) == 1:
                cuts.append((separator, sorted(rest if fixed in side else side)))
        for separator, moved in sorted(cuts, key=lambda cut: tree.domain.cells(cut[0])):
            if not _inside(codes, pair, mask).any():
                break
            mates = _Mates(positions(tree.domain, codes, separator))
            _exchange_side(codes, pair, mask, empty, mates, moved, rng)


def _sides(tree: JunctionTree) -> list[set[int]]:
    """Columns beyond each edge of the tree, without its separator."""
    below = [set(clique) for clique in tree.cliques]
    for parent, child in reversed(tree.edges):
        below[parent] |= below[child]
    return [
        below[child] - set(separator)
        for (_, child), separator in zip(tree.edges, tree.separators, strict=True)
    ]


class _Mates:
    """Rows in groups of the same key, [n]."""

    def __init__(self, keys: NDArray[np.int64]) -> None:
        self.order = np.argsort(keys, kind="stable")
        grouped = keys[self.order]
        self.starts = np.searchsorted(grouped, keys)
        self.sizes = np.searchsorted(grouped, keys, side="right") - self.starts

    def draw(self, rows: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.intp]:
        """A row of the same group for each, any."""
        places = (rng.random(len(rows)) * self.sizes[rows]).astype(np.intp)
        drawn: NDArray[np.intp] = self.order[self.starts[rows] + places]
        return drawn


def _exchange_side(
    codes: Codes,
    pair: Clique,
    mask: NDArray[np.bool_],
    empty: Empty,
    mates: _Mates,
    moved: list[int],
    rng: np.random.Generator,
) -> None:
    vain = 0
    for _ in range(_TRIES):
        hurt = rng.permutation(np.flatnonzero(_inside(codes, pair, mask)))
        if not len(hurt) or vain == _VAIN:
            break
        both = np.stack([hurt, mates.draw(hurt, rng)])
        # No row takes part twice: the first couple that has it keeps it.
        _, first = np.unique(both.T, return_index=True)
        once = np.zeros(both.size, bool)
        once[first] = True
        both = both[:, once.reshape(-1, 2).all(axis=1)]
        before, after = codes[both], codes[both]
        after[..., moved] = before[::-1][..., moved]
        better = _breaks(after, empty) < _breaks(before, empty)
        codes[both[:, better]] = after[:, better]
        vain = 0 if better.any() else vain + 1


def _inside(codes: Codes, pair: Clique, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return mask[codes[..., pair[0]], codes[..., pair[1]]]


def _breaks(codes: Codes, empty: Empty) -> NDArray[np.int64]:
    """Empty cells that each couple of rows [2, m, d] is in, [m]."""
    breaks = np.zeros(codes.shape[1], np.int64)
    for pair, mask in empty:
        breaks += _inside(codes, pair, mask).sum(axis=0)
    return breaks
