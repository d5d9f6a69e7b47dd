"""What the server checks of what comes back, before it relies on it."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import ConfigError, FederationError
from fedsynth.federation.client.grid import grid_of
from fedsynth.federation.client.tasks import GroupTask, lookup
from fedsynth.federation.request import Answer, Incident, Released, Request, Summed
from fedsynth.privacy.sampling import Everyone, FixedSize
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.job import Event


class Unopened(FederationError):
    """Too few clients answered for their sum to carry its noise, so nobody saw it."""


# exp(-_SURE) is 1e-14.
_SURE = 32.3


def demand_fitting(terms: Terms, clients: int) -> None:
    """Raises ConfigError for terms that count on other clients than there are."""
    sampling = terms.sampling
    if isinstance(sampling, FixedSize) and sampling.population != clients:
        raise ConfigError(
            f"the terms count on {sampling.population} clients to draw from: there are {clients}"
        )
    if terms.trusts.shares and terms.survivors > clients:
        raise ConfigError(
            f"the noise counts on {terms.survivors} answers, and there are {clients} clients"
        )


def draws_clients(terms: Terms) -> bool:
    """Whether the server draws clients, and so knows who takes part."""
    return not terms.protects.per_record and terms.sampling != Everyone()


def paid(request: Request, events: Sequence[Event]) -> bool:
    """Whether a request is the ledger's last line, which is asked again where its value was never
    had (:mod:`fedsynth.federation.server.rounds`).

    Not where others would be drawn now, nor where the first answer left something at its client.
    """
    again = not (request.kept or draws_clients(request.terms))
    return again and bool(events) and events[-1] == request.event


def demand_sound(summed: Summed, request: Request, cohort: Collection[str]) -> None:
    """Look at a sum, the single answers of which nobody sees.

    Raises:
        FederationError: it is no sum of answers of the cohort. The value is lost.
    """
    reason = _fault(summed.total, request, summed.answered)
    if not 0 <= summed.answered <= len(cohort):
        reason = f"of {summed.answered} answers, {len(cohort)} clients were asked"
    elif not {incident.client for incident in summed.incidents} <= set(cohort):
        reason = "speaks of clients that were not asked"
    if reason is not None:
        raise unusable(request.task, request.round, reason)


def unusable(task: str, number: int, reason: str) -> FederationError:
    """For a sum that no honest clients give."""
    return FederationError(
        f"{task}, round {number}: the sum that came back is unusable ({reason}). The round is "
        "charged and its value lost"
    )


def demand_bounded(released: Released, request: Request) -> None:
    """Look at the norm of a released sum: over records where it is agreed how many a client has,
    and over clients that the server noised.

    After the noise, whatever the trust: whether an exact sum is above a bound may hang on one unit.

    Raises:
        FederationError: no honest clients give such a sum.
    """
    reason = _above_cap(released.value, request, released.answered)
    terms = request.terms
    if terms.trusts.server_adds and not terms.protects.per_record:
        noise = terms.scale * terms.noise.reach(request.dim, 1) if terms.scale else 0.0
        reason = _above(released.value, request, released.answered * terms.clip + noise)
    if reason is not None:
        raise unusable(request.task, request.round, reason)


def fault(answer: object, request: Request) -> str | None:
    """What is wrong with a message that is private on its own, or None."""
    if not isinstance(answer, Answer):
        return "not an answer"
    if (answer.job, answer.round) != (request.job, request.round):
        return f"answers round {answer.round} instead of {request.round}"
    return _fault(answer.values, request, 1) or _above_cap(answer.values, request, 1)


def _fault(values: object, request: Request, answers: int) -> str | None:
    """What is wrong with the values of a sum of so many answers, or None.

    The bound on the norm holds for whole clients that add noise: the clip, plus what the noise of
    an honest client stays below with probability 1 - 1e-14. A client's sum over its records has no
    public bound but the end of its grid. The norm itself is not told: it is the clients'.
    """
    if not isinstance(values, np.ndarray) or values.dtype != np.float64:
        return "not an array of float64"
    if values.shape != (request.dim,):
        return f"shape {values.shape} instead of ({request.dim},)"
    if not np.isfinite(values).all():
        return "holds values that are not finite"
    terms = request.terms
    if terms.trusts.server_adds or not answers:
        return None
    if terms.protects.per_record:
        if not terms.trusts.shares:
            return None
        grid = grid_of(request, answers)
        end = answers * grid.step * grid.end * (1 + 1e-9)
        far = np.abs(values).max() > end
        return f"a number beyond {end:.4g}, where {answers} honest answers end" if far else None
    reach = terms.scale * terms.noise.reach(request.dim, terms.shares) if terms.scale else 0.0
    return _above(values, request, answers * (terms.clip + reach))


def _above(values: NDArray[np.float64], request: Request, bound: float) -> str | None:
    """Whether the norm exceeds a bound, but for rounding."""
    with np.errstate(over="ignore"):
        norm = float(np.linalg.norm(values, 2 if request.terms.norm == "l2" else 1))
    return None if norm <= bound * (1 + 1e-5) else f"norm above the bound {bound:.4g}"


def _above_cap(values: NDArray[np.float64], request: Request, answers: int) -> str | None:
    """Whether a noisy sum over records is above what so many answers of ``most_records`` each give.

    Rows of groups of records are as many as there are groups, and messages of a client's own
    training are no sums: neither is bounded so.
    """
    terms, most = request.terms, request.most_records
    if most is None or not answers or not terms.protects.per_record or request.steps is not None:
        return None
    if isinstance(lookup(request.task), GroupTask):
        return None
    rows = answers * most * (terms.sampling.rate or 1.0)
    if terms.sampling != Everyone():
        # Bernstein: so many of the drawn are exceeded with probability 1e-14 at most.
        rows += math.sqrt(2 * rows * _SURE) + _SURE / 3
    # Every so many shares carry the noise of a whole release.
    wholes = 1 if terms.trusts.server_adds else math.ceil(answers / terms.shares)
    noise = terms.scale * wholes * terms.noise.reach(request.dim, 1) if terms.scale else 0.0
    reason = _above(values, request, rows * terms.clip + noise)
    return None if reason is None else f"{reason}, which is what most_records={most} explains"


def sift(
    answers: Sequence[object], request: Request, cohort: Collection[str]
) -> tuple[list[Answer], list[Incident]]:
    """Separate usable answers from the rest.

    Of several answers by one client none is used, and none by a client that was not asked: its
    contribution would be in no sample.
    """
    good: dict[str, Answer] = {}
    bad: list[Incident] = []
    seen: set[str] = set()
    for answer in answers:
        if not isinstance(answer, Answer) or not isinstance(answer.client, str):
            bad.append(Incident("unknown", request.round, "not an answer"))
            continue
        name = answer.client
        reason = fault(answer, request)
        if name not in cohort:
            reason = "was not asked"
        elif name in seen:
            reason = "answered more than once"
        seen.add(name)
        if reason is None:
            good[name] = answer
        else:
            good.pop(name, None)
            bad.append(Incident(name, request.round, reason))
    return list(good.values()), bad


def add_silent(
    incidents: Sequence[Incident], answered: Sequence[str], request: Request, cohort: Sequence[str]
) -> list[Incident]:
    """The incidents, and one for every client of the cohort of which nothing is known."""
    silent = set(cohort) - set(answered) - {incident.client for incident in incidents}
    missing = [Incident(name, request.round, "did not answer") for name in sorted(silent)]
    return [*incidents, *missing]


def need(came: Summed, quorum: int, request: Request) -> None:
    """Raises FederationError where fewer answers than the quorum are usable; Unopened where they
    are too few for anybody to see their sum."""
    opens = 0 if request.terms.trusts.alone else max(request.terms.fewest, came.needed)
    if came.answered < max(quorum, opens):
        reasons = "; ".join(f"{i.client}: {i.reason}" for i in came.incidents) or "no answer"
        lacking = (
            f"{request.task}, round {request.round}: {came.answered} usable answers, "
            f"{max(quorum, opens)} needed ({reasons})"
        )
        if came.answered < opens:
            raise Unopened(
                f"{lacking}. Nothing of the round was released; resume the job once enough clients "
                "are back, and it is asked again under the charge that it has"
            )
        raise FederationError(
            f"{lacking}. The round is charged and its value lost; resume the job once enough "
            "clients are back"
        )
