"""The search: Optuna proposes settings, synthetic rows judge them.

Every row that a search looks at was drawn from finished releases, so that by post-processing it
costs no privacy, however many candidates are tried. Real rows enter only afterwards, if at all.

A candidate is trained on one draw of a release and scored on another draw of the same. Scoring it
on another release, or on real rows, would find the best model of synthetic rows, not the best
settings: see evaluation/README.md.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import rankdata

from fedsynth.agreed import demand_whole, suggestion
from fedsynth.demands import demand_kind, demand_path
from fedsynth.errors import ConfigError
from fedsynth.evaluation.models.learners import silence_warnings
from fedsynth.jobs.loading import load
from fedsynth.privacy.trail.certificate import Certificate
from fedsynth.progress import Report, showing
from fedsynth.release import read_release
from fedsynth.schema import Schema
from fedsynth.tuning.rows import (
    Metric,
    Supervised,
    demand_metric,
    demand_task,
    score_model,
    supervise,
)
from fedsynth.tuning.spaces import Choice, Space, named_space, own_space
from fedsynth.tuning.tuned import NEAR, UNTRAINABLE, Candidate, Tuned, choose

if TYPE_CHECKING:
    import optuna

_MOST_ROWS = 20_000
_SCORES, _DEFAULT = "scores", "default"
"""Where a trial keeps its scores by release, and a study those of the model's own settings."""


@dataclass(frozen=True, eq=False)
class _Ground:
    """A release to search on: pairs of draws, one to learn from and one to be scored on."""

    name: str
    pairs: tuple[tuple[Supervised, Supervised], ...]


def tune(
    releases: str | Path | Sequence[str | Path],
    model: Any = "gradient boosting",
    space: Mapping[str, Choice] | None = None,
    *,
    trials: int = 50,
    rows: int | None = None,
    metric: Metric | None = None,
    seed: int = 0,
    jobs: int = 1,
    storage: str | Path | None = None,
    progress: Report | bool = True,
) -> Tuned:
    """Search a model's settings on synthetic rows; costs no privacy, however long it searches.

    Args:
        releases: one folder of a release or several, of one schema. With several, mean ranks
            decide, which is safest: one release's noise misleads less.
        model: "gradient boosting", "logistic regression", "ridge regression", "random forest",
            "multilayer perceptron", "k nearest neighbours", "support vectors"; or any scikit-learn
            estimator (which gets the columns as numbers) or pipeline (which gets them as they are).
        space: of an estimator: by setting (low, high), (low, high, "log") or a list of values. Of a
            named model: in place of some of its own.
        trials: candidates, counted over all runs with the same storage.
        rows: of a draw; by default as many as the first release has, 20,000 at most. About as many
            as the real rows to learn from are best: more ask for more capacity, fewer hide the
            order.
        metric: auroc, accuracy, balanced_accuracy, f1 or average_precision; r2 or mae.
        seed: of draws, named models and the search; an estimator of your own keeps its
            `random_state`. With `jobs` above 1 the search is not repeatable.
        jobs: candidates that are trained at once.
        storage: an SQLite file to go on from after a crash, by the same call; it may hold several
            searches. What is in it is public, as the release is.
        progress: see :func:`fedsynth.progress.showing`.

    Raises:
        ConfigError: no optuna (`pip install fedsynth[tune]`), nothing to predict, releases of
            different schemas, a model or setting that is none, no candidate that can be trained.
        ReleaseError: a release that is damaged.
        DataError: draws without answers, or with one answer alone.
    """
    optuna = _import_optuna()
    several = [releases] if isinstance(releases, str | Path) else releases
    demand_kind("releases", several, (list, tuple), "the folder of a release, or a list of them")
    folders = [demand_path("releases", one) for one in several]
    if not folders:
        raise ConfigError("give the folder of a release to tune on, or several")
    trials, jobs = demand_whole("trials", trials, 1), demand_whole("jobs", jobs, 1)
    seed = demand_whole("seed", seed, 0)
    schema, count = _read_schemas(folders)
    rows = min(count, _MOST_ROWS) if rows is None else rows
    demand_whole("rows", rows, 10)
    metric = demand_metric(metric, schema)
    kind = _find_space(model, space, schema)
    grounds = [_draw(folder, schema, int(rows), kind.pairs, seed) for folder in folders]

    def judge(settings: Mapping[str, Any] | None, report: Callable[[float], None]) -> list[float]:
        """The scores by release; `report` hears of their mean so far and may end the trial."""
        scores: list[list[float]] = []
        for ground in grounds:
            scores.append([])
            for learned, others in ground.pairs:
                made = kind.build(schema, seed)
                if settings is not None:
                    made.set_params(**settings)
                with silence_warnings():
                    made.fit(learned.x, learned.y)
                    scores[-1].append(score_model(made, others, schema, metric))
                report(float(np.mean([np.mean(each) for each in scores])))
        return [float(np.mean(each)) for each in scores]

    made = _digest(folders, kind, schema, int(rows), metric, seed)
    study = _open_study(optuna, storage, made)
    default = study.user_attrs.get(_DEFAULT)
    if default is None:
        try:
            default = judge(None, lambda _: None)
        except UNTRAINABLE:
            raise ConfigError(
                f"{kind.name} cannot be trained as it is: does it take these columns? Try it with "
                "fit(X, y) on synthetic rows to see what it says"
            ) from None
        study.set_user_attr(_DEFAULT, default)
        if (own := kind.defaults(kind.build(schema, seed))) is not None:
            study.enqueue_trial(own)
    search = _Search(optuna, study, kind, judge, seed, jobs)
    with showing(progress) as report:
        search.run(trials, report)
    return Tuned(
        model=kind.name,
        metric=metric,
        releases=tuple(ground.name for ground in grounds),
        rows=int(rows),
        default=float(np.mean(default)),
        candidates=(found := search.candidates()),
        unfinished=search.unfinished(),
        # An error has the unit of its target: there nobody knows what is near.
        best=choose(found, 0.0 if metric == "mae" else NEAR),
        schema=schema,
        space=kind,
        seed=seed,
    )


