"""What the releases of a job give away, beside what the job claims: an audit with the best attack.

    python evaluation/studies/transcript_audit.py [--only releases methods] [--methods aim pate]

`methods`: a method is fitted on one of two worlds, which differ by a record of the first of three
owners (all of whose cells are unlike the others'), by a person with all its rows there, or by all
that this owner contributes. Every
request is answered in both worlds, with the same coins, so that the exact clipped sums of both are
known for the very requests that were made; the fit goes on with one world's. So it is known what
each release gives away to a promised adversary that knows all but the world:

- with a trusted server, whoever holds the release;
- with shares of noise, a fellow owner that takes its own share off (`curious: 1`);
- with nobody trusted, the server, which sees the owner's own message.

`used` is epsilon of the shifts between the worlds that occurred, over the noise that this adversary
faces, composed by the accountant: releases of drawn records at the largest shift of all. `claimed`
is the certificate's epsilon, so `ratio`, their quotient, is at most 1. `bound` is a lower
bound on epsilon (95 %) from how often the log-likelihood ratio has the right sign in `runs` fits,
few as they are. `residual` is the mean square of released minus exact sums over the variance
promised, of the `task` (and its `numbers` numbers) for which it is farthest from 1: `z` standard
deviations, if noise is normal.

`releases`: one release through the door, of as many coordinates as there are experiments, each of
which a unit of its own moves by the whole clip, or does not: `bound` (1 - 1e-6) beside `claimed`.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import time
import zlib
from collections import Counter, defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.stats import beta, norm

from fedsynth.federation.client import answering, steps, tasks
from fedsynth.federation.client.client import Client
from fedsynth.federation.client.floor import Floor
from fedsynth.federation.request import Summed
from fedsynth.federation.runtime import Federation
from fedsynth.federation.runtimes.local import LocalRuntime
from fedsynth.federation.server.channel import Channel
from fedsynth.federation.server.door import Door
from fedsynth.federation.simulation.simulation import prepare_rows
from fedsynth.methods.pate import student
from fedsynth.privacy.accounting import charged, spent
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.calibration import calibrate
from fedsynth.privacy.mechanisms import norm_of
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.rows.counting import IndicatorRows
from fedsynth.privacy.rows.dense import DenseRows
from fedsynth.privacy.sampling import Everyone, Poisson
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.job import Job
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.registry import METHODS
from fedsynth.schema import Categorical, Identifier, Integer, Schema

HOME = Path(__file__).resolve().parents[2]
DELTA = 1e-5
EPSILON = 4.0
TARGET = "first"
# A noise multiplier beside which nothing shows.
NEVER = 1e9

SCHEMA = Schema(
    columns=[
        Categorical(name="a", values=["p", "q", "r"]),
        Categorical(name="b", values=["p", "q"]),
        Integer(name="n", lower=0, upper=63),
        Categorical(name="y", values=["no", "yes"]),
    ],
    target="y",
)
OF_PERSONS = Schema(columns=[*SCHEMA.columns, Identifier(name="p")], target="y", person="p")
# Rows of the person in question; of the others each has two.
ROWS = 7


def world(other, unit):
    """The owners' tables; ``other`` is the world with the record, or the contribution."""
    usual = pd.DataFrame({"a": ["p"], "b": ["p"], "n": [3], "y": ["no"]})
    odd = pd.DataFrame({"a": ["r"], "b": ["q"], "n": [63], "y": ["yes"]})
    first = {
        "record": [usual] * 20 + [odd] * other,
        "person": [usual] * 20 + ([odd] * (ROWS - 1) + [usual]) * other,
        "client": [odd] * 5 * other,
    }[unit]
    many = pd.concat([usual] * 20, ignore_index=True)
    owned = pd.concat(first, ignore_index=True) if first else usual[:0]
    tables = {TARGET: owned, "second": many, "third": many}
    if unit != "person":
        return tables
    persons = {name: np.minimum(np.arange(len(table)) // 2, 10) for name, table in tables.items()}
    return {name: table.assign(p=persons[name]) for name, table in tables.items()}


class Coins(NoiseSource):
    """Known coins, each call of which is a stream of its own: a record more moves no other's."""

    def __init__(self, seeds):
        super().__init__(insecure_seed=0)
        self.seeds, self.calls = seeds, 0

    def words(self, count):
        self.calls += 1
        return np.frombuffer(
            np.random.default_rng([*self.seeds, self.calls]).bytes(8 * count), "u8"
        )

    def generator(self):
        self.calls += 1
        return Streams([*self.seeds, self.calls])


class Streams:
    """A generator, each call of which is a stream of its own."""

    def __init__(self, seeds):
        self._seeds, self._calls = seeds, 0

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        self._calls += 1
        return getattr(np.random.default_rng([*self._seeds, self._calls]), name)


class Watch:
    """What is exact where clients answer, and what their training steps release to them."""

    def __init__(self):
        self.begin()

    def begin(self, follow=None, force=False):
        """Forget what was; ``follow`` are another world's noisy steps to go on with, ``force`` has
        the record in question in every sample."""
        self.sums, self.noisy, self.follow, self.force = [], [], follow, force


WATCH = Watch()


@contextmanager
def watched():
    """Have exact sums kept wherever clients answer."""
    clip_and_sum, step, draw = steps.clip_and_sum, steps.Steps.sum, steps.draw_records

    def keep_all(genuine):
        def sums(*arguments):
            for total in genuine(*arguments):
                WATCH.sums.append(total.copy())
                yield total

        return sums

    def keep(*arguments):
        WATCH.sums.append(clip_and_sum(*arguments))
        return WATCH.sums[-1].copy()

    def take_step(self, contribution):
        WATCH.noisy.append(step(self, contribution))
        return (WATCH.follow or WATCH.noisy)[len(WATCH.noisy) - 1].copy()

    def draw_records(view, request):
        sample = draw(view, request)
        if not (WATCH.force and view.name == TARGET):
            return sample
        # The last record, or all those of its person, which come last too.
        rows = ROWS if request.terms.unit == "person" else 1
        return np.union1d(sample, np.arange(view.records - rows, view.records))

    with (
        mock.patch.object(answering, "_clip_sums", keep_all(answering._clip_sums)),
        mock.patch.object(answering, "sum_groups", keep_all(answering.sum_groups)),
        mock.patch.object(answering, "draw_records", draw_records),
        mock.patch.object(steps, "draw_records", draw_records),
        mock.patch.object(steps, "clip_and_sum", keep),
        mock.patch.object(steps.Steps, "sum", take_step),
    ):
        yield


@dataclass
class BothWorlds(Federation):
    """Clients of two worlds.

    Attributes:
        tables: owners' tables of each world.
        truth: which world's answers go on.
        seeds: of the clients' coins.
    """

    tables: list
    truth: int
    seeds: list

    def open(self, coins, ledgers, private, budget, *agreed):
        floor, worlds = Floor(budget=replace(budget, epsilon=math.inf), cohort=3), []
        for tables in self.tables:
            clients = []
            for number, (name, table) in enumerate(tables.items()):
                schema = OF_PERSONS if budget.unit == "person" else SCHEMA
                data, coins = prepare_rows(table, schema, name), Coins([*self.seeds, number])
                clients.append(Client(name, data, len(table), coins=coins, floor=floor))
            worlds.append(LocalRuntime(clients))
        return BothRuntimes(worlds, self.truth)


class BothRuntimes:
    """Asks the clients of both worlds everything.

    Attributes:
        answers: of the true world to the last request, one a client.
        sums: exact ones of the true world, and of both: clients' or, in training, the steps'.
    """

    insecure = True

    def __init__(self, worlds, truth):
        self.worlds, self.truth = worlds, truth
        self.clients = worlds[0].clients

    def open(self, job, participations, told):
        for runtime in self.worlds:
            runtime.open(job, participations, told)

    def settle(self, job, number):
        for runtime in self.worlds:
            runtime.settle(job, number)

    def announce(self, job, key, value):
        for runtime in self.worlds:
            runtime.announce(job, key, value)

    def close(self, job, *, finished):
        for runtime in self.worlds:
            runtime.close(job, finished=finished)

    def collect(self, request, cohort):
        # Where records are drawn, the other world is the one in which this one is.
        drawn = isinstance(request.terms.sampling, Poisson)
        sampled = copy.deepcopy(self.worlds[1]) if drawn else None
        WATCH.begin()
        replies = self.worlds[self.truth].collect(request, cohort)
        noisy, both = WATCH.noisy, [WATCH.sums, WATCH.sums]
        self.answers = noisy or [answer.values for answer in replies[0]]
        self.true_sums = WATCH.sums
        WATCH.begin(follow=noisy)
        self.worlds[1 - self.truth].collect(request, cohort)
        both[1 - self.truth] = WATCH.sums
        if sampled is not None:
            WATCH.begin(follow=noisy, force=True)
            sampled.collect(request, cohort)
            both[1] = WATCH.sums
        self.both = both
        return replies

    def sum(self, request, cohort):
        answers, incidents = self.collect(request, cohort)
        total = sum((answer.values for answer in answers), np.zeros(request.dim))
        return Summed(total, len(answers), tuple(incidents))


@dataclass
class Seen:
    """What the promised adversary saw of one release.

    Attributes:
        terms: of it, with the noise that is left to this adversary over the shift that occurred.
        llr: log-likelihood ratio of the second world to the first.
        square, numbers: of the noise in units of its deviation, summed.
    """

    task: str
    terms: Terms
    llr: float
    square: float = 0.0
    numbers: int = 0


class Audit:
    """What a fit's releases gave away."""

    def __init__(self):
        self.seen = []

    def add(self, request, runtime, released, scores):
        terms, dim = request.terms, request.dim
        if scores is not None:
            totals = [sum(sums, np.zeros(dim)) for sums in runtime.both]
            utilities = [scores.of(total) / terms.scale for total in totals]
            logs = [u[released] - np.logaddexp.reduce(u) for u in utilities]
            span = float(np.ptp(utilities[1] - utilities[0]))
            left = 2 / span if span else math.inf
            self.seen.append(Seen(request.task, scaled(terms, left), logs[1] - logs[0]))
        elif request.steps is not None:
            for at in range(request.steps):
                exact = [sums[at] for sums in runtime.both]
                true = runtime.true_sums[at]
                self.look(request.task, terms, runtime.answers[at], true, exact, terms.scale)
        elif terms.trust == "local":
            exact = [sums[0][request.kept :] for sums in runtime.both]
            true = runtime.true_sums[0][request.kept :]
            self.look(request.task, terms, runtime.answers[0], true, exact, terms.scale)
        else:
            exact = [sum(sums, np.zeros(dim)) for sums in runtime.both]
            true, value, scale = sum(runtime.true_sums), released.value, terms.scale
            if terms.trust == "distributed":
                # The last owners are curious, and take their noise off.
                for number in range(len(runtime.answers))[-terms.curious :]:
                    value = value - (runtime.answers[number] - runtime.true_sums[number])
                left = terms.noise.growth(len(runtime.answers) - terms.curious)
                scale = terms.client_scale * left
            self.look(request.task, terms, value, true, exact, scale)

    def look(self, task, terms, value, true, exact, scale):
        shift = np.linalg.norm(exact[1] - exact[0], 1 if terms.norm == "l1" else 2)
        away = [value - one for one in exact]
        if terms.mechanism == "laplace":
            llr = float((np.abs(away[0]) - np.abs(away[1])).sum()) / scale
        else:
            llr = float(away[0] @ away[0] - away[1] @ away[1]) / (2 * scale**2)
        if isinstance(terms.sampling, Poisson):
            q = terms.sampling.rate
            llr = float(np.logaddexp(math.log1p(-q), math.log(q) + llr))
        noise = (value - true) / terms.noise.deviation(scale)
        multiplier = scale / shift if shift else math.inf
        seen = Seen(task, scaled(terms, multiplier), llr, float(noise @ noise), len(noise))
        self.seen.append(seen)

    def used(self):
        """Epsilon of the shifts that occurred."""
        counts, square, drawn = Counter(), 0.0, {}
        for seen in self.seen:
            terms = seen.terms
            if isinstance(terms.sampling, Poisson):
                drawn.setdefault(seen.task, []).append(terms)
            elif terms.mechanism == "gaussian":
                square += terms.noise_multiplier**-2
            elif terms.noise_multiplier < NEVER:
                counts[terms] += 1
        if square:
            given = Terms(unit="record", trust="central", clip=1.0, noise_multiplier=square**-0.5)
            counts[given] += 1
        for found in drawn.values():
            counts[min(found, key=lambda terms: terms.noise_multiplier)] += len(found)
        return spent(counts, DELTA).epsilon


def scaled(terms, multiplier):
    """The terms of a record, of a noise multiplier, perhaps without end."""
    noise = min(multiplier, NEVER)
    bare = {"unit": "record", "trust": "central", "survivors": 1, "curious": 0, "clip": 1.0}
    bare["weigh"] = None
    return replace(terms, **bare, noise_multiplier=noise)


@contextmanager
def audited():
    """Everything that passes the door meanwhile, looked at."""
    audit = Audit()

    def look(genuine):
        def release(self, request, *scores):
            released = genuine(self, request, *scores)
            audit.add(request, self._runtime, released, *(scores or (None,)))
            return released

        return release

    doors = {ask: look(getattr(Door, ask)) for ask in ("sum", "select", "collect")}
    with watched(), mock.patch.multiple(Door, **doors), mock.patch.object(student, "_STEPS", 20):
        yield audit


GAN = {"rounds": 6, "hidden": (8,), "latent": 2, "discriminator_hidden": (8,), "generator_batch": 8}
METHOD_CASES = {
    "aim": [
        ({"iterations": 10, "marginals": 6}, None, None),
        ({"iterations": 10, "marginals": 6, "selection": "exponential"}, None, ("central",)),
    ],
    "mst": [({"iterations": 10}, ("record",), None)],
    "privbayes": [
        ({}, ("record",), ("central", "local")),
        ({"structure": "votes"}, ("record",), ("distributed",)),
    ],
    "private-fusion": [
        ({}, None, None),
        ({"mechanism": "laplace"}, ("record",), None),
    ],
    "fedinfer": [({}, None, None)],
    "mean-embedding": [
        ({"components": 4, "random_features": 20, "steps": 2, "hidden": 6}, None, None)
    ],
    "fedvae": [
        ({"rounds": 6, "hidden": (8,), "latent": 2, "rate": 0.5}, ("record",), None),
        (
            # A histogram that tells cells apart, or there is nothing to learn.
            {"rounds": 2, "hidden": (8,), "latent": 2, "scheme": "uni", "histogram_share": 0.3}
            | {"rate": 1.0, "learning_rate": 1.0, "clip": 0.01},
            ("client",),
            None,
        ),
    ],
    "fedgan": [
        ({**GAN, "rate": 0.5}, ("record",), None),
        ({**GAN, "rounds": 2, "rate": 1.0, "clip": 0.01}, ("client",), None),
    ],
    "fedctgan": [
        ({**GAN, "rate": 0.5}, ("record",), None),
        ({**GAN, "rounds": 2, "rate": 1.0, "clip": 0.01}, ("client",), ("distributed",)),
    ],
    "pate": [
        ({"teachers": 2, "queries": 20, "steps": 2}, None, ("distributed", "local")),
        ({"teachers": 2, "queries": 20, "steps": 2, "noise": "laplace"}, ("record",), ("local",)),
    ],
    "pate-gan": [
        (
            {"rounds": 3, "hidden": (8,), "latent": 2, "teachers": 2, "queries": 10, "warmup": 1}
            | {"local_steps": 1, "generator_steps": 1, "student_steps": 1, "generator_batch": 8},
            None,
            ("distributed",),
        )
    ],
    "fusion-gan": [
        (
            {"rate": 0.5, "steps": 10, "latent": 2, "hidden": (8,), "discriminator_hidden": (8,)}
            | {"union": 50, "union_steps": 2},
            ("record",),
            ("local",),
        )
    ],
}
"""Of each method settings that make it quick, units and trusts; None for all of them."""


def methods(names, seconds):
    for name in names:
        for settings, units, trusts in METHOD_CASES[name]:
            for unit in units or ("record", "client"):
                for trust in trusts or ("central", "distributed", "local"):
                    yield audit_method(name, settings, unit, trust, seconds)
            if "record" in (units or ("record",)) and not METHODS[name].no_persons:
                for trust in trusts or ("central", "distributed", "local"):
                    for weigh in WEIGHED:
                        yield audit_method(name, settings, "person", trust, seconds, weigh)


WEIGHED = ({}, {"weigh": "row", "person_clip": 2.0}, {"weigh": "row"})
"""How rows of persons may be weighed, the last clipped as the histogram of rows a person tells."""


def audit_method(name, settings, unit, trust, seconds, weigh=None, least=5):
    start, worlds = time.process_time(), [world(other, unit) for other in (0, 1)]
    synthesizer = METHODS[name](OF_PERSONS if unit == "person" else SCHEMA, settings)
    budget = Budget(epsilon=EPSILON, delta=DELTA, unit=unit, trust=trust, **(weigh or {}))
    plan = synthesizer.plan(budget, 3)
    case = zlib.crc32(f"{name} {settings} {unit} {trust}".encode())
    ratios, used, runs, noise = ([], []), 0.0, 0, defaultdict(lambda: [0.0, 0])
    fitting = time.process_time()
    while runs < least or time.process_time() - fitting < seconds:
        for truth in (0, 1):
            with audited() as audit:
                number = 2 * runs + truth
                federation = BothWorlds(worlds, truth, [case, number])
                known = {"plan": plan, "seed": runs, "insecure_noise_seed": case + number}
                known |= {"again": True, "progress": False, "caution": lambda sentence: None}
                synthesizer.fit(federation, budget, **known)
            ratios[truth].append(sum(seen.llr for seen in audit.seen))
            used = max(used, audit.used())
            for seen in audit.seen:
                noise[seen.task][0] += seen.square
                noise[seen.task][1] += seen.numbers
        runs += 1
    claimed = synthesizer.ledger.spent().epsilon
    found = {
        task: ((square / numbers - 1) / math.sqrt(2 / numbers), square / numbers, numbers)
        for task, (square, numbers) in noise.items()
        if numbers
    }
    task = max(found, key=lambda task: abs(found[task][0]))
    every = {(seen.terms.mechanism, seen.terms.sampling) for seen in audit.seen}
    plain = every == {("gaussian", Everyone())}
    return {
        "table": "methods",
        "method": name,
        "settings": settings,
        "unit": unit,
        **(weigh or {}),
        "trust": trust,
        "releases": len(audit.seen),
        "claimed": round(claimed, 4),
        "used": round(used, 4),
        "ratio": round(used / claimed, 4),
        "bound": round(lower_bounds(*map(np.array, ratios), 0.0, 0.05)[0 if plain else 1], 3),
        "residual": round(found[task][1], 4),
        "task": task,
        "numbers": found[task][2],
        "z": round(found[task][0], 1),
        "runs": 2 * runs,
        "seconds": round(time.process_time() - start, 1),
    }


def epsilon_of(mu):
    """Of a Gaussian shift of ``mu`` deviations."""

    def excess(epsilon):
        beyond = norm.cdf(-epsilon / mu - mu / 2)
        return norm.cdf(-epsilon / mu + mu / 2) - math.exp(epsilon) * beyond - DELTA

    if mu <= 0 or excess(0.0) <= 0:
        return 0.0
    most = 1.0
    while excess(most) > 0:
        most *= 2
    return float(brentq(excess, 0, most))


def lower_bounds(first, second, threshold, alpha):
    """Bounds on epsilon by how often samples of two worlds exceed a threshold: of a job that is
    Gaussian-DP, and of any, from (epsilon, delta) itself."""
    false, missed = (
        rate_bound(first >= threshold, alpha / 2),
        rate_bound(second < threshold, alpha / 2),
    )
    logs = [
        math.log((1 - other - DELTA) / one)
        for one, other in ((false, missed), (missed, false))
        if 1 - other > DELTA
    ]
    return epsilon_of(norm.isf(false) - norm.ppf(missed)), max([0.0, *logs])


def best_bound(first, second, gaussian, alpha):
    """The bound by a threshold that is chosen on one half of the samples, from the other half."""
    kind, half = 0 if gaussian else 1, len(first) // 2
    candidates = np.quantile(
        np.concatenate([first[:half], second[:half]]), np.linspace(0.02, 0.98, 97)
    )
    chosen = max(
        candidates, key=lambda t: lower_bounds(first[:half], second[:half], t, alpha)[kind]
    )
    return lower_bounds(first[half:], second[half:], chosen, alpha)[kind]


def rate_bound(hits, alpha):
    """What the rate of hits is below, with probability 1 - alpha (Clopper and Pearson)."""
    count = int(hits.sum())
    return 1.0 if count == len(hits) else float(beta.ppf(1 - alpha, count + 1, len(hits) - count))


class OneHotTask:
    """A record's, or a client's, own coordinate."""

    name = "audit-one-hot"

    def contribute(self, clients, samples, request):
        for index, (client, sample) in enumerate(zip(clients, samples, strict=True)):
            if request.terms.unit == "record":
                yield index, IndicatorRows(client.data[sample][:, None], request.dim)
            else:
                row = np.zeros((1, request.dim))
                row[0, client.data] = 1e6
                yield index, DenseRows(row)


class FlippedVotesTask:
    """A group's vote, for one of its two coordinates."""

    name = "audit-votes"

    def group_rows(self, groups, request):
        for index, group in enumerate(groups):
            row = np.zeros(request.dim)
            row[2 * group.number + int(group.data.flipped)] = 1e6
            yield index, row


@dataclass(frozen=True)
class Flipped:
    """Data of a client whose groups all vote alike."""

    flipped: bool

    def take(self, positions):
        return self


class ScoresTask:
    """Rows of two blocks of one number each."""

    name = "audit-scores"

    def contribute(self, clients, samples, request):
        for index, (client, sample) in enumerate(zip(clients, samples, strict=True)):
            yield index, DenseRows(client.data[sample])


for task in (OneHotTask(), FlippedVotesTask(), ScoresTask()):
    tasks.register(task)


def channel_to(data, terms):
    """A channel to clients of these data and numbers of records."""
    free = Budget(epsilon=math.inf, delta=DELTA, unit=terms.unit, trust=terms.trust)
    floor = Floor(budget=free, cohort=len(data))
    clients = [Client(f"c{k}", d, n, floor=floor) for k, (d, n) in enumerate(data)]
    ledger = Ledger.create(Job(budget=free))
    return Channel(LocalRuntime(clients), ledger, NoiseSource())


def experiments(terms, present, count, votes):
    """One draw of each of so many experiments, as the promised adversary sees them."""
    nothing = np.zeros(0, np.int64)
    if votes:
        channel = channel_to([(Flipped(present), 1)], terms)
        settings = {"groups": count}
        value = channel.sum("audit-votes", terms, 2 * count, settings=settings).value
        return value[1::2] - value[::2]
    mine = np.arange(count) if present else nothing
    data = [(mine, len(mine)), (nothing, 0), (nothing, 0)]
    if terms.unit == "client":
        data = [(np.array([k]) if present else nothing, 1) for k in range(count)] + [(nothing, 1)]
    channel = channel_to(data, terms)
    if terms.trust == "local":
        return channel.collect("audit-one-hot", terms, count).values[0]
    answers = []

    def answer(clients, request, deadline):
        for reply in answering.answer(clients, request, deadline):
            answers.append(reply.values)
            yield reply

    with mock.patch("fedsynth.federation.runtimes.local.answer", answer):
        value = channel.sum("audit-one-hot", terms, count).value
    # The last owner has nothing but its share of the noise, and takes that off.
    return value - answers[-1] if terms.trust == "distributed" else value


CASES = {
    "gaussian, trusted server": {},
    "gaussian, shares": {"trust": "distributed"},
    "gaussian, own messages": {"trust": "local"},
    "gaussian, shares, clients": {
        "trust": "distributed",
        "unit": "client",
        "count": 2_000,
        "times": 5,
    },
    "gaussian, shares, half drawn": {"trust": "distributed", "sampling": Poisson(0.5)},
    "laplace, trusted server": {"mechanism": "laplace"},
    "laplace, shares": {"trust": "distributed", "mechanism": "laplace"},
    "stable 1.7, shares": {"trust": "distributed", "mechanism": "stable", "alpha": 1.7},
    "stable 1, own messages": {"trust": "local", "mechanism": "stable", "alpha": 1.0},
    "gaussian, votes": {"votes": True, "count": 10_000, "times": 5},
}


def releases():
    for epsilon in (1.0, 4.0):
        for name, case in CASES.items():
            yield {"table": "releases", "release": name, **audit_release(epsilon, **case)}
        yield {"table": "releases", "release": "exponential choice", **audit_choice(epsilon)}


def calibrated(epsilon, **fixed):
    """Terms of one release of this epsilon, and what the accountant says of it."""

    def terms(multiplier):
        return Terms(clip=1.0, noise_multiplier=multiplier, **fixed)

    def counts(multiplier):
        return charged({terms(multiplier): 1}, unit=fixed["unit"])

    multiplier = calibrate(counts, epsilon, DELTA)
    return terms(multiplier), round(spent(counts(multiplier), DELTA).epsilon, 4)


def audit_release(
    epsilon, mechanism="gaussian", trust="central", unit="record", sampling=None, alpha=None,
    count=100_000, votes=False, times=1,
):  # fmt: skip
    answers = count + 1 if unit == "client" else 3
    shares = {"survivors": answers, "curious": 1} if trust == "distributed" else {}
    terms, claimed = calibrated(
        epsilon, unit=unit, trust=trust, mechanism=mechanism, norm=norm_of(mechanism),
        sampling=sampling or Everyone(), alpha=alpha, **shares,
    )  # fmt: skip
    seen = [
        np.concatenate([experiments(terms, present, count, votes) for _ in range(times)])
        for present in (False, True)
    ]
    plain = mechanism == "gaussian" and sampling is None
    return {"claimed": claimed, "bound": round(best_bound(*seen, plain, 1e-6), 3)}


def audit_choice(epsilon, draws=6_000):
    """Two blocks, one of which a record raises by the clip, and the other of which it lowers."""
    terms, claimed = calibrated(
        epsilon, unit="record", trust="central", mechanism="exponential", norm="l1"
    )
    estimate, rows = np.array([0.0, 1.0]), np.array([[0.0, 0.0], [1.0, 1.0]])
    scoring = {"starts": np.arange(2), "weights": np.ones(2), "penalties": np.zeros(2)}
    first = []
    for records in (1, 2):
        channel = channel_to([(rows[:records], records)], terms)
        ask = (channel.select("audit-scores", terms, estimate, **scoring) for _ in range(draws))
        first.append(np.array([chosen == 0 for chosen in ask]))
    false, missed = rate_bound(first[0], 5e-7), rate_bound(~first[1], 5e-7)
    return {"claimed": claimed, "bound": round(math.log((1 - missed - DELTA) / false), 3)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=["releases", "methods"])
    parser.add_argument("--methods", nargs="*", choices=METHOD_CASES, default=[*METHOD_CASES])
    parser.add_argument("--seconds", type=float, default=6.0, help="of fits, a case")
    parser.add_argument(
        "--out", type=Path, default=HOME / "evaluation/results/transcript_audit.jsonl"
    )
    options = parser.parse_args()
    found = {
        "releases": releases,
        "methods": lambda: methods(options.methods, options.seconds),
    }
    for table in options.only or found:
        for row in found[table]():
            print(json.dumps(row), flush=True)
            with options.out.open("a") as file:
                file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
