"""What a search found: the settings to train with on real rows, and every candidate tried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.errors import DataError
from fedsynth.evaluation.measures.agreement import agreement
from fedsynth.evaluation.models.learners import silence_warnings
from fedsynth.tuning.federating import federate
from fedsynth.tuning.rows import Metric, Supervised, name_answers, score_model, supervise
from fedsynth.tuning.spaces import Settings, short_name
from fedsynth.views import Grid, Said, Shown, View

if TYPE_CHECKING:
    from fedsynth.methods.classifier.federated import FederatedClassifier
    from fedsynth.tuning.rows import AnySchema, Rows
    from fedsynth.tuning.spaces import Space

UNTRAINABLE = (Exception,)
"""What libraries raise for settings that do not go together, or rows that they cannot take: some
have kinds of their own."""

NEAR = 0.002
"""Candidates whose scores differ by no more are alike: of them the most restrained is taken."""

_SHOWN = 3


@dataclass(frozen=True)
class Candidate:
    """Settings and how they scored on synthetic rows.

    Attributes:
        number: the trial's, from 0.
        scores: of each release, in order, the mean over its pairs of draws; public.
        rank: mean rank over the releases among all candidates, 1 the best.
        capacity: how much they let a model learn, where the space can tell.
    """

    number: int
    settings: Settings
    scores: tuple[float, ...]
    rank: float
    capacity: float | None

    @property
    def score(self) -> float:
        """The mean over releases."""
        return float(np.mean(self.scores))


@dataclass(frozen=True)
class RealScores:
    """The same model on real test rows, trained on real rows: private, and covered by no epsilon.

    Attributes:
        default, tuned: with its own settings, and with those that the search found.
        best: with those of the candidate that scores best on these test rows; None if not asked.
        spearman: rank correlation of all candidates' synthetic and real scores; None likewise, of
            fewer than three, and where all score alike.
    """

    default: float
    tuned: float
    best: float | None = None
    spearman: float | None = None

    @property
    def regret(self) -> float | None:
        """What the search lost against the best of its own candidates: at least 0."""
        return None if self.best is None else max(0.0, self.best - self.tuned)


@dataclass(frozen=True, eq=False, repr=False)
class Tuned(Shown):
    """A finished search.

    Attributes:
        model: the kind of model.
        metric: that was searched by; more is better (an error counts negative).
        releases: the folders or names of the releases searched on.
        rows: of a draw; each candidate learned from as many and was scored on as many others.
        default: the score of the model's own settings, over the releases.
        candidates: all that were tried to the end, best first.
        unfinished: how many more were pruned or could not be trained.
        best: the one that is recommended.
        cautions: what was measured of such searches that does not speak for this one.
    """

    model: str
    metric: Metric
    releases: tuple[str, ...]
    rows: int
    default: float
    candidates: tuple[Candidate, ...]
    unfinished: int
    best: Candidate
    schema: AnySchema
    space: Space
    seed: int = 0
    cautions: tuple[str, ...] = ()

    @property
    def settings(self) -> Settings:
        """The recommended settings, by the names of the pipeline's `set_params`."""
        return dict(self.best.settings)

    @property
    def pipeline(self) -> Any:
        """A scikit-learn pipeline with these settings, to fit on the schema's columns."""
        return self.build(self.best.settings)

    def build(self, settings: Mapping[str, Any] | None = None) -> Any:
        """A pipeline, not fitted; with its own settings for None."""
        made = self.space.build(self.schema, self.seed)
        return made if settings is None else made.set_params(**settings)

    def train(self, real: Rows) -> Any:
        """The pipeline with the recommended settings, trained on real rows: private, like them.

        Raises:
            DataError: the rows do not fit the schema, have no answers, or are too few for the
                settings.
        """
        known = supervise(real, self.schema, "real rows")
        return self._fit(self.best.settings, known, name_answers(known.y, self.schema))

    def federated(self, **settings: Any) -> FederatedClassifier:
        """A classifier with the recommended settings, to fit on owners' rows, which stay with them;
        its fit has a cost of its own, beside that of the releases.

        Of logistic regression C goes over, of a multilayer perceptron the hidden layers and alpha;
        a learning rate of Adam does not, since it means nothing under noise. Numbers are scaled by
        the rows of the first release.

        Args:
            settings: of :class:`fedsynth.FederatedClassifier`, in place of these.

        Raises:
            ConfigError: a kind of model, or a setting, without a federated form here.
            ReleaseError: the first release is not where it was: say scaled_by.
        """
        from fedsynth.methods.classifier.federated import FederatedClassifier

        known = federate(self.model, self.best.settings, self.rows, self.schema.classes)
        return FederatedClassifier(
            self.schema, {"scaled_by": self.releases[0], **known}, **settings
        )

    def _fit(self, settings: Mapping[str, Any] | None, rows: Supervised, y: NDArray[Any]) -> Any:
        try:
            with silence_warnings():
                model = self.build(settings).fit(rows.x, y)
                # Neighbours are counted when they are asked for.
                model.predict(rows.x[:1])
                return model
        except UNTRAINABLE:
            # What scikit-learn says may quote a cell.
            raise DataError(
                f"{self.model} ({_spell(dict(settings or {})) or 'default'}) cannot be trained on "
                f"{len(rows)} real rows: settings were found on {self.rows}, so search with "
                f"rows={len(rows)}"
            ) from None

    def compare(self, train: Rows, test: Rows, *, candidates: bool = False) -> RealScores:
        """Train on real rows with the default and with the found settings, and test on others.

        What it gives is private: no epsilon covers it, and nothing of it goes into the search.

        Args:
            candidates: whether to train every candidate, for regret and rank correlation; the best
                of them is then chosen by the test rows and flatters itself a little.

        Raises:
            DataError: rows that do not fit the schema, have no answers, or are too few for the
                settings.
        """
        learned = supervise(train, self.schema, "real train rows")
        others = supervise(test, self.schema, "real test rows")

        def on_real(settings: Mapping[str, Any] | None) -> float:
            model = self._fit(settings, learned, learned.y)
            try:
                with silence_warnings():
                    return score_model(model, others, self.schema, self.metric)
            except UNTRAINABLE:
                raise DataError(
                    f"{self.model}: cannot answer for real test rows of this kind; does it take "
                    "every value that the schema allows?"
                ) from None

        default, tuned = on_real(None), on_real(self.best.settings)
        if not candidates:
            return RealScores(default, tuned)
        found: list[float | None] = []
        for one in self.candidates:
            try:
                found.append(tuned if one is self.best else on_real(one.settings))
            except DataError:
                found.append(None)
        made = [one.score for one in self.candidates]
        order = agreement([str(one.number) for one in self.candidates], made, found)
        best = max(score for score in found if score is not None)
        return RealScores(default, tuned, best, order.spearman)

    def table(self) -> pd.DataFrame:
        """Every candidate: number, settings, scores by release, mean rank, capacity."""
        return pd.DataFrame(
            [
                {
                    "trial": one.number,
                    "score": one.score,
                    **dict(zip(self.releases, one.scores, strict=True)),
                    "rank": one.rank,
                    "capacity": one.capacity,
                    **one.settings,
                }
                for one in self.candidates
            ]
        )

    def _view(self) -> View:
        others = [one for one in self.candidates if one is not self.best][:_SHOWN]
        shown, own = [self.best, *others], self.build().get_params()
        scores = [*(one.score for one in shown), self.default]
        lines = [[self.metric, *(f"{score:.4f}" for score in scores)]]
        for name in self.settings:
            values = [*(one.settings[name] for one in shown), own[name]]
            lines.append([short_name(name), *map(_spell_value, values)])
        head = ["", "taken", *(f"trial {one.number}" for one in others), "default"]
        said = [
            f"{len(self.candidates)} candidates were tried to the end, {self.unfinished} given up. "
            f"Each learned from {self.rows:,} synthetic rows of {', '.join(self.releases)} and was "
            f"scored on as many others."
        ]
        if self.best is not self.candidates[0]:
            said.append("Of those that score alike, the one that may learn least is taken.")
        if self.default > self.candidates[0].score:
            said.append(
                "On synthetic rows the default scores better than all of them: search longer."
            )
        said.append(
            "Scores are of synthetic rows, and promise nothing for real ones: these mostly want a "
            "model that may learn less."
        )
        figures = tuple(range(1, len(head)))
        parts: list[Said | Grid] = [
            Grid(head, lines, figures),
            *(Said(text, "quiet") for text in said),
            *(Said(text, "caution") for text in self.cautions),
        ]
        return View(f"{self.model}: settings found on synthetic rows", parts)


def choose(candidates: tuple[Candidate, ...], near: float = NEAR) -> Candidate:
    """The best by mean rank; of those whose score is near, the most restrained.

    With one release the mean rank orders as the score does. With several, the order of one of them
    alone decides nothing: releases differ far more than draws of one.
    """
    first = min(candidates, key=lambda one: (one.rank, -one.score, one.number))
    if first.capacity is None:
        return first
    alike = [one for one in candidates if one.score >= first.score - near]
    return min(alike, key=lambda one: (one.capacity, one.rank, one.number))


def _spell(settings: Settings) -> str:
    return ", ".join(
        f"{name.removeprefix('model__')}={_spell_value(value)}" for name, value in settings.items()
    )


def _spell_value(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
