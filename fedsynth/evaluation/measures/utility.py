"""Train on synthetic rows, test on real ones: what models lose by the exchange.

Tables: several kinds of model, beside the same trained on real rows and beside answers that learn
nothing. Images, in `compare`: the student network of paper 001.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from fedsynth.agreed import suggestion
from fedsynth.data.images import Images, demand_rows
from fedsynth.errors import ConfigError
from fedsynth.evaluation.measures.agreement import SETTINGS, Agreement, agreement
from fedsynth.evaluation.measures.utility_notes import ROLES, utility_notes
from fedsynth.evaluation.models.classifiers import CLASSIFIERS, STANDARD, train_boosting
from fedsynth.evaluation.models.learners import Learner, answer_commonest, fit
from fedsynth.evaluation.models.regressors import REGRESSORS
from fedsynth.evaluation.models.trials import (
    Arena,
    Figures,
    Model,
    Pool,
    Trial,
    mean_figures,
    metrics_of,
)
from fedsynth.evaluation.reading.confidence import roc
from fedsynth.evaluation.reading.labelled import (
    Examples,
    Labelled,
    Task,
    label_features,
    label_rows,
    task_of,
    why_no_task,
)
from fedsynth.evaluation.reading.notes import Note
from fedsynth.evaluation.reading.rows import (
    Rows,
    read_real_rows,
    read_rows,
    shuffle_columns,
)
from fedsynth.evaluation.reading.scores import Scores, answer_always, score
from fedsynth.evaluation.reading.steps import Steps, silent
from fedsynth.schema import ImageSchema, Schema

_SHUFFLES = 3

_TESTED = 20_000
"""Real rows at most that models are tested on."""


@dataclass(frozen=True)
class Comparison:
    """Scores on the same real test rows of one kind of classifier trained on synthetic rows, of one
    trained on real rows, and of always answering the commonest class of the real training rows."""

    synthetic: Scores
    real: Scores
    majority: Scores


@dataclass(frozen=True)
class Baseline:
    """Scores on the test rows of answers that learn nothing of how columns hang together."""

    name: str
    scores: Figures


@dataclass(frozen=True)
class RankAgreement:
    """Of the kinds of model, and of settings of one kind."""

    classifiers: Agreement
    settings: Agreement


@dataclass(frozen=True)
class Utility:
    """What models learn from synthetic rows. Scores are None where they cannot be computed.

    Attributes:
        task, target: what is predicted.
        primary: the metric by which models are compared.
        metrics: those of every model; f1_positive comes beside them for two classes.
        models: in the order asked for.
        baselines: the commonest class or the mean, and the first model trained on real rows whose
            columns were shuffled each on its own: the mean of three shuffles, since what one of
            them teaches by chance may go along with the target or against it.
        curves: of the first model, ROC curves as "fpr" and "tpr" of up to 200 points, trained on
            "synthetic" and on "real" rows; None unless there are two classes.
        agreement: whether models and settings order the same on synthetic rows as on real ones.
        notes: what was left out, sampled or impossible, as sentences.
    """

    task: Task
    target: str
    primary: str
    metrics: tuple[str, ...]
    models: tuple[Model, ...]
    baselines: tuple[Baseline, ...]
    curves: dict[str, dict[str, list[float]]] | None
    agreement: RankAgreement
    notes: tuple[Note, ...]


def utility(
    synthetic: Rows,
    train: Rows,
    real: Rows,
    *,
    seed: int = 0,
    models: Literal["standard", "thorough"] | Sequence[str] = "standard",
    augment: bool = True,
    progress: Steps = silent,
) -> Utility:
    """Train on synthetic rows and on real ones, test on other real rows.

    Args:
        synthetic: the rows to judge.
        train: real rows to compare them with.
        real: the test rows, none of which is in `train`; 20,000 of them are drawn from more.
        seed: of samples and models.
        models: "standard", a handful of kinds; "thorough", all there are; or names of
            `CLASSIFIERS` or `REGRESSORS`.
        augment: whether to train on synthetic and real rows together, too; slow models only where
            they may have all rows.
        progress: called with the steps done and all of them.

    Raises:
        ConfigError: there is nothing to predict (`why_no_task`), or no such model.
        DataError: a table has no row with a value of the target.
    """
    schema = real.schema
    task, target = task_of(schema), schema.target_column
    if task is None or target is None:
        raise ConfigError(str(why_no_task(schema)))
    learners = _choose_models(models, task)
    tables = {"synthetic": synthetic, "train": train, "real": real}
    known = {side: label_rows(rows, ROLES[side]) for side, rows in tables.items()}
    test = Pool.of(known["real"], seed).part(_TESTED)
    arena = Arena(Pool.of(known["synthetic"], seed), Pool.of(known["train"], seed), test, seed)
    steps = len(learners) + 2
    progress(0, steps)
    trials = []
    for learner in learners:
        trials.append(arena.run(learner, augment))
        progress(len(trials), steps)
    baselines = _baselines(arena, learners[0])
    progress(steps - 1, steps)
    ranks = RankAgreement(_of_models(arena, trials), _of_settings(arena))
    groups = {"models": ranks.classifiers, "settings": ranks.settings}
    progress(steps, steps)
    return Utility(
        task=task,
        target=target.name,
        primary=arena.primary,
        metrics=metrics_of(schema.classes),
        models=tuple(trial.model for trial in trials),
        baselines=baselines,
        curves=_curves(trials[0], test),
        agreement=ranks,
        notes=(*_note_standard(models, task), *utility_notes(known, arena, trials, groups)),
    )


def _choose_models(models: str | Sequence[str], task: Task) -> Sequence[Learner]:
    every = CLASSIFIERS if task == "classification" else REGRESSORS
    if models == "thorough":
        return every
    if models == "standard":
        return every[:STANDARD]
    by_name = {learner.name: learner for learner in every}
    names = [models] if isinstance(models, str) else list(models)
    for name in names:
        if name not in by_name:
            known = suggestion(name, (*by_name, "standard", "thorough"))
            raise ConfigError(f"no model for {task} is called {name!r}{known}")
    if not names:
        raise ConfigError('`models` names none: give "standard", "thorough" or names')
    return [by_name[name] for name in dict.fromkeys(names)]


def _note_standard(models: str | Sequence[str], task: Task) -> list[Note]:
    """What the standard models leave out."""
    others = CLASSIFIERS[STANDARD:] if task == "classification" else REGRESSORS[STANDARD:]
    if models != "standard" or not others:
        return []
    names = ", ".join(learner.name for learner in others)
    text = f"the standard models were trained, not {names}: `thorough` trains them, too."
    return [Note("utility", "Utility", text)]


def _baselines(arena: Arena, learner: Learner) -> tuple[Baseline, ...]:
    table = arena.real.part(learner.rows(arena.real.examples))
    shuffles = [
        arena.figures(fit(learner, label_rows(shuffle_columns(table.rows, seed)), seed))
        for seed in range(arena.seed, arena.seed + _SHUFFLES)
    ]
    first = "commonest class" if arena.test.classes else "mean"
    return (
        Baseline(first, arena.figures(answer_commonest(arena.real.examples))),
        Baseline("independent columns", mean_figures(shuffles)),
    )


def _of_models(arena: Arena, trials: Sequence[Trial]) -> Agreement:
    return agreement(
        [trial.model.name for trial in trials],
        [trial.tuned for trial in trials],
        [trial.model.real[arena.primary] for trial in trials],
    )


def _of_settings(arena: Arena) -> Agreement:
    return agreement(
        [setting.name for setting in SETTINGS],
        [arena.tune(setting) for setting in SETTINGS],
        [arena.test_on_real(setting) for setting in SETTINGS],
    )


def _curves(trial: Trial, test: Examples) -> dict[str, dict[str, list[float]]] | None:
    if test.classes != 2 or len(np.unique(test.y)) < 2:
        return None
    curves = {}
    for side in ("synthetic", "real"):
        answers = trial.answers[side]
        if answers is None:
            return None
        curves[side] = roc(answers[test.y == 1, 1], answers[test.y == 0, 1])
    return curves


def compare(
    real_train: pd.DataFrame | Images,
    real_test: pd.DataFrame | Images,
    synthetic: pd.DataFrame | Images,
    schema: Schema | ImageSchema,
    seed: int = 0,
) -> Comparison:
    """Train-on-synthetic beside train-on-real beside the majority baseline, with one kind of model.

    Tables are classified by scikit-learn's histogram gradient boosting. Rows without a label are
    left out.

    Raises:
        ConfigError: the schema has no target of categories.
        DataError: data that do not fit the schema, are empty or carry no labels.
    """
    synthetic_scores = train_on_synthetic(synthetic, real_test, schema, seed)
    return Comparison(synthetic_scores, *train_on_real(real_train, real_test, schema, seed))


def train_on_real(
    real_train: pd.DataFrame | Images,
    real_test: pd.DataFrame | Images,
    schema: Schema | ImageSchema,
    seed: int = 0,
) -> tuple[Scores, Scores]:
    """What a score is beside: of a classifier trained on real rows, and of the majority baseline,
    as in `compare`.

    Raises:
        ConfigError, DataError: as `compare`.
    """
    test = _read_labelled(real_test, schema, "real test", read_real_rows)
    train = _read_labelled(real_train, schema, "real train", read_real_rows)
    truth = test.y.astype(np.int64)
    majority = int(np.bincount(train.y.astype(np.int64)).argmax())
    always = score(answer_always(majority, len(truth), test.classes), truth)
    return _train_and_score(train, test, seed), always


def train_on_synthetic(
    synthetic: pd.DataFrame | Images,
    real_test: pd.DataFrame | Images,
    schema: Schema | ImageSchema,
    seed: int = 0,
) -> Scores:
    """Scores on real rows of a classifier trained on synthetic ones, as in `compare`.

    Training rows of one class alone make that class the answer to everything, with AUROC .5.

    Raises:
        ConfigError: the schema has no target of categories.
        DataError: data that do not fit the schema, are empty or carry no labels.
    """
    made = _read_labelled(synthetic, schema, "synthetic", read_rows)
    test = _read_labelled(real_test, schema, "real test", read_real_rows)
    return _train_and_score(made, test, seed)


def _read_labelled(
    data: pd.DataFrame | Images,
    schema: Schema | ImageSchema,
    where: str,
    read: Callable[[pd.DataFrame, Schema, str], Rows],
) -> Examples | Labelled:
    data = demand_rows(data, where)
    if isinstance(schema, Schema) and schema.classes and isinstance(data, pd.DataFrame):
        return label_rows(read(data, schema, where), where)
    return label_features(data, schema, where)


def _train_and_score(train: Examples | Labelled, test: Examples | Labelled, seed: int) -> Scores:
    if len(np.unique(train.y)) == 1:
        probabilities = answer_always(int(train.y[0]), len(test.y), test.classes)
    elif isinstance(train, Examples) and isinstance(test, Examples):
        probabilities = train_boosting(train, seed)(test)
    else:
        from fedsynth.evaluation.models import students

        assert isinstance(train, Labelled)
        probabilities = students.image_probabilities(train, test.x, seed)
    return score(probabilities, test.y.astype(np.int64))
