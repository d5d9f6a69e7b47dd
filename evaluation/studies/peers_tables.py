"""Peers side by side in one run: the same training rows of several tables, the same score.

    export FEDSYNTH_TABLES=FOLDER FEDSYNTH_DATA=../shared/data
    python evaluation/studies/peers_tables.py --dpmm DPMM/bin/python --smartnoise SN/bin/python

One split of each table (`uneven_tables.py`: 80 % of at most 10,000 rows), total epsilon 1, delta
1e-5. fedsynth's AIM has five owners and trusts nobody; columns alone are one histogram; dpmm and
smartnoise-synth have all rows in one place (`peers_dpmm.py` and `peers_smartnoise.py` say how to
make their environments and what is outside their epsilon). Tables without gaps only. A tool that
takes longer than `--limit` seconds is stopped, and the results say so.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from pathlib import Path

from peers import ONE_THREAD, domain_of
from uneven_tables import HOME, learn_from, rows_of, run, split

import fedsynth as fs
from fedsynth.evaluation.measures import marginals

OURS = ("real", "aim", "columns")
THEIRS = (("dpmm", "mst"), ("dpmm", "aim"), ("smartnoise", "mst"), ("smartnoise", "aim"))


def ours(name, method, seed):
    found = run(name, method, seed)
    keep = ("score", "tv1", "tv2", "cpu")
    return [{"tool": "fedsynth", "method": method, **{key: found[key] for key in keep}}]


def theirs(name, tool, method, seed, python, limit):
    """A dictionary for every CSV that the tool wrote, or one that says why it has none."""
    table, schema = rows_of(name)
    train, test = split(table, seed, len(table))
    case = {"tool": tool, "method": method}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        train.to_csv(folder / "train.csv", index=False)
        (folder / "domain.json").write_text(json.dumps(domain_of(schema)))
        files = [folder / each for each in ("train.csv", "domain.json", "synthetic.csv")]
        driver = Path(__file__).with_name(f"peers_{tool}.py")
        command = [python, driver, method, *files, "--rows", len(train), "--seed", seed]
        try:
            done = subprocess.run(
                list(map(str, command)),
                env={**os.environ, **ONE_THREAD},
                stdout=subprocess.PIPE,
                text=True,
                timeout=limit,
            )
        except subprocess.TimeoutExpired:
            return [{**case, "stopped": f"after {limit:g} s"}]
        if done.returncode:
            return [{**case, "stopped": f"exit status {done.returncode}"}]
        cost = json.loads(done.stdout.splitlines()[-1])
        found = []
        for file in sorted(folder.glob("synthetic*.csv")):
            rows = fs.read_table(file, schema)
            errors = {
                f"tv{order}": round(marginals.marginal_error(train, rows, schema, order).mean, 4)
                for order in (1, 2)
            }
            sampling = file.stem.removeprefix("synthetic").lstrip("_") or "shipped"
            score = round(learn_from(rows, test, schema, 0), 4)
            cpu = cost["fit_cpu_seconds"]
            found.append({**case, "sampling": sampling, "score": score, **errors, "cpu": cpu})
        return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="*", default=["spam7", "hpc", "wages"])
    parser.add_argument("--dpmm", help="the interpreter of its environment")
    parser.add_argument("--smartnoise", help="the interpreter of its environment")
    parser.add_argument("--methods", nargs="*", default=["mst", "aim"], help="of the peers")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=1500.0)
    options = parser.parse_args()
    for name in options.tables:
        found = [one for method in OURS for one in ours(name, method, options.seed)]
        for tool, method in THEIRS:
            python = getattr(options, tool)
            if python and method in options.methods:
                found += theirs(name, tool, method, options.seed, python, options.limit)
        with (HOME / "evaluation/results/peers_tables.jsonl").open("a") as file:
            for one in found:
                line = json.dumps({"data": name, "seed": options.seed, **one})
                print(line, flush=True)
                file.write(line + "\n")


if __name__ == "__main__":
    main()
