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
import marshal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fedsynth.agreed import demand_whole, suggestion
from fedsynth.demands import demand_kind, demand_path
from fedsynth.errors import ConfigError
from fedsynth.evaluation.models.learners import silence_warnings
from fedsynth.jobs.loading import load
from fedsynth.privacy.trail.certificate import Certificate
from fedsynth.progress import Report, showing
from fedsynth.release import is_release, read_release
from fedsynth.tuning.rows import (
    AnySchema,
    Metric,
    Supervised,
    demand_metric,
    demand_task,
    score_model,
    supervise,
)
from fedsynth.tuning.search import Search, import_optuna, opened
from fedsynth.tuning.spaces import (
    Choice,
    Settings,
    Space,
    default_space,
    named_space,
    own_space,
    short_name,
)
from fedsynth.tuning.tuned import NEAR, Tuned, choose

_MOST_ROWS = 20_000
_FORMAT = 3
"""Of what a study keeps: those of others are not gone on with."""

AIM = "aim"
_MISORDERED = {"random forest": ".011", "multilayer perceptron": ".015"}
"""AUROC that the settings which looked best on AIM's rows lost on real ones, at most (Adult,
bank_marketing and online shoppers at epsilon 1)."""


@dataclass(frozen=True, eq=False)
class _Ground:
    """A release to search on, by what method, and pairs of draws of it: one to learn from and one
    to be scored on."""

    name: str
    method: str
    pairs: tuple[tuple[Supervised, Supervised], ...]


def tune(
    releases: str | Path | Sequence[str | Path],
    model: Any = None,
    space: Mapping[str, Choice] | None = None,
    *,
    trials: int = 50,
    rows: int | None = None,
    metric: Metric | None = None,
    pairs: int | None = None,
    seed: int = 0,
    jobs: int = 1,
    storage: str | Path | None = None,
    progress: Report | bool = True,
) -> Tuned:
    """Search a model's settings on synthetic rows; costs no privacy, however long it searches.

    Args:
        releases: one folder of a release or several, of one schema; or a folder that holds them.
            With several, mean ranks decide, which is safest: one release's noise misleads less.
        model: "gradient boosting" (the default), "logistic regression", "ridge regression", "random
            forest", "multilayer perceptron", "k nearest neighbours", "support vectors"; of images
            also "student network" (the default there); or any scikit-learn estimator (which gets
            the columns as numbers) or pipeline (which gets them as they are; of images the pixels).
        space: of an estimator: by setting (low, high), (low, high, "log") or a list of values. Of a
            named model: in place of some of its own.
        trials: candidates, counted over all runs with the same storage.
        rows: of a draw; by default as many as the first release has, 20,000 at most. About as many
            as the real rows to learn from are best: more ask for more capacity, fewer hide the
            order.
        metric: auroc, accuracy, balanced_accuracy, f1 or average_precision; r2 or mae.
        pairs: of draws of each release that a candidate is tried on, in place of the folds of a
            cross-validation, which would have to share their rows. By default 1, where differences
            are small 3 (logistic and ridge regression). From the second on, a candidate whose mean
            over all releases is below the median of the others is given up, which spares a fifth to
            a third of the fits of 3 pairs.
        seed: of draws, named models and the search; an estimator of your own keeps its
            `random_state`. With `jobs` above 1 the search is not repeatable.
        jobs: candidates that are trained at once.
        storage: an SQLite file to go on from after a crash, by the same call; it may hold several
            searches. What is in it is public, as the release is.
        progress: see :func:`fedsynth.progress.showing`; what is called gets `best=` as well, the
            best score so far.

    Raises:
        ConfigError: no optuna (`pip install fedsynth[tune]`), nothing to predict, releases of
            different schemas, a model or setting that is none, no candidate that can be trained.
        ReleaseError: a release that is damaged.
        DataError: draws without answers, or with one answer alone.
    """
    optuna = import_optuna()
    folders = find_releases(releases)
    trials, jobs = demand_whole("trials", trials, 1), demand_whole("jobs", jobs, 1)
    seed = demand_whole("seed", seed, 0)
    schema, count = read_schema(folders)
    rows = min(count, _MOST_ROWS) if rows is None else rows
    demand_whole("rows", rows, 10)
    metric = demand_metric(metric, schema)
    kind = _find_space(default_space(schema) if model is None else model, space, schema)
    if pairs is not None:
        kind = replace(kind, pairs=demand_whole("pairs", pairs, 1))
    grounds = [_draw(folder, schema, int(rows), kind.pairs, seed) for folder in folders]

    def judge(settings: Settings | None, report: Callable[[float], None]) -> list[float]:
        scores: list[list[float]] = [[] for _ in grounds]
        for turn in range(kind.pairs):
            if turn:
                report(float(np.mean(scores)))
            # A candidate is given up by the word of all releases only: one may order them wrongly.
            for place, ground in enumerate(grounds):
                learned, others = ground.pairs[turn]
                made = kind.build(schema, seed)
                if settings is not None:
                    made.set_params(**settings)
                with silence_warnings():
                    made.fit(learned.x, learned.y)
                    scores[place].append(score_model(made, others, schema, metric))
        return [float(np.mean(each)) for each in scores]

    name = _digest(folders, kind, schema, int(rows), metric, seed)
    file = None if storage is None else demand_path("storage", storage)
    own = kind.defaults(kind.build(schema, seed))
    with showing(progress) as report, opened(optuna, file, name) as study:
        search = Search(optuna, study, kind, own, judge, seed, jobs)
        defaults = search.score_default()
        search.run(trials, report)
        found, unfinished = search.candidates(), search.unfinished()
    return Tuned(
        model=kind.name,
        metric=metric,
        releases=tuple(ground.name for ground in grounds),
        rows=int(rows),
        defaults=tuple(defaults),
        candidates=found,
        unfinished=unfinished,
        # An error has the unit of its target: there nobody knows what is near.
        best=choose(found, 0.0 if metric == "mae" else NEAR),
        schema=schema,
        space=kind,
        seed=seed,
        cautions=_cautions(kind.name, {ground.method for ground in grounds}),
    )


