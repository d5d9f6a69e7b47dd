"""What a training of many rounds asks first: a histogram, and tables of every column by label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsynth.encoding.table import TableEncoding
from fedsynth.queries.counting import ask_counts, question
from fedsynth.queries.estimates import class_profiles, label_frequencies
from fedsynth.queries.fit import Fitting
from fedsynth.queries.rounds import Plan
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

    def to_state(self) -> tuple[dict[str, NDArray[np.generic]], dict[str, Any]]:
        """Arrays and JSON-able values; :meth:`from_state` gives the same back."""
        arrays: dict[str, NDArray[np.generic]] = {"frequencies": self.frequencies}
        if self.profiles is not None:
            arrays["profiles"] = self.profiles
        encoding = None if self.encoding is None else self.encoding.to_dict()
        return arrays, {"records": self.records, "encoding": encoding}

    @staticmethod
    def from_state(arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> Preliminaries:
        """The inverse of :meth:`to_state`; there may be other arrays and values.

        Raises:
            KeyError, TypeError, ValueError: parts are missing or of another kind.
            ReleaseError: the encoding is none.
        """
        encoding, profiles = meta["encoding"], arrays.get("profiles")
        return Preliminaries(
            None if encoding is None else TableEncoding.from_dict(encoding),
            np.asarray(arrays["frequencies"], np.float64),
            float(meta["records"]),
            None if profiles is None else np.asarray(profiles, np.float64),
        )


def ask_preliminaries(
    fitting: Fitting, schema: Schema | ImageSchema, plan: Plan, bins: int
) -> Preliminaries:
    """Ask the plan's histogram and label tables; announces the encoding in between.

    Args:
        bins: wanted for a numeric column.
    """
    channel = fitting.channel
    task, dim, _ = question(schema)
    fitting.progress(task.name, 0, 1)
    counts = ask_counts(channel, task, plan.histogram, dim)
    fitting.progress(task.name, 1, 1)
    if isinstance(schema, ImageSchema):
        frequencies, total = label_frequencies(counts)
        return Preliminaries(None, frequencies if conditions(schema) else np.zeros(0), total, None)
    encoding = TableEncoding.from_histogram(schema, counts.values, counts.sigma, bins)
    channel.announce("encoding", encoding.to_dict())
    frequencies, profiles = np.zeros(0), None
    if conditions(schema):
        frequencies = encoding.frequencies[target_index(schema)]
    if plan.label_tables is not None:
        target = target_index(schema)
        starts, dim = pair_starts(encoding.sizes, target)
        fitting.progress(LABEL_TABLES.name, 0, 1)
        tables = ask_counts(channel, LABEL_TABLES, plan.label_tables, dim)
        fitting.progress(LABEL_TABLES.name, 1, 1)
        profiles, frequencies = class_profiles(tables, encoding, target, starts)
    return Preliminaries(encoding, frequencies, encoding.records, profiles)
