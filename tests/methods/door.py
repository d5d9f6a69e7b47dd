"""What passes the door in a fit: heard, measured against exact sums, or replaced by another fit's.

Two kinds of hole are searched for. *Something leaves without its noise:* every sum that leaves a
client, stays at it, or is released is compared with the exact clipped sum of the same rows, and the
difference must have the law that the terms promise. *Something private gets past the door:* with
another fit's releases in place of its own, all that clients are told and asked, and all that is
learned, must be that other fit's to the last bit, though the clients hold other rows, and answer.
"""

from __future__ import annotations

import copy
import hashlib
import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.special import iti0k0, ndtri
from scipy.stats import binom, cauchy, chi2, chisquare, laplace, norm

from fedsynth.federation.client import answering, steps, tasks
from fedsynth.federation.client.client import Client
from fedsynth.federation.client.grid import grid_of
from fedsynth.federation.request import Answer, Released, Request, Summed
from fedsynth.federation.runtimes import local
from fedsynth.federation.server.channel import Channel
from fedsynth.federation.server.door import Door
from fedsynth.federation.server.scores import Scores
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.terms import Terms

Floats = NDArray[np.float64]

FALSE_ALARM = 1e-7
# Of half the variance promised, or none, so many numbers are told with probability 1 - 4e-6: their
# mean square is below .67, and that of the promised hardly ever.
FEWEST = 400
_CHOICES = 500

CLIENTS, KEPT, TRAINING, DOOR = (
    "in answers", "kept at the client", "in a client's training", "at the door",
)  # fmt: skip


def other_table(rows: int, seed: int) -> pd.DataFrame:
    """Rows of the small schema that share no distribution with those of `small.table`."""
    rng = np.random.default_rng(seed)
    age, ill = rng.integers(70, 91, rows), rng.random(rows) < 0.8
    return pd.DataFrame(
        {
            "age": age,
            "colour": np.where(age > 80, "green", "red"),
            "dose": np.round((age - 70) / 3, 1),
            "smoker": ill,
            "outcome": np.where(ill, "ill", "well"),
        }
    )


class Heard:
    """What one fit said and released, each in order.

    Attributes:
        said: names and digests of what the server announced to its clients and asked of them.
        released: what the door let through.
        instead: of another fit, whose releases this one is given in place of its own; or None.
    """

    def __init__(self, instead: Heard | None) -> None:
        self.instead = instead
        self.said: list[tuple[str, str]] = []
        self.released: list[Any] = []
        # Of the request that is being answered: clients' exact sums, those of them that are to be
        # answered again, answers, and noise by place.
        self.exact: list[Floats] = []
        self.again: list[Floats] | None = None
        self.answers: list[Floats] = []
        self.noise: dict[str, list[Floats]] = defaultdict(list)
        # Numbers judged so far, of a task under some terms at some place.
        self.judged: Counter[tuple[str, Terms, str]] = Counter()

    def judge(self, request: Request, where: str, noise: Floats) -> None:
        demand_noise(request, where, noise)
        self.judged[request.task, request.terms, where] += len(noise)

    def enough(self, request: Request, where: str, count: int) -> bool:
        """Whether so many more numbers can be told from half of the noise, or none: beside those of
        the same task's rounds before."""
        return count + self.judged[request.task, request.terms, where] >= FEWEST

    def say(self, what: str, value: Any) -> None:
        self.said.append((what, digest(value)))
        if self.instead is not None:
            others = self.instead.said[: len(self.said)]
            assert self.said == others, f"clients are told of private things with {what!r}"

    def release(self, released: Any) -> Any:
        if self.instead is not None:
            released = copy.deepcopy(self.instead.released[len(self.released)])
        self.released.append(copy.deepcopy(released))
        return released


@contextmanager
def listening(instead: Heard | None = None) -> Iterator[Heard]:
    """Judge the noise of all that passes the door meanwhile, and perhaps give a fit another's
    releases."""
    heard = Heard(instead)
    with pytest.MonkeyPatch.context() as patch:
        _listen_at_clients(heard, patch)
        _listen_at_door(heard, patch)
        yield heard


