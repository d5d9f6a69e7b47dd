"""Draws of whole-number noise a second of processor time, beside those of noise in floating point.

python evaluation/bench/integers.py [--draws 1000000] [--repeats 5]
"""

from __future__ import annotations

import argparse
import math
import statistics
import time

import numpy as np

from fedsynth.privacy.integers import SIGMAS, add_noise, count_digits
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
    add_noise(np.zeros(1), 1.0, 1.0, source)
    print(f"table built in {time.process_time() - start:.3f} s")
    zeros = np.zeros(count)
    for digits, sigma in enumerate(SIGMAS[:4], 1):
        scale = sigma / 2**14 / math.sqrt(count)
        took = seconds(lambda scale=scale: add_noise(zeros, scale, 1.0, source), options.repeats)
        assert count_digits(count, scale, 1.0) == digits
        print(f"{sigma:,.0f} steps: {count / took / 1e6:.1f} million draws a second")
    laplace = mechanism_of("laplace")
    took = seconds(lambda: laplace.draw(count, source), options.repeats)
    print(f"Laplace noise in floating point: {count / took / 1e6:.1f} million draws a second")


if __name__ == "__main__":
    main()
