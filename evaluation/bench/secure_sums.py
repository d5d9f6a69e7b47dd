"""CPU time of a secure sum: an owner's and the server's, whole rounds of five exchanges in memory.

    OMP_NUM_THREADS=1 python evaluation/bench/secure_sums.py [--rounds 5]

Owners that drop out do so when they are asked for their numbers, after they dealt shares: the case
that costs the server most. Of an owner: the median over owners that stayed, of the least over
rounds; of the server: the least over rounds; bytes: what an owner sends and receives in a round.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections import defaultdict

import numpy as np

from fedsynth.federation.secure import masks
from fedsynth.federation.secure.frames import Step, read
from fedsynth.federation.secure.leader import Leader
from fedsynth.federation.secure.party import Party
from fedsynth.federation.secure.rules import Roster, Rules

# Owners, threshold, curious, numbers, their type, dropped.
CASES = (
    (3, 3, 1, 65_536, "<u8", 0),
    (10, 7, 1, 100_000, "<u4", 3),
    (10, 7, 1, 1_000_000, "<u8", 0),
    (10, 7, 1, 1_000_000, "<u8", 3),
    (30, 20, 1, 1_000_000, "<u8", 6),
    (100, 70, 1, 100_000, "<u4", 0),
    (100, 70, 1, 100_000, "<u4", 30),
    (100, 51, 1, 100_000, "<u4", 30),
)


def timed(clock, who, function, *arguments):
    """What the function gives; its CPU seconds are added to the clock."""
    start = time.process_time()
    found = function(*arguments)
    clock[who] += time.process_time() - start
    return found


def run(parties, leader, round, contributions, dropped):
    """CPU seconds of everybody in one round, and an owner's bytes."""
    clock, bytes_ = defaultdict(float), defaultdict(int)
    size, kind = len(next(iter(contributions.values()))), next(iter(contributions.values())).dtype
    timed(clock, "server", leader.begin, round, size, kind.str)
    opened = None
    while opened is None:
        for name, request in timed(clock, "server", leader.requests).items():
            if name in dropped and read(request)[0].step >= Step.MASKED:
                continue
            answer = parties[name].answer
            reply = timed(clock, name, answer, request, lambda _, name=name: contributions[name])
            bytes_[name] += len(request) + len(reply)
            timed(clock, "server", leader.receive, name, reply)
        opened = timed(clock, "server", leader.advance)
    assert set(opened.owners) == set(parties) - set(dropped)
    assert np.array_equal(opened.total, sum(contributions[name] for name in opened.owners))
    return clock, bytes_


def measure(owners, threshold, curious, size, kind, drops, rounds):
    identities = {f"owner {place:03}": os.urandom(masks.KEY) for place in range(owners)}
    public = {name: masks.identity_of(one) for name, one in identities.items()}
    roster = Roster("bench", public, Rules(owners, threshold, curious))
    parties = {
        name: Party(name, one, roster, lambda state: None) for name, one in identities.items()
    }
    leader, rng = Leader(roster), np.random.default_rng(0)
    contributions = {name: rng.integers(0, 2**32, size).astype(kind) for name in roster.names}
    dropped = roster.names[:drops]
    least, bytes_ = {}, {}
    for round in range(rounds):
        clock, bytes_ = run(parties, leader, round, contributions, dropped)
        least = {who: min(spent, least.get(who, spent)) for who, spent in clock.items()}
    stayed = [name for name in roster.names if name not in dropped]
    return (
        statistics.median(least[name] for name in stayed),
        least["server"],
        statistics.median(bytes_[name] for name in stayed),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    for case in CASES:
        owners, threshold, _, size, kind, drops = case
        owner, server, sent = measure(*case, rounds)
        bits = 8 * np.dtype(kind).itemsize
        print(
            f"{owners:3} owners ({threshold} needed, {drops:2} dropped) x {size:9,} u{bits}: "
            f"owner {owner * 1e3:5.1f} ms, {sent / 2**20:5.2f} MiB; server {server:.3f} s"
        )


if __name__ == "__main__":
    main()
