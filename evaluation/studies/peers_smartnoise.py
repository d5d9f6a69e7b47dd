"""smartnoise-synth 1.0.8 on one table: reads training rows, writes synthetic ones, prints the cost.

    python3.11 -m venv SN && SN/bin/pip install smartnoise-synth==1.0.8 mbi==1.1.0 packaging
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

`dpctgan` and `patectgan` run with opacus 0.14.0 and torch 2.14.1, unpatched and with their defaults
(batches of 500; noise 5 times the clip for the one, Laplace noise of scale 1000 for the other);
`packaging` is all that the installation lacks. Bounds cost 0.1 as above; columns of less than 150
whole numbers are one-hot. Their epsilon is not what they say:

- both draw conditions from exact frequencies, outside epsilon: `dpctgan` in training and sampling,
  `patectgan` by looking up a real row for every row that it samples;
- `dpctgan` looks at its accountant once an epoch and stops after the budget is exceeded: `reached`
  is what its own accountant says in the end, bounds included. The accountant takes batches for
  Poisson samples, and they are drawn with replacement;
- `patectgan` has one module in the place of every teacher and of the student, which is trained on
  all rows without noise; its accountant looks at the votes, whose figure is itself private.
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
from snsynth.pytorch.nn import DPCTGAN, PATECTGAN
from snsynth.transform import (
    BinTransformer,
    ChainTransformer,
    LabelTransformer,
    MinMaxTransformer,
    OneHotEncoder,
    TableTransformer,
)

GANS = {"dpctgan": DPCTGAN, "patectgan": PATECTGAN}
METHODS = {"aim": AIMSynthesizer, "mst": MSTSynthesizer, **GANS}
FAULT = 'np.argsort(inverse, kind="stable")'
MENDED = "np.lexsort((np.random.rand(total), inverse))"


def mend_sampling():
    """Rows of a group take their ranks in random order, drawn anew for every column."""
    source = textwrap.dedent(inspect.getsource(mbi.MarkovRandomField.synthetic_data))
    assert FAULT in source
    space = {}
    exec(source.replace(FAULT, MENDED), vars(mbi), space)
    mbi.MarkovRandomField.synthetic_data = space["synthetic_data"]


def public_transformer(domain, gan):
    """Columns coded by the domain alone; whole numbers of less than 150 values one by one.

    gan: one-hot, the other numbers by their bounds, as GANs take them; else codes and bins.
    """

    def coded(column):
        values = column.get("categories") or [*range(column["lower"], column["upper"] + 1)]
        if len(values) >= 150:
            made = MinMaxTransformer(**column) if gan else BinTransformer(bins=20, **column)
            values = [column["lower"]]
        else:
            made = LabelTransformer(nullable=False)
            made = ChainTransformer([made, OneHotEncoder()]) if gan else made
        made.fit(values)
        return made

    return TableTransformer([coded(column) for column in domain.values()])


def selected(synth, train):
    return {
        "cliques": len(synth.synthesizer.cliques),
        "cells": dict(zip(train.columns, synth._transformer.cardinality, strict=True)),
    }


def trained(synth, train, options):
    """Widths of the columns, and for DP-CTGAN where its own accountant stood in the end."""
    parts = synth._transformer.transformers
    widths = {n: t.output_width for n, t in zip(train.columns, parts, strict=True)}
    if options.method == "patectgan":
        return {"cells": widths, "teachers": synth.num_teachers}
    bounds = options.epsilon - synth.epsilon
    return {
        "cells": widths,
        "epochs": len(synth.epsilon_list) - 1,
        "reached": round(bounds + synth.epsilon_list[-1], 4),
    }


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
    domain = json.loads(options.domain.read_text())
    texts = {name: str for name, column in domain.items() if "categories" in column}
    train = pd.read_csv(options.train, keep_default_na=False, dtype=texts)
    np.random.seed(options.seed)  # noqa: NPY002 (the library draws from the global generator)
    gan = options.method in GANS
    settings = {"aim": {"rounds": options.rounds}, "mst": {}}.get(
        options.method, {"verbose": False}
    )
    synth = METHODS[options.method](epsilon=options.epsilon, delta=options.delta, **settings)
    start, cpu = time.perf_counter(), time.process_time()
    if options.bounds == "public":
        synth.fit(train, transformer=public_transformer(domain, gan))
    else:
        synth.fit(train, preprocessor_eps=0.1)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    found = {
        "epsilon_parts": {
            "model": round(synth.epsilon, 6),
            "bins": round(options.epsilon - synth.epsilon, 6),
        },
        **(trained(synth, train, options) if gan else selected(synth, train)),
        "fit_seconds": round(seconds, 1),
        "fit_cpu_seconds": round(cpu, 1),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    start = time.perf_counter()
    synth.sample(options.rows).to_csv(options.synthetic, index=False)
    found["sample_seconds"] = round(time.perf_counter() - start, 1)
    if not gan:
        mend_sampling()
        fixed = options.synthetic.with_stem(f"{options.synthetic.stem}_fixed")
        synth.sample(options.rows).to_csv(fixed, index=False)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
