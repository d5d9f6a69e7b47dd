"""Peak memory of one record-level sum as the number of clients grows.

    OMP_NUM_THREADS=1 python evaluation/bench/sum_memory.py

A message of 84,010 numbers from clients of one record each, under distributed trust, through the
channel; peaks by tracemalloc. Answers are added as they come, so the peak hardly grows.
"""

from __future__ import annotations

import math
import tracemalloc

import numpy as np

from fedsynth.federation.client.client import Client
from fedsynth.federation.client.floor import Floor
from fedsynth.federation.client.tasks import register
from fedsynth.federation.runtimes.local import LocalRuntime
from fedsynth.federation.server.channel import Channel
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.rows.counting import IndicatorRows
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.job import Job
from fedsynth.privacy.trail.ledger import Ledger

DIM, SIZES = 84_010, (10, 100, 1_000)


class CountTask:
    """A record counts in five places."""

    name = "bench-counts"

    def contribute(self, clients, samples, request):
        for index, (client, sample) in enumerate(zip(clients, samples, strict=True)):
            yield index, IndicatorRows(client.data[sample], request.dim)


def measure_peak(count):
    """Bytes at the peak of one sum over so many clients."""
    budget = Budget(epsilon=math.inf, delta=1e-5, trust="distributed")
    floor = Floor(budget=budget, cohort=count)
    clients = [Client(f"c{i}", np.arange(5)[None], 1, floor=floor) for i in range(count)]
    channel = Channel(LocalRuntime(clients), Ledger.create(Job(budget=budget)), NoiseSource())
    terms = Terms(
        unit="record", trust="distributed", clip=3.0, noise_multiplier=1.0, survivors=count
    )
    tracemalloc.start()
    channel.sum(CountTask.name, terms, DIM)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def main():
    register(CountTask())
    measure_peak(1)  # what is imported on the way
    peaks = [measure_peak(size) for size in SIZES]
    for size, peak in zip(SIZES, peaks, strict=True):
        print(f"{size:6,} clients: {peak / 2**20:.2f} MiB")
    print(f"{SIZES[-1] // SIZES[0]}x the clients: {peaks[-1] / peaks[0]:.2f}x the memory")


if __name__ == "__main__":
    main()
