"""What a job would ask, cost and be worth: its plan, told in full."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from fedsynth.agreed import demand_whole
from fedsynth.errors import ConfigError
from fedsynth.federation.server.traffic import plain_bytes
from fedsynth.methods.fitting import Method
from fedsynth.plain import spell_infinite
from fedsynth.planning.persons import expect_persons, say_price
from fedsynth.planning.selecting import Selection, price_selection
from fedsynth.planning.warnings import settle_two, suggestions_for, warn_of_two, warnings_for
from fedsynth.privacy.accounting import charged, spent
from fedsynth.privacy.adversaries import Adversary, adversary_grid
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.sampling import FixedSize
from fedsynth.privacy.trail.job import Job, Planned
from fedsynth.privacy.trail.spelling import spell
from fedsynth.queries.arguments import budget_of
from fedsynth.queries.expected import Expected, ExpectedError
from fedsynth.queries.persons import LABEL
from fedsynth.queries.plan import Plan
from fedsynth.queries.tasks.persons import BINS
from fedsynth.registry import choose, synthesizer
from fedsynth.schema import ImageSchema, Schema
from fedsynth.views import Grid, Said, Shown, View, spell_bytes


@dataclass(frozen=True)
class Question:
    """What a plan asks under one label.

    Attributes:
        count: how often.
        mechanism, sampling: in words.
        noise_multiplier: scale of the noise over the clip; of a choice, of its scores.
        noise: standard deviation of the noise in every number released, if all clients answer; of
            a mechanism without one, what stands in for it; None for a choice.
        client_noise: that of the noise that each client adds itself, 0 where it adds none.
        epsilon: what all of it would cost were nothing else asked.
        signal: how many times its noise a round's sum would be, did all contributions point one way
            and fill the clip: units taking part over the noise multiplier; None where their number
            is not known.
        numbers: in an answer; None where the method does not state it.
        request: bytes of one; None where the method does not state it.
    """

    label: str
    count: int
    mechanism: str
    sampling: str
    noise_multiplier: float
    noise: float | None
    client_noise: float
    epsilon: float
    signal: float | None
    numbers: float | None
    request: float | None

    @property
    def bytes_up(self) -> float | None:
        """A client that takes part every time sends so many."""
        return None if self.numbers is None else 8.0 * self.numbers * self.count

    @property
    def bytes_down(self) -> float | None:
        """Such a client receives so many."""
        return None if self.request is None else self.request * self.count


@dataclass(frozen=True, repr=False)
class Forecast(Shown):
    """What a job would ask, cost and be worth.

    Attributes:
        method: that would be asked by, and ``reason`` why `auto` takes it; None where it was named.
        plan: its own.
        epsilon: what the job costs, as its certificate would say.
        solved: which figure follows from the others, in words.
        questions: in order.
        adversaries: epsilon against each.
        errors: expected, of the tables that are asked.
        records: how many there are, a public figure; None where they are not known.
        announced: bytes that every client receives once: schema, plan, and what a method sends.
        selection: what trials of such a job cost, of which the best alone is released; None where
            nobody asked.
        warnings: what to know before believing the guarantee, in sentences.
        suggestions: the nearest settings without such a fault.
        notes: what the figures take for granted, and which ones are not known.
    """

    method: str
    reason: str | None
    plan: Plan
    epsilon: float
    solved: str
    questions: tuple[Question, ...]
    adversaries: tuple[Adversary, ...]
    errors: tuple[ExpectedError, ...]
    records: int | None
    announced: float
    selection: Selection | None
    warnings: tuple[str, ...]
    suggestions: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def bytes_up(self) -> float | None:
        """What a client sends that takes part every time; None where not all of it is known."""
        return _sum_known(question.bytes_up for question in self.questions)

    @property
    def bytes_down(self) -> float | None:
        """What such a client receives; None where not all of it is known."""
        asked = _sum_known(question.bytes_down for question in self.questions)
        return None if asked is None else asked + self.announced

    def _view(self) -> View:
        budget = self.plan.budget
        because = "" if self.reason is None else f", because {self.reason}"
        title = (
            f"Forecast of {self.method} for {self.plan.clients:,} "
            f"client{'s' * (self.plan.clients != 1)}: epsilon {figure(self.epsilon, 6)}, delta "
            f"{budget.resolved_delta:.3g}, for one {budget.protects.words}"
        )
        parts: list[Grid | Said] = [
            Said(f"{self.method}{because}. Solved for: {self.solved}."),
            self._questions_grid(),
        ]
        parts += [Said(sentence) for sentence in self._traffic()]
        parts.append(
            Said(
                "epsilon: of a question by itself; signal: of a round, over its noise, at most",
                "quiet",
            )
        )
        parts.append(adversary_grid(map(asdict, self.adversaries)))
        if self.errors:
            parts.append(self._errors_grid())
        if self.selection is not None:
            parts.append(adversary_grid(map(asdict, self.selection.adversaries)))
            parts += [Said(sentence) for sentence in self.selection.sentences]
        parts += [Said(sentence, "caution") for sentence in self.warnings]
        parts += [Said(f"Nearest: {sentence}") for sentence in self.suggestions]
        parts += [Said(sentence, "quiet") for sentence in self.notes]
        return View(title, parts)

    def _traffic(self) -> list[str]:
        """What a client sends and receives, as far as it is known."""
        sides = {"sends": self.bytes_up, "receives": self.bytes_down}
        known = [f"{does} {spell_bytes(size)}" for does, size in sides.items() if size is not None]
        return [f"A client {' and '.join(known)} in all."] if known else []

    def _questions_grid(self) -> Grid:
        rows = [
            (
                one.label,
                f"{one.count:,}",
                one.sampling,
                f"{one.noise_multiplier:.4g}",
                "a choice" if one.noise is None else f"{one.noise:.4g}",
                f"{one.client_noise:.4g}",
                figure(one.epsilon),
                figure(one.signal),
                "-" if one.bytes_up is None else spell_bytes(one.bytes_up),
                "-" if one.bytes_down is None else spell_bytes(one.bytes_down),
            )
            for one in self.questions
        ]
        head = (
            "question", "times", "asked", "multiplier", "noise", "a client adds", "epsilon",
            "signal", "up", "down",
        )  # fmt: skip
        return Grid(head, rows, figures=(1, 3, 4, 5, 6, 7, 8, 9))

    def _errors_grid(self) -> Grid:
        budget = self.plan.budget
        record = budget.protects.per_record and not budget.protects.joined
        unit = _COUNTED.get(budget.weigh or budget.unit, budget.unit)
        head = ("noisy tables", f"mean error of a cell, in {unit}", "cells", "records in a cell")
        known = self.records if record else None
        rows = [
            (
                one.what,
                _spell_count(one.error) + _spell_range(one),
                f"{one.cells:,.0f}",
                "" if known is None else _spell_count(known / one.cells),
            )
            for one in self.errors
        ]
        return Grid(head, rows, figures=(1, 2, 3))

    def to_dict(self) -> dict[str, Any]:
        """Plain content, for JSON: an infinite epsilon is "inf"."""
        budget = self.plan.budget
        content = asdict(replace(self, plan=None))  # type: ignore[arg-type]
        content["plan"] = [planned.to_dict() for planned in self.plan.releases]
        content["budget"] = {**asdict(budget), "delta": budget.resolved_delta}
        content["clients"] = self.plan.clients
        rules = self.plan.secure
        content["secure"] = None if rules is None else {**asdict(rules), "may_drop": rules.may_drop}
        content |= {"bytes_up": self.bytes_up, "bytes_down": self.bytes_down}
        for question, own in zip(content["questions"], self.questions, strict=True):
            question |= {"bytes_up": own.bytes_up, "bytes_down": own.bytes_down}
        plain: dict[str, Any] = spell_infinite(content)
        return plain


def plan(
    what: Method[Any] | Schema | ImageSchema,
    budget: Budget | Mapping[str, Any] | float,
    clients: int,
    *,
    records: int | None = None,
    rows_a_person: Sequence[float] | None = None,
    survivors: float = 1.0,
    secure: bool = False,
    trials: float | None = None,
) -> Forecast:
    """Know the price before: epsilon for each adversary, noise, expected errors, bytes.

    Nobody is asked and no row is read: everything follows from what is public. Epsilon is that of
    the method's own plan, so a job's certificate has the same to the digit.

    Args:
        what: a synthesizer or a federated classifier, with its settings; or a schema, whose method
            `auto` would choose.
        budget: of the job; an infinite epsilon with a method's ``noise_multiplier`` asks what that
            noise costs.
        clients: how many take part. Of two who add shares of the noise, where the budget does not
            say how many are curious, one is taken to be: a job would have it said.
        records: that all of them have together, where that may be published.
        rows_a_person: where persons are protected, how many are taken to have 1, 2, 3, 4, 5 to 8,
            .. rows, or their shares: public figures, or a guess. By default, of known numbers of
            persons (the budget's units) and records, each row more is as likely as the one before.
        survivors: share of the clients that is sure to answer, in (0, 1].
        secure: with secure sums, which as many must answer as are sure to.
        trials: of settings on private rows, how many on average, of which the best alone would be
            released: what that costs is told beside (`fedsynth.planning.selecting`).

    Raises:
        ConfigError: these do not go together.
        PrivacyError: no noise makes the job affordable.

    Example:
        >>> fs.plan(schema, fs.Budget(epsilon=1.0), clients=10, records=50_000)  # doctest: +SKIP
    """
    reason = None
    allowed = budget_of(budget)
    if isinstance(what, Schema | ImageSchema):
        choice = choose(what, allowed)
        what, reason = synthesizer(choice.method, what), choice.reason
    elif not isinstance(what, Method):
        raise ConfigError(
            f"plan needs a synthesizer (fs.AIM(schema)) or a schema, not {type(what).__name__}"
        )
    clients = demand_whole("clients", clients, 1)
    if records is not None:
        demand_whole("records", records, 1)
    settled = settle_two(allowed, clients)
    made = what.plan(settled, clients, survivors, secure)
    settings = what.resolved(made.budget)
    # Where persons weigh alike, counts are of them.
    persons = made.budget.protects.joined and made.budget.weigh == "person"
    known = expect_persons(made, records, rows_a_person)
    asked = made
    if known is not None and made.budget.chooses_clip:
        asked = made.clipped(known.choose_clip())
    expected = what.expect(settings, asked, made.budget.units if persons else records)
    if LABEL in made.labels:
        expected = expected.beside(LABEL, float(BINS))
    units = records if made.budget.protects.per_record else made.clients
    if made.budget.protects.joined:
        units = made.budget.units
    questions = tuple(_question(one, made, units, expected) for one in asked.releases)
    found = made.adversaries()
    epsilon = made.epsilon()
    notes = [*expected.notes, *say_price(made, known), *_unknown(questions, units)]
    warnings = warnings_for(made, epsilon, found, records)
    if settled != allowed:
        careless = what.plan(replace(allowed, curious=0), clients, survivors)
        warnings = (warn_of_two(careless.adversaries()), *warnings)
    return Forecast(
        method=what.name,
        reason=reason,
        plan=made,
        epsilon=epsilon,
        solved=_say_solved(made.budget, getattr(settings, "noise_multiplier", None), epsilon),
        questions=questions,
        adversaries=found,
        errors=expected.errors,
        records=records,
        announced=expected.announced
        + plain_bytes(what.schema.to_dict())
        + plain_bytes(Job(budget=made.budget, plan=made.releases).announced),
        selection=None if trials is None else price_selection(made, trials),
        warnings=warnings,
        suggestions=suggestions_for(made.budget, epsilon, found, records),
        notes=tuple(notes),
    )


_COUNTED = {
    "record": "records",
    "person": "persons, each 1 in all",
    "row": "rows",
    "client": "clients, each 1 in all",
}


def _question(planned: Planned, made: Plan, units: int | None, expected: Expected) -> Question:
    terms, sampling = planned.terms, planned.terms.sampling
    share, answers = 1.0, made.clients
    if isinstance(sampling, FixedSize):
        share, answers = sampling.size / sampling.population, sampling.size
    elif sampling.rate < 1:
        share = sampling.rate
        if not terms.protects.per_record:
            answers = max(terms.survivors, round(share * made.clients))
    noise = None
    if not terms.kind.selects:
        noise = terms.noise.deviation(terms.summed_scale(answers))
    arrays = expected.arrays.get(planned.label)
    cost = charged({terms: planned.count}, made.participations, made.budget.unit)
    signal = None
    if units is not None and terms.noise_multiplier:
        signal = share * units * terms.clip / terms.summed_scale(answers) if noise else None
    return Question(
        label=planned.label,
        count=planned.count,
        mechanism=terms.mechanism,
        sampling=sampling.words,
        noise_multiplier=terms.noise_multiplier,
        noise=noise,
        client_noise=0.0 if noise is None else terms.noise.deviation(terms.client_scale),
        epsilon=spent(cost, made.budget.resolved_delta).epsilon,
        signal=signal,
        numbers=expected.sizes.get(planned.label),
        request=None if arrays is None else arrays + plain_bytes(spell(terms)),
    )


def _say_solved(budget: Budget, given: float | None, epsilon: float) -> str:
    if given is None and budget.private:
        return f"noise, for epsilon {budget.epsilon:g}"
    if given is None:
        return "nothing: no epsilon and no noise were given"
    if not budget.private:
        return f"epsilon, for the training's noise_multiplier of {given:g}"
    return (
        f"epsilon: the training's noise_multiplier {given:g} was given, and costs {epsilon:.4g} of "
        f"the {budget.epsilon:g} that were allowed, with counts that get their shares of those; "
        "leave it out to have it solved for"
    )


def _unknown(questions: tuple[Question, ...], units: int | None) -> list[str]:
    """Sentences about figures that are left out."""
    found = [
        "Time and memory are left out: they hang on machines, and on what is released first. "
        "`fedsynth plan --rehearse` tells them, by the job itself on invented rows."
    ]
    unsized = [question.label for question in questions if question.numbers is None]
    if unsized:
        found.append(
            f"The size of answers to {', '.join(unsized)} is left out: it hangs on what is "
            "released before, or the method does not state it."
        )
    found.append(
        "Bytes are of a client that takes part every time, without what a network wraps around "
        "them, nor some hundreds that a request's settings take. How long bins are in writing "
        "hangs on the rows: that part of what a client receives is right to a factor of two and a "
        "half."
    )
    if units is None:
        found.append("Without the number of records nothing is said of signal against noise.")
    return found


def _sum_known(sizes: Iterable[float | None]) -> float | None:
    """None where one is."""
    several = list(sizes)
    return None if None in several else sum(size for size in several if size is not None)


def figure(value: float | None, digits: int = 4) -> str:
    """As a person reads it."""
    if value is None:
        return "-"
    return f"{value:,.{digits}g}" if math.isfinite(value) else "no bound"


def _spell_range(error: ExpectedError) -> str:
    if error.least is None or error.most is None:
        return ""
    return f" ({_spell_count(error.least)} to {_spell_count(error.most)})"


def _spell_count(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
