"""dpmm 0.1.9 on one table: reads training rows, writes synthetic ones, prints what it cost as JSON.

    python3.11 -m venv DPMM && DPMM/bin/pip install dpmm==0.1.9
    DPMM/bin/python evaluation/studies/peers_dpmm.py mst train.csv domain.json synthetic.csv

Runs in that environment and imports nothing of fedsynth; `peers.py` calls it. The domain holds what
is public: bounds of numbers, values of categories. dpmm spends `proc_epsilon` (edges of the bins,
by PrivTree) on top of `epsilon`; here the two add up to the one total. The number of rows is taken
as public, and the noise cannot be seeded. Nothing is patched.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path

import pandas as pd
from dpmm.pipelines import AIMPipeline, MSTPipeline

METHODS = {"aim": AIMPipeline, "mst": MSTPipeline}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("method", choices=METHODS)
    parser.add_argument("train", type=Path)
    parser.add_argument("domain", type=Path)
    parser.add_argument("synthetic", type=Path)
    parser.add_argument("--rows", type=int, default=39_073)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epsilon", type=float, default=1.0, help="in all")
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--bins-epsilon", type=float, default=0.1, help="of it, for the bins")
    parser.add_argument("--model-size", type=float, help="MB of a model at most")
    options = parser.parse_args()
    domain = json.loads(options.domain.read_text())
    texts = {name: str for name, column in domain.items() if "categories" in column}
    train = pd.read_csv(options.train, keep_default_na=False, dtype=texts)
    pipeline = METHODS[options.method](
        epsilon=options.epsilon - options.bins_epsilon,
        delta=options.delta,
        proc_epsilon=options.bins_epsilon,
        max_model_size=options.model_size,
        n_jobs=1,
    )
    start, cpu = time.perf_counter(), time.process_time()
    pipeline.fit(train, domain=domain, random_state=options.seed)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    start = time.perf_counter()
    rows = pipeline.generate(n_records=options.rows, random_state=options.seed)
    rows.to_csv(options.synthetic, index=False)
    found = {
        "epsilon_parts": {
            "model": round(pipeline.gen.epsilon, 6),
            "bins": round(sum(pipeline.proc.spent_epsilon.values()), 6),
        },
        "cliques": len(pipeline.gen.generator.cliques),
        "cells": {name: int(size) for name, size in pipeline.proc.bin_domain.items()},
        "fit_seconds": round(seconds, 1),
        "fit_cpu_seconds": round(cpu, 1),
        "sample_seconds": round(time.perf_counter() - start, 1),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