Judge = Callable[[Mapping[str, Any] | None, Callable[[float], None]], list[float]]


@dataclass(frozen=True, eq=False)
class _Search:
    """Trials of a study, proposed by Optuna and judged here."""

    optuna: Any
    study: optuna.Study
    space: Space
    judge: Judge
    seed: int
    jobs: int

    def run(self, trials: int, report: Report) -> None:
        """Try candidates until so many are finished.

        Raises:
            ConfigError: the first ones can all not be trained.
        """
        done = self._finished()
        report("candidates", len(done), trials)
        with ThreadPoolExecutor(self.jobs) as pool:
            running: set[Future[None]] = set()
            asked = len(done)
            while asked < trials or running:
                while asked < trials and len(running) < self.jobs:
                    running.add(pool.submit(self._try, self._propose(asked)))
                    asked += 1
                over, running = wait(running, return_when=FIRST_COMPLETED)
                for future in over:
                    future.result()
                report("candidates", len(self._finished()), trials)
        if self._best() is None:
            raise ConfigError(
                f"{self.space.name}: no candidate could be trained: do its settings go together, "
                f"and does it take these columns? Try one with fit(X, y) to see what it says"
            )

    def _propose(self, asked: int) -> optuna.Trial:
        # A sampler that begins anew on resuming would propose what it proposed before.
        self.study.sampler = self.optuna.samplers.TPESampler(
            seed=int(np.random.SeedSequence((self.seed, asked)).generate_state(1)[0]),
            constant_liar=self.jobs > 1,
        )
        return self.study.ask(self.space.distributions())

    def _try(self, trial: optuna.Trial) -> None:
        states = self.optuna.trial.TrialState
        step = 0

        def report(mean: float) -> None:
            nonlocal step
            trial.report(mean, step)
            step += 1
            if trial.should_prune():
                raise self.optuna.TrialPruned

        try:
            scores = self.judge(self.space.settings_of(trial.params), report)
        except self.optuna.TrialPruned:
            self.study.tell(trial, state=states.PRUNED)
        except UNTRAINABLE:
            self.study.tell(trial, state=states.FAIL)
        else:
            trial.set_user_attr(_SCORES, scores)
            self.study.tell(trial, float(np.mean(scores)))

    def candidates(self) -> tuple[Candidate, ...]:
        """All that were tried to the end, by mean rank."""
        found = [one for one in self._finished() if _SCORES in one.user_attrs]
        scores = np.array([one.user_attrs[_SCORES] for one in found])
        ranks = rankdata(-scores, axis=0).mean(axis=1)
        made = [
            self._candidate(one, tuple(scores[place].tolist()), float(ranks[place]))
            for place, one in enumerate(found)
        ]
        return tuple(sorted(made, key=lambda one: (one.rank, -one.score, one.number)))

    def _candidate(
        self, trial: optuna.trial.FrozenTrial, scores: tuple[float, ...], rank: float
    ) -> Candidate:
        settings = self.space.settings_of(trial.params)
        capacity = None if self.space.capacity is None else self.space.capacity(settings)
        return Candidate(trial.number, settings, scores, rank, capacity)

    def unfinished(self) -> int:
        """Trials that were pruned or failed."""
        return sum(one.value is None for one in self._finished())

    def _finished(self) -> list[optuna.trial.FrozenTrial]:
        # Of a process that was killed a trial stays running for ever.
        return [one for one in self.study.get_trials(deepcopy=False) if one.state.is_finished()]

    def _best(self) -> float | None:
        scores = [one.value for one in self._finished() if _SCORES in one.user_attrs]
        return max((score for score in scores if score is not None), default=None)


