"""What an evaluation says of five releases of Adult, from a fresh sample of people to a copy.

    FEDSYNTH_DATA=../shared/data python evaluation/studies/evaluation.py [--seeds 0 1] [--save DIR]

48,842 rows are cut by the seed: 40 % to learn from, 20 % held out, 40 % never shown to anything,
which stand for a perfect release (`real`). `independent`: the learned rows, every column shuffled
on its own. `aim`, `fedvae`: 10 silos (Dirichlet 0.5 over the label), nobody trusted, record level,
epsilon 1, delta 1e-5, bins and frequencies included. `copy`: the learned rows themselves. Each has
as many rows as were learned from. All metrics but shadow models.

A line of JSON a release in `evaluation/results/evaluation_adult.jsonl`; --save writes the reports.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np
import pandas as pd

import fedsynth as fs
from fedsynth.evaluation.evaluating import Evaluation
from fedsynth.evaluation.findings.results import share_of_gain

HOME = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("FEDSYNTH_DATA", HOME.parent / "shared" / "data"))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--save", type=Path, default=None)
    options = parser.parse_args()
    schema = fs.Schema.load(HOME / "configs/schemas/adult.yaml")
    table = fs.read_table(DATA / "adult/adult.csv.gz", schema)
    out = HOME / "evaluation/results/evaluation_adult.jsonl"
    with out.open("w") as file:
        for seed in options.seeds:
            order = np.random.default_rng(seed).permutation(len(table))
            ends = (int(0.4 * len(table)), int(0.6 * len(table)))
            train, real, fresh = (table.iloc[part] for part in np.split(order, ends))
            for name, rows in releases(train, fresh, schema, seed).items():
                started = time.process_time()
                found = fs.evaluate(
                    real,
                    rows,
                    schema,
                    train=train,
                    models="thorough",
                    title=f"Adult, {name}",
                    seed=seed,
                )
                line = {"release": name, "seed": seed, **figures(found)}
                line["seconds"] = round(time.process_time() - started, 1)
                print(json.dumps(line))
                print(json.dumps(line), file=file, flush=True)
                if options.save is not None:
                    found.save(options.save / f"{name}-{seed}")


def releases(
    train: pd.DataFrame, fresh: pd.DataFrame, schema: fs.Schema, seed: int
) -> dict[str, pd.DataFrame]:
    """Rows to evaluate, by name."""
    sites = fs.partition(train, 10, "dirichlet", schema=schema, beta=0.5, seed=seed)
    budget = fs.Budget(epsilon=1.0, delta=1e-5, unit="record", trust="distributed")
    made = {
        name: method(schema).fit(sites, budget, seed=seed).sample(len(train), seed=seed)
        for name, method in (("aim", fs.AIM), ("fedvae", fs.FedVAE))
    }
    shuffled = train.copy()
    rng = np.random.default_rng(seed)
    for name in shuffled:
        shuffled[name] = rng.permutation(shuffled[name].to_numpy())
    return {"real": fresh.iloc[: len(train)], "independent": shuffled, **made, "copy": train}


def figures(found: Evaluation) -> dict[str, object]:
    """The figures of one evaluation that the table shows."""
    fidelity, utility, privacy = found.fidelity, found.utility, found.privacy
    assert fidelity is not None and utility is not None
    first = utility.models[0]
    strongest = max(privacy.membership, key=lambda attack: attack.auroc)
    share = share_of_gain(utility)
    return {
        "auroc": first.synthetic["auroc"],
        "auroc_real": first.real["auroc"],
        "kept": share,
        "tv": [error.mean for error in fidelity.marginals],
        "told": {one.name: one.auroc for one in fidelity.detection},
        "pmse_ratio": fidelity.detection[0].pmse_ratio,
        "quality": fidelity.quality.score,
        "diagnostic": fidelity.diagnostic.score,
        "ranks": utility.agreement.classifiers.spearman,
        "ranks_settings": utility.agreement.settings.spearman,
        "membership": {one.name: one.auroc for one in privacy.membership},
        "tpr": {rate.fpr: rate.value for rate in strongest.tpr},
        "risks": {
            risk.name if risk.column is None else f"{risk.name} {risk.column}": risk.risk
            for risk in privacy.risks
        },
        "gains": {one.column: one.gain for one in privacy.attributes},
        "copies": privacy.neighbours.copies if privacy.neighbours is not None else None,
        "attacks": len(privacy.membership) + len(privacy.risks),
        "caught": len(found.caught),
    }


if __name__ == "__main__":
    main()
