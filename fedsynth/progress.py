"""How far long work is: one line on stderr or in a notebook, for whoever watches, and for nobody
else: where stderr is a pipe or a file, nothing is shown unless lines are asked for."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from fedsynth.errors import ConfigError
from fedsynth.markup import tag
from fedsynth.views import clean, wrap

Report = Callable[..., None]
"""Called with a step's name, its rounds done, all of them and, of a fit, the epsilon spent; of a
search by name the `best` score so far, None before there is one."""

_LINES = 10
"""Of a step at most, where lines are printed."""

_MANY = 20
"""Rounds of a step from which they tell how long the others will take."""

_PAUSE = 0.25
"""Seconds between two looks of a notebook's line."""


@dataclass(frozen=True)
class _State:
    """Of a step: rounds done and in all, the epsilon spent, the best score so far in words, when it
    began and was reported; and how long all steps may take, in words."""

    step: str
    done: int
    total: int
    epsilon: float
    best: str
    begun: float
    now: float
    expected: str

    def line(self) -> str:
        """In words, with the time gone by."""
        gone = time.monotonic() - self.begun
        where = f"{self.step} {self.done:,}/{self.total:,}"
        left, spent = self._left(gone), _spell_spent(self.epsilon)
        return _join(where, self.best, f"{_spell(gone)} so far", left, spent, self.expected)

    def _left(self, gone: float) -> str:
        """The time that is left to it, where its rounds are so many that they are alike."""
        if self.total < _MANY or not 0 < self.done < self.total:
            return ""
        needed = (self.now - self.begun) / self.done * self.total
        return f"about {_spell(max(0.0, needed - gone))} left"


@contextmanager
def showing(progress: Report | bool) -> Iterator[Report]:
    """What to report to.

    Args:
        progress: True for a display where somebody watches: stderr is a terminal, or this is a
            notebook; False for none; or what is to be called instead.

    Raises:
        ConfigError: it is none of these.
    """
    demand_report(progress)
    with Display(quiet=progress is not True) as display:
        yield progress if callable(progress) else display


def demand_report(progress: object) -> None:
    """Raises ConfigError for what :func:`showing` does not take."""
    if not (callable(progress) or isinstance(progress, bool)):
        kind = type(progress).__name__
        raise ConfigError(f"progress is True, False or what is to be called, not a {kind}")


class Display:
    """Shows the step under way, its rounds, the epsilon spent, and the time that has gone by and
    that is left to the step, in one line; when all is done, what it took.

    A display within another one, quiet or not, shows nothing.

    Args:
        quiet: show nothing.
        lines: where nobody watches, print some plain lines of each step.
    """

    _open = 0
    """How many are under way."""

    def __init__(self, *, quiet: bool = False, lines: bool = False) -> None:
        self._quiet, self._lines = quiet, lines
        self._screen: _Terminal | _Notebook | _Lines | None = None
        self._began = 0.0
        self._steps: dict[str, float] = {}
        self._spent = math.nan
        self._expected, self._most = "", 0.0

    def __enter__(self) -> Display:
        self._began = time.monotonic()
        if not self._quiet and not Display._open:
            self._screen = _choose_screen(self._lines)
        Display._open += 1
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        Display._open -= 1
        if self._screen is None:
            return
        took = f"{', '.join(self._steps)}: {_spell(time.monotonic() - self._began)}"
        how = "" if kind is None else ", not finished"
        self._screen.end(_join(took + how, _spell_spent(self._spent)) if self._steps else "")

    def __call__(
        self,
        step: str,
        done: int,
        total: int,
        epsilon: float = math.nan,
        *,
        best: float | None = None,
    ) -> None:
        """One report: see :data:`Report`."""
        if self._screen is None:
            return
        now = time.monotonic()
        self._spent = self._spent if math.isnan(epsilon) else epsilon
        if self._spent > 0 and not isinstance(self._screen, _Lines):
            epsilon = self._spent  # the last that was computed, until the next
        begun = self._steps.setdefault(step, now)
        # What was expected and did not come true is no news.
        expected = self._expected if now - self._began <= self._most else ""
        found = "" if best is None else f"best so far {best:.4f}"
        self._screen.report(_State(step, done, total, epsilon, found, begun, now, expected))

    def expect(self, least: float, most: float) -> None:
        """Tell how many seconds all steps together may take."""
        self._expected = f"in all some {_spell(least)} to {_spell(most)} on an idle processor"
        self._most = most
        if isinstance(self._screen, _Lines):
            print(clean(self._expected), file=sys.stderr)

    def caution(self, sentence: str) -> None:
        """What epsilon does not cover, said also to those who want no progress."""
        from rich.console import Console

        terminal = self._screen if isinstance(self._screen, _Terminal) else None
        out = Console(stderr=True) if terminal is None else terminal.console
        told = wrap(clean(f"Caution: {sentence}"))
        out.print(told, markup=False, highlight=False, soft_wrap=True)


