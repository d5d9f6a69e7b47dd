"""How far simulated clients have come in work of their own, for whoever simulates them.

In a federation over a network nobody is told: a client's progress is its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_WATCHER: ContextVar[Callable[[int], None] | None] = ContextVar("watcher", default=None)


@contextmanager
def watch(report: Callable[[int], None]) -> Iterator[None]:
    """Has `report` called with the steps that a client simulated in this process has done."""
    token = _WATCHER.set(report)
    try:
        yield
    finally:
        _WATCHER.reset(token)


def advance(steps: int = 1) -> None:
    """Tell whoever watches that a simulated client has done some steps more."""
    report = _WATCHER.get()
    if report is not None:
        report(steps)
