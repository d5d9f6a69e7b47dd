"""How long one-message methods take: every fit of paper 004's largest table, and its peers.

    FEDSYNTH_DATA=../shared/data OMP_NUM_THREADS=2 python evaluation/bench/fusion.py

credit_default, all 30,000 rows and 24 columns, ten owners: seconds on the clock and of the
processors (those of helper processes included) for Fusion as published, its effort `quick`, private
Fusion and FedInfer, each fit and 30,000 rows drawn; and the ratio of the first two.
"""

from __future__ import annotations

import math
import os
import resource
import time
from pathlib import Path

from fedsynth.data.tables import read_table
from fedsynth.federation.simulation.partitions import partition
from fedsynth.privacy.budget import Budget
from fedsynth.registry import METHODS
from fedsynth.schema import Schema

HOME = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("FEDSYNTH_DATA", HOME.parent / "shared/data"))
FREE = Budget(epsilon=math.inf, trust="local")
CASES = (
    ("fusion", {}, FREE),
    ("fusion", {"effort": "quick"}, FREE),
    ("private-fusion", {}, Budget(epsilon=1.0)),
    ("fedinfer", {}, Budget(epsilon=1.0)),
)


def processors():
    """Seconds of this process and of helpers that have ended."""
    found = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        used = resource.getrusage(who)
        found += used.ru_utime + used.ru_stime
    return found


def main():
    schema = Schema.load(HOME / "configs/schemas/credit_default.yaml")
    table = read_table(DATA / "credit_default/credit_default.csv.gz", schema)
    owners = partition(table, 10, "uniform", schema=schema, seed=0)
    taken = []
    for method, settings, budget in CASES:
        start, used = time.perf_counter(), processors()
        synth = METHODS[method](schema, **settings).fit(owners, budget)
        fitted = time.perf_counter()
        synth.sample(30_000, seed=0)
        drawn = time.perf_counter()
        taken.append(fitted - start)
        print(
            f"{method} {settings}: fit {fitted - start:.1f} s, 30,000 rows {drawn - fitted:.1f} s, "
            f"processors {processors() - used:.1f} s",
            flush=True,
        )
    print(f"quick fits take 1/{taken[0] / taken[1]:.1f} of the time")


if __name__ == "__main__":
    main()
