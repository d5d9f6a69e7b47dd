"""Trials of a search: proposed by Optuna, judged by whoever calls, kept in a file if wanted.

A process may be killed at any moment: what it had finished is kept, what it was at is done again,
and all goes on as if nothing had happened.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import sqlite3
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import rankdata

from fedsynth.errors import ConfigError
from fedsynth.progress import Report
from fedsynth.tuning.spaces import Settings, Space
from fedsynth.tuning.tuned import UNTRAINABLE, Candidate

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.trial import FrozenTrial

Judge = Callable[[Settings | None, Callable[[float], None]], list[float]]
"""Of settings, or the model's own for None: the scores by release. What it is given hears of their
mean so far, while there is more to come, and may end the trial."""

_SCORES, _PLACE = "scores", "place"
"""Where a trial keeps its scores by release, and which of the search's proposals it is."""
_DEFAULT, _ABANDONED = "default", "abandoned"
"""Where a study keeps the scores of the model's own settings, and the numbers of the trials that
died with their process."""

_PATIENCE = 5
"""Seconds that SQLite waits for another program to let go of a file."""


@dataclass(frozen=True, eq=False)
class Search:
    """A study and how its candidates are judged.

    Attributes:
        own: the model's own settings as Optuna would propose them, which are tried first; None
            where the space does not hold them.
    """

    optuna: Any
    study: Study
    space: Space
    own: Mapping[str, Any] | None
    judge: Judge
    seed: int
    jobs: int

    def score_default(self) -> list[float]:
        """The scores by release of the model's own settings.

        Raises:
            ConfigError: they cannot be trained.
        """
        scores: list[float] | None = self.study.user_attrs.get(_DEFAULT)
        if scores is None:
            try:
                scores = _demand_finite(self.judge(None, lambda _: None))
            except UNTRAINABLE:
                raise ConfigError(
                    f"{self.space.name} cannot be trained as it is: does it take these columns? "
                    "Try it with fit(X, y) on synthetic rows to see what it says"
                ) from None
            self.study.set_user_attr(_DEFAULT, scores)
        return scores

    def run(self, trials: int, report: Report) -> None:
        """Try candidates until so many are finished.

        Raises:
            ConfigError: none of them can be trained.
        """
        self._abandon()
        done = self._finished()
        taken = {one.user_attrs[_PLACE] for one in done}
        places = (place for place in itertools.count() if place not in taken)
        left = trials - len(done)
        self._tell(trials, report)
        with ThreadPoolExecutor(self.jobs) as pool:
            running: set[Future[None]] = set()
            while left > 0 or running:
                while left > 0 and len(running) < self.jobs:
                    running.add(pool.submit(self._try, self._propose(next(places))))
                    left -= 1
                over, running = wait(running, return_when=FIRST_COMPLETED)
                for future in over:
                    future.result()
                self._tell(trials, report)
        if self._best() is None:
            raise ConfigError(
                f"{self.space.name}: no candidate could be trained: do its settings go together, "
                f"and does it take these columns? Try one with fit(X, y) to see what it says"
            )

    def _abandon(self) -> None:
        """Have the trials failed that no process is at any more: they would run for ever."""
        states = self.optuna.trial.TrialState
        for _ in self.study.get_trials(deepcopy=False, states=(states.WAITING,)):
            # Only what runs can be failed.
            self.study.ask()
        lost = self.study.get_trials(deepcopy=False, states=(states.RUNNING,))
        if lost:
            numbers = [*self._abandoned(), *(one.number for one in lost)]
            self.study.set_user_attr(_ABANDONED, numbers)
        for one in lost:
            self.study.tell(one.number, state=states.FAIL)

    def _propose(self, place: int) -> Trial:
        # A sampler that begins anew on resuming would propose what it proposed before.
        self.study.sampler = self.optuna.samplers.TPESampler(
            seed=int(np.random.SeedSequence((self.seed, place)).generate_state(1)[0]),
            constant_liar=self.jobs > 1,
        )
        if place == 0 and self.own is not None:
            self.study.enqueue_trial(dict(self.own))
        trial = self.study.ask(self.space.distributions())
        trial.set_user_attr(_PLACE, place)
        return trial

    def _try(self, trial: Trial) -> None:
        states = self.optuna.trial.TrialState
        steps = itertools.count()

        def report(mean: float) -> None:
            trial.report(mean, next(steps))
            if trial.should_prune():
                raise self.optuna.TrialPruned

        try:
            settings = self.space.settings_of(trial.params)
            scores = _demand_finite(self.judge(settings, report))
        except self.optuna.TrialPruned:
            self.study.tell(trial, state=states.PRUNED)
        except self.optuna.exceptions.OptunaError:
            # The storage's fault, not the candidate's.
            raise
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
        settings = [self.space.settings_of(one.params) for one in found]
        made = [
            Candidate(one.user_attrs[_PLACE], given, tuple(each.tolist()), float(rank), capacity)
            for one, given, each, rank, capacity in zip(
                found, settings, scores, ranks, self._capacities(settings), strict=True
            )
        ]
        return tuple(sorted(made, key=lambda one: (one.rank, -one.score, one.number)))

    def _capacities(self, settings: Sequence[Settings]) -> list[float | None]:
        """How much each lets a model learn; None of all where that cannot be told of one."""
        if self.space.capacity is not None:
            try:
                return [self.space.capacity(one) for one in settings]
            except (TypeError, ValueError):
                # Choices of one's own need not be numbers.
                pass
        return [None] * len(settings)

    def unfinished(self) -> int:
        """Trials that were pruned or failed."""
        return sum(_SCORES not in one.user_attrs for one in self._finished())

    def _finished(self) -> list[FrozenTrial]:
        """All but those that died with their process."""
        lost = set(self._abandoned())
        every = self.study.get_trials(deepcopy=False)
        return [one for one in every if one.state.is_finished() and one.number not in lost]

    def _abandoned(self) -> list[int]:
        numbers: list[int] = self.study.user_attrs.get(_ABANDONED, [])
        return numbers

    def _best(self) -> float | None:
        scores = [one.user_attrs.get(_SCORES) for one in self._finished()]
        return max((float(np.mean(one)) for one in scores if one is not None), default=None)

    def _tell(self, trials: int, report: Report) -> None:
        report("candidates", len(self._finished()), trials, best=self._best())