def _listen_at_clients(heard: Heard, patch: pytest.MonkeyPatch) -> None:
    answer, clip_and_sum, step = local.answer, steps.clip_and_sum, steps.Steps.sum

    def answer_heard(clients, request, *more):
        heard.exact, heard.answers = [], []
        heard.noise.clear()
        before = copied(clients) if heard.instead is None else clients
        for reply in answer(clients, request, *more):
            if isinstance(reply, Answer):
                heard.answers.append(reply.values.copy())
            yield reply
        answers = heard.answers
        for again in itertools.count():
            if request.steps is None:
                assert len(heard.exact) == len(heard.answers) > 0, "an answer is no clipped sum"
                for total, values in zip(heard.exact, heard.answers, strict=True):
                    heard.noise[CLIENTS].append(values - total[request.kept :])
            counts = {where: sum(map(len, parts)) for where, parts in heard.noise.items()}
            assert counts, "an answer is made of no noisy sum"
            enough = (heard.enough(request, where, count) for where, count in counts.items())
            if heard.instead is not None or all(enough):
                break
            # Too few numbers to judge by: clients as they were, with other coins, answer again:
            # of the same exact sums, which take longest, but where they train by themselves.
            asked = copied(before)
            for client in asked:
                client.coins = NoiseSource(again)
            heard.again, heard.exact = list(heard.exact), []
            heard.answers = [reply.values for reply in answer(asked, request)]
        heard.answers, heard.again = answers, None
        for where, parts in heard.noise.items():
            heard.judge(request, where, np.concatenate(parts))

    def keep_exact_sums(genuine):
        def sums(*arguments):
            for total in heard.again or genuine(*arguments):
                heard.exact.append(total.copy())
                yield total.copy()

        return sums

    def keep_exact_step(*arguments):
        heard.exact = [clip_and_sum(*arguments)]
        return heard.exact[0].copy()

    def step_heard(self, contribution):
        heard.exact = []
        released = step(self, contribution)
        heard.noise[TRAINING].append(released - heard.exact[0])
        return released

    def keep_heard(genuine):
        def keep(self, client, values, request):
            heard.noise[KEPT].append(values - heard.exact[-1][: request.kept])
            genuine(self, client, values, request)

        return keep

    patch.setattr(local, "answer", answer_heard)
    for name in ("_clip_sums", "sum_groups"):
        patch.setattr(answering, name, keep_exact_sums(getattr(answering, name)))
    patch.setattr(steps, "clip_and_sum", keep_exact_step)
    patch.setattr(steps.Steps, "sum", step_heard)
    for kind in {type(task) for task in tasks._TASKS.values() if isinstance(task, tasks.Keeper)}:
        patch.setattr(kind, "keep", keep_heard(kind.keep))


def copied(clients: list[Client]) -> list[Client]:
    """As they are: their records, and what was announced to them, change in no answer."""
    shared = [client.data for client in clients]
    shared += [memory.board for client in clients for memory in client.memories.values()]
    return copy.deepcopy(clients, {id(one): one for one in shared})


def _listen_at_door(heard: Heard, patch: pytest.MonkeyPatch) -> None:
    announce = Channel.announce

    def announce_heard(self, key, value):
        heard.say(key, value)
        announce(self, key, value)

    def pass_heard(genuine):
        def release(self, request, *scores):
            asked = [request.dim, request.kept, request.steps, asdict(request.terms)]
            asked += [request.arrays, request.settings, *map(vars, scores)]
            heard.say(request.task, asked)
            heard.answers = []
            released = genuine(self, request, *scores)
            total = added(request, heard.answers)
            again = copy.copy(self)
            again._charge = lambda request: []
            again._sum = lambda request, cohort: Summed(total, len(heard.answers))
            if scores and heard.instead is None:
                choices = [genuine(again, request, *scores) for _ in range(_CHOICES)]
                demand_choices(request, *scores, total, choices)
            elif isinstance(released, Released):
                noise = [released.value - total]
                while heard.instead is None and not heard.enough(
                    request, DOOR, len(noise) * request.dim
                ):
                    noise.append(genuine(again, request).value - total)
                heard.judge(request, DOOR, np.concatenate(noise))
            return heard.release(released)

        return release

    patch.setattr(Channel, "announce", announce_heard)
    for ask in ("sum", "collect", "select"):
        patch.setattr(Door, ask, pass_heard(getattr(Door, ask)))


