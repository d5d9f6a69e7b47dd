"""One thing that was looked at."""

from __future__ import annotations

from dataclasses import dataclass

from fedsynth.views import Grid, Said, Shown, View


@dataclass(frozen=True)
class Check:
    """One thing that was looked at: its name, whether it holds, and what was found."""

    name: str
    passed: bool
    found: str


class Checks(Shown, tuple[Check, ...]):
    """All that was looked at, in order."""

    @property
    def passed(self) -> bool:
        """Whether all of it holds."""
        return all(check.passed for check in self)

    def _view(self) -> View:
        failed = [place for place, check in enumerate(self) if not check.passed]
        rows = [(one.name, "ok" if one.passed else "FAILED", one.found) for one in self]
        grid = Grid(("check", "", "found"), rows, strong=failed)
        if not failed:
            return View(f"Verified: {len(self)} checks hold", [grid])
        names = ", ".join(self[place].name for place in failed)
        why = Said(f"{len(failed)} of {len(self)} checks fail: {names}.", "void")
        return View("Not verified", [why, grid])
