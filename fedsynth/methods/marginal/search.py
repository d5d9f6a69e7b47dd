"""Which marginals to measure next: the server half of AIM."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from fedsynth.marginals import (
    Clique,
    Evidence,
    JunctionTree,
    Measurement,
    Model,
    count,
    fit,
    gain,
    grown_cells,
    model_cells,
)
from fedsynth.methods.marginal.allowing import COARSE, FINE, SELECT, Tier, allow
from fedsynth.methods.marginal.candidates import maximal, workload_of
from fedsynth.methods.marginal.measurer import Measurer
from fedsynth.methods.marginal.settings import FEW, AIMSettings
from fedsynth.schema import Schema
from fedsynth.schema.target import target_index

# Rows drawn to compare a model with what was measured.
_DRAWN = 20_000
# Candidates looked at for whether the model can hold them, the best first.
_TRIED = 200
# What a fitted table errs by, over the noise of what was asked of it: on four tables at epsilon 1
# the model's median pair was off by .26 to .33 of it (evaluation/README.md, planning).
_FITTED = 0.3
# Of a message's squared weights, the share of columns alone that are asked beside tables.
ALONE = 0.35
# Choices by the exponential mechanism that bring nothing, one after another, that end choosing.
_IDLE = 3
# Models that these choices are made by, at the most: of more choices several are made by each.
_MODELS = 40
# Steps of a fit between two messages, and between two turns of choosing for one.
_STEPS, _BETWEEN = 100, 20
_TOLERANCE = 1e-3


Array = NDArray[np.float64]


class Search:
    """The server half of a fit: which marginals to measure next."""

    def __init__(self, schema: Schema, settings: AIMSettings, measurer: Measurer) -> None:
        self.settings, self.measurer = settings, measurer
        self.domain, self.rng = measurer.domain, measurer.rng
        target = schema.target_column
        self.target = None if target is None else target_index(schema)
        # Of what is chosen by the exponential mechanism; beside a target all of it is believed.
        self.wary = self.target is None
        self.base = self._base(schema)
        self.workload = workload_of(schema, settings, self.domain)
        self.in_turns = self.target is not None and not 0 < schema.classes <= FEW
        self.allowed = allow(schema, settings, measurer.plan, measurer.encoding.records)
        self.evidence = Evidence()
        self.chosen: list[Clique] = []
        self.model: Model | None = None
        self.refused: set[Clique] = set()

    def _base(self, schema: Schema) -> list[Clique]:
        """Columns and, where the target has few values, each column with it: always modelled."""
        cliques: list[Clique] = [(k,) for k in range(len(self.domain))]
        if self.target is not None and 0 < schema.classes <= FEW:
            cliques += [_pair(k, self.target) for k in range(len(self.domain)) if k != self.target]
        return cliques

    def _fits(self, cliques: Sequence[Clique]) -> bool:
        return model_cells(self.domain, cliques, self.allowed.cells) <= self.allowed.cells

    def by_sums(self) -> None:
        """Ask candidates coarsely, then what the model explains worst, message by message."""
        settings, measurer = self.settings, self.measurer
        allowed = self.allowed
        columns: list[Clique] = [(k,) for k in range(len(self.domain))]
        self._ask(COARSE, self._first(allowed.tier) or columns, beside=allowed.best > 0)
        candidates = self._candidates()
        for message in range(settings.messages):
            if not measurer.affordable(FINE):
                break
            self.model = self.fit_model(_STEPS)
            if message == 0 and allowed.best and (triples := self._with_target(allowed.best)):
                self._ask(FINE, triples, beside=True)
                candidates = self._candidates()
                continue
            number = len(range(message, settings.marginals or 1, settings.messages))
            # Where nothing new would outweigh its noise, what differs at all is asked, and where
            # nothing does, what is modelled already once more.
            picked = (
                self._pick(candidates, number)
                or self._pick(candidates, number, 0.0)
                or maximal([*self.base, *self.chosen])
            )
            self._ask(FINE, picked, by_size=True, beside=True)
            self.chosen += [c for c in picked if c not in (*self.base, *self.chosen)]
        self._keep(candidates)
        self._remark()

    def _remark(self) -> None:
        """Say what rows will lack."""
        number, budget = self.measurer.encoding.records, self.measurer.plan.budget
        # What the histogram counts of persons is as they are weighed.
        unit = budget.weigh or budget.unit
        about, found = f"about {number:,.0f} {unit}s", self.measurer.remarks
        if not any(len(clique) > 1 for clique in self._known_cliques()):
            found.append(
                f"within this budget the noise hides how the columns of {about} hang together: "
                "rows keep each column's distribution and nothing else"
            )
        elif self.allowed.tier == "target":
            found.append(
                f"within this budget {about} are few for so many columns: AIM asked how each goes "
                "with the target, and not how the others go together"
            )
        refused = {clique for clique in self.refused if not self._holds(clique)}
        if refused:
            most = self.settings.max_cells
            limit, way = f"max_cells ({most:,})", "fewer bins or more max_cells"
            if self.allowed.cells < most:
                limit = f"the {self.allowed.cells:,} cells that {about} tell of"
                way = "fewer bins"
            found.append(
                f"{len(refused)} tables seemed to tell more than their noise, but the model would "
                f"exceed {limit} with them: {way} may keep more"
            )

    def _holds(self, clique: Clique) -> bool:
        return any(set(clique) <= set(other) for other in self.chosen)

    def _first(self, tier: Tier) -> list[Clique]:
        """What is asked coarsely."""
        if tier == "columns":
            self.base = [clique for clique in self.base if len(clique) == 1]
            return []
        if tier == "target" and self.target is not None:
            pairs = {_pair(k, self.target) for k in range(len(self.domain)) if k != self.target}
            return [clique for clique in self.workload if clique in pairs]
        return maximal(self.workload)

    def _ask(
        self, label: str, cliques: Sequence[Clique], *, by_size: bool = False, beside: bool = False
    ) -> None:
        """Ask tables; of columns alone the finer codes, where they have such.

        Args:
            by_size: with the least noise in all tables' cells together, weighted by the third root
                of their number; else with the same noise in each.
            beside: ask every column by itself beside them.
        """
        cells = [self.domain.cells(clique) if by_size else 1 for clique in cliques]
        shares = [(1.0, list(cliques), cells)]
        if all(len(clique) == 1 for clique in cliques):
            shares = [(1.0, *self._columns())]
        elif beside:
            shares = [(1 - ALONE, list(cliques), cells), (ALONE, *self._columns())]
        asked: list[Clique] = []
        weights: list[float] = []
        for share, several, sizes in shares:
            own = np.cbrt(sizes)
            asked += several
            weights += (own * math.sqrt(share / (own @ own))).tolist()
        self.evidence.add(self.measurer.ask(label, asked, weights))

    def _columns(self) -> tuple[list[Clique], list[int]]:
        """Every column, by its finer codes where it has such, and the number of its codes."""
        sizes, refinement = list(self.domain.sizes), self.measurer.refinement
        cliques: list[Clique] = [(k,) for k in range(len(sizes))]
        for k in () if refinement is None else refinement.columns:
            assert refinement is not None
            cliques[k], sizes[k] = (len(sizes) + k,), refinement.finer.sizes[k]
        return cliques, sizes

    def _with_target(self, most: int) -> list[Clique]:
        """Triples with the target of the columns that tell most of it."""
        assert self.model is not None and self.target is not None
        scored = []
        for pair in self.base:
            known = self.evidence.estimate(pair) if len(pair) == 2 else None
            if known is not None:
                a, b = (self.model.marginal((column,)) for column in pair)
                score = gain(known, np.outer(a, b) * self.model.total, 0.0, 0.0)
                scored += [(-score, pair[0] if pair[1] == self.target else pair[1])]
        best = [column for score, column in sorted(scored)[:most] if score < 0]
        workload = set(self.workload)
        triples = [tuple(sorted((*pair, self.target))) for pair in itertools.combinations(best, 2)]
        return [triple for triple in triples if triple in workload]

    def _keep(self, candidates: Sequence[Measurement]) -> None:
        """Coarse tables that nothing finer was asked of join the last fit, where they tell more
        than their own noise."""
        self.model = self.fit_model(_STEPS)
        self.chosen += self._choose(candidates, len(candidates), None)

    def _candidates(self) -> list[Measurement]:
        """What the coarse sums tell of every marginal in the workload, and of their pairs."""
        pairs = [c for wide in self.workload for c in itertools.combinations(wide, 2)]
        cliques = dict.fromkeys(
            [*self.workload, *(pair for pair in pairs if self.target not in pair)]
        )
        known = (self.evidence.estimate(c) for c in cliques if len(c) > 1)
        return [m for m in known if m is not None]

    def _pick(
        self, candidates: Sequence[Measurement], number: int, price: float = _FITTED
    ) -> list[Clique]:
        """Up to ``number`` cliques to ask finely, by what each would bring.

        Several may differ from the model by the same thing: a grade that goes with a length goes
        with a width, too. Of a target of many values, where each takes much of the model's room,
        they are picked in turns, in which no two share a column but the target, and after each the
        model learns what the coarse sums tell of those picked.

        Args:
            price: of the noise that a fine message would bring, what counts against it.
        """
        noise = self.measurer.terms(FINE).summed_scale(self.measurer.plan.clients)
        brought = price * noise * math.sqrt(number)
        if not self.in_turns:
            return self._choose(candidates, number, brought)
        picked: list[Clique] = []
        left = candidates
        while True:
            scored = self._score(left, brought, len(candidates))
            turn = self._take(scored, number - len(picked), apart=True)
            picked += turn
            self.chosen += turn
            if not turn or len(picked) == number:
                return picked
            self.model, left = self.fit_model(_BETWEEN), [m for _, m in scored]

    def _choose(
        self, candidates: Sequence[Measurement], number: int, noise: float | None
    ) -> list[Clique]:
        """Up to ``number`` cliques by score that the model can hold together.

        Args:
            noise: that each would bring; None for its own.
        """
        return self._take(self._score(candidates, noise, len(candidates)), number)

    def _score(
        self, candidates: Sequence[Measurement], noise: float | None, among: int
    ) -> list[tuple[float, Measurement]]:
        """Those that would bring something, the most first, of so many that might have."""
        assert self.model is not None
        codes, total = self.model.sample(_DRAWN, self.rng), self.model.total
        scored = []
        # Of candidates that differ by their noise alone, one would pass.
        sure = max(1.0, NormalDist().inv_cdf(1 - 1 / max(2, among)))
        for m in candidates:
            if m.clique not in self.chosen:
                expected = count(self.domain, codes, m.clique) * (total / _DRAWN)
                brought = _FITTED * m.deviations if noise is None else noise
                score = self._weight(m.clique) * gain(m, expected, total / _DRAWN, brought, sure)
                scored += [(score, m)] if score > 0 else []
        return sorted(scored, key=lambda one: (-one[0], one[1].clique))

    def _take(
        self, scored: Sequence[tuple[float, Measurement]], number: int, *, apart: bool = False
    ) -> list[Clique]:
        """The first that the model can hold together.

        Args:
            apart: whether no two of them may share a column but the target.
        """
        picked: list[Clique] = []
        held = self._model_cliques()
        for clique in (m.clique for _, m in scored[:_TRIED]):
            if len(picked) == number:
                break
            if apart and any(set(clique) & set(c) - {self.target} for c in picked):
                continue
            inside = any(set(clique) <= set(c) or set(c) <= set(clique) for c in picked)
            if not inside and self._fits([*held, *picked, clique]):
                picked.append(clique)
            elif not inside:
                self.refused.add(clique)
        return picked

    def _weight(self, clique: Clique) -> float:
        return self.settings.target_weight if self.target in clique else 1.0

    def by_exponential_mechanism(self) -> None:
        """AIM's rounds: choose among exact scores, measure, fit.

        Where nothing is to be predicted, columns are asked beside each choice, and what turns out
        to differ from the model by its noise alone stays out of it: after a few such, what is left
        of the budget tells more of what is modelled already. Of many columns several are chosen by
        one model.
        """
        most, limit = self.settings.marginals or 0, self.settings.max_cells
        measured = idle = 0
        while measured < most and idle < _IDLE:
            self.model = self.fit_model(_STEPS)
            left = [clique for clique in self.workload if clique not in self.chosen]
            grown = grown_cells(self.domain, self._model_cliques(), left, limit)
            open_ = [clique for clique, cells in zip(left, grown, strict=True) if cells <= limit]
            codes, scale = self.model.sample(_DRAWN, self.rng), self.model.total / _DRAWN
            tables = {clique: count(self.domain, codes, clique) * scale for clique in open_}
            before = measured
            for _ in range(min(-(-most // _MODELS), most - measured)):
                if not tables or not self.measurer.affordable(SELECT):
                    break
                clique = self._choose_exactly(tables)
                expected = tables.pop(clique)
                if not self._fits([*self._model_cliques(), clique]):
                    self.refused.add(clique)
                    continue
                if not self.measurer.affordable(FINE):
                    break
                self._ask(FINE, [clique], beside=self.wary)
                measured += 1
                if self.wary and not self._told(clique, expected, scale):
                    idle += 1
                else:
                    self.chosen.append(clique)
                    idle = 0
            if measured == before:
                break
        for _ in range(measured, most):
            if self.measurer.affordable(FINE):
                self._ask(FINE, maximal(self._known_cliques()), by_size=True, beside=True)
        self._remark()

    def _told(self, clique: Clique, expected: Array, scale: float) -> bool:
        """Whether what was measured differs from the model by more than its noise."""
        found = self.evidence.estimate(clique)
        assert found is not None
        return gain(found, expected, scale, _FITTED * found.deviations) > 0

    def _choose_exactly(self, tables: Mapping[Clique, Array]) -> Clique:
        """The clique that differs most from the model's tables, by the exponential mechanism. What
        measuring it costs in expected error is taken off (AIM, Algorithm 2)."""
        cliques, heaviest = list(tables), max(self._weight(clique) for clique in self.workload)
        noise = self.measurer.terms(FINE).scale / math.sqrt(1 - ALONE * self.wary)
        place = self.measurer.choose(
            SELECT,
            cliques,
            np.concatenate([table.ravel() for table in tables.values()]),
            np.array([self._weight(clique) / heaviest for clique in cliques]),
            math.sqrt(2 / math.pi) * noise * np.array([table.size for table in tables.values()]),
        )
        return cliques[place]

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


def _pair(column: int, target: int) -> Clique:
    return (min(column, target), max(column, target))
