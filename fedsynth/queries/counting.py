"""Histograms asked through the door: bin edges, label frequencies, tables of columns by label.

At the record level a record adds ones at a fixed number of positions, so the L2 sensitivity is the
square root of that number, whatever the record. At the client level a client sends its counts
divided by its own number of records: no client weighs more than another, and the same bound holds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsynth.encoding.histogram import HistogramLayout
from fedsynth.federation.server.channel import Channel
from fedsynth.federation.server.counts import Blocks
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.mechanisms import norm_of
from fedsynth.privacy.terms import Terms
from fedsynth.queries.tasks.counting import HISTOGRAM, LABELS, CountTask
from fedsynth.queries.terms import terms_for_everyone
from fedsynth.schema import ImageSchema, Schema

Positions = NDArray[np.int64]
CountQuestion = tuple[CountTask, Positions, int]
"""A question for counts: its task, where each block of it begins, and its length. A record adds one
to each block."""


def counting_terms(
    ones: int,
    noise_multiplier: float,
    budget: Budget,
    survivors: int,
    mechanism: str = "gaussian",
) -> Terms:
    """Terms of a histogram to which every record adds ``ones`` ones, asked of everybody."""
    bound = float(ones if norm_of(mechanism) == "l1" else np.sqrt(ones))
    return terms_for_everyone(budget, bound, noise_multiplier, survivors, mechanism)


def deviation_of(terms: Terms, answered: int) -> float:
    """Standard deviation of the noise in each number of a sum of so many answers."""
    return terms.noise.deviation(terms.summed_scale(answered))


@dataclass(frozen=True)
class Counts:
    """A released histogram: ``values`` and the standard deviation of the noise in each of them."""

    values: NDArray[np.float64]
    sigma: float


def ask_counts(
    channel: Channel, task: CountTask, terms: Terms, starts: Positions, dim: int
) -> Counts:
    """Release one histogram.

    Args:
        starts: where each block begins, to one count of each of which a record adds, [ones].
    """
    released = channel.count(task.name, terms, dim, Blocks.of_ones(starts))
    return Counts(released.value, deviation_of(terms, released.answered))


def question(schema: Schema | ImageSchema) -> CountQuestion:
    """The first question of every job that makes rows: of a table every column."""
    if isinstance(schema, ImageSchema):
        return label_question(schema)
    layout = HistogramLayout.of(schema)
    return HISTOGRAM, layout.starts, layout.dim


def label_question(schema: Schema | ImageSchema) -> CountQuestion:
    """How many records there are of each class; of all, where there are no classes."""
    return LABELS, np.zeros(1, np.int64), max(1, schema.classes)
