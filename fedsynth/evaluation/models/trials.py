"""One kind of model tried: trained on synthetic, on real and on both rows, tested on real ones."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fedsynth.evaluation.models.learners import Answers, Learner, answer, fit
from fedsynth.evaluation.reading.labelled import Examples
from fedsynth.evaluation.reading.scores import RegressionScores, Scores, score, score_numbers

Figures = dict[str, float | None]
"""Scores by the names of `metrics_of`; None is one that could not be computed."""

_TRAINED = 0.8
"""The part of a table's rows, at most, that a tuner trains on; some of the others validate."""

_VALIDATED = 5000


@dataclass(frozen=True)
class Model:
    """A kind of model's scores on the same real test rows.

    Attributes:
        name: the kind.
        rows: how many "synthetic" and how many "real" rows it was trained on.
        synthetic, real, augmented: trained on synthetic rows, on real rows, and on these together
            (None if not tried, as where a slow model gets a part of the rows).
        seconds: that all of its training and answering took.
    """

    name: str
    rows: dict[str, int]
    synthetic: Figures
    real: Figures
    augmented: Figures | None
    seconds: float


@dataclass(frozen=True)
class Trial:
    """A model; what a tuner would see of it (its main score, trained and validated on synthetic
    rows alone); the synthetic and the real fit's answers to the test rows; the fits that failed."""

    model: Model
    tuned: float | None
    answers: dict[str, NDArray[np.float64] | None]
    failed: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Pool:
    """Rows of one table to train on, in the order in which samples of it are drawn."""

    examples: Examples
    order: NDArray[np.int64]
    _parts: dict[int, Examples] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, examples: Examples, seed: int) -> Pool:
        """Drawn from at random."""
        return cls(examples, np.random.default_rng(seed).permutation(len(examples)))

    def part(self, rows: int) -> Examples:
        """That many rows at random, all of them if there are no more; the same ones every time."""
        if rows >= len(self.examples):
            return self.examples
        if rows not in self._parts:
            self._parts[rows] = self.examples.take(np.sort(self.order[:rows]))
        return self._parts[rows]

    def split(self, rows: int) -> tuple[Examples, Examples] | None:
        """Up to `rows` of four fifths of the rows, and up to 5000 of the others; None of one row.

        The first is `part(rows)` if that leaves a fifth.
        """
        trained = min(rows, int(_TRAINED * len(self.examples)))
        if trained == 0:
            return None
        if -trained not in self._parts:
            held = self.order[trained : trained + _VALIDATED]
            self._parts[-trained] = self.examples.take(np.sort(held))
        return self.part(trained), self._parts[-trained]


@dataclass(frozen=True, eq=False)
class Arena:
    """What every model is tried on."""

    synthetic: Pool
    real: Pool
    test: Examples
    seed: int

    @property
    def all_rows(self) -> int:
        """How many there are to train on, synthetic and real."""
        return len(self.synthetic.examples) + len(self.real.examples)

    @property
    def primary(self) -> str:
        """The metric by which models are compared."""
        return "auroc" if self.test.classes else "r2"

    def figures(self, answers: Answers | None) -> Figures:
        """Scores on the test rows."""
        return score_figures(answer(answers, self.test), self.test)

    def tune(
        self, learner: Learner, known: tuple[Examples, Answers | None] | None = None
    ) -> float | None:
        """The main score, trained and validated on synthetic rows; `known` is a fit at hand."""
        split = self.synthetic.split(learner.rows(self.synthetic.examples))
        if split is None:
            return None
        train, held = split
        reused = known is not None and known[0] is train
        answers = known[1] if known and reused else fit(learner, train, self.seed)
        return score_figures(answer(answers, held), held)[self.primary]

    def test_on_real(self, learner: Learner) -> float | None:
        """The main score, trained on real rows and tested on the test rows."""
        part = self.real.part(learner.rows(self.real.examples))
        return self.figures(fit(learner, part, self.seed))[self.primary]

    def run(self, learner: Learner, augment: bool) -> Trial:
        """Trained on each kind of row."""
        start = time.perf_counter()
        made = self.synthetic.part(learner.rows(self.synthetic.examples))
        real = self.real.part(learner.rows(self.real.examples))
        fits = {
            "synthetic": fit(learner, made, self.seed),
            "real": fit(learner, real, self.seed),
        }
        answers = {side: answer(each, self.test) for side, each in fits.items()}
        if augment and (not learner.slow or len(made) + len(real) == self.all_rows):
            answers["augmented"] = answer(fit(learner, made.and_also(real), self.seed), self.test)
        scores = {side: score_figures(predicted, self.test) for side, predicted in answers.items()}
        tuned = self.tune(learner, (made, fits["synthetic"]))
        model = Model(
            name=learner.name,
            rows={"synthetic": len(made), "real": len(real)},
            synthetic=scores["synthetic"],
            real=scores["real"],
            augmented=scores.get("augmented"),
            seconds=time.perf_counter() - start,
        )
        failed = tuple(side for side, predicted in answers.items() if predicted is None)
        return Trial(model, tuned, answers, failed)


def metrics_of(classes: int) -> tuple[str, ...]:
    """The metrics of a target of so many categories, 0 for a number."""
    if classes:
        return "accuracy", "balanced_accuracy", "f1", "auroc", "average_precision"
    return "r2", "mae"


def score_figures(predicted: NDArray[np.float64] | None, test: Examples) -> Figures:
    """The scores of what was predicted for the test rows, and f1_positive for two classes."""
    names = metrics_of(test.classes) + (("f1_positive",) if test.classes == 2 else ())
    if predicted is None:
        return dict.fromkeys(names)
    scores: Scores | RegressionScores
    if test.classes:
        scores = score(predicted, test.y.astype(np.int64))
    else:
        scores = score_numbers(predicted, test.y.astype(np.float64))
    known = {name: float(getattr(scores, name)) for name in names}
    return {name: value if math.isfinite(value) else None for name, value in known.items()}


def mean_figures(several: Sequence[Figures]) -> Figures:
    """The mean of each score; None where one of them is."""
    means: Figures = {}
    for name in several[0]:
        values = [each[name] for each in several]
        known = [value for value in values if value is not None]
        means[name] = sum(known) / len(known) if len(known) == len(values) else None
    return means