def _demand_finite(scores: list[float]) -> list[float]:
    """Raises ArithmeticError of a model that answers what is no number."""
    if not np.isfinite(scores).all():
        raise ArithmeticError("a score is not finite")
    return scores


def import_optuna() -> Any:
    """Optuna, silenced: in notebooks its import warns of widgets that nothing here uses. Raises
    ConfigError where it is not installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import optuna
    except ImportError:
        raise ConfigError("tuning needs optuna: pip install 'fedsynth[tune]'") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


@contextmanager
def opened(optuna: Any, storage: Path | None, name: str) -> Iterator[Study]:
    """The study of that name, begun or gone on with; nobody else's as long as it is open.

    Raises:
        ConfigError: the storage cannot be used, or no more.
    """
    if storage is None:
        yield _create_study(optuna, None, name)
        return
    from optuna.exceptions import StorageInternalError
    from sqlalchemy.exc import SQLAlchemyError

    with _alone(storage):
        _demand_searches(storage)
        try:
            yield _create_study(optuna, f"sqlite:///{storage.absolute()}", name)
        except (SQLAlchemyError, StorageInternalError) as error:
            raise ConfigError(
                f"storage {str(storage)!r} cannot be written{_why(error)}; what was finished is "
                "kept: once it can, the same call goes on"
            ) from None


def _create_study(optuna: Any, storage: str | None, name: str) -> Study:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study: Study = optuna.create_study(
            storage=storage,
            study_name=name,
            load_if_exists=True,
            direction="maximize",
            pruner=optuna.pruners.MedianPruner(n_startup_trials=10),
        )
    return study


@contextmanager
def _alone(storage: Path) -> Iterator[None]:
    """No other process searches with this storage: it would try the same candidates.

    The lock is a file of its own: to close SQLite's own file would take away SQLite's locks.
    """
    lock = storage.with_name(storage.name + ".lock")
    try:
        file = lock.open("wb")
    except OSError as error:
        raise ConfigError(
            f"storage {str(storage)!r}: no file can be made beside it ({error.strerror}): choose "
            "another place"
        ) from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            mine = os.path.samestat(os.fstat(file.fileno()), lock.stat())
        except OSError:
            mine = False
        if not mine:
            raise ConfigError(
                f"storage {str(storage)!r}: another search is using it: wait for that, or name "
                "another file"
            )
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


def _demand_searches(storage: Path) -> None:
    """Raises ConfigError for a file that is there and holds something else than searches."""
    if not storage.exists():
        return
    if not os.access(storage, os.W_OK):
        raise ConfigError(f"storage {str(storage)!r} may not be written: choose another file")
    try:
        base = sqlite3.connect(
            f"{storage.absolute().as_uri()}?mode=ro", uri=True, timeout=_PATIENCE
        )
        try:
            found = base.execute("select name from sqlite_master where type = 'table'").fetchall()
        finally:
            base.close()
    except sqlite3.Error as error:
        raise ConfigError(
            f"storage {str(storage)!r} cannot be opened as an SQLite file{_why(error)}: choose "
            "another"
        ) from None
    names: Sequence[str] = [name for (name,) in found]
    if names and not {"studies", "trials"} <= set(names):
        raise ConfigError(
            f"storage {str(storage)!r} is a database of something else: choose another file"
        )


def _why(error: Exception) -> str:
    """In words of our own, where they are known."""
    said = f"{error} {error.__cause__}"
    for sign, meaning in (
        ("locked", "another program has it locked"),
        ("readonly", "it is read-only"),
        ("full", "the disk is full"),
    ):
        if sign in said:
            return f" ({meaning})"
    return ""
