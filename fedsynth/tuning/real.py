"""What models trained on real rows score on other real rows: private."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from fedsynth.tuning.rows import Metric
from fedsynth.views import Grid, Said, Shown, View


@dataclass(frozen=True, repr=False)
class RealScores(Shown):
    """The same model on real test rows, trained on real rows: private, and covered by no epsilon.

    Attributes:
        metric: that is told; more is better (an error counts negative).
        default, tuned: with its own settings, and with those that the search found.
        searched: with those of the same candidates, the default among them, that do best in
            cross-validation on the real rows to learn from; None if not asked.
        best: with those of the candidate that scores best on these test rows; None if not asked.
        spearman: rank correlation of all candidates' synthetic and real scores; None likewise, of
            fewer than three, and where all score alike.
    """

    metric: Metric
    default: float
    tuned: float
    searched: float | None = None
    best: float | None = None
    spearman: float | None = None

    @property
    def regret(self) -> float | None:
        """What the search lost against the best of its own candidates: at least 0."""
        return None if self.best is None else max(0.0, self.best - self.tuned)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able, without what was not asked."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def _view(self) -> View:
        told = {
            "settings found on synthetic rows": self.tuned,
            "the default": self.default,
            "chosen among the same candidates by cross-validation on real rows": self.searched,
            "the candidate that does best on these test rows": self.best,
        }
        lines = [[who, f"{score:.4f}"] for who, score in told.items() if score is not None]
        order = (
            []
            if self.spearman is None
            else [Said(f"Rank correlation with the synthetic scores: {self.spearman:.2f}", "quiet")]
        )
        private = (
            "Private: these figures come from real rows, and no epsilon covers them. They are no "
            "part of a release, nor of what a search saves."
        )
        grid = Grid(["trained and tested on real rows", self.metric], lines, (1,))
        return View("On real rows", [grid, *order, Said(private, "caution")])
