"""What federated scoring gives: figures with their errors, and what they cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from fedsynth.evaluation.federated.estimates import Figure, Scores
from fedsynth.evaluation.federated.spread import Across
from fedsynth.privacy.trail.certificate import Certificate

FORMAT = 1


@dataclass(frozen=True)
class FederatedScores:
    """Scores of synthetic rows against owners' records.

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
    certificate: Certificate = field(repr=False)

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
