"""What is asked of a table: its cells and products as one row a record, and the answer.

A record adds, in the block of its group and class, one weighted count to a cell of every column,
and the weighted products of its public scores, among them a constant, so that the products hold
counts and first moments too. The squared weights (absolute ones under L1) sum to 1, so that a row's
norm is at most 1, whatever the record.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsynth.methods.copula.cells import TableCells
from fedsynth.privacy.rows.clipping import Norm, factors
from fedsynth.privacy.rows.counting import IndicatorRows
from fedsynth.privacy.rows.stacking import ROOT, SecondMomentRows, StackedRows, triangle

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

# What the squares of a record's scores in a column are reckoned to sum to; and the square of the
# constant score, as a share of that of all columns.
_TYPICAL, _CONSTANT = 0.5, 1 / 3


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked, from public settings alone.

    Attributes:
        cells: of the table.
        share: of the squared norm (L1: of the norm) that the second moments have, in [0, 1); 0
            asks for none.
        norm: that is bounded.
        groups: of clients, with a block each.
    """

    cells: TableCells
    share: float
    norm: Norm
    groups: int = 1

    @property
    def blocks(self) -> int:
        """One a group and class."""
        return self.groups * self.cells.classes

    @property
    def width(self) -> int:
        """Scores of a record, the constant among them."""
        return 1 + sum(int(column.scores.shape[1]) for column in self.cells.columns)

    @property
    def dim(self) -> int:
        """Length of the message."""
        products = triangle(self.width) if self.share else 0
        return self.blocks * (self.cells.cells + products)

    @property
    def count_weight(self) -> float:
        """What a record adds to a cell."""
        columns = len(self.cells.columns)
        if self.norm == "l1":
            return (1 - self.share) / columns
        return math.sqrt((1 - self.share) / columns)

    @property
    def product_weight(self) -> float:
        """The norm of a record's products."""
        return self.share if self.norm == "l1" else math.sqrt(self.share)

    @property
    def constant(self) -> float:
        """The constant score."""
        return math.sqrt(_CONSTANT * _TYPICAL * len(self.cells.columns))

    @property
    def bound(self) -> float:
        """The norm of a record's products that is scaled to 1; those above are clipped to it."""
        squares = [self.constant**2, *[_TYPICAL] * len(self.cells.columns)]
        if self.norm == "l2":
            return sum(squares)
        return sum(squares) + (sum(map(math.sqrt, squares)) ** 2 - sum(squares)) / ROOT

    def rows(self, columns: Mapping[str, NDArray[np.generic]], group: int) -> StackedRows:
        """The rows [n, dim] of conformed records of a client in ``group``."""
        codes, labels = self.cells.codes(columns), self.cells.labels(columns)
        blocks = group * self.cells.classes + labels
        places = blocks[:, None] * self.cells.cells + self.cells.starts + codes
        counts = IndicatorRows(places, self.blocks * self.cells.cells)
        if not self.share:
            return StackedRows([counts], [self.count_weight])
        return StackedRows(
            [counts, self._products(codes, blocks)], [self.count_weight, self.product_weight]
        )

    def _products(self, codes: Whole, blocks: Whole) -> SecondMomentRows:
        scores = [
            column.scores[code] for column, code in zip(self.cells.columns, codes.T, strict=True)
        ]
        values = np.concatenate([np.full((len(codes), 1), self.constant), *scores], axis=1)
        values /= math.sqrt(self.bound)
        # Clipped here, so that a record of large products keeps its counts whole.
        norms = SecondMomentRows(values, blocks, self.blocks)
        values *= np.sqrt(factors(norms, 1.0, self.norm))[:, None]
        return SecondMomentRows(values, blocks, self.blocks)

    def answer(self, values: Floats, sigma: float) -> Statistics:
        """The statistics in a released sum [dim] with noise of standard deviation ``sigma``."""
        table = (self.groups, self.cells.classes)
        split = self.blocks * self.cells.cells
        counts = values[:split].reshape(*table, self.cells.cells) / self.count_weight
        width = self.width
        products = np.zeros((*table, width, width))
        scale = self.bound / self.product_weight if self.share else 0.0
        if self.share:
            upper = np.triu_indices(width)
            entries = values[split:].reshape(*table, triangle(width)) * scale
            entries = entries / np.where(upper[0] == upper[1], 1.0, ROOT)
            products[..., upper[0], upper[1]] = entries
            products[..., upper[1], upper[0]] = entries
        return Statistics(
            self, counts, sigma / self.count_weight, products, sigma * scale, (values, sigma)
        )


@dataclass(frozen=True, eq=False)
class Statistics:
    """What was released.

    Attributes:
        question: that it answers.
        counts: noisy records in every cell, [groups, classes, cells].
        sigma: standard deviation of the noise of a count.
        products: noisy sums of the products of the records' scores, the constant first,
            [groups, classes, width, width], symmetric; a clipped record counts for less than one.
            Zeros where none were asked for.
        product_sigma: standard deviation of the noise on the diagonal; off it, by sqrt(2) less.
        released: the sum itself, [dim], and the standard deviation of its noise.
    """

    question: Question
    counts: Floats
    sigma: float
    products: Floats
    product_sigma: float
    released: tuple[Floats, float]
