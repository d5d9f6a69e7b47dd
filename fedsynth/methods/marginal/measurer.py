"""The questions of a graphical model's fit, asked in order, each answer saved before the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsynth.encoding.constraints import structural_zeros
from fedsynth.encoding.table import TableEncoding
from fedsynth.encoding.tallies import tally
from fedsynth.errors import ConfigError
from fedsynth.federation.request import Plain
from fedsynth.marginals import Clique, Domain, Measurement
from fedsynth.methods.marginal.settings import GraphicalSettings
from fedsynth.privacy.terms import Terms
from fedsynth.queries.counting import ask_counts, question
from fedsynth.queries.session import Session
from fedsynth.queries.tables import ask_marginals, table_arrays
from fedsynth.queries.tasks.marginals import MARGINALS
from fedsynth.schema import Schema

Array = NDArray[np.float64]


class Measurer:
    """The questions of a fit, in order; those that an interrupted run had answered are not asked
    again.

    Every answer is in a checkpoint before the next question, so that no answer is paid for twice.

    Attributes:
        columns: what the histogram tells of each column's codes, and how surely.
    """

    columns: list[Measurement]

    def __init__(self, schema: Schema, session: Session) -> None:
        self.schema, self.session, self.plan = schema, session, session.plan
        self.settings: GraphicalSettings = session.settings
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
        """All answers so far, the one-way tables of the histogram first."""
        return [*self.columns, *(m for answer in self._answers for m in answer)]

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
            channel = self.session.channel
            answer = ask_marginals(channel, self.terms(label), self.domain, cliques, weights)
        self._answers.append(answer)
        self._save()
        return answer

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
        encoding = TableEncoding.from_histogram(
            self.schema, counts.values, counts.sigma, self.settings.bins, self.settings.rare
        )
        self.columns = [
            Measurement((k,), own.values, tuple(own.deviations.tolist()))
            for k, own in enumerate(tally(encoding, counts.values, counts.sigma))
        ]
        self.session.channel.announce("encoding", encoding.to_dict())
        self.encoding = encoding
        self._save()
        return encoding

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
            "choices": [list(c) for c in (*self._choices, *self._choices_restored)],
            "answers": [[[list(m.clique), m.sigma] for m in answer] for answer in answers],
        }
        self.session.checkpoint(arrays, meta)
        answered = 1 + len(self._answers) + len(self._choices) + len(self._sums)
        planned = self.plan.total
        self.session.progress("questions", min(answered, planned), planned)

    def _read(self, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> TableEncoding:
        if "column 0" not in arrays:
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
        encoding = TableEncoding.from_dict(meta["encoding"])
        self.columns = [
            Measurement((k,), arrays[f"column {k}"], tuple(arrays[f"noise {k}"].tolist()))
            for k in range(len(encoding.sizes))
        ]
        self.session.channel.announce("encoding", encoding.to_dict())
        return encoding
