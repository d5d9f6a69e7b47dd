"""A table's rows as numbers and codes: what a decoder of linear outputs learns (paper 001).

Numbers are taken off their mean and divided by their deviation, both as the released histogram has
them, so that a network sees numbers of about unit variance. Whatever hangs on a record is its own
row alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fedsynth.data.tables import Conformed
from fedsynth.encoding.bins import Bins
from fedsynth.encoding.table import TableEncoding
from fedsynth.federation.client.view import View
from fedsynth.methods.training.batches import Batch, batch_of
from fedsynth.methods.vae.records import Model
from fedsynth.schema.target import target_index

Floats = NDArray[np.float32]

_NAMED = 5
"""Columns named in a sentence."""


@dataclass(frozen=True)
class Numbers:
    """The map from a table's rows to numbers and codes, [n, numbers + codes], and back.

    Numbers come first, in the schema's order, NaN for a gap; then for each column of numbers that
    may be missing a code, 1 for a gap; then the codes of all other columns, the target's among
    them.
    """

    encoding: TableEncoding

    @cached_property
    def numeric(self) -> list[int]:
        """The columns of numbers among those of the schema that are modelled."""
        return [j for j, bins in enumerate(self.encoding.bins) if isinstance(bins, Bins)]

    @cached_property
    def gaps(self) -> list[int]:
        """Of these, such as may be missing."""
        return [j for j in self.numeric if self.encoding.schema.modelled[j].missing]

    @cached_property
    def others(self) -> list[int]:
        """The columns of categories."""
        return [j for j in range(len(self.encoding.bins)) if j not in self.numeric]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Codes of each column behind the numbers."""
        return (2,) * len(self.gaps) + tuple(self.encoding.sizes[j] for j in self.others)

    @property
    def target(self) -> int:
        """Where the target, a column of categories, stands among `sizes`."""
        return len(self.gaps) + self.others.index(target_index(self.encoding.schema))

    @cached_property
    def scales(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Means and deviations [numbers] of the released histogram's columns."""
        pairs = []
        for j in self.numeric:
            bins = self.encoding.bins[j]
            assert isinstance(bins, Bins)
            mean, deviation = _moments(bins, self.encoding.frequencies[j][: bins.size])
            # Of a constant the deviation is what its values may be off by.
            column: Any = self.encoding.schema.modelled[j]
            pairs.append((mean, max(deviation, column.unit / 2)))
        means, deviations = np.array(pairs, np.float64).reshape(-1, 2).T
        return means, deviations

    def vectors(self, data: Conformed) -> Floats:
        """Rows [n, numbers + codes] of a table."""
        names = [column.name for column in self.encoding.schema.modelled]
        raw = np.array([data.columns[names[j]] for j in self.numeric], np.float64)
        raw = raw.reshape(len(self.numeric), data.rows).T
        means, deviations = self.scales
        codes = self.encoding.encode(data)[:, self.others]
        flags = np.isnan(raw[:, [self.numeric.index(j) for j in self.gaps]])
        return np.hstack([(raw - means) / deviations, flags, codes]).astype(np.float32)

    def numbers(self, drawn: Floats) -> NDArray[np.float64]:
        """The numbers of drawn rows in the columns' own units [n, numbers], on no grid; NaN where
        a row's code says that there is none."""
        means, deviations = self.scales
        count = len(self.numeric)
        values = drawn[:, :count].astype(np.float64) * deviations + means
        for place, j in enumerate(self.gaps):
            values[drawn[:, count + place] == 1, self.numeric.index(j)] = np.nan
        return values

    def columns(
        self, drawn: Floats, labels: NDArray[np.int64] | None, rng: np.random.Generator
    ) -> dict[str, NDArray[Any]]:
        """Columns as `Conformed.columns`, numbers on no grid yet.

        Args:
            drawn: rows, without the target's column where there are labels.
            labels: codes of the target [n].
        """
        codes = np.zeros((len(drawn), len(self.encoding.bins)), np.int64)
        own = drawn[:, len(self.numeric) + len(self.gaps) :].astype(np.int64)
        names = [column.name for column in self.encoding.schema.modelled]
        others = self.others
        if labels is not None:
            place = target_index(self.encoding.schema)
            codes[:, place] = labels
            others = [j for j in others if j != place]
        codes[:, others] = own
        columns = self.encoding.columns(codes, rng)
        values = self.numbers(drawn)
        return {**columns, **{names[j]: values[:, k] for k, j in enumerate(self.numeric)}}

    def remarks(self, drawn: Floats) -> tuple[str, ...]:
        """That numbers lie beyond their bounds and are drawn as these, in a sentence."""
        values, told = self.numbers(drawn), []
        for k, j in enumerate(self.numeric):
            column: Any = self.encoding.schema.modelled[j]
            share = float(np.mean((values[:, k] < column.low) | (values[:, k] > column.high)))
            if share >= 0.01:
                told.append((share, column.name))
        if not told:
            return ()
        told.sort(key=lambda one: -one[0])
        named = ", ".join(f"{name} ({share:.0%})" for share, name in told[:_NAMED])
        more = f" and {len(told) - _NAMED} more" if len(told) > _NAMED else ""
        return (
            f"drawn numbers that lie beyond the bounds become the bound, at {named}{more}: a "
            "Gaussian knows no bounds, likelihood bins does",
        )


def _moments(bins: Bins, shares: NDArray[np.float64]) -> tuple[float, float]:
    """Mean and deviation of the values that noisy bins describe: even within a piece, but in the
    outermost, which reach to the bounds, however far nobody's values lie from these."""
    total = np.bincount(bins.codes, bins.weights)
    held = shares.sum()
    # A column that the noise has emptied is as wide as its bounds.
    part = shares / held if held > 0 else np.full(bins.size, 1 / bins.size)
    masses = bins.weights * (part / total)[bins.codes]
    first = bins.grid.values(bins.starts)
    last = bins.grid.values(bins.starts + bins.lengths - 1)
    middles, within = (first + last) / 2, (last - first) ** 2 / 12
    known = np.flatnonzero(masses > 0)
    if len(known) > 2:
        ends = ((known[0], known[1], last, -1), (known[-1], known[-2], first, 1))
        for place, beside, edge, way in ends:
            far = _tail(masses[[place, beside]], (last - first)[[place, beside]])
            if far is not None:
                middles[place], within[place] = edge[place] + way * far, far**2
    mean = float(masses @ middles)
    return mean, float(masses @ ((middles - mean) ** 2 + within)) ** 0.5


def _tail(masses: NDArray[np.float64], lengths: NDArray[np.float64]) -> float | None:
    """How far from its inner edge an outermost piece's values lie on average if they thin out
    exponentially, as dense there as the piece beside it; None if it is no sparser than that.

    Args:
        masses, lengths: of the outermost piece and of the one beside it.
    """
    if not (lengths > 0).all():
        return None
    far = float(masses[0] * lengths[1] / masses[1])
    return far if far < lengths[0] / 2 else None


def rows_of(client: View, rows: NDArray[np.int64], model: Model) -> Batch:
    """A client's records as the model's networks see them."""
    if not model.spec.numbers:
        return batch_of(client, rows, model.labelled)
    numbers, vectors = client.derive("encoding", _read)
    x = vectors[rows]
    if not model.labelled:
        return Batch(torch.from_numpy(x), None)
    place = len(numbers.numeric) + numbers.target
    y = torch.from_numpy(x[:, place].astype(np.int64))
    return Batch(torch.from_numpy(np.delete(x, place, axis=1)), y)


def _read(client: View) -> tuple[Numbers, Floats]:
    numbers = Numbers(client.board.read("encoding", TableEncoding.from_dict))
    return numbers, numbers.vectors(client.data)
