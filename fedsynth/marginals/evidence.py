"""Everything measured about a table, looked up by columns."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from fedsynth.marginals.domain import Clique
from fedsynth.marginals.fitting import Measurement, estimate_marginal
from fedsynth.marginals.junction_tree import JunctionTree


class Evidence:
    """Measurements, indexed by every set of columns that they hold."""

    def __init__(self, measurements: Iterable[Measurement] = ()) -> None:
        self.measurements: list[Measurement] = []
        self._holding: dict[Clique, list[Measurement]] = {}
        self.add(measurements)

    def add(self, measurements: Iterable[Measurement]) -> None:
        for m in measurements:
            self.measurements.append(m)
            for size in range(1, len(m.clique) + 1):
                for columns in itertools.combinations(m.clique, size):
                    self._holding.setdefault(columns, []).append(m)

    def estimate(self, columns: Clique) -> Measurement | None:
        """See :func:`fedsynth.marginals.estimate_marginal`."""
        return estimate_marginal(self._holding.get(columns, ()), columns)

    def select(self, tree: JunctionTree, wanted: Iterable[Clique]) -> list[Measurement]:
        """What a model on ``tree`` can use.

        All measurements that it can hold whole; and of those that it cannot, their best word on
        ``wanted`` cliques that no whole one tells of. Several such words may come from one
        measurement and share its noise, which a fit takes as independent.
        """
        whole = [m for m in self.measurements if tree.home(m.clique) is not None]
        held = {id(m) for m in whole}
        measurements = list(whole)
        for columns in wanted:
            others = [m for m in self._holding.get(columns, ()) if id(m) not in held]
            if others and len(others) == len(self._holding[columns]):
                estimate = estimate_marginal(others, columns)
                measurements += [] if estimate is None else [estimate]
        return measurements
