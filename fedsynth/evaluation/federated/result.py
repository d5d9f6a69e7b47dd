"""What federated scoring gives: figures with their errors, and what they cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from fedsynth.evaluation.federated.estimates import Figure, Scores
from fedsynth.evaluation.federated.spread import Across
from fedsynth.privacy.trail.certificate import Certificate
from fedsynth.views import Grid, Said, Shown, View

FORMAT = 1


@dataclass(frozen=True, repr=False)
class FederatedScores(Shown):
    """Scores of synthetic rows against owners' records.

    Of single columns and of a classifier. Coherence, pairs and marginals need tables of several
    columns together, which owners are not asked for.

    Attributes:
        unit: what the certificate protects.
        target: the label column, None where nothing was classified.
        pooled: of all records together; None at the client level.
        owners: of each owner, in order; () at the client level or with ``per_owner`` False.
        across: every score's means and spread over the owners.
        columns: total variation of every column over all records, by name.
        synthetic_missing: share of the synthetic cells that are gaps; None for images.
        notes: what else to know.
        synthetic: hash of the schema, the synthetic rows and how they were read.
        certificate: of these scores alone.
    """

    unit: str
    target: str | None
    pooled: Scores | None
    owners: tuple[Scores, ...]
    across: Mapping[str, Across]
    columns: Mapping[str, Figure]
    synthetic_missing: float | None
    notes: tuple[str, ...]
    synthetic: str
    certificate: Certificate

    def _view(self) -> View:
        lines = list(self.owners)
        if self.pooled is not None and len(lines) != 1:
            lines.append(replace(self.pooled, name="all"))
        parts: list[Said | Grid] = []
        if lines:
            head = ("owner", "records", "distance of columns", "accuracy", "AUROC")
            parts.append(Grid(head, [_line(one) for one in lines], figures=(1, 2, 3, 4)))
        else:
            spread = [
                (name, _written(one.weighted), "-" if one.spread is None else f"{one.spread:.3f}")
                for name, one in self.across.items()
            ]
            parts.append(Grid(("score over clients", "mean", "spread"), spread, figures=(1, 2)))
        parts += [Said(note) for note in self.notes]
        content, void = self.certificate.content, self.certificate.void is not None
        parts.append(Said(self.certificate_sentence, "void" if void else "strong"))
        told = (*content["not_covered"], *content["cautions"])
        return View("Scores by owner", [*parts, *(Said(one, "caution") for one in told)])

    @property
    def certificate_sentence(self) -> str:
        """What these scores cost, in words."""
        return self.certificate.sentence

    @property
    def clients(self) -> list[dict[str, Any]]:
        """The owners as a report lists them."""

        def value(figure: Figure | None) -> float | None:
            return None if figure is None else figure.value

        return [
            {
                "name": owner.name,
                "rows": None if owner.records is None else round(owner.records.value),
                "accuracy": value(owner.accuracy),
                "auroc": value(owner.auroc),
                "distance": value(owner.mean_distance),
            }
            for owner in self.owners
        ]

    def figures(self) -> dict[str, Any]:
        """Everything but the certificate, JSON-able."""
        plain = asdict(self)
        del plain["certificate"]
        return {"format": FORMAT, **plain}

    def to_dict(self) -> dict[str, Any]:
        """Everything, JSON-able."""
        return {**self.figures(), "certificate": self.certificate.content}


def _line(scores: Scores) -> tuple[str, ...]:
    records = "-" if scores.records is None else f"{scores.records.value:,.0f}"
    figures = (scores.mean_distance, scores.accuracy, scores.auroc)
    return scores.name, records, *map(_written, figures)


def _written(figure: Figure | None) -> str:
    return "-" if figure is None else f"{figure.value:.3f} +- {figure.error:.3f}"
