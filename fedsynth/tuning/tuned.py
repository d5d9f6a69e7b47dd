"""What a search found: the settings to train with on real rows, and every candidate tried."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.agreed import demand_whole
from fedsynth.demands import demand_path
from fedsynth.errors import ConfigError, DataError
from fedsynth.evaluation.measures.agreement import agreement
from fedsynth.evaluation.models.learners import silence_warnings
from fedsynth.files import refused
from fedsynth.markup import Html
from fedsynth.planning.drawing import save_plot
from fedsynth.progress import Report, showing
from fedsynth.tuning.drawing import Drawn, Setting, draw_search
from fedsynth.tuning.federating import federate
from fedsynth.tuning.page import page_of
from fedsynth.tuning.real import RealScores
from fedsynth.tuning.rows import Metric, Supervised, fold, name_answers, score_model, supervise
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

_EXPECTED = (
    "Scores are of synthetic rows, and promise nothing for real ones: these mostly want a model "
    "that may learn less. In the studies so far the default did as well on real rows in most "
    "searches: hold both against each other there before these settings are used."
)


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


@dataclass(frozen=True, eq=False, repr=False)
class Tuned(Shown):
    """A finished search.

    Attributes:
        model: the kind of model.
        metric: that was searched by; more is better (an error counts negative).
        releases: the folders or names of the releases searched on.
        rows: of a draw; each candidate learned from as many and was scored on as many others.
        defaults: of each release, in order, the score of the model's own settings.
        candidates: all that were tried to the end, best first.
        unfinished: how many more were pruned or could not be trained.
        best: the one that is recommended.
        cautions: what was measured of such searches that does not speak for this one.
    """

    model: str
    metric: Metric
    releases: tuple[str, ...]
    rows: int
    defaults: tuple[float, ...]
    candidates: tuple[Candidate, ...]
    unfinished: int
    best: Candidate
    schema: AnySchema
    space: Space
    seed: int = 0
    cautions: tuple[str, ...] = ()

    @property
    def default(self) -> float:
        """The score of the model's own settings, the mean over releases."""
        return float(np.mean(self.defaults))

    @property
    def gains(self) -> tuple[float, ...]:
        """Of each release, in order, what the recommended settings score above the default's. How
        far they lie apart tells more than draws of one release: noise is the same in all of these.
        """
        pairs = zip(self.best.scores, self.defaults, strict=True)
        return tuple(one - own for one, own in pairs)

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
        a learning rate of Adam does not, since it means nothing under noise.

        Args:
            settings: of :class:`fedsynth.FederatedClassifier`, in place of these.

        Raises:
            ConfigError: a kind of model, or a setting, without a federated form here.
        """
        from fedsynth.methods.classifier.federated import FederatedClassifier

        known = federate(self.model, self.best.settings, self.rows, self.schema.classes)
        return FederatedClassifier(self.schema, known, **settings)

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

    def compare(
        self,
        train: Rows,
        test: Rows,
        *,
        candidates: bool = False,
        folds: int | None = None,
        progress: Report | bool = True,
    ) -> RealScores:
        """Train on real rows with the default and with the found settings, and test on others.

        What it gives is private: no epsilon covers it, and nothing of it goes into the search.

        Args:
            candidates: whether to train every candidate, for regret and rank correlation; the best
                of them is then chosen by the test rows and flatters itself a little.
            folds: also choose among the candidates and the default by a cross-validation of so many
                folds, at least 2, on the rows to learn from: what tuning on real rows would give.
            progress: see :func:`fedsynth.progress.showing`.

        Raises:
            ConfigError: folds that are none.
            DataError: rows that do not fit the schema, have no answers, or are too few for the
                settings.
        """
        if folds is not None:
            demand_whole("folds", folds, 2)
        learned = supervise(train, self.schema, "real train rows")
        others = supervise(test, self.schema, "real test rows")
        default, tuned = (self._score(one, learned, others) for one in (None, self.best.settings))
        searched = best = spearman = None
        with showing(progress) as report:
            if folds is not None:
                chosen = self._search(learned, folds, report)
                searched = self._score(chosen, learned, others)
            if candidates:
                found = []
                for done, one in enumerate(self.candidates, 1):
                    found.append(self._try(one.settings, learned, others))
                    report("candidates on test rows", done, len(self.candidates))
                names = [str(one.number) for one in self.candidates]
                made = [one.score for one in self.candidates]
                spearman = agreement(names, made, found).spearman
                best = max([tuned, *(score for score in found if score is not None)])
        return RealScores(self.metric, default, tuned, searched, best, spearman)

    def _score(
        self, settings: Mapping[str, Any] | None, learned: Supervised, others: Supervised
    ) -> float:
        """On real rows."""
        model = self._fit(settings, learned, learned.y)
        try:
            with silence_warnings():
                return score_model(model, others, self.schema, self.metric)
        except UNTRAINABLE:
            raise DataError(
                f"{self.model}: cannot answer for real test rows of this kind; does it take "
                "every value that the schema allows?"
            ) from None

    def _try(
        self, settings: Mapping[str, Any] | None, learned: Supervised, others: Supervised
    ) -> float | None:
        """The score; None of settings that these rows are too few for."""
        try:
            return self._score(settings, learned, others)
        except DataError:
            return None

    def _search(self, rows: Supervised, folds: int, report: Report) -> Settings | None:
        """The settings, or the default's None, that do best in cross-validation on real rows."""
        parts = fold(rows, folds, self.schema, self.seed)
        tried: list[Settings | None] = [None, *(one.settings for one in self.candidates)]
        means = []
        for done, settings in enumerate(tried, 1):
            scores = [self._try(settings, *part) for part in parts]
            known = [score for score in scores if score is not None and not np.isnan(score)]
            means.append(float(np.mean(known)) if len(known) == folds else -np.inf)
            report("candidates on real rows", done, len(tried))
        return tried[int(np.argmax(means))]

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

    @property
    def code(self) -> str:
        """The model with these settings, as Python code to paste, without the steps that make
        columns numbers: `pipeline` has them, too."""
        model = self.pipeline
        if set(model.named_steps) == {"columns", "model"}:
            model = model.named_steps["model"]
        if "categorical_features" in model.get_params():
            # As long as the schema; by default those of a categorical dtype.
            model.set_params(categorical_features="from_dtype")
        # Settings that are the default's are left out.
        written = model.__repr__(N_CHAR_MAX=100_000)
        parts = [model, *model.get_params().values()]
        return "\n".join([*_imports(parts), "", written])

    def to_dict(self) -> dict[str, Any]:
        """JSON-able, without the candidates that were not taken: of synthetic rows alone."""
        return {
            "model": self.model,
            "metric": self.metric,
            "releases": list(self.releases),
            "rows": self.rows,
            "settings": {short_name(name): value for name, value in self.settings.items()},
            "score": self.best.score,
            "default": self.default,
            "gains": list(self.gains),
            "candidates": len(self.candidates),
            "unfinished": self.unfinished,
            "cautions": list(self.cautions),
            "federated": self._federated_settings(),
        }

    def _federated_settings(self) -> dict[str, Any] | None:
        """Of a federated classifier; None where this has no federated form."""
        try:
            return federate(self.model, self.best.settings, self.rows, self.schema.classes)
        except ConfigError:
            return None

    def plot(self, file: str | Path) -> None:
        """Draw the candidates' scores in the order of the search, with the best so far, and against
        each setting.

        Args:
            file: a new .svg, or .png (`pip install 'fedsynth[png]'`).

        Raises:
            ConfigError: another kind of file, or one that exists.
        """
        save_plot(self._drawing(), demand_path("file", file))

    def save(self, folder: str | Path) -> None:
        """Write settings.json, trials.csv and search.html, a page of it all: public, as the
        releases are.

        Raises:
            ConfigError: the folder exists.
            MachineError: it cannot be written.
        """
        folder = demand_path("folder", folder)
        try:
            folder.mkdir(parents=True)
            self.table().to_csv(folder / "trials.csv", index=False)
            text = json.dumps(self.to_dict(), indent=1, default=str)
            (folder / "settings.json").write_text(text + "\n", encoding="utf-8")
            page = page_of(self._view(), self._drawing(), self.code)
            (folder / "search.html").write_text(page, encoding="utf-8")
        except FileExistsError:
            raise ConfigError(f"{folder} exists already: name a new folder") from None
        except OSError as error:
            raise refused(folder, error) from None

    def _html(self) -> Html:
        return self._view().html(self._drawing())

    def _drawing(self) -> Html:
        own, settings = self.build().get_params(), []
        for name, choice in self.space.choices.items():
            values = [one.settings[name] for one in self.candidates]
            default = own[name]
            if isinstance(choice, list):
                if len(choice) == 1:
                    continue
                default = str(default) if default in choice else None
                texts = [str(value) for value in choice]
                drawn = Setting(short_name(name), list(map(str, values)), texts, default)
            else:
                low, high, *scale = choice
                held = type(default) in (int, float) and low <= default <= high
                shown = default if held else None
                drawn = Setting(short_name(name), values, (low, high), shown, scale == ["log"])
            settings.append(drawn)
        scores = {one.number: one.score for one in self.candidates}
        near, first = None, self.candidates[0].score
        if self.metric != "mae" and self.best.capacity is not None:
            near = first - NEAR, max(scores.values())
        drawn_search = Drawn(self.metric, scores, self.best.number, self.default, near, settings)
        label = (
            f"{self.metric} of {len(scores)} candidates; the one taken, trial {self.best.number}, "
            f"has {self.best.score:.4f}, the default {self.default:.4f}"
        )
        return draw_search(drawn_search, label)

    def _view(self) -> View:
        others = [one for one in self.candidates if one is not self.best][:_SHOWN]
        shown, own = [self.best, *others], self.build().get_params()
        scores = [*(one.score for one in shown), self.default]
        lines = [[self.metric, *(f"{score:.4f}" for score in scores)]]
        if len(self.releases) > 1:
            for place, name in enumerate(self.releases):
                each = [*(one.scores[place] for one in shown), self.defaults[place]]
                lines.append([f".. of {Path(name).name}", *(f"{score:.4f}" for score in each)])
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
        if len(self.gains) > 1:
            low, high = min(self.gains), max(self.gains)
            said.append(
                f"Against the default: {np.mean(self.gains):+.4f}, from release to release "
                f"{low:+.4f} to {high:+.4f}."
            )
        if self.default > self.candidates[0].score:
            said.append(
                "On synthetic rows the default scores better than all of them: search longer."
            )
        said.append(_EXPECTED)
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


def _imports(parts: Iterable[object]) -> list[str]:
    """Lines that import the classes of the estimators among these, from where they are public."""
    kinds = {type(part) for part in parts if hasattr(part, "get_params")}
    lines = set()
    for kind in kinds:
        public = takewhile(lambda name: not name.startswith("_"), kind.__module__.split("."))
        if module := ".".join(public):
            lines.add(f"from {module} import {kind.__name__}")
    return sorted(lines)


def _spell(settings: Settings) -> str:
    return ", ".join(
        f"{name.removeprefix('model__')}={_spell_value(value)}" for name, value in settings.items()
    )


def _spell_value(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
