"""Peers beside fedsynth in one run: the same training rows of several tables, the same scores.

    export FEDSYNTH_TABLES=FOLDER FEDSYNTH_DATA=../shared/data
    python evaluation/studies/peers.py --tables adult hmda rotterdam \\
        --dpmm DPMM/bin/python --smartnoise SN/bin/python
    python evaluation/studies/peers.py --ours --ctgan CTGAN/bin/python -- --epochs 50

One split of each table of `uneven_tables.py`, all rows up to `--most`; total epsilon 1, delta 1e-5.
fedsynth's AIM has five owners and trusts nobody; `columns` are one histogram by the whole budget.
The tools have all rows in one place; `peers_TOOL.py` says how to make an environment and what is
outside of a tool's epsilon; what follows `--` goes to it as it stands. It gets the training rows,
gaps as "?", and the public domain (bounds and values of the schema), and writes as many rows, which
are read back and scored by fedsynth; numbers outside the bounds are clamped and fractions rounded
by that. A tool is stopped after `--limit` seconds of a processor, and the results say so. tv1 to
tv3: mean total variation against the training rows, 20 quantile bins (at most 500 triples).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from uneven_tables import DELTA, HOME, draw_columns, learn_from, rows_of, split

import fedsynth as fs
from fedsynth.evaluation.measures import marginals, utility
from fedsynth.federation.simulation.partitions import partition
from fedsynth.registry import METHODS
from fedsynth.schema import Categorical

OURS = ("real", "aim", "columns")
THEIRS = {
    "dpmm": ("mst", "aim"),
    "smartnoise": ("mst", "aim", "dpctgan", "patectgan"),
    "ctgan": ("ctgan",),
}
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
}


def domain_of(schema):
    """What is public of each column, for a tool that knows nothing of fedsynth."""
    return {
        column.name: {"categories": [*map(str, column.values), *(["?"] if column.missing else [])]}
        if isinstance(column, Categorical)
        else {"lower": column.lower, "upper": column.upper}
        for column in schema.modelled
    }


def learn(rows, test, schema):
    """AUROC and F1 of the last class, or R2 where the target is a number, on the real test rows."""
    if not schema.classes:
        return {"score": round(learn_from(rows, test, schema, 0), 4)}
    found = utility.train_on_synthetic(rows, test, schema, seed=0)
    f1 = {"f1": round(found.f1_positive, 4)} if schema.classes == 2 else {}
    return {"score": round(found.auroc, 4), **f1}


def score(train, test, rows, schema):
    errors = [
        marginals.marginal_error(train, rows, schema, order, limit=500).mean for order in (1, 2, 3)
    ]
    return {
        **learn(rows, test, schema),
        **{f"tv{order}": round(error, 4) for order, error in enumerate(errors, start=1)},
    }


def run_ours(method, train, schema, seed):
    """fedsynth's rows, and the seconds of a processor for fit and rows together."""
    start = time.process_time()
    if method == "real":
        rows = train
    elif method == "columns":
        rows = draw_columns(train, schema, 1.0, seed)
    else:
        synth = METHODS[method](schema)
        owners = partition(train, 5, "uniform", schema=schema, seed=seed)
        budget = fs.Budget(epsilon=1.0, delta=DELTA, trust="distributed", curious=0)
        quiet = {"progress": False, "caution": lambda _: None}
        synth.fit(owners, budget, seed=seed, outside="allow", **quiet)
        rows = synth.sample(len(train), seed=seed)
    return rows, round(time.process_time() - start, 1)


def run_theirs(tool, method, python, train, schema, options):
    """A pair of rows and facts for every CSV that the tool wrote; no rows where it has none."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        train.to_csv(folder / "train.csv", index=False, na_rep="?")
        (folder / "domain.json").write_text(json.dumps(domain_of(schema)))
        files = [folder / each for each in ("train.csv", "domain.json", "synthetic.csv")]
        driver = Path(__file__).with_name(f"peers_{tool}.py")
        command = [python, driver, method, *files, "--rows", len(train), "--seed", options.seed]
        limits = (options.limit, options.limit + 5)
        done = subprocess.run(
            list(map(str, [*command, *options.rest])),
            env={**os.environ, **ONE_THREAD},
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, limits),
        )
        if done.returncode == -signal.SIGXCPU:
            return [(None, {"stopped": f"after {options.limit} CPU seconds"})]
        if done.returncode:
            return [(None, {"stopped": f"exit status {done.returncode}"})]
        facts = json.loads(done.stdout.splitlines()[-1])
        return [
            (
                fs.read_table(file, schema),
                {"sampling": file.stem.removeprefix("synthetic").lstrip("_") or "shipped", **facts},
            )
            for file in sorted(folder.glob("synthetic*.csv"))
        ]


def compare(name, options):
    """A dictionary for every tool, method and way of sampling on that table, one after another."""
    table, schema = rows_of(name)
    train, test = split(table, options.seed, len(table), options.most)
    case = {"data": name, "seed": options.seed, "rows": len(train), "columns": len(schema.modelled)}
    for method in options.ours:
        rows, cpu = run_ours(method, train, schema, options.seed)
        found = {"tool": "fedsynth", "method": method, **score(train, test, rows, schema)}
        yield {**case, **found, "cpu_seconds": cpu}
    for tool, methods in THEIRS.items():
        for method in methods:
            python = getattr(options, tool)
            if not python or method not in options.methods:
                continue
            which = {**case, "tool": tool, "method": method, "options": options.rest}
            for rows, facts in run_theirs(tool, method, python, train, schema, options):
                found = {} if rows is None else score(train, test, rows, schema)
                yield {**which, **found, **facts}


def main():
    arguments = sys.argv[1:]
    rest = arguments[arguments.index("--") + 1 :] if "--" in arguments else []
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="*", default=["adult"])
    parser.add_argument("--ours", nargs="*", choices=OURS, default=OURS)
    for tool in THEIRS:
        parser.add_argument(
            f"--{tool}", metavar="PYTHON", help="the interpreter of its environment"
        )
    parser.add_argument(
        "--methods", nargs="*", default=["mst", "aim", "ctgan"], help="of the tools"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most", type=int, default=60_000, help="rows of a table")
    parser.add_argument("--limit", type=int, default=1500, help="seconds of a processor")
    options = parser.parse_args(arguments[: len(arguments) - len(rest) - ("--" in arguments)])
    options.rest = rest
    for name in options.tables:
        for found in compare(name, options):
            line = json.dumps(found)
            print(line, flush=True)
            with (HOME / "evaluation/results/peers.jsonl").open("a") as file:
                file.write(line + "\n")


if __name__ == "__main__":
    main()
