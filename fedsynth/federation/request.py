"""What passes between server and client: data, never code."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import FederationError
from fedsynth.privacy.rows.clipping import DenseRows, largest_blocks
from fedsynth.privacy.terms import Terms

Plain = None | bool | int | float | str | Sequence["Plain"] | Mapping[str, "Plain"]


@dataclass(frozen=True)
class Request:
    """A question to clients: the name of a task that their own fedsynth knows, arrays, settings.

    Attributes:
        task: name in the task registry.
        terms: how the answers are protected; a client clips and adds noise by them, or refuses.
        dim: length of an answer.
        kept: leading coordinates of a contribution that stay at the client. They are clipped
            together with the rest and noised there in full, whatever the trust.
        arrays: public arrays, for instance decoder weights.
        settings: public plain values.
        job, round: name the release; an answer to another is refused.
        steps: of a client's own training, each protected by the terms; None for a sum.
    """

    task: str
    terms: Terms
    dim: int
    kept: int = 0
    arrays: Mapping[str, NDArray[np.generic]] = field(default_factory=dict)
    settings: Mapping[str, Plain] = field(default_factory=dict)
    job: str = ""
    round: int = 0
    steps: int | None = None


@dataclass(frozen=True)
class Answer:
    """One client's clipped sum, with the noise that the terms ask of the client; or what its own
    training made of such sums."""

    client: str
    job: str
    round: int
    values: NDArray[np.float64]


@dataclass(frozen=True)
class Incident:
    """Why a client's answer is missing from a round: names the client, never its data."""

    client: str
    round: int
    reason: str


@dataclass(frozen=True)
class Released:
    """The value that a round released.

    Attributes:
        value: float64 [dim]: noisy sum of clipped contributions.
        asked, answered: number of clients. Who was drawn may be secret: neither goes on a release.
        incidents: clients that were dropped, and why.
    """

    value: NDArray[np.float64]
    asked: int
    answered: int
    incidents: tuple[Incident, ...] = ()


@dataclass(frozen=True)
class Collected:
    """The messages that a round released, each private on its own.

    Attributes:
        values: float64 [answered, dim].
        clients: their names, in the same order.
        asked: number of clients.
        incidents: clients that were dropped, and why.
    """

    values: NDArray[np.float64]
    clients: tuple[str, ...]
    asked: int
    incidents: tuple[Incident, ...] = ()


def fault(answer: object, request: Request) -> str | None:
    """What is wrong with an answer, or None.

    The bound on the norm holds for whole clients: the clip, plus what the noise of an honest client
    stays below with probability 1 - 1e-14. A client's sum over its records has no public bound. The
    norm itself is not told: it is the client's.
    """
    if not isinstance(answer, Answer):
        return "not an answer"
    values = answer.values
    if (answer.job, answer.round) != (request.job, request.round):
        return f"answers round {answer.round} instead of {request.round}"
    if not isinstance(values, np.ndarray) or values.dtype != np.float64:
        return "not an array of float64"
    if values.shape != (request.dim,):
        return f"shape {values.shape} instead of ({request.dim},)"
    if not np.isfinite(values).all():
        return "holds values that are not finite"
    terms = request.terms
    if not terms.protects.per_record:
        bound = terms.clip + terms.client_reach(request.dim)
        with np.errstate(over="ignore"):
            if terms.kind.selects:
                norm = float(
                    largest_blocks(DenseRows(values[None]), np.asarray(request.arrays["starts"]))[0]
                )
            else:
                norm = float(np.linalg.norm(values, 2 if terms.norm == "l2" else 1))
        if not norm <= bound * (1 + 1e-5):
            return f"norm above the bound {bound:.4g}"
    return None


def sift(
    answers: Sequence[object], request: Request, asked: Collection[str]
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
        if name not in asked:
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


def need(count: int, least: int, request: Request, incidents: Sequence[Incident]) -> None:
    """Raises FederationError where fewer than ``least`` answers are usable."""
    if count < least:
        reasons = "; ".join(f"{i.client}: {i.reason}" for i in incidents) or "no answer"
        raise FederationError(
            f"{request.task}, round {request.round}: {count} usable answers, {least} needed "
            f"({reasons}). The round is charged and its value lost; resume the job once enough "
            "clients are back"
        )
