"""ctgan 0.12.1 on one table: reads training rows, writes synthetic ones, prints the cost as JSON.

    python3.11 -m venv CTGAN && CTGAN/bin/pip install ctgan==0.12.1
    CTGAN/bin/python evaluation/studies/peers_ctgan.py ctgan train.csv domain.json synthetic.csv

Runs in that environment and imports nothing of fedsynth; `peers.py` calls it. No privacy and no
federation: trained on the pooled rows with the defaults (batches of 500, pac 10), but for the
number of epochs (`--epochs`; 300 as shipped). The columns without categories in the domain are
continuous; the rest of the domain is not used. Nothing is patched.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from ctgan import CTGAN


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("method", choices=("ctgan",))
    parser.add_argument("train", type=Path)
    parser.add_argument("domain", type=Path)
    parser.add_argument("synthetic", type=Path)
    parser.add_argument("--rows", type=int, default=39_073)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=300)
    options = parser.parse_args()
    torch.set_num_threads(1)
    np.random.seed(options.seed)  # noqa: NPY002 (the library draws from the global generators)
    torch.manual_seed(options.seed)
    train = pd.read_csv(options.train, keep_default_na=False)
    domain = json.loads(options.domain.read_text())
    discrete = [name for name, column in domain.items() if "categories" in column]
    synth = CTGAN(epochs=options.epochs, enable_gpu=False)
    start, cpu = time.perf_counter(), time.process_time()
    synth.fit(train, discrete)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    start = time.perf_counter()
    synth.sample(options.rows).to_csv(options.synthetic, index=False)
    found = {
        "epsilon_parts": None,
        "fit_seconds": round(seconds, 1),
        "fit_cpu_seconds": round(cpu, 1),
        "sample_seconds": round(time.perf_counter() - start, 1),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
