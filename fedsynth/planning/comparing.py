"""One job under every unit and trust, beside each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from fedsynth.errors import FedsynthError
from fedsynth.methods.fitting import Method
from fedsynth.planning.forecast import Forecast, figure, plan
from fedsynth.privacy.adversaries import HOLDER, SERVER, Adversary
from fedsynth.privacy.budget import Budget
from fedsynth.queries.expected import ExpectedError
from fedsynth.views import Grid, Said, spell_bytes


@dataclass(frozen=True)
class Compared:
    """A job under one unit and trust: its forecast, or why it cannot be.

    Attributes:
        unit, trust: names.
        forecast: None where it is refused, and ``refused`` says why.
    """

    unit: str
    trust: str
    forecast: Forecast | None
    refused: str | None = None

    @property
    def said(self) -> tuple[str, ...]:
        """Why not, or what to know before believing it, in sentences."""
        if self.forecast is None:
            return (self.refused or "",)
        return self.forecast.warnings

    def to_dict(self) -> dict[str, Any]:
        """Figures by name, None for those of a job that is refused."""
        one = self.forecast
        return {
            "unit": self.unit,
            "trust": self.trust,
            "epsilon": None if one is None else one.epsilon,
            "adversaries": None if one is None else [asdict(who) for who in one.adversaries],
            "noise": None if one is None else [question.noise for question in one.questions],
            "errors": None if one is None else [asdict(error) for error in one.errors],
            "bytes_up": None if one is None else one.bytes_up,
            "said": list(self.said),
        }


def compare(
    synth: Method[Any],
    budget: Budget,
    clients: int,
    *,
    records: int | None = None,
    rows_a_person: Sequence[float] | None = None,
    survivors: float = 1.0,
    secure: bool = False,
) -> tuple[Compared, ...]:
    """The same job for every unit and trust.

    Args:
        budget, clients, records, rows_a_person, survivors, secure: as :func:`fedsynth.plan` takes
            them. The number of units, and how many owners are curious, hold where unit and trust
            are the budget's; secure sums are of distributed trust.
    """
    found = []
    persons = synth.schema.person is not None
    for unit in ("record", *(["person"] if persons else []), "client"):
        for trust in ("central", "distributed", "local"):
            units = budget.units if unit == budget.unit else None
            curious = budget.curious if trust == "distributed" else None
            own = unit == budget.unit
            try:
                other = replace(
                    budget,
                    unit=unit,
                    trust=trust,
                    units=units,
                    curious=curious,
                    weigh=budget.weigh if own else None,
                    person_clip=budget.person_clip if own else None,
                    person_share=budget.person_share if own else None,
                )
                one = plan(
                    synth,
                    other,
                    clients,
                    records=records,
                    rows_a_person=rows_a_person if other.protects.joined else None,
                    survivors=survivors,
                    secure=secure and other.trusts.shares,
                )
            except FedsynthError as error:
                found.append(Compared(unit, trust, None, str(error)))
            else:
                found.append(Compared(unit, trust, one))
    return tuple(found)


def comparison_view(compared: Sequence[Compared]) -> tuple[Grid, list[Said]]:
    """A line for each unit and trust, and what is said of them."""
    rows = []
    said: dict[str, list[str]] = {}
    for one in compared:
        rows.append((one.unit, one.trust, *_figures(one.forecast)))
        for sentence in one.said:
            said.setdefault(sentence, []).append(f"{one.unit} {one.trust}")
    head = (
        "unit", "trust", "epsilon: the release", "the server", "another owner",
        "noise of the questions", "a column off by", "a pair", "up",
    )  # fmt: skip
    sentences = [
        Said(
            "errors: means of cells of noisy tables, in units; a client counts as 1 however many "
            "rows it has",
            "quiet",
        )
    ]
    sentences += [
        Said(f"{', '.join(places)}: {sentence}", "caution") for sentence, places in said.items()
    ]
    return Grid(head, rows, figures=(2, 3, 4, 6, 7, 8)), sentences


def _figures(one: Forecast | None) -> tuple[str, ...]:
    if one is None:
        return ("refused", *[""] * 6)
    others = [who for who in one.adversaries if who.who not in (HOLDER, SERVER)]
    noises = (
        "a choice" if question.noise is None else f"{question.noise:.4g}"
        for question in one.questions
    )
    return (
        _epsilon(who for who in one.adversaries if who.who == HOLDER),
        _epsilon(who for who in one.adversaries if who.who == SERVER),
        # One alone, where several together are told as well.
        _epsilon(others),
        ", ".join(noises),
        _error(one.errors, "columns"),
        _error(one.errors, "pairs"),
        "-" if one.bytes_up is None else spell_bytes(one.bytes_up),
    )


def _epsilon(those: Iterable[Adversary]) -> str:
    first = next(iter(those), None)
    return "-" if first is None else figure(first.epsilon)


def _error(errors: Sequence[ExpectedError], kind: str) -> str:
    """Of all that is known of such tables, but those with the target: the worst kind of column, a
    pair by all questions together."""
    several = [
        error.error
        for error in errors
        if error.what.startswith(kind) and "with the target" not in error.what
    ]
    if not several:
        return "-"
    return figure(max(several) if kind == "columns" else min(several), 3)