def added(request: Request, answers: list[Floats]) -> Floats:
    """The sum of answers; of shares of noise, which lie on a grid, in whole numbers."""
    if not request.terms.trusts.shares or request.terms.client_scale == 0:
        return sum(answers, np.zeros(request.dim))
    step = grid_of(request, len(answers)).step
    return sum(np.rint(one / step).astype(np.int64) for one in answers) * step


def demand_noise(request: Request, where: str, noise: Floats) -> None:
    """The noise of the promised scale in every number, or none where none was promised."""
    terms, said = request.terms, f"{request.task}, {request.terms.trust}, {where}"
    scale, shares = terms.noise_multiplier * terms.clip, 1
    if where == CLIENTS and terms.trust == "distributed":
        shares = terms.survivors - terms.curious
    promised = where in (KEPT, TRAINING) or (where == DOOR) == (terms.trust == "central")
    if scale == 0 or not promised:
        np.testing.assert_array_equal(noise, 0, said)
        return
    scores, count = normal_scores(terms, noise / scale, shares), len(noise)
    squares = float(scores @ scores)
    likely = min(chi2.sf(squares, count), chi2.cdf(squares, count))
    assert likely > FALSE_ALARM, f"{said}: {squares / count:.3f} times the variance promised"
    # Some numbers that are exact would hide among many that are not.
    exact = int((np.abs(scores) < 1e-5).sum())
    chance = binom.sf(exact - 1, count, 2e-5 * norm.pdf(0))
    assert chance > FALSE_ALARM, f"{said}: {exact} of {count} numbers are exact"


def normal_scores(terms: Terms, noise: Floats, shares: int) -> Floats:
    """What would be standard normal if noise were of the law of one of so many equal shares."""
    size = np.abs(noise)
    if terms.mechanism == "gaussian":
        return noise * np.sqrt(shares)
    if terms.mechanism == "laplace" and shares == 1:
        beyond = laplace.sf(size)
    elif terms.mechanism == "laplace" and shares == 2:
        # Its characteristic function is (1 + t^2)^(-1/2), so its density is K0(|x|) / pi.
        beyond = 0.5 - iti0k0(size)[1] / np.pi
    else:
        assert (terms.mechanism, terms.alpha) == ("stable", 1.0), "no law is known here"
        beyond = cauchy.sf(size * shares)
    return -ndtri(np.clip(beyond, 1e-15, 0.5)) * np.sign(noise)


def demand_choices(request: Request, scores: Scores, total: Floats, choices: list[int]) -> None:
    """Blocks of a sum chosen as often as the exponential mechanism chooses them."""
    logits = scores.of(total) / (request.terms.noise_multiplier * request.terms.clip)
    shares = np.exp(logits - np.logaddexp.reduce(logits))
    # Those that are seldom chosen count as one, which by itself is judged exactly where there are
    # so few that chi-square would be far off.
    often = shares > 0.02
    counts, seldom = np.bincount(choices, minlength=len(shares)), float(shares[~often].sum())
    expected, seen = shares[often], counts[often]
    rest, likely = int(counts[~often].sum()), 1.0
    if seldom > 0.02:
        expected, seen = np.append(expected, seldom), np.append(seen, rest)
    else:
        chance = binom(len(choices), seldom)
        likely = min(chance.sf(rest - 1), chance.cdf(rest))
    if len(seen) > 1:
        likely = min(likely, chisquare(seen, seen.sum() * expected / expected.sum()).pvalue)
    said = f"{request.task}: chosen {seen} and {rest}, expected {len(choices)} times {expected}"
    assert likely > FALSE_ALARM, said


def digest(value: Any) -> str:
    """Of plain values and arrays in lists and mappings, to the last bit."""
    return hashlib.sha256(_spell(value).encode()).hexdigest()


def _spell(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}{hashlib.sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, Mapping):
        return f"{{{','.join(f'{key}:{_spell(part)}' for key, part in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{','.join(map(_spell, value))}]"
    return repr(value)
