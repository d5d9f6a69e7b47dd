"""MST: a tree of the strongest pairs of columns.

McKenna, Miklau, Sheldon 2021, "Winning the NIST contest: a scalable and general approach to
differentially private synthetic data". Under central trust the tree grows by the exponential
mechanism among exact scores; otherwise every pair is asked once as a coarse noisy sum and the tree
is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fedsynth.marginals import Clique, Domain, Evidence, JunctionTree, Model, fit, gain
from fedsynth.methods.marginal.expecting import Asked, fitting_pairs
from fedsynth.methods.marginal.graphical import GraphicalSynthesizer
from fedsynth.methods.marginal.measurer import Measurer
from fedsynth.methods.marginal.settings import MSTSettings
from fedsynth.privacy.budget import Budget
from fedsynth.queries.shares import Stage
from fedsynth.queries.tables import table_terms

COARSE, FINE, SELECT = "pairs: coarse", "pairs: fine", "pairs: select"
_TOLERANCE = 1e-4

Array = NDArray[np.float64]


class MST(GraphicalSynthesizer):
    """MST for tables of one or several owners."""

    name: ClassVar[str] = "mst"
    settings_type = MSTSettings

    def questions(self, settings: MSTSettings, budget: Budget, surviving: int) -> list[Stage]:
        edges, left = len(self.schema.modelled) - 1, 1 - settings.histogram_share
        if not edges:
            return []
        fine = Stage(FINE, left / 2, lambda m: table_terms(budget, m, surviving))
        if settings.selection == "exponential":
            return [
                Stage(
                    SELECT,
                    left / 2,
                    lambda m: table_terms(budget, m, surviving, "exponential"),
                    edges,
                ),
                fine,
            ]
        return [Stage(COARSE, left / 2, lambda m: table_terms(budget, m, surviving)), fine]

    def asked(self, settings: MSTSettings, domain: Domain) -> list[Asked]:
        pairs = fitting_pairs(domain, settings.max_cells)
        if not pairs:
            return []
        edges = min(len(domain) - 1, len(pairs))
        fine = Asked(FINE, edges, pairs, "asked again", edges, by_size=True)
        if settings.selection == "exponential":
            return [fine]
        return [Asked(COARSE, len(pairs), pairs, "asked coarsely", len(pairs)), fine]

    def model(self, settings: MSTSettings, measurer: Measurer) -> Model:
        domain, evidence = measurer.domain, Evidence()
        known = measurer.columns
        columns: list[Clique] = [(k,) for k in range(len(domain))]
        blocked = [clique for clique, _ in measurer.zeros]
        pairs = fitting_pairs(domain, settings.max_cells)
        edges: list[Clique] = []
        if pairs and settings.selection == "exponential":
            edges = _grow_tree(measurer, pairs)
        elif pairs:
            evidence.add(measurer.ask(COARSE, pairs, [1.0] * len(pairs)))
            edges = _spanning_tree(measurer, evidence, pairs)
        if pairs and measurer.affordable(FINE):
            # Where no pair outweighs its noise, the columns are asked again.
            asked = edges or columns
            evidence.add(measurer.ask(FINE, asked, [domain.cells(c) ** (1 / 3) for c in asked]))
        cliques = [*columns, *edges, *blocked]
        tree = JunctionTree.of(domain, cliques)
        return fit(
            domain,
            [*known, *evidence.select(tree, [*edges, *columns])],
            zeros=measurer.zeros,
            cliques=cliques,
            iterations=settings.iterations,
            tolerance=_TOLERANCE,
        )


def _expected_counts(measurer: Measurer, pair: Clique) -> Array:
    """Counts of a pair were its columns independent."""
    a, b = (measurer.encoding.frequencies[k] for k in pair)
    return np.outer(a, b) * measurer.encoding.records


def _spanning_tree(measurer: Measurer, evidence: Evidence, pairs: Sequence[Clique]) -> list[Clique]:
    """The spanning tree of the largest estimated distances from independence (Kruskal)."""
    fine = measurer.terms(FINE).noise_multiplier * math.sqrt(len(measurer.domain) - 1)
    scored = []
    for pair in pairs:
        known = evidence.estimate(pair)
        assert known is not None
        scored.append((gain(known, _expected_counts(measurer, pair), 0.0, fine), pair))
    scored.sort(key=lambda one: (-one[0], one[1]))
    groups = list(range(len(measurer.domain)))
    edges = []
    for score, pair in scored:
        if score > 0 and _root(groups, pair[0]) != _root(groups, pair[1]):
            groups[_root(groups, pair[0])] = _root(groups, pair[1])
            edges.append(pair)
    return edges


def _grow_tree(measurer: Measurer, pairs: Sequence[Clique]) -> list[Clique]:
    """A spanning tree edge by edge, by the exponential mechanism among those that join parts."""
    groups = list(range(len(measurer.domain)))
    edges: list[Clique] = []
    for _ in range(len(measurer.domain) - 1):
        joining = [p for p in pairs if _root(groups, p[0]) != _root(groups, p[1])]
        if not joining or not measurer.affordable(SELECT):
            break
        tables = [_expected_counts(measurer, pair).ravel() for pair in joining]
        none = np.zeros(len(joining))
        index = measurer.choose(
            SELECT, joining, np.concatenate(tables), np.ones(len(joining)), none
        )
        pair = joining[index]
        groups[_root(groups, pair[0])] = _root(groups, pair[1])
        edges.append(pair)
    return edges


def _root(groups: list[int], column: int) -> int:
    while groups[column] != column:
        column = groups[column]
    return column
