"""Which marginals to measure next: the server half of AIM."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fedsynth.marginals import (
    Clique,
    Domain,
    Evidence,
    JunctionTree,
    Measurement,
    Model,
    count,
    fit,
    grown_cells,
    model_cells,
)
from fedsynth.methods.marginal.measurer import Measurer
from fedsynth.methods.marginal.settings import FEW, AIMSettings
from fedsynth.schema import Schema
from fedsynth.schema.target import target_index

COARSE, FINE, SELECT = "marginals: coarse", "marginals: fine", "marginals: select"

# Rows drawn to compare a model with what was measured.
_DRAWN = 20_000
# Counts below so many deviations of the noise weigh alike in a candidate's score.
_FLOOR = 2.0
# Candidates looked at for whether the model can hold them, the best first.
_TRIED = 200
# Steps of a fit between two messages.
_STEPS = 100
_TOLERANCE = 1e-3
# Counts that a question may have: 128 MB an answer.
_MOST_COUNTS = 2**24


Array = NDArray[np.float64]


def workload_of(schema: Schema, settings: AIMSettings, domain: Domain) -> list[Clique]:
    """The marginals that matter, none larger than a model may be."""
    workload, everything = settings.workload, range(len(domain))
    names = [column.name for column in schema.modelled]
    target = None if schema.target_column is None else target_index(schema)
    if isinstance(workload, tuple):
        sets = [tuple(sorted(names.index(name) for name in some)) for some in workload]
    else:
        sets = list(itertools.combinations(everything, 2))
        if workload == "triples":
            sets += itertools.combinations(everything, 3)
        elif workload == "target-triples" and target is not None:
            sets += [tuple(sorted((*pair, target))) for pair in sets if target not in pair]
    alone = sum(domain.sizes)
    limit = settings.max_cells - alone
    fitting = [c for c in dict.fromkeys(sets) if domain.cells(c) <= limit]
    if sum(map(domain.cells, maximal(fitting))) > _MOST_COUNTS:
        fitting = [c for c in fitting if len(c) < 3]
    return fitting


class Search:
    """The server half of a fit: which marginals to measure next."""

    def __init__(self, schema: Schema, settings: AIMSettings, measurer: Measurer) -> None:
        self.settings, self.measurer = settings, measurer
        self.domain, self.rng = measurer.domain, measurer.rng
        target = schema.target_column
        self.target = None if target is None else target_index(schema)
        self.base = self._base(schema)
        self.workload = workload_of(schema, settings, self.domain)
        self.evidence = Evidence()
        self.chosen: list[Clique] = []
        self.model: Model | None = None

    def _base(self, schema: Schema) -> list[Clique]:
        """Columns and, where the target has few values, each column with it: always modelled."""
        cliques: list[Clique] = [(k,) for k in range(len(self.domain))]
        if self.target is not None and 0 < schema.classes <= FEW:
            cliques += [_pair(k, self.target) for k in range(len(self.domain)) if k != self.target]
        return cliques

    def _fits(self, cliques: Sequence[Clique]) -> bool:
        limit = self.settings.max_cells
        return model_cells(self.domain, cliques, limit) <= limit

    def by_sums(self) -> None:
        """Ask every candidate coarsely, then what the model explains worst, message by message."""
        cliques = maximal(self.workload)
        self.evidence.add(self.measurer.ask(COARSE, cliques, np.ones(len(cliques)).tolist()))
        candidates = self._candidates()
        messages = self.settings.messages
        for message in range(messages):
            if not self.measurer.affordable(FINE):
                break
            self.model = self.fit_model(_STEPS)
            number = len(range(message, self.settings.marginals or 1, messages))
            # Where nothing new would outweigh its noise, what is modelled already is asked again.
            picked = self._pick(candidates, number) or maximal([*self.base, *self.chosen])
            # Least noise in all tables' cells together: the third root of their number.
            weights = [self.domain.cells(clique) ** (1 / 3) for clique in picked]
            self.evidence.add(self.measurer.ask(FINE, picked, weights))
            self.chosen += [clique for clique in picked if clique not in self.base]

    def _candidates(self) -> list[Measurement]:
        """What the coarse sums tell of every marginal in the workload, and of their pairs."""
        pairs = [c for wide in self.workload for c in itertools.combinations(wide, 2)]
        cliques = dict.fromkeys(
            [*self.workload, *(pair for pair in pairs if self.target not in pair)]
        )
        known = (self.evidence.estimate(c) for c in cliques if len(c) > 1)
        return [m for m in known if m is not None]

    def _pick(self, candidates: Sequence[Measurement], number: int) -> list[Clique]:
        """Up to ``number`` cliques by score that the model can hold together."""
        assert self.model is not None
        codes, total = self.model.sample(_DRAWN, self.rng), self.model.total
        fine = self.measurer.terms(FINE).noise_multiplier * math.sqrt(number)
        scored = []
        for m in candidates:
            if m.clique not in self.chosen:
                expected = count(self.domain, codes, m.clique) * (total / _DRAWN)
                score = self._weight(m.clique) * gain(m, expected, total / _DRAWN, fine)
                scored += [(score, m.clique)] if score > 0 else []
        scored.sort(key=lambda one: (-one[0], one[1]))
        picked: list[Clique] = []
        held = self._model_cliques()
        for _, clique in scored[:_TRIED]:
            if len(picked) == number:
                break
            inside = any(set(clique) <= set(c) or set(c) <= set(clique) for c in picked)
            if not inside and self._fits([*held, *picked, clique]):
                picked.append(clique)
        return picked

    def _weight(self, clique: Clique) -> float:
        return self.settings.target_weight if self.target in clique else 1.0

    def by_exponential_mechanism(self) -> None:
        """AIM's rounds: choose among exact scores, measure, fit."""
        terms = self.measurer.terms(FINE)
        heaviest = max(self._weight(clique) for clique in self.workload)
        for _ in range(self.settings.marginals or 0):
            if not self.measurer.affordable(SELECT):
                break
            self.model = self.fit_model(_STEPS)
            limit = self.settings.max_cells
            left = [clique for clique in self.workload if clique not in self.chosen]
            grown = grown_cells(self.domain, self._model_cliques(), left, limit)
            open_ = [clique for clique, cells in zip(left, grown, strict=True) if cells <= limit]
            if not open_:
                break
            codes, scale = self.model.sample(_DRAWN, self.rng), self.model.total / _DRAWN
            tables = [count(self.domain, codes, c).ravel() * scale for c in open_]
            weights = np.array([self._weight(c) / heaviest for c in open_])
            cells = np.array([len(table) for table in tables])
            picked = open_[
                self.measurer.choose(
                    SELECT,
                    open_,
                    np.concatenate(tables),
                    weights,
                    # What measuring it costs in expected error (AIM, Algorithm 2).
                    math.sqrt(2 / math.pi) * terms.scale * cells,
                )
            ]
            if not self.measurer.affordable(FINE):
                break
            self.evidence.add(self.measurer.ask(FINE, [picked], [1.0]))
            self.chosen.append(picked)

    def fit_model(self, steps: int) -> Model:
        """The model of everything known so far, on the cliques chosen so far."""
        measurer = self.measurer
        if self.model is None and not self._fits(self._model_cliques()):
            self.base = [clique for clique in self.base if len(clique) == 1]
        cliques = self._model_cliques()
        tree = JunctionTree.of(self.domain, cliques)
        return fit(
            self.domain,
            [*measurer.columns, *self.evidence.select(tree, self._known_cliques())],
            start=self.model,
            zeros=measurer.zeros,
            cliques=cliques,
            iterations=steps,
            tolerance=_TOLERANCE,
        )

    def _known_cliques(self) -> list[Clique]:
        """What the model is to know: columns, and what was measured of the base and was chosen."""
        known = [c for c in self.base if len(c) == 1 or self.evidence.estimate(c) is not None]
        return [*known, *self.chosen]

    def _model_cliques(self) -> list[Clique]:
        """All cliques that the next model holds, whatever is chosen beside them."""
        blocked = [clique for clique, _ in self.measurer.zeros]
        factors = [] if self.model is None else list(self.model.factors)
        return list(dict.fromkeys([*self._known_cliques(), *blocked, *factors]))


