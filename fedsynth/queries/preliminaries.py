"""What a training of many rounds asks first: a histogram, and tables of every column by label."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsynth.encoding.resolution import alone_remarks, undivided_remarks
from fedsynth.encoding.table import TableEncoding
from fedsynth.queries.counting import ask_counts, question
from fedsynth.queries.estimates import class_profiles, label_frequencies
from fedsynth.queries.session import Session
from fedsynth.queries.tasks.counting import LABEL_TABLES, pair_starts
from fedsynth.schema import ImageSchema, Schema
from fedsynth.schema.target import conditions, target_index


@dataclass(frozen=True)
class Preliminaries:
    """What is known before the training, all of it released.

    Attributes:
        encoding: bins of a table; None for images.
        frequencies: estimated share of each class [classes]; empty without classes.
        records: estimated number, at least 1.
        profiles: of each class the shares of the other columns' cells, [classes, cells], each
            column's part summing to 1; None where the plan asks for no tables.
    """

    encoding: TableEncoding | None
    frequencies: NDArray[np.float64]
    records: float
    profiles: NDArray[np.float64] | None


def ask_preliminaries(
    session: Session, schema: Schema | ImageSchema, bins: int, *, scaled: bool = False
) -> Preliminaries:
    """Ask the plan's histogram and label tables; announces the encoding in between.

    Args:
        bins: wanted for a numeric column.
        scaled: whether numbers are only scaled by their bins, and not learned as these.
    """
    channel, plan = session.channel, session.plan
    task, starts, dim = question(schema)
    session.progress(task.name, 0, 1)
    counts = ask_counts(channel, task, plan.terms(task.name), starts, dim)
    session.progress(task.name, 1, 1)
    if isinstance(schema, ImageSchema):
        frequencies, total = label_frequencies(counts)
        return Preliminaries(None, frequencies if conditions(schema) else np.zeros(0), total, None)
    encoding = TableEncoding.from_histogram(schema, counts.values, counts.sigma, bins)
    channel.announce("encoding", encoding.to_dict())
    for sentence in (*alone_remarks(encoding), *undivided_remarks(encoding, scaled=scaled)):
        # Before the training is paid for, which is most of the budget.
        session.options.caution(sentence)
    frequencies, profiles = np.zeros(0), None
    if conditions(schema):
        frequencies = encoding.frequencies[target_index(schema)]
    if LABEL_TABLES.name in plan.labels:
        target = target_index(schema)
        starts, dim = pair_starts(encoding.sizes, target)
        session.progress(LABEL_TABLES.name, 0, 1)
        terms = plan.terms(LABEL_TABLES.name)
        tables = ask_counts(channel, LABEL_TABLES, terms, starts, dim)
        session.progress(LABEL_TABLES.name, 1, 1)
        profiles, frequencies = class_profiles(tables, encoding, target, starts)
    return Preliminaries(encoding, frequencies, encoding.records, profiles)
