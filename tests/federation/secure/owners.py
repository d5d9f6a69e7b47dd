"""Owners of secure sums in one process, whose secrets are a test's own."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np

from fedsynth.federation.secure import masks
from fedsynth.federation.secure.leader import Leader
from fedsynth.federation.secure.party import Party
from fedsynth.federation.secure.rules import Roster, Rules


def identity(name):
    return random.Random(f"identity {name}").randbytes(32)


def make_roster(rules, job="job"):
    names = [f"owner {place}" for place in range(rules.cohort)]
    return Roster(job, {name: masks.identity_of(identity(name)) for name in names}, rules)


@dataclass
class Owners:
    """All owners of a roster, what each last kept, and what it gives to a round."""

    roster: Roster
    dim: int = 5
    kind: str = "<u8"
    parties: dict[str, Party] = field(default_factory=dict)
    kept: dict[str, bytes] = field(default_factory=dict)

    def __post_init__(self):
        for name in self.roster.names:
            self.start(name)

    def start(self, name):
        """A fresh process of an owner, with what it kept."""
        keep = lambda state: self.kept.update({name: state})  # noqa: E731
        state = self.kept.get(name)
        self.parties[name] = Party(name, identity(name), self.roster, keep, state)

    def contribution(self, name, round):
        seed = [self.roster.names.index(name), round]
        values = np.random.default_rng(seed).integers(0, 2**32, self.dim, np.uint64)
        return values.astype(self.kind)

    def answer(self, name, request):
        return self.parties[name].answer(request, lambda round: self.contribution(name, round))

    def total(self, names, round):
        return np.sum([self.contribution(name, round) for name in names], 0, self.kind)


def exchange(leader, owners, absent=()):
    """One exchange, of all who are not absent; the sum, if it was the last."""
    for name, request in leader.requests().items():
        if name not in absent:
            leader.receive(name, owners.answer(name, request))
    return leader.advance()


def run(leader, owners, round, absent=lambda step: (), following=None):
    """A whole round: its sum, and how many exchanges it took."""
    leader.begin(round, owners.dim, owners.kind, following)
    for count in range(1, 6):
        opened = exchange(leader, owners, absent(leader._step))
        if opened:
            return opened, count
    raise AssertionError("a round has five exchanges at most")


def make(cohort, threshold, curious=0, **options):
    owners = Owners(make_roster(Rules(cohort, threshold, curious)), **options)
    return Leader(owners.roster), owners
