"""One thing that was looked at."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """One thing that was looked at: its name, whether it holds, and what was found."""

    name: str
    passed: bool
    found: str
