"""Attacks on Adult beside Anonymeter's: a copy, a tenth of a copy, and an independent sample.

    FEDSYNTH_DATA=../shared/data python evaluation/studies/anonymeter.py ANONYMETER/bin/python

`peers_anonymeter.py` says how to make its environment. Both tools get the same rows: 12,000 for
training, 6,000 held out, 12,000 of a release, split anew with each seed; Anonymeter makes 500
attacks of a kind, fedsynth as many as by default. A line for every release and seed is added to
results/anonymeter.jsonl: of each attack both tools' figures, fedsynth's with what it calls caught.
Anonymeter has no such call; its own interval above 0 is the nearest to it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from fedsynth.evaluation.attacks.inference import inference
from fedsynth.evaluation.attacks.linkability import linkability
from fedsynth.evaluation.attacks.singling_out import singling_out
from fedsynth.evaluation.reading.rows import Rows, read_rows
from fedsynth.schema import Schema

HOME = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("FEDSYNTH_DATA", HOME.parent / "shared/data"))
SECRETS = ("income", "occupation", "age", "education", "fnlwgt")
COLUMNS = 8


def ours(synthetic: Rows, train: Rows, real: Rows, seed: int) -> dict[str, dict[str, float | bool]]:
    found = {}

    def add(risks, start):
        for risk in risks:
            name = risk.name if risk.column is None else f"{risk.name} of {risk.column}"
            told = {
                key: round(getattr(risk, key), 4)
                for key in ("risk", "low", "high", "attack", "control", "baseline")
            }
            spent = (time.process_time() - start) / len(risks)
            found[name] = told | {"caught": risk.caught, "cpu_seconds": round(spent, 1)}

    start = time.process_time()
    add(singling_out(synthetic, train, real, columns=COLUMNS, seed=seed), start)
    start = time.process_time()
    add([linkability(synthetic, train, real, seed=seed)], start)
    start = time.process_time()
    add(inference(synthetic, train, real, secrets=SECRETS, seed=seed).risks, start)
    return found


def theirs(python: str, frames: list[pd.DataFrame], seed: int) -> dict[str, dict[str, float]]:
    columns = list(frames[0].columns)
    settings = {
        "attacks": 500,
        "seed": seed,
        "columns": COLUMNS,
        "halves": [columns[::2], columns[1::2]],
        "secrets": SECRETS,
    }
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{name}.csv" for name in ("train", "real", "synthetic")]
        for frame, path in zip(frames, paths, strict=True):
            frame.to_csv(path, index=False)
        told = Path(folder) / "settings.json"
        told.write_text(json.dumps(settings))
        script = Path(__file__).with_name("peers_anonymeter.py")
        # -P: this folder's anonymeter.py must not be taken for the package.
        done = subprocess.run(
            [python, "-P", script, *paths, told], check=True, stdout=subprocess.PIPE, text=True
        )
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("python", help="of the environment with Anonymeter")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    schema = Schema.load(HOME / "configs/schemas/adult.yaml")
    frame = pd.read_csv(DATA / "adult/adult.csv.gz", keep_default_na=False, dtype=str)
    results = HOME / "evaluation/results/anonymeter.jsonl"
    for seed in range(1, options.seeds + 1):
        mixed = frame.iloc[np.random.default_rng(seed).permutation(len(frame))]
        train, real, other = mixed[:12_000], mixed[12_000:18_000], mixed[18_000:30_000]
        releases = {
            "copy": train,
            "tenth": pd.concat([train[:1_200], other[1_200:]]),
            "independent": other,
        }
        for name, release in releases.items():
            frames = [train, real, release]
            tables = [read_rows(f, schema, "adult") for f in (release, train, real)]
            line = {
                "release": name,
                "seed": seed,
                "rows": dict(zip(("train", "real", "synthetic"), map(len, frames), strict=True)),
                "fedsynth": ours(*tables, seed),
                "anonymeter": theirs(options.python, frames, seed),
            }
            print(json.dumps(line))
            with results.open("a") as file:
                file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
