"""Counts of clipped persons, which are too low, mended by how many persons there are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fedsynth.marginals import Measurement
from fedsynth.methods.persons import count_all
from fedsynth.queries.session import Session

# Deviations of its noise from which on a table's own total is another.
_APART = 3.0

if TYPE_CHECKING:
    from fedsynth.methods.marginal.graphical import Learned


def count_clipped(learned: Learned, session: Session) -> Learned:
    """The same with all counts so many times as high as the histogram of rows a person tells,
    which is told; as it is where there is none, or where it tells nothing beyond its noise."""
    factor = count_all(session.rows_a_person, session.plan.budget, learned.records)
    if factor == 1:
        return learned
    told = (
        "persons whose rows are clipped count less, so all counts were multiplied by "
        f"{factor:.3g}, for as many as the histogram of rows a person has; intervals of counts "
        "hold their noise alone, not how much less each cell's persons counted"
    )
    total = learned.records

    def mend(one: Measurement) -> Measurement:
        # Persons are clipped by all tables of a message together, so messages differ.
        own, noise = one.values.sum(), np.sqrt((one.deviations**2 * np.ones_like(one.values)).sum())
        apart = abs(own - total) > _APART * noise and own > 0
        return one.times(factor * total / own if apart else factor)

    return replace(
        learned,
        encoding=replace(learned.encoding, records=learned.encoding.records * factor),
        model=replace(learned.model, total=learned.model.total * factor),
        measurements=tuple(map(mend, learned.measurements)),
        remarks=(*learned.remarks, told),
    )
