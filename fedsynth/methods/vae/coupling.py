"""Columns that go together as released tables of two say, whatever a decoder does.

Given a few latent numbers a decoder draws columns independently, so what settles another, and what
never goes together, comes out blurred: a wife who is a man. Tables of pairs tell, asked once and
coarsely. Those that the decoder is further from than their noise explains have potentials: rows are
drawn from the decoder, and then each column anew given the others, as likely as the decoder has its
codes times the exponentials of the potentials (Gibbs sampling). Potentials are fitted on drawn rows
until these have the released tables, and so is one of each column by class, which keeps to what
the decoder has of it alone. All of it is post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedsynth.errors import ConfigError, ReleaseError
from fedsynth.marginals import (
    Clique,
    Domain,
    Evidence,
    Measurement,
    count,
    find_empty,
    fit,
    gain,
)
from fedsynth.models import likelihood, vae
from fedsynth.models.spec import VAESpec

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Chosen on Adult, split 21 (evaluation/README.md, rows that make sense).
# Deviations of its noise by which a pair must differ from the decoder's, what a fitted table errs
# by over its noise, and how many pairs have potentials at the most.
_SURE, _FITTED, _MOST = 2.0, 0.3, 40
# Of a table that is next to empty but for one cell a value: see `find_empty`.
_WHOLE = (0.1, 1.5)
# Rows that potentials are fitted on, of which a step looks at a third; and by which pairs are
# compared.
_ROWS, _COMPARED = 18_000, 20_000
_STEPS, _STEP, _TOGETHER = 30, 0.2, 1.6
# How often every column is drawn anew.
_SWEEPS = 2
# Of potentials: of combinations that are never to be, and the largest magnitudes of others.
_NEVER, _LARGEST, _LEANING = -20.0, 12.0, 5.0


@dataclass(frozen=True, eq=False)
class Potential:
    """What is added to the logarithms of the decoder's probabilities.

    Attributes:
        clique: two of the decoder's columns, or one.
        values: float32, [codes, codes] of two columns, [classes, codes] of one.
    """

    clique: Clique
    values: NDArray[np.float32]

    @property
    def never(self) -> Mask:
        """Combinations that are not drawn where there are others."""
        return np.asarray(self.values <= _NEVER)

    def check(self, spec: VAESpec) -> None:
        """Raises ReleaseError where it is not of the decoder's columns."""
        rising = list(self.clique) == sorted(set(self.clique))
        inside = rising and all(0 <= k < len(spec.sizes) for k in self.clique)
        shape = tuple(spec.sizes[k] for k in self.clique) if inside else ()
        shape = (max(1, spec.classes), *shape) if len(shape) == 1 else shape
        if len(shape) != 2 or self.values.shape != shape or not np.isfinite(self.values).all():
            raise ReleaseError("the model's potentials are not of its columns")


def draw_anew(
    sizes: Sequence[int],
    potentials: Sequence[Potential],
    codes: Tensor,
    logits: Tensor,
    labels: Tensor | None,
    generator: torch.Generator,
) -> Tensor:
    """Codes [n, d] whose columns were drawn anew, one after the other, given the others.

    Args:
        sizes: codes of each column.
        codes, logits: as the decoder drew them, [n, d] and [n, sum(sizes)].
        labels: classes [n]; None without.
    """
    codes = codes.clone()
    starts = [0, *accumulate(sizes)]
    touching: dict[int, list[tuple[int | None, Tensor]]] = {}
    for one in potentials:
        values = torch.from_numpy(one.values)
        if len(one.clique) == 1:
            touching.setdefault(one.clique[0], []).append((None, values))
        else:
            first, second = one.clique
            touching.setdefault(first, []).append((second, values.T.contiguous()))
            touching.setdefault(second, []).append((first, values))
    for _ in range(_SWEEPS):
        for column, tables in sorted(touching.items()):
            own = logits[:, starts[column] : starts[column + 1]].clone()
            for other, table in tables:
                if other is not None:
                    own += table[codes[:, other].long()]
                else:
                    own += table[0] if labels is None else table[labels.long()]
            codes[:, column] = likelihood.draw_codes(own, [sizes[column]], generator)[:, 0]
    return codes