def find_releases(releases: str | Path | Sequence[str | Path]) -> list[Path]:
    """The folders of releases that `tune` takes by these, whether or not they hold one.

    Raises:
        ConfigError: none is given, or something else.
    """
    several = [releases] if isinstance(releases, str | Path) else releases
    demand_kind("releases", several, (list, tuple), "the folder of a release, or a list of them")
    if not several:
        raise ConfigError("give the folder of a release to tune on, or several")
    return [one for each in several for one in _releases_in(demand_path("releases", each))]


def _releases_in(folder: Path) -> list[Path]:
    """The folder, or the releases of rows in it where it is no release itself."""
    if is_release(folder) or not folder.is_dir():
        return [folder]
    inner = [each for each in folder.iterdir() if is_release(each) and any(each.glob("rows.*"))]
    return sorted(inner) or [folder]


def _cautions(model: str, methods: set[str]) -> tuple[str, ...]:
    """What was measured of such searches and does not speak for them."""
    if methods != {AIM} or model not in _MISORDERED:
        return ()
    return (
        f"Rows of {AIM} alone order settings of a {model} wrongly: in three tables those that let "
        f"it learn most looked better than thirty others, and did worse on real rows by up to "
        f"{_MISORDERED[model]} AUROC. Searches on a release of fedvae or private-fusion, also "
        f"beside {AIM}'s, lost less.",
    )


def read_schema(folders: Sequence[Path]) -> tuple[AnySchema, int]:
    """The releases' one schema, which has something to predict, and the rows of the first.

    Raises:
        ReleaseError: a folder that holds none, or a damaged one.
        ConfigError: there is nothing to predict, or the schemas differ.
    """
    count, found = 0, []
    for folder in folders:
        rows, schema, _ = read_release(folder)
        found.append(demand_task(schema))
        count = count or len(rows)
        if found[-1].digest != found[0].digest:
            raise ConfigError(f"{folders[0]} and {folder} have different schemas: tune on one")
    return found[0], count


def _find_space(model: Any, space: Mapping[str, Choice] | None, schema: AnySchema) -> Space:
    if not isinstance(model, str):
        return own_space(model, {} if space is None else space, schema.classes)
    known = named_space(model, schema)
    if space is None:
        return known
    short = {short_name(name): name for name in known.choices}
    changed = dict(known.choices)
    for name, choice in space.items():
        if (whole := short.get(short_name(str(name)))) is None:
            raise ConfigError(f"space: {model} has no setting {name!r}{suggestion(name, short)}")
        changed[whole] = choice
    made = replace(known, choices=changed)
    made.distributions()
    return made


def _draw(folder: Path, schema: AnySchema, rows: int, pairs: int, seed: int) -> _Ground:
    synth = load(folder)
    seeds = np.random.SeedSequence(seed).generate_state(2 * pairs)
    draws = [
        supervise(synth.sample(rows, seed=int(one)), schema, f"rows of {folder}") for one in seeds
    ]
    return _Ground(str(folder), synth.name, tuple(zip(draws[::2], draws[1::2], strict=True)))


def _digest(
    folders: Sequence[Path], space: Space, schema: AnySchema, rows: int, metric: str, seed: int
) -> str:
    """A name for this search and no other."""
    heads = [Certificate.load(folder).content["ledger"]["head"] for folder in folders]
    choices = {name: _describe(choice) for name, choice in space.choices.items()}
    # Two of one class may differ in what is not searched.
    own = _describe(space.build(schema, seed))
    parts = [_FORMAT, heads, space.name, choices, space.pairs, own, rows, metric, seed]
    return "fedsynth-" + hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def _describe(value: object) -> str:
    """The same text in every process for the same value, and another one for another."""
    if isinstance(value, list | tuple):
        return str([type(value).__name__, *map(_describe, value)])
    if (code := getattr(value, "__code__", None)) is not None:
        return hashlib.sha256(marshal.dumps(code)).hexdigest()
    if hasattr(value, "get_params") and not isinstance(value, type):
        # Not its repr, which is cut where it is long, and takes scikit-learn a while.
        settings = sorted(value.get_params(deep=False).items())
        return str([type(value).__name__, [(name, _describe(one)) for name, one in settings]])
    # What tells no more of itself than where it lies.
    return type(value).__name__ if " at 0x" in repr(value) else repr(value)
