"""Draws of whole-number noise a second of processor time, beside those of noise in floating point.

python evaluation/bench/integers.py [--draws 1000000] [--repeats 5]
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np

from fedsynth.privacy.integers import add_noise
from fedsynth.privacy.mechanisms import mechanism_of
from fedsynth.privacy.noise import NoiseSource


def seconds(make, repeats: int) -> float:
    found = []
    for _ in range(repeats):
        start = time.process_time()
        make()
        found.append(time.process_time() - start)
    return statistics.median(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    source, count = NoiseSource(), options.draws
    start = time.process_time()
    add_noise(np.zeros(1, np.int64), source)
    print(f"tables built in {time.process_time() - start:.3f} s")
    zeros = np.zeros(count, np.int64)
    took = seconds(lambda: add_noise(zeros, source), options.repeats)
    print(f"65,536 steps: {count / took / 1e6:.1f} million draws a second")
    gaussian = mechanism_of("gaussian")
    took = seconds(lambda: gaussian.draw(count, source), options.repeats)
    print(f"floating point: {count / took / 1e6:.1f} million draws a second")


if __name__ == "__main__":
    main()