def learn_potentials(
    spec: VAESpec,
    theta: NDArray[np.float32],
    shares: Array,
    columns: Sequence[Array],
    tables: Sequence[Measurement],
    seed: int,
) -> tuple[Potential, ...]:
    """Of the pairs that the decoder is further from than noise explains.

    Args:
        spec: of one VAE, whose columns are all codes.
        theta: its decoder.
        shares: of the classes; empty without.
        columns: estimated records by each column's codes.
        tables: of pairs of the decoder's columns.
        seed: of the draws.
    """
    sizes = spec.sizes
    total = float(np.mean([one.sum() for one in columns]))
    alone = [Measurement((k,), one, 0.0) for k, one in enumerate(columns)]
    pairs = [one.clique for one in tables]
    empty = dict(find_empty(Evidence([*alone, *tables]), pairs, total, whole=_WHOLE))
    generator = torch.Generator().manual_seed(seed)
    codes, logits, labels = _draw(spec, theta, shares, _COMPARED, generator)
    wanted = {}
    for one in _differing(sizes, codes, tables, empty, total):
        table = _fit_pair(one, columns, empty.get(one.clique), total)
        if table is not None:
            wanted[one.clique] = table
    if not wanted:
        return ()
    touched = sorted({column for pair in wanted for column in pair})
    by_class = _by_class(spec, logits, labels, touched)
    return _Fit(spec, wanted, by_class, empty).run(theta, shares, generator)


def _differing(
    sizes: Sequence[int],
    codes: Tensor,
    tables: Sequence[Measurement],
    empty: dict[Clique, Mask],
    total: float,
) -> list[Measurement]:
    """Tables that tell more than their noise of how the decoder is off, the most first; and those
    with empty cells."""
    drawn, domain, scale = codes.numpy(), Domain(tuple(sizes)), total / len(codes)
    scored = []
    for one in tables:
        expected = count(domain, drawn, one.clique) * scale
        score = gain(one, expected, scale, _FITTED * one.deviations, _SURE)
        scored += [(-score, one.clique, one)] if score > 0 or one.clique in empty else []
    scored.sort(key=lambda own: own[:2])
    return [one for score, clique, one in scored[:_MOST]]


def _fit_pair(
    table: Measurement, columns: Sequence[Array], empty: Mask | None, total: float
) -> Array | None:
    """Shares of a pair's cells, nearest to its noisy counts for what is known of its columns; None
    where empty cells contradict these."""
    own = [np.maximum(columns[k], 0.0) for k in table.clique]
    known = Measurement((0, 1), table.values, table.sigma)
    # Columns are known far better than pairs.
    sure = float(np.mean(table.deviations)) / 20
    alone = [Measurement((k,), one, sure) for k, one in enumerate(own)]
    try:
        model = fit(
            Domain(table.values.shape),
            [known, *alone],
            total=total,
            cliques=[(0, 1)],
            zeros=[] if empty is None else [((0, 1), empty)],
        )
    except ConfigError:
        return None
    return model.marginal((0, 1))