def _choose_screen(lines: bool) -> _Terminal | _Notebook | _Lines | None:
    if _in_notebook():
        return _Notebook()
    if sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        return _Terminal()
    return _Lines() if lines else None


def _in_notebook() -> bool:
    """Whether a kernel runs this, which can show HTML and has no terminal."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and hasattr(shell, "kernel")


class _Terminal:
    """A line that is drawn again and again; what is printed meanwhile appears above it."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress

        self.console = Console(stderr=True, force_terminal=True, highlight=False)
        columns = BarColumn(16), _line_column()
        self._bar = Progress(*columns, console=self.console, transient=True, refresh_per_second=4)
        self._task: Any = None

    def report(self, state: _State) -> None:
        """Draw the state, and again as time goes by."""
        if self._task is None:
            self._task = self._bar.add_task("", state=state)
        self._bar.update(self._task, completed=state.done, total=state.total, state=state)
        self._bar.start()

    def end(self, summary: str) -> None:
        """Take the line away and leave a summary."""
        self._bar.stop()
        if summary:
            self.console.print(clean(summary), style="dim", markup=False)


def _line_column() -> Any:
    """A column of a state's line, which is drawn again as time goes by."""
    from rich.progress import ProgressColumn, Task
    from rich.table import Column
    from rich.text import Text

    class Line(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(clean(task.fields["state"].line()))

    return Line(Column(no_wrap=True, overflow="ellipsis"))


class _Notebook:
    """A line of HTML that is replaced in its place, which needs no widgets."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._looked = -math.inf

    def report(self, state: _State) -> None:
        """Show the state, unless one was shown just now."""
        if state.now - self._looked < _PAUSE and state.done < state.total:
            return
        self._looked = state.now
        self._show(state.line())

    def end(self, summary: str) -> None:
        """Leave a summary."""
        if summary:
            self._show(summary)

    def _show(self, line: str) -> None:
        # Whoever has a notebook has this.
        from IPython.display import HTML, display

        shown = HTML(tag("div", line, style="opacity:.75;font-variant-numeric:tabular-nums"))
        if self._handle is None:
            self._handle = display(shown, display_id=True)
        else:
            self._handle.update(shown)


class _Lines:
    """Some plain lines a step."""

    def __init__(self) -> None:
        self._printed: dict[str, int] = {}

    def report(self, state: _State) -> None:
        """Print the state, ten times a step at most, without what differs from run to run."""
        tenth = state.done * _LINES // max(1, state.total)
        if state.done and self._printed.get(state.step) != tenth:
            self._printed[state.step] = tenth
            where = f"{state.step} {state.done}/{state.total}"
            print(clean(_join(where, state.best, _spell_spent(state.epsilon))), file=sys.stderr)

    def end(self, summary: str) -> None:
        """Nothing more."""


def _spell_spent(epsilon: float) -> str:
    return "" if math.isnan(epsilon) else f"epsilon spent {epsilon:.3g}"


def _spell(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def _join(*parts: str) -> str:
    return ", ".join(part for part in parts if part)
