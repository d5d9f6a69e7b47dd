"""How far long work is: told to whoever watches, in one line, and to nobody else."""

from __future__ import annotations

import io
import math
import re
import sys
from contextlib import redirect_stderr
from types import ModuleType, SimpleNamespace

import pytest

from fedsynth import progress
from fedsynth.errors import ConfigError
from fedsynth.progress import Display, showing
from fedsynth.queries.options import Options


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """A terminal of 80 columns, to put in place of stderr."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    return Terminal()


@pytest.fixture
def clock(monkeypatch):
    """The seconds of a clock that stands still."""
    now = SimpleNamespace(seconds=0.0)
    clock = SimpleNamespace(monotonic=lambda: now.seconds)
    monkeypatch.setattr(progress, "time", clock)
    return now


@pytest.fixture
def notebook(monkeypatch):
    """Every content that a notebook's line had."""
    shown: list[str] = []

    def display(content, display_id):
        shown.append(content)
        return SimpleNamespace(update=shown.append)

    package, module = ModuleType("IPython"), ModuleType("IPython.display")
    package.get_ipython = lambda: SimpleNamespace(kernel=None)
    module.HTML, module.display = str, display
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    return shown


def last_line(screen: io.StringIO) -> str:
    """What is left on a terminal, without colours."""
    shown = screen.getvalue().rpartition("\x1b[2K")[2]
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown).strip()


def test_a_pipe_gets_nothing_unless_it_asks_for_lines(capsys):
    with showing(True) as report:
        report("training", 1, 2, 0.5)
    assert capsys.readouterr() == ("", "")
    with Display(lines=True) as report:
        for done in range(101):
            report("training", done, 100, 0.5)
        report("scores", 1, 1)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 12 and lines[0] == "training 1/100, epsilon spent 0.5"
    assert lines[-2:] == ["training 100/100, epsilon spent 0.5", "scores 1/1"]


def test_a_search_tells_the_best_so_far(terminal, clock, capsys):
    with Display(lines=True) as report:
        report("candidates", 0, 2, best=None)
        report("candidates", 1, 2, best=-3.25)
    assert capsys.readouterr().err == "candidates 1/2, best so far -3.2500\n"
    with redirect_stderr(terminal), showing(True) as report:
        report("candidates", 1, 2, best=0.91234)
    assert "candidates 1/2, best so far 0.9123, 0.0 s so far" in terminal.getvalue()


def test_a_forced_colour_makes_no_terminal(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with showing(True) as report:
        report("training", 1, 2)
    assert capsys.readouterr() == ("", "")


def test_a_terminal_is_left_with_what_the_work_took(terminal, clock):
    with redirect_stderr(terminal), showing(True) as report:
        report("training", 0, 40, 0.0)
        clock.seconds = 70
        report("training", 40, 40, 0.9)
        report("scores", 1, 1)
    assert "training 0/40" in terminal.getvalue()
    assert last_line(terminal) == "training, scores: 70 s, epsilon spent 0.9"


def test_work_that_fails_says_that_it_was_not_finished(terminal, clock):
    with (
        pytest.raises(ValueError, match="late"),
        redirect_stderr(terminal),
        showing(True) as report,
    ):
        report("training", 3, 40)
        clock.seconds = 300
        raise ValueError("late")
    assert last_line(terminal) == "training: 5 min, not finished"


@pytest.mark.parametrize("outer", [True, False, lambda *one: None])
def test_a_display_within_another_shows_nothing(terminal, outer):
    with redirect_stderr(terminal):
        with showing(outer) as report:
            report("shadows", 0, 4)
            with showing(True) as inner:
                inner("questions", 0, 6)
            report("shadows", 4, 4)
        assert "questions" not in terminal.getvalue()
        assert ("shadows" in terminal.getvalue()) == (outer is True)
        with showing(True) as again:
            again("questions", 0, 6)
    assert "questions" in terminal.getvalue()


def test_a_notebook_has_one_line_that_is_replaced(notebook, clock):
    with showing(True) as report:
        report("training", 0, 100, 0.0)
        report("<b>", 1, 100, 0.0)
        clock.seconds = 10
        report("training", 25, 100, 0.25)
        report("training", 100, 100, 1.0)
    texts = [re.sub("<[^>]*>", "", line) for line in notebook]
    assert texts == [
        "training 0/100, 0.0 s so far, epsilon spent 0",
        "training 25/100, 10 s so far, about 30 s left, epsilon spent 0.25",
        "training 100/100, 10 s so far, epsilon spent 1",
        "training, &lt;b&gt;: 10 s, epsilon spent 1",
    ]


def test_few_rounds_do_not_tell_how_long_the_others_take(notebook, clock):
    with showing(True) as report:
        clock.seconds = 10
        report("fidelity", 4, 5)
        report.expect(30, 7200)
        for clock.seconds in (11, 7201):
            report("fidelity", 4, 5)
    assert "fidelity 4/5, 0.0 s so far<" in notebook[0]
    late = "in all some 30 s to 2 h 0 min on an idle processor"
    assert f"fidelity 4/5, 1.0 s so far, {late}<" in notebook[1]
    assert "processor" not in notebook[2], "it took longer"


def test_progress_is_silenced_or_replaced(terminal):
    told = []
    with redirect_stderr(terminal), showing(False) as report:
        report("training", 1, 2, math.nan)
    with redirect_stderr(terminal), showing(lambda *one: told.append(one)) as report:
        report("training", 1, 2, 0.5)
    assert terminal.getvalue() == "" and told == [("training", 1, 2, 0.5)]


@pytest.mark.parametrize("progress", [None, "yes", 1])
def test_progress_that_is_none_is_refused(progress):
    with pytest.raises(ConfigError, match="progress is True, False or what is to be called"):
        showing(progress).__enter__()
    with pytest.raises(ConfigError, match="progress is True, False or what is to be called"):
        Options(progress=progress)
