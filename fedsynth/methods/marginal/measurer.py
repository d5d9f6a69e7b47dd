"""The questions of a graphical model's fit, asked in order, each answer saved before the next."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsynth.encoding.constraints import structural_zeros
from fedsynth.encoding.refining import Refinement
from fedsynth.encoding.table import TableEncoding
from fedsynth.encoding.tallies import tally
from fedsynth.errors import ConfigError
from fedsynth.federation.request import Plain
from fedsynth.marginals import Clique, Domain, Measurement, estimate_marginal
from fedsynth.methods.marginal.settings import GraphicalSettings
from fedsynth.privacy.terms import Terms
from fedsynth.queries.counting import Counts, ask_counts, question
from fedsynth.queries.session import Session
from fedsynth.queries.tables import ask_marginals, table_arrays
from fedsynth.queries.tasks.marginals import MARGINALS
from fedsynth.schema import Schema

Array = NDArray[np.float64]

# Bins that a column of numbers is counted in by itself, at the least and at the most: as many as
# hold _CLEAR times the noise of a count of the histogram on average. Twice the most cost .002 of
# AUROC at epsilon 3 (evaluation/README.md).
_FINEST, _MOST = 24, 48
_CLEAR = 4.0


class Measurer:
    """The questions of a fit, in order; those that an interrupted run had answered are not asked
    again.

    Every answer is in a checkpoint before the next question, so that no answer is paid for twice.

    Attributes:
        columns: what the histogram tells of each column's codes, and how surely.
        encoding: of the tables that are asked and modelled.
        refinement: finer codes of numeric columns, which are counted each by itself; None where
            the encoding's are as fine.
        remarks: what could not be learned, in sentences.

    Args:
        bins: how many to cut a number into, by the number of records; None as the settings say.
    """

    columns: list[Measurement]
    refinement: Refinement | None

    def __init__(
        self, schema: Schema, session: Session, bins: Callable[[float], int] | None = None
    ) -> None:
        self.schema, self.session, self.plan = schema, session, session.plan
        self.settings: GraphicalSettings = session.settings
        self._bins, self.remarks = bins, list[str]()
        self.rng = np.random.default_rng(session.options.seed)
        self._answers: list[list[Measurement]] = []
        self._restored: list[list[Measurement]] = []
        self._sums: dict[str, Array] = {}
        self._choices: list[Clique] = []
        self._choices_restored: list[Clique] = []
        self.encoding = self._begin()
        self.domain = Domain(self.encoding.sizes)
        self.zeros = structural_zeros(self.encoding)

    @property
    def measurements(self) -> list[Measurement]:
        """All answers so far, the one-way tables of the histogram first; of finer counts the sums
        that the encoding's codes hold."""
        return [*self.columns, *(self._sum_up(m) for answer in self._answers for m in answer)]

    def terms(self, label: str) -> Terms:
        return self.plan.terms(label)

    def affordable(self, label: str) -> bool:
        """Whether another answer under ``label`` can be had.

        Answers that an interrupted run lost stay charged, so a resumed one may have to end early.
        """
        if self._restored or self._choices_restored:
            return True
        return self.session.channel.affords(self.terms(label))

    def ask(
        self, label: str, cliques: Sequence[Clique], weights: Sequence[float]
    ) -> list[Measurement]:
        """The tables of ``cliques`` under the planned terms of ``label``."""
        if self._restored:
            answer = self._restored.pop(0)
            if [m.clique for m in answer] != list(cliques):
                raise self._other_questions()
        else:
            channel, domain = self.session.channel, self.domain
            if self.refinement is not None:
                domain = Domain((*domain.sizes, *self.refinement.finer.sizes))
            answer = ask_marginals(channel, self.terms(label), domain, cliques, weights)
        self._answers.append(answer)
        self._save()
        return [self._sum_up(m) for m in answer]

    def _sum_up(self, m: Measurement) -> Measurement:
        """The same, a column's finer counts summed by its codes."""
        column = m.clique[0] - len(self.domain)
        if column < 0:
            return m
        parents = self._parents(column)
        numbers = np.bincount(parents)
        deviations = np.asarray(m.sigma, np.float64) * np.sqrt(numbers)
        values = np.bincount(parents, np.asarray(m.values, np.float64)).astype(np.float64)
        return Measurement((column,), values, tuple(deviations.tolist()))

    def _parents(self, column: int) -> NDArray[np.int64]:
        parents = None if self.refinement is None else self.refinement.parents[column]
        if parents is None:
            raise self._other_questions()
        return parents

    def refined(self) -> TableEncoding:
        """The encoding, with values spread within its codes as finer counts have them."""
        if self.refinement is None:
            return self.encoding
        bins, answers = list(self.encoding.bins), [m for one in self._answers for m in one]
        for k in self.refinement.columns:
            behind = (k + len(self.domain),)
            asked = estimate_marginal([m for m in answers if m.clique == behind], behind)
            if asked is not None:
                bins[k] = self.refinement.spread(
                    self.encoding, k, asked.values, asked.deviations, self._sigma
                )
        return replace(self.encoding, bins=tuple(bins))

    def ask_sum(self, label: str, task: str, dim: int, settings: Mapping[str, Plain]) -> Array:
        """The noisy sum of another task's rows, under the planned terms of ``label``."""
        if label in self._sums:
            return self._sums[label]
        released = self.session.channel.sum(task, self.terms(label), dim, settings=settings)
        self._sums[label] = released.value
        self._save()
        return released.value

    def choose(
        self,
        label: str,
        cliques: Sequence[Clique],
        estimate: Array,
        weights: Array,
        penalties: Array,
    ) -> int:
        """Which of ``cliques`` is furthest from its ``estimate``: the exponential mechanism.

        Args:
            estimate: the tables of all cliques, flat, one behind another.
            weights, penalties: of each clique's score (:meth:`Channel.select`).
        """
        if self._choices_restored:
            index = self._position(cliques, self._choices_restored.pop(0))
        else:
            sizes = [self.domain.cells(clique) for clique in cliques]
            index = self.session.channel.select(
                MARGINALS.name,
                self.terms(label),
                estimate,
                starts=np.cumsum([0, *sizes[:-1]]),
                weights=weights,
                penalties=penalties,
                arrays=table_arrays(cliques, np.ones(len(cliques))),
            )
        self._choices.append(cliques[index])
        self._save()
        return index

    def _position(self, cliques: Sequence[Clique], chosen: Clique) -> int:
        """Where a choice of the interrupted run stands among the same candidates."""
        if chosen not in cliques:
            raise self._other_questions()
        return list(cliques).index(chosen)

    def _other_questions(self) -> ConfigError:
        return ConfigError(
            f"{self.session.options.folder}: the job to resume asked other questions: resume it "
            "with the fedsynth that started it"
        )

    def _begin(self) -> TableEncoding:
        restored = self.session.restored
        if restored is not None:
            return self._read(*restored)
        task, starts, dim = question(self.schema)
        self.session.progress("questions", 0, self.plan.total)
        counts = ask_counts(self.session.channel, task, self.terms(task.name), starts, dim)
        self._learn(counts)
        self._announce()
        self._save()
        return self.encoding

    def _learn(self, counts: Counts) -> None:
        """The encoding, and where columns are counted finer the refinement, from the histogram."""

        def learned(bins: int, sigma: float) -> TableEncoding:
            return TableEncoding.from_histogram(
                self.schema, counts.values, sigma, bins, self.settings.rare
            )

        self.refinement = None
        if self._bins is None:
            self.encoding = learned(self.settings.bins, counts.sigma)
        else:
            # What is counted again may be told apart where it may be noise. The number of records
            # hangs on neither.
            least = finest_bins(self.settings.bins)
            narrow = learned(least, counts.sigma / 2)
            finest = finest_bins(self.settings.bins, narrow.records, counts.sigma)
            if finest > least:
                narrow = learned(finest, counts.sigma / 2)
            self.encoding = learned(self._bins(narrow.records), counts.sigma)
            refinement = Refinement.of(self.encoding, narrow)
            self.refinement = refinement if refinement.columns else None
        self._sigma = counts.sigma
        tallies = tally(self.encoding, counts.values, counts.sigma)
        self.columns = [_known(k, own.values, own.deviations) for k, own in enumerate(tallies)]

    def _announce(self) -> None:
        channel = self.session.channel
        channel.announce("encoding", self.encoding.to_dict())
        if self.refinement is not None:
            channel.announce("finer", self.refinement.finer.to_dict())

    def _save(self) -> None:
        answers = [*self._answers, *self._restored]
        arrays = {
            f"{i} {j}": m.values for i, answer in enumerate(answers) for j, m in enumerate(answer)
        }
        arrays |= {f"column {k}": m.values for k, m in enumerate(self.columns)}
        arrays |= {f"noise {k}": m.deviations for k, m in enumerate(self.columns)}
        arrays |= {f"sum {label}": values for label, values in self._sums.items()}
        meta = {
            "encoding": self.encoding.to_dict(),
            "finer": None if self.refinement is None else self.refinement.to_dict(),
            "sigma": self._sigma,
            "choices": [list(c) for c in (*self._choices, *self._choices_restored)],
            "answers": [[[list(m.clique), m.sigma] for m in answer] for answer in answers],
        }
        self.session.checkpoint(arrays, meta)
        answered = 1 + len(self._answers) + len(self._choices) + len(self._sums)
        planned = self.plan.total
        self.session.progress("questions", min(answered, planned), planned)

    def _read(self, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> TableEncoding:
        if "column 0" not in arrays or "finer" not in meta:
            raise self._other_questions()
        for label in self.plan.labels:
            if f"sum {label}" in arrays:
                self._sums[label] = np.asarray(arrays[f"sum {label}"], np.float64)
        self._choices_restored = [tuple(clique) for clique in meta["choices"]]
        self._restored = [
            [
                Measurement(tuple(clique), np.asarray(arrays[f"{i} {j}"], np.float64), sigma)
                for j, (clique, sigma) in enumerate(answer)
            ]
            for i, answer in enumerate(meta["answers"])
        ]
        self.encoding = TableEncoding.from_dict(meta["encoding"])
        finer, self._sigma = meta["finer"], float(meta["sigma"])
        self.refinement = None if finer is None else Refinement.from_dict(finer)
        self.columns = [
            _known(k, arrays[f"column {k}"], arrays[f"noise {k}"])
            for k in range(len(self.encoding.sizes))
        ]
        self._announce()
        return self.encoding


def finest_bins(bins: int, records: float = 0.0, sigma: float = 1.0) -> int:
    """How many bins a column of numbers is counted in by itself, where tables have so many.

    Args:
        sigma: of the noise in a count of the histogram.
    """
    clear = records / (_CLEAR * sigma) if sigma > 0 else math.inf
    return max(_FINEST, bins, int(min(_MOST, clear)))


def _known(column: int, values: Array, deviations: Array) -> Measurement:
    return Measurement((column,), values, tuple(deviations.tolist()))
