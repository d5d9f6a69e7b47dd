"""PrivBayes across clients: a Bayesian network whose structure and tables are noisy counts.

Zhang, Cormode, Procopiuc, Srivastava, Xiao 2017, "PrivBayes: private data release via Bayesian
networks". The structure comes from noisy sums of all pairs, or from a noisy majority vote of
networks that clients draw from their own rows; the conditional tables come from noisy sums. Under
local trust every client's tables are noised by itself, and their sum is the mean of noisy models
(the ways of federating it that paper 001, chapter 4, names). Pairs are scored by the paper's R,
half the L1 distance from independence; several parents by the sum of theirs. Noise is Gaussian, or
Laplace as in the paper.
"""

from __future__ import annotations

import itertools
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fedsynth.marginals import Clique, Domain, Evidence, JunctionTree, Measurement, Model, gain
from fedsynth.methods.marginal.expecting import Asked, fitting_pairs
from fedsynth.methods.marginal.graphical import GraphicalSynthesizer
from fedsynth.methods.marginal.measurer import Measurer
from fedsynth.methods.marginal.network import Family, network
from fedsynth.methods.marginal.settings import PrivBayesSettings
from fedsynth.methods.marginal.tasks import VOTE
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.sampling import Everyone
from fedsynth.privacy.terms import Terms
from fedsynth.queries.estimates import to_simplex
from fedsynth.queries.shares import Stage
from fedsynth.queries.tables import table_terms
from fedsynth.queries.terms import HAIR, count_on
from fedsynth.schema.target import target_index

PAIRS, VOTES, CONDITIONALS = "pairs", "votes", "conditionals"
Array = NDArray[np.float64]

# Records a cell, over the noise in it, that a table must have on average (theta-usefulness).
_USEFUL = 4.0
# The least probability of a value given its parents.
_LEAST = 1e-9


class PrivBayes(GraphicalSynthesizer):
    """PrivBayes for tables of one or several owners."""

    name: ClassVar[str] = "privbayes"
    settings_type = PrivBayesSettings

    def mechanism(self, settings: PrivBayesSettings) -> str:
        return settings.mechanism

    def questions(self, settings: PrivBayesSettings, budget: Budget, surviving: int) -> list[Stage]:
        left = 1 - settings.histogram_share

        def votes(multiplier: float) -> Terms:
            # A record exchanges its client's vote, which is charged at half the multiplier.
            exchange = budget.protects.moved["client"]
            counted = count_on(budget, surviving)
            counted["weigh"] = None
            return Terms(
                unit="client",
                trust=budget.trust,
                clip=HAIR,
                noise_multiplier=exchange * multiplier,
                sampling=Everyone(),
                **counted,
            )

        def tables(multiplier: float) -> Terms:
            return table_terms(budget, multiplier, surviving, settings.mechanism)

        if len(self.schema.modelled) == 1:
            return [Stage(CONDITIONALS, left, tables)]
        first = Stage(PAIRS, left / 2, tables)
        if settings.structure == "votes":
            first = Stage(VOTES, left / 2, votes)
        return [first, Stage(CONDITIONALS, left / 2, tables)]

    def asked(self, settings: PrivBayesSettings, domain: Domain) -> list[Asked]:
        wide = min(settings.degree + 1, len(domain))
        every = itertools.combinations(range(len(domain)), wide)
        tables = [c for c in every if domain.cells(c) <= settings.max_cells]
        final = [Asked(CONDITIONALS, len(domain), tables, "asked last", len(domain))]
        pairs = fitting_pairs(domain, settings.max_cells)
        if settings.structure == "votes" or not pairs:
            return final if tables else []
        coarse = Asked(PAIRS, len(pairs), pairs, "asked coarsely", len(pairs))
        return [coarse, *(final if tables else [])]

    def model(self, settings: PrivBayesSettings, measurer: Measurer) -> Model:
        domain = measurer.domain
        first = 0 if self.schema.target_column is None else target_index(self.schema)
        fine = _deviation(measurer.terms(CONDITIONALS), len(domain))
        useful = measurer.encoding.records / max(1e-9, _USEFUL * fine)
        limit = min(float(settings.max_cells), max(useful, 1.0))
        families = [Family(first, ())]
        if len(domain) > 1:
            if settings.structure == "votes":
                scores = _votes(measurer, settings.degree, first, limit)
            else:
                scores = _sums(measurer, settings.max_cells)
            families = network(scores, domain, settings.degree, first, limit)
        measurements = measurer.ask(
            CONDITIONALS, [f.clique for f in families], [1.0] * len(families)
        )
        factors: dict[Clique, Array] = {}
        for clique, impossible in measurer.zeros:
            blocked = np.where(impossible, -np.inf, 0.0)
            factors[clique] = factors.get(clique, np.zeros(blocked.shape)) + blocked
        for family, measured in zip(families, measurements, strict=True):
            clique = family.clique
            factor = _conditional(family, measured, measurer.encoding.records)
            factors[clique] = factors.get(clique, np.zeros(factor.shape)) + factor
        tree = JunctionTree.of(domain, factors)
        return Model(tree, factors, measurer.encoding.records)


def _deviation(terms: Terms, tables: int) -> float:
    """Of the noise in each count of so many tables that are asked alike."""
    each = 1 / tables if terms.norm == "l1" else tables**-0.5
    return terms.noise.deviation(terms.noise_multiplier) / each


def _sums(measurer: Measurer, most: int) -> Array:
    """Distances from independence estimated from coarse noisy sums of all pairs, [d, d]."""
    domain, encoding = measurer.domain, measurer.encoding
    pairs = fitting_pairs(domain, most)
    scores = np.zeros((len(domain), len(domain)))
    if not pairs:
        return scores
    evidence = Evidence(measurer.ask(PAIRS, pairs, [1.0] * len(pairs)))
    for pair in pairs:
        known = evidence.estimate(pair)
        assert known is not None
        a, b = (encoding.frequencies[k] for k in pair)
        scores[pair] = scores[pair[::-1]] = gain(known, np.outer(a, b) * encoding.records, 0.0, 0.0)
    return scores


def _votes(measurer: Measurer, degree: int, first: int, limit: float) -> Array:
    """Noisy numbers of clients that vote for each pair, [d, d]."""
    size = len(measurer.domain)
    settings = {"degree": degree, "first": first, "limit": int(limit)}
    answer = measurer.ask_sum(VOTES, VOTE.name, size * (size - 1) // 2, settings)
    scores = np.zeros((size, size))
    scores[np.triu_indices(size, 1)] = answer
    return scores + scores.T


def _conditional(family: Family, measured: Measurement, total: float) -> Array:
    """Logarithms of P(child | parents) from a noisy table, over the family's clique."""
    clique = family.clique
    table = to_simplex(measured.values.ravel(), max(1.0, total)).reshape(measured.values.shape)
    axis = clique.index(family.child)
    alone = table.sum(axis=tuple(k for k in range(table.ndim) if k != axis), keepdims=True)
    above = table.sum(axis=axis, keepdims=True)
    # Parents that nobody has, it seems, leave the child as it is among all.
    shares = np.where(above > 0, table / np.where(above > 0, above, 1.0), alone / alone.sum())
    # Noise makes zeros too. Were they exact, those of several tables and the schema's constraints
    # might leave no row at all.
    logarithms: Array = np.log(np.maximum(shares, _LEAST))
    return logarithms
