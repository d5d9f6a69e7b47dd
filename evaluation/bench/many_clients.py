"""Peak memory of a client-level simulation as the number of clients grows.

    OMP_WAIT_POLICY=PASSIVE python evaluation/bench/many_clients.py [--rounds 10]

The paper's image VAE (paper 001, section 4.4.3), 8 random images a client, 100 clients a round,
each with a private encoder that stays in a file between rounds. Every size runs in a process of its
own, whose largest resident set is read; the last line is the ratio of the largest size to the
smallest.
"""

from __future__ import annotations

import argparse
import math
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SIZES = (300, 3_000, 30_000)
IMAGES, PER_ROUND = 8, 100


def simulate(clients, rounds):
    import numpy as np

    from fedsynth.data.images import Images
    from fedsynth.methods.vae.synthesizer import FedVAE
    from fedsynth.privacy.budget import Budget
    from fedsynth.schema import Categorical, ImageSchema

    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (clients * IMAGES, 28, 28), dtype=np.uint8)
    labels = rng.integers(0, 10, len(pixels))
    owners = [
        Images(pixels[start : start + IMAGES], labels[start : start + IMAGES])
        for start in range(0, len(pixels), IMAGES)
    ]
    schema = ImageSchema(shape=(28, 28), target=Categorical(name="y", values=list(range(10))))
    budget = Budget(epsilon=math.inf, unit="client", trust="central", units=clients)
    rate = PER_ROUND / clients
    synth = FedVAE(schema, rounds=rounds, rate=rate, noise_multiplier=1.0)
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        synth.fit(owners, budget, folder=Path(folder) / "job")
        seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{clients} {peak:.3f} {seconds / rounds:.2f} {synth.ledger.spent().epsilon:.4g}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--clients", type=int, help="one size in this process")
    options = parser.parse_args()
    if options.clients:
        simulate(options.clients, options.rounds)
        return
    peaks = []
    print("clients  peak GiB  s a round  epsilon")
    for size in SIZES:
        command = [sys.executable, __file__, "--clients", str(size)]
        command += ["--rounds", str(options.rounds)]
        found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        peaks.append(float(found[1]))
        print(f"{size:7d}  {found[1]:>8}  {found[2]:>9}  {found[3]:>7}", flush=True)
    print(f"{SIZES[-1] // SIZES[0]}x the clients: {peaks[-1] / peaks[0]:.2f}x the memory")


if __name__ == "__main__":
    main()
