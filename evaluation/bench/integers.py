"""Draws of whole-number noise a second of processor time, beside those of noise in floating point.

python evaluation/bench/integers.py [--draws 1000000] [--repeats 5]
"""

from __future__ import annotations

import argparse
import statistics
import time

from fedsynth.privacy.integers import COARSE, FINE, discrete_gaussian
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
    for digits in (10, COARSE, FINE):
        start = time.process_time()
        table = discrete_gaussian(2.0**digits)
        built = time.process_time() - start
        took = seconds(lambda table=table: table.draw(count, source), options.repeats)
        print(
            f"2**{digits} steps: {count / took / 1e6:.1f} million draws a second; table of "
            f"{len(table.high):,} thresholds built in {built:.2f} s"
        )
    gaussian = mechanism_of("gaussian")
    took = seconds(lambda: gaussian.draw(count, source), options.repeats)
    print(f"floating point: {count / took / 1e6:.1f} million draws a second")


if __name__ == "__main__":
    main()