def _import_optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise ConfigError("tuning needs optuna: pip install 'fedsynth[tune]'") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def _open_study(optuna: Any, storage: str | Path | None, name: str) -> Any:
    """The study of that name, begun or gone on with."""
    from sqlalchemy.exc import SQLAlchemyError

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return optuna.create_study(
                storage=None if storage is None else f"sqlite:///{Path(storage).absolute()}",
                study_name=name,
                load_if_exists=True,
                direction="maximize",
                pruner=optuna.pruners.MedianPruner(n_startup_trials=10),
            )
        except (SQLAlchemyError, OSError):
            raise ConfigError(
                f"storage {str(storage)!r} cannot be opened as an SQLite file: choose another"
            ) from None


def _read_schemas(folders: Sequence[Path]) -> tuple[Schema, int]:
    """The releases' one schema and the rows of the first."""
    count, found = 0, []
    for folder in folders:
        rows, schema, _ = read_release(folder)
        found.append(demand_task(schema))
        count = count or len(rows)
        if found[-1].digest != found[0].digest:
            raise ConfigError(f"{folders[0]} and {folder} have different schemas: tune on one")
    return found[0], count


def _find_space(model: Any, space: Mapping[str, Choice] | None, schema: Schema) -> Space:
    if not isinstance(model, str):
        return own_space(model, {} if space is None else space, schema.classes)
    known = named_space(model, schema)
    if space is None:
        return known
    short = {name.removeprefix("model__"): name for name in known.choices}
    changed = dict(known.choices)
    for name, choice in space.items():
        if (whole := short.get(str(name).removeprefix("model__"))) is None:
            raise ConfigError(f"space: {model} has no setting {name!r}{suggestion(name, short)}")
        changed[whole] = choice
    made = replace(known, choices=changed)
    made.distributions()
    return made


def _draw(folder: Path, schema: Schema, rows: int, pairs: int, seed: int) -> _Ground:
    synth = load(folder)
    seeds = np.random.SeedSequence(seed).generate_state(2 * pairs)
    draws = [
        supervise(synth.sample(rows, seed=int(one)), schema, f"rows of {folder}") for one in seeds
    ]
    return _Ground(str(folder), tuple(zip(draws[::2], draws[1::2], strict=True)))


def _digest(
    folders: Sequence[Path], space: Space, schema: Schema, rows: int, metric: str, seed: int
) -> str:
    """A name for this search and no other."""
    heads = [Certificate.load(folder).content["ledger"]["head"] for folder in folders]
    choices = {name: repr(choice) for name, choice in space.choices.items()}
    # Two of one class may differ in what is not searched; functions have no lasting name.
    own = {
        name: value if isinstance(value, str | int | float | None) else type(value).__name__
        for name, value in space.build(schema, seed).get_params().items()
    }
    parts = [heads, space.name, choices, own, rows, metric, seed]
    return "fedsynth-" + hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
