"""smartnoise-synth 1.0.8 on one table: reads training rows, writes synthetic ones, prints the cost.

    python3.11 -m venv SN && SN/bin/pip install smartnoise-synth==1.0.8 mbi==1.1.0
    SN/bin/python evaluation/studies/peers_smartnoise.py mst train.csv domain.json synthetic.csv

Runs in that environment and imports nothing of fedsynth; `peers.py` calls it. The domain holds what
is public: bounds of numbers, values of categories.

`--bounds inferred`, as shipped: the bounds of fnlwgt, capital-gain and capital-loss cost 0.1 of the
one total epsilon, 10 equal bins each. Outside epsilon stay the kinds of columns (looked up in the
first 1,000 rows) and the categories and whole numbers that occur. `--bounds public`: all of that
comes from the domain, 20 equal bins, and the model gets the whole epsilon. Either way the number of
rows is taken as public, a bin comes back as its middle, and the noise cannot be seeded.

mbi 1.1.0 sends rows of a group to their values in order, column after column, which ties columns
together that are independent. SYNTHETIC is sampled so, SYNTHETIC_fixed from the same model with the
expression `FAULT` mended.
"""

from __future__ import annotations

import argparse
import inspect
import json
import resource
import textwrap
import time
from pathlib import Path

import mbi.markov_random_field as mbi
import numpy as np
import pandas as pd
from snsynth.aim import AIMSynthesizer
from snsynth.mst import MSTSynthesizer
from snsynth.transform import BinTransformer, LabelTransformer, TableTransformer

METHODS = {"aim": AIMSynthesizer, "mst": MSTSynthesizer}
FAULT = 'np.argsort(inverse, kind="stable")'
MENDED = "np.lexsort((np.random.rand(total), inverse))"


def mend_sampling():
    """Rows of a group take their ranks in random order, drawn anew for every column."""
    source = textwrap.dedent(inspect.getsource(mbi.MarkovRandomField.synthetic_data))
    assert FAULT in source
    space = {}
    exec(source.replace(FAULT, MENDED), vars(mbi), space)
    mbi.MarkovRandomField.synthetic_data = space["synthetic_data"]


def public_transformer(domain):
    """Columns coded by the domain alone; whole numbers of less than 150 values one by one."""

    def coded(column):
        values = column.get("categories") or [*range(column["lower"], column["upper"] + 1)]
        if len(values) >= 150:
            made, values = BinTransformer(bins=20, **column), [column["lower"]]
        else:
            made = LabelTransformer(nullable=False)
        made.fit(values)
        return made

    return TableTransformer([coded(column) for column in domain.values()])


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
    parser.add_argument("--bounds", choices=("inferred", "public"), default="inferred")
    parser.add_argument("--rounds", type=int, help="of AIM at first; 16 a column as shipped")
    options = parser.parse_args()
    train = pd.read_csv(options.train, keep_default_na=False)
    np.random.seed(options.seed)  # noqa: NPY002 (the library draws from the global generator)
    settings = {"rounds": options.rounds} if options.method == "aim" else {}
    synth = METHODS[options.method](epsilon=options.epsilon, delta=options.delta, **settings)
    start, cpu = time.perf_counter(), time.process_time()
    if options.bounds == "public":
        synth.fit(train, transformer=public_transformer(json.loads(options.domain.read_text())))
    else:
        synth.fit(train, preprocessor_eps=0.1)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    found = {
        "epsilon_parts": {
            "model": round(synth.epsilon, 6),
            "bins": round(options.epsilon - synth.epsilon, 6),
        },
        "cliques": len(synth.synthesizer.cliques),
        "cells": dict(zip(train.columns, synth._transformer.cardinality, strict=True)),
        "fit_seconds": round(seconds, 1),
        "fit_cpu_seconds": round(cpu, 1),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    start = time.perf_counter()
    synth.sample(options.rows).to_csv(options.synthetic, index=False)
    found["sample_seconds"] = round(time.perf_counter() - start, 1)
    mend_sampling()
    fixed = options.synthetic.with_stem(f"{options.synthetic.stem}_fixed")
    synth.sample(options.rows).to_csv(fixed, index=False)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
