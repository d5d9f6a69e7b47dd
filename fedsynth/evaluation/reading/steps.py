"""How long work tells how far it is."""

from __future__ import annotations

from collections.abc import Callable

Steps = Callable[[int, int], None]
"""Called with the steps done and all of them."""


def silent(done: int, steps: int) -> None:
    """Show nothing."""
