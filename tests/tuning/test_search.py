"""Trials of a search: so many and no more, whatever dies under them."""

from __future__ import annotations

import itertools
import math
import os
import signal
import sqlite3
import sys
import warnings
from pathlib import Path

import optuna
import pytest
from optuna.exceptions import StorageInternalError
from optuna.storages import InMemoryStorage, RDBStorage
from optuna.trial import TrialState

import fedsynth as fs
from fedsynth.errors import ConfigError
from fedsynth.tuning import search as searching
from fedsynth.tuning import tuning
from fedsynth.tuning.search import Search, opened
from fedsynth.tuning.spaces import Space
from tests.crash.trials import fork, wait

optuna.logging.set_verbosity(optuna.logging.ERROR)
SPACE = Space("a model", lambda schema, seed: None, {"depth": (1, 9), "rate": (0.01, 1.0, "log")})
OWN = {"depth": 3, "rate": 0.1}


def test_what_the_library_says_when_it_is_imported_reaches_nobody(tmp_path, monkeypatch):
    (tmp_path / "optuna.py").write_text(
        "import warnings\nwarnings.warn('no widgets')\n"
        "class logging:\n    ERROR, set_verbosity = 1, staticmethod(print)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "optuna")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert searching.import_optuna().__file__ == str(tmp_path / "optuna.py")
    assert said == []


class Crash(BaseException):
    """Stands for a kill: nothing in fedsynth may catch it."""


def judge(settings, report):
    return [0.5 if settings is None else settings["depth"] * settings["rate"]]


def search_of(study, judge=judge, jobs=1):
    return Search(optuna, study, SPACE, OWN, judge, 0, jobs)


def study_in(storage):
    return optuna.create_study(
        storage=storage,
        study_name="one",
        load_if_exists=True,
        direction="maximize",
        pruner=optuna.pruners.MedianPruner(n_startup_trials=10),
    )


def searched(storage, trials, **options):
    heard = []
    search = search_of(study_in(storage), **options)
    search.score_default()
    search.run(trials, lambda *said, **best: heard.append((*said, best["best"])))
    return search, heard


class Dying(InMemoryStorage):
    """A storage whose process dies at one of its writes, none before it being lost."""

    def __init__(self, write: int):
        super().__init__()
        self.left = write


def _mortal(name):
    write = getattr(InMemoryStorage, name)

    def die(self, *arguments, **given):
        self.left -= 1
        if self.left == 0:
            raise Crash
        return write(self, *arguments, **given)

    return die


for name in (
    "create_new_trial",
    "set_trial_param",
    "set_trial_state_values",
    "set_trial_user_attr",
    "set_trial_system_attr",
    "set_study_user_attr",
):
    setattr(Dying, name, _mortal(name))


def test_a_search_killed_at_any_of_its_writes_ends_as_if_it_had_not_been():
    whole = searched(InMemoryStorage(), 3)[0].candidates()
    assert sorted(one.number for one in whole) == [0, 1, 2]
    killed = 0
    while True:
        storage = Dying(killed + 1)
        try:
            searched(storage, 3)
        except Crash:
            killed += 1
        else:
            break
        search, _ = searched(storage, 3)
        assert search.candidates() == whole
        assert search.unfinished() == 0
        left = (TrialState.RUNNING, TrialState.WAITING)
        assert not search.study.get_trials(states=left)
    assert killed > 15


def test_what_was_done_at_once_is_not_done_again_when_one_of_it_died():
    """Of three at once the second died: a sampler of the same seed would propose the third anew."""
    storage = InMemoryStorage()
    search = search_of(study_in(storage), jobs=3)
    trials = [search._propose(place) for place in range(4)]
    for place in (0, 2, 3):
        search._try(trials[place])
    found = searched(storage, 6, jobs=3)[0].candidates()
    assert sorted(one.number for one in found) == list(range(6))
    assert len({tuple(one.settings.values()) for one in found}) == 6


def test_progress_tells_the_best_so_far():
    _, heard = searched(InMemoryStorage(), 4)
    assert [said[:3] for said in heard] == [("candidates", done, 4) for done in range(5)]
    best = [said[3] for said in heard]
    assert best[0] is None and best[1:] == sorted(best[1:])
    assert best[1] == pytest.approx(0.3)


def test_candidates_are_given_up_between_fits_never_after_all_of_them():
    """The mean of two fits is known when both are done: nothing is saved by dropping it then."""
    fits = []

    def twice(settings, report):
        value = 1.0 if settings is None else settings["rate"]
        fits.append(1)
        report(value)
        fits.append(2)
        return [value]

    search, _ = searched(InMemoryStorage(), 30, judge=twice)
    given_up = search.unfinished()
    assert 0 < given_up == fits.count(1) - fits.count(2)
    assert len(search.candidates()) == 30 - given_up
    states = [one.state for one in search.study.get_trials()]
    assert states.count(TrialState.PRUNED) == given_up
    # Of a single fit there is nothing to give up.
    assert searched(InMemoryStorage(), 30)[0].unfinished() == 0


def test_what_cannot_be_trained_is_counted_whatever_a_library_raises():
    class OfItsOwn(Exception):
        pass

    def some(settings, report):
        if settings is not None and settings["depth"] != 3:
            raise OfItsOwn
        return [0.5]

    search, _ = searched(InMemoryStorage(), 4, judge=some)
    assert len(search.candidates()) + search.unfinished() == 4 and search.unfinished() > 0


def test_a_model_that_answers_no_numbers_is_none_that_could_be_trained():
    def some(settings, report):
        return [0.5 if settings is None or settings["depth"] == 3 else math.nan]

    search, heard = searched(InMemoryStorage(), 4, judge=some)
    assert len(search.candidates()) == 1 and search.unfinished() == 3
    assert heard[-1] == ("candidates", 4, 4, 0.5)


def test_a_storage_that_fails_is_no_candidates_fault(tmp_path: Path, monkeypatch):
    def full(*_):
        raise StorageInternalError("database or disk is full")

    def halfway(settings, report):
        if settings is not None:
            monkeypatch.setattr(RDBStorage, "set_trial_intermediate_value", full)
            report(0.5)
        return [0.5]

    with (
        pytest.raises(ConfigError, match=r"the disk is full\); what was finished is kept"),
        opened(optuna, tmp_path / "search.db", "one") as study,
    ):
        search_of(study, halfway).run(2, lambda *_, **__: None)
    with opened(optuna, tmp_path / "search.db", "one") as study:
        search = search_of(study)
        search.run(2, lambda *_, **__: None)
    assert len(search.candidates()) == 2 and search.unfinished() == 0


def test_a_killed_process_is_gone_on_from(releases: list[Path], tmp_path: Path, monkeypatch):
    kept, score, count = tmp_path / "search.db", tuning.score_model, itertools.count()
    options = {"trials": 4, "rows": 250, "progress": False}

    def die(*arguments):
        """In the middle of the third trial."""
        if next(count) == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return score(*arguments)

    def search() -> int:
        fs.tune(releases[0], "k nearest neighbours", **options, storage=kept)
        return 0

    out = tmp_path.with_suffix(".out")
    with monkeypatch.context() as patch:
        patch.setattr(tuning, "score_model", die)
        assert wait(fork(search, out)) == -signal.SIGKILL, out.read_text()
    (name,) = optuna.get_all_study_names(f"sqlite:///{kept}")

    def states():
        study = optuna.load_study(study_name=name, storage=f"sqlite:///{kept}")
        return [one.state.name for one in study.get_trials()]

    assert states() == ["COMPLETE", "COMPLETE", "RUNNING"]
    found = fs.tune(releases[0], "k nearest neighbours", **options, storage=kept)
    assert states() == ["COMPLETE", "COMPLETE", "FAIL", "COMPLETE", "COMPLETE"]
    assert found.unfinished == 0
    assert found.candidates == fs.tune(releases[0], "k nearest neighbours", **options).candidates
    assert [file.name for file in tmp_path.iterdir()] == ["search.db"]


def test_two_searches_do_not_share_a_storage_at_once(tmp_path: Path):
    kept = tmp_path / "search.db"
    with (
        opened(optuna, kept, "one"),
        pytest.raises(ConfigError, match="another search is using it"),
        opened(optuna, kept, "one"),
    ):
        pass
    with opened(optuna, kept, "one"):
        pass


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda file: file.write_text("no database, but as long as one" * 9), "as an SQLite file"),
        (lambda file: file.mkdir(), "as an SQLite file"),
        (lambda file: sqlite3.connect(file).execute("create table patients (id)"), "something"),
    ],
)
def test_a_storage_that_is_none_is_told(tmp_path: Path, spoil, words):
    kept = tmp_path / "search.db"
    spoil(kept)
    with pytest.raises(ConfigError, match=words), opened(optuna, kept, "one"):
        pass


def test_a_storage_that_may_only_be_read_is_told(tmp_path: Path, monkeypatch):
    kept = tmp_path / "search.db"
    kept.touch()
    # Of whoever runs the tests it may be more.
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(ConfigError, match="may not be written"), opened(optuna, kept, "one"):
        pass


def test_a_storage_in_a_folder_that_is_not_there_is_told(tmp_path: Path):
    kept = tmp_path / "none" / "search.db"
    with pytest.raises(ConfigError, match="another place"), opened(optuna, kept, "one"):
        pass


def test_a_storage_that_another_program_locks_is_told(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(searching, "_PATIENCE", 0.1)
    kept = tmp_path / "search.db"
    with opened(optuna, kept, "one"):
        pass
    other = sqlite3.connect(kept, isolation_level=None)
    other.execute("begin exclusive")
    with pytest.raises(ConfigError, match="has it locked"), opened(optuna, kept, "one"):
        pass
    other.close()


def test_without_optuna_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ConfigError, match=r"pip install 'fedsynth\[tune\]'"):
        fs.tune("anywhere")