def _draw(
    spec: VAESpec,
    theta: NDArray[np.float32],
    shares: Array,
    rows: int,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Codes [rows, d], their logarithms of probabilities [rows, width], and labels."""
    labels = None
    if spec.classes:
        chances = torch.from_numpy(shares)
        labels = torch.multinomial(chances, rows, replacement=True, generator=generator)
    seen = []

    def keep(codes: Tensor, logits: Tensor, _: Tensor | None, __: torch.Generator) -> Tensor:
        seen.append(likelihood.log_softmax(logits, spec.sizes))
        return codes

    codes = vae.sample(spec, torch.from_numpy(theta), labels, generator, rows, keep)
    return codes, torch.cat(seen), labels


def _by_class(
    spec: VAESpec, logs: Tensor, labels: Tensor | None, columns: Sequence[int]
) -> dict[int, Array]:
    """The decoder's shares of each column's codes in every class, [classes, codes]."""
    starts = [0, *accumulate(spec.sizes)]
    kinds = torch.zeros(len(logs), dtype=torch.long) if labels is None else labels
    marks = likelihood.one_hot_labels(kinds, max(1, spec.classes))
    weights = marks / marks.sum(0).clamp(min=1)
    return {
        k: (weights.T @ logs[:, starts[k] : starts[k + 1]].exp()).double().numpy() for k in columns
    }


class _Fit:
    """Iterative scaling on drawn rows.

    Args:
        wanted: shares of pairs' cells.
        by_class: shares of columns' codes in every class.
        empty: combinations that are never to be, by pair.
    """

    def __init__(
        self,
        spec: VAESpec,
        wanted: dict[Clique, Array],
        by_class: dict[int, Array],
        empty: dict[Clique, Mask],
    ) -> None:
        self.spec, self.wanted, self.by_class, self.empty = spec, wanted, by_class, empty
        self.domain = Domain(tuple(spec.sizes))
        self.values: dict[Clique, Array] = {pair: np.zeros(t.shape) for pair, t in wanted.items()}
        self.values |= {(k,): np.zeros(table.shape) for k, table in by_class.items()}
        self._forbid()
        most = max(sum(k in pair for pair in wanted) for k in by_class)
        self.step = min(_STEP, _TOGETHER / most)

    def run(
        self, theta: NDArray[np.float32], shares: Array, generator: torch.Generator
    ) -> tuple[Potential, ...]:
        codes, logs, labels = _draw(self.spec, theta, shares, _ROWS, generator)
        sums = {clique: np.zeros(one.shape) for clique, one in self.values.items()}
        for step in range(_STEPS):
            at = torch.randperm(_ROWS, generator=generator)[: _ROWS // 3]
            own = None if labels is None else labels[at]
            drawn = draw_anew(
                self.spec.sizes, self._potentials(self.values), codes[at], logs[at], own, generator
            )
            self._scale(drawn.numpy(), own, self.step * max(0.15, 1 - step / _STEPS))
            if step >= _STEPS // 2:
                for clique, one in self.values.items():
                    sums[clique] += one
        # Means over the second half err less by the rows that were drawn.
        self.values = {c: one / (_STEPS - _STEPS // 2) for c, one in sums.items()}
        self._forbid()
        return self._potentials(self.values)

    def _potentials(self, values: dict[Clique, Array]) -> tuple[Potential, ...]:
        return tuple(Potential(c, one.astype(np.float32)) for c, one in values.items())

    def _scale(self, codes: NDArray[np.int32], labels: Tensor | None, step: float) -> None:
        """One step towards the wanted tables, from rows that were drawn."""
        for pair, table in self.wanted.items():
            found = count(self.domain, codes, pair) / len(codes)
            few = 0.2 / len(codes)
            moved = self.values[pair] + step * np.log((table + few) / (found + few))
            self.values[pair] = moved.clip(-_LARGEST, _LARGEST)
        kinds = np.zeros(len(codes), np.int64) if labels is None else labels.numpy()
        for k, table in self.by_class.items():
            cells = kinds * table.shape[1] + codes[:, k]
            counts = np.bincount(cells, minlength=table.size).reshape(table.shape)
            rows = np.maximum(counts.sum(axis=1, keepdims=True), 1)
            few = 0.5 / len(codes)
            moved = self.values[k,] + step * np.log((table + few) / (counts / rows + few))
            self.values[k,] = moved.clip(-_LEANING, _LEANING)
        self._forbid()

    def _forbid(self) -> None:
        for pair in self.wanted:
            if pair in self.empty:
                self.values[pair][self.empty[pair]] = _NEVER