def gain(m: Measurement, expected: Array, drawn: float, fine: float) -> float:
    """How much nearer the model would come to a marginal by measuring it, in records.

    The distance is estimated from the coarse sum m: squared errors, each less its expected noise
    and divided by about what the cell holds, bound the L1 distance (Cauchy-Schwarz). One deviation
    of that estimate is taken off, or large tables would win by their noise alone; and so is what
    measuring brings in noise, at most a cell's own count.

    Args:
        expected: the model's counts, estimated from rows that stand for ``drawn`` records each.
        fine: deviation of the noise that measuring would bring.
    """
    noise = m.deviations**2 + expected * drawn
    weights = 1 / (expected + _FLOOR * m.deviations + 1.0)
    excess = float((weights * ((m.values - expected) ** 2 - noise)).sum())
    excess -= math.sqrt(2 * float(((weights * noise) ** 2).sum()))
    distance = math.sqrt(max(excess, 0.0) * float(expected.sum()))
    return distance - float(np.minimum(math.sqrt(2 / math.pi) * fine, expected).sum())


def _pair(column: int, target: int) -> Clique:
    return (min(column, target), max(column, target))


def maximal(cliques: Sequence[Clique]) -> list[Clique]:
    """Those that lie within no other: their sums tell of the others too."""
    inside = {
        part
        for clique in cliques
        for size in range(1, len(clique))
        for part in itertools.combinations(clique, size)
    }
    return [clique for clique in cliques if clique not in inside]
