"""Clips of persons that a plan left open, read from a ledger's raw lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Line = Mapping[str, Any]


def clips_open(budget: Line) -> bool:
    """Whether a person's clip was to be chosen from what the job's first release told."""
    return bool(budget["unit"] == "person" and budget.get("person_clip") is None)


def clipped_alike(events: Sequence[Line], planned: Sequence[Line]) -> bool:
    """Whether all releases are planned but for their clips, each of which is the planned one or
    that times one number, the same for all."""
    found = [
        [
            event["terms"]["clip"] / terms["clip"]
            for terms in planned
            if {**terms, "clip": 0} == {**event["terms"], "clip": 0}
        ]
        for event in events
    ]
    factors = {round(one, 9) for own in found for one in own}
    fits = (
        all(any(round(one, 9) in (1, factor) for one in own) for own in found) for factor in factors
    )
    return any(fits)
