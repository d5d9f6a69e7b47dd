"""Private Fusion: correlations, kinds of noise, and where its classifier should come from.

    FEDSYNTH_DATA=../shared/data python evaluation/studies/private_fusion.py [PART ..] [--seeds 1 2]

Record level, 10 clients (Dirichlet 0.5 over the label), delta 1e-5; every run cuts a table 80/20 by
its seed and draws as many rows as it trains on. auroc: gradient boosting trained on the drawn rows,
of the target of the real test rows; classifier, balanced: AUROC and balanced accuracy of the
release's own classifier on them; tv1, tv2: mean total variation of columns and pairs against the
training rows (20 quantile bins).

`correlations`: the copula, in the schema's order of categories and in a learned one, beside columns
independent within a class, at equal epsilon (1 and 3; distributed trust). `noise`: Gaussian,
Laplace and stable noise at equal epsilon (1 and 3), under local trust, and by
shares that add up. `marginals`: smoothed histograms beside families of distributions
on small tables, and how often a family fits. `labels`: each client alone under local trust, as in
paper 004: half the budget for the statistics and half for a classifier trained by DP-SGD (Opacus),
which labels the client's regenerated points; beside the classifier trained on rows regenerated at
the whole budget.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from pathlib import Path

import numpy as np
import torch

from fedsynth.data.tables import conform, read_table
from fedsynth.evaluation.measures import marginals, utility
from fedsynth.federation.simulation.partitions import partition
from fedsynth.methods.copula.cells import TableCells
from fedsynth.methods.copula.private import PrivateFusion
from fedsynth.methods.sampling.classifier import Classifier
from fedsynth.methods.sampling.design import Design
from fedsynth.privacy.budget import Budget
from fedsynth.schema import Schema

HOME = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("FEDSYNTH_DATA", HOME.parent / "shared/data"))
# Opacus: inputs need no gradients; its first search of the noise runs past its orders.
for words in ("Full backward hook", "Optimal order is the largest alpha"):
    warnings.filterwarnings("ignore", message=words)

OUT = HOME / "evaluation/results/private_fusion.jsonl"
FILES = {
    "adult": "adult/adult.csv.gz",
    "bank_marketing": "bank_marketing/bank_full.csv.gz",
    "credit_default": "credit_default/credit_default.csv.gz",
    "wdbc": "breast_cancer/wdbc.csv.gz",
    "voice": "gender_voice/voice.csv.gz",
    "audit": "audit/trial.csv.gz",
}
LARGE, SMALL = ("adult", "credit_default", "bank_marketing"), ("wdbc", "voice", "audit")
DELTA, CLIENTS = 1e-5, 10
PARTS = {
    "correlations": [
        {"data": data, "epsilon": epsilon, "settings": settings}
        for data in LARGE
        for epsilon in (1.0, 3.0)
        for settings in ({}, {"learned_orders": 64}, {"correlations": "none"})
    ],
    "noise": [
        {"data": "adult", "epsilon": epsilon, "trust": trust, "settings": {"mechanism": mechanism}}
        for epsilon in (1.0, 3.0)
        for mechanism in ("gaussian", "laplace", "stable")
        for trust in ("distributed", "local")
    ],
    "marginals": [
        {"data": data, "epsilon": epsilon, "settings": {"marginals": kind}}
        for data in SMALL
        for epsilon in (1.0, 3.0)
        for kind in ("histogram", "families")
    ],
}


def split(data, seed):
    schema = Schema.load(HOME / f"configs/schemas/{data}.yaml")
    table = read_table(DATA / FILES[data], schema)
    order = np.random.default_rng(seed).permutation(len(table))
    cut = int(0.8 * len(table))
    train = table.iloc[order[:cut]].reset_index(drop=True)
    test = table.iloc[order[cut:]].reset_index(drop=True)
    sites = partition(train, CLIENTS, "dirichlet", schema=schema, seed=seed, beta=0.5)
    return schema, train, test, sites


def auroc(schema, test, chances):
    from sklearn.metrics import balanced_accuracy_score, roc_auc_score

    labels = conform(test, schema).columns[schema.target]
    return {
        "classifier": round(float(roc_auc_score(labels, chances[:, 1])), 4),
        "balanced": round(float(balanced_accuracy_score(labels, chances.argmax(1))), 4),
    }


def run(seed, data, epsilon, settings, trust="distributed"):
    schema, train, test, sites = split(data, seed)
    synth = PrivateFusion(schema, **settings)
    start = time.perf_counter()
    synth.fit(sites, Budget(epsilon=epsilon, delta=DELTA, trust=trust), seed=seed)
    rows = synth.sample(len(train), seed=seed)
    seconds = time.perf_counter() - start
    scores = utility.compare(train, test, rows, schema, seed=0)
    numbers = [own for own in TableCells.of(schema).columns if own.grid is not None]
    return {
        "trust": trust,
        "epsilon": round(synth.ledger.spent().epsilon, 4),
        "messages": len(synth.ledger.events),
        "auroc": round(scores.synthetic.auroc, 4),
        "auroc_real": round(scores.real.auroc, 4),
        "accuracy": round(scores.synthetic.accuracy, 4),
        **auroc(schema, test, synth.probabilities(test)),
        "tv1": round(marginals.marginal_error(train, rows, schema, 1).mean, 4),
        "tv2": round(marginals.marginal_error(train, rows, schema, 2).mean, 4),
        "families": len(synth.learned.model.families),
        "numeric_profiles": len(numbers) * schema.classes,
        "seconds": round(seconds, 2),
    }


def public_inputs(schema, columns):
    """Scores of the cells, from the schema alone: what DP-SGD may be fed unseen."""
    cells = TableCells.of(schema, 64)
    codes = cells.codes(columns)
    scores = [own.scores[code] for own, code in zip(cells.columns, codes.T, strict=True)]
    return torch.tensor(np.concatenate(scores, axis=1), dtype=torch.float32)


def dp_sgd(x, y, classes, epsilon, delta, seed, epochs=20, batch=256, clip=1.0, lr=2e-3):
    """Paper 004's classifier by DP-SGD (Opacus): Poisson batches, one clip a record.

    The sampling rate is taken from the client's own number of rows, as if that were public.
    """
    from opacus import GradSampleModule
    from opacus.accountants.utils import get_noise_multiplier
    from opacus.optimizers import DPOptimizer

    torch.manual_seed(seed)
    rate = min(1.0, batch / max(1, len(x)))
    steps = max(1, round(epochs / rate))
    noise = get_noise_multiplier(
        target_epsilon=epsilon, target_delta=delta, sample_rate=rate, steps=steps, accountant="rdp"
    )
    layers = [torch.nn.Linear(x.shape[1], 100), torch.nn.ReLU(), torch.nn.Linear(100, 100)]
    model = GradSampleModule(
        torch.nn.Sequential(*layers, torch.nn.ReLU(), torch.nn.Linear(100, classes))
    )
    optimiser = DPOptimizer(
        torch.optim.Adam(model.parameters(), lr=lr),
        noise_multiplier=noise,
        max_grad_norm=clip,
        expected_batch_size=max(1, round(rate * len(x))),
    )
    for _ in range(steps):
        chosen = torch.rand(len(x)) < rate
        optimiser.zero_grad()
        # Opacus needs a row to hook. With 256 expected, or all of fewer, no batch is ever empty.
        at = torch.nonzero(chosen)[:, 0]
        if len(at):
            torch.nn.functional.cross_entropy(model(x[at]), y[at]).backward()
            optimiser.step()
    return lambda inputs: torch.softmax(model(inputs).detach().double(), 1).numpy()


def labels(seed, data, epsilon):
    """Both designs under local trust: every client's messages alone cost epsilon."""
    schema, _, test, sites = split(data, seed)
    whole = Budget(epsilon=epsilon, delta=DELTA, trust="local")
    ours = PrivateFusion(schema).fit(sites, whole, seed=seed)
    found = {"regenerated": auroc(schema, test, ours.probabilities(test))}
    rng = np.random.default_rng(seed)
    points, answers = [], []
    half = Budget(epsilon=epsilon / 2, delta=DELTA / 2, trust="local")
    for rows in sites.values():
        if not len(rows):
            continue
        own = PrivateFusion(schema).fit([rows], half, seed=seed)
        wanted = int(np.clip(own.learned.model.profiles.records.sum(), 1, 4000))
        drawn = conform(own.sample(wanted, seed=seed), schema).columns
        real = conform(rows, schema).columns
        y = torch.tensor(real[schema.target])
        predict = dp_sgd(
            public_inputs(schema, real), y, schema.classes, epsilon / 2, DELTA / 2, seed
        )
        chances = predict(public_inputs(schema, drawn))
        answers.append(
            (chances.cumsum(1) < rng.random((wanted, 1))).sum(1).clip(max=schema.classes - 1)
        )
        points.append(Design(schema).matrix(drawn))
    final = Classifier.train(
        np.concatenate(points), np.concatenate(answers), schema.classes, seed=seed
    )
    inputs = Design(schema).matrix(conform(test, schema).columns)
    found["dp-sgd labels"] = auroc(schema, test, final.probabilities(inputs))
    return found


def record(line):
    with OUT.open("a") as file:
        file.write(json.dumps(line) + "\n")
    print(json.dumps(line), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=[*PARTS, "labels"])
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3])
    options = parser.parse_args()
    kept = [json.loads(line) for line in OUT.read_text().splitlines()] if OUT.exists() else []
    OUT.write_text("".join(json.dumps(k) + "\n" for k in kept if k["part"] not in options.parts))
    for part in options.parts:
        for seed in options.seeds:
            for case in PARTS.get(part, []):
                record(
                    {
                        "part": part,
                        "seed": seed,
                        **case,
                        "target": case["epsilon"],
                        **run(seed, **case),
                    }
                )
            for data in ("adult", "bank_marketing") if part == "labels" else ():
                for epsilon in (1.0, 3.0):
                    for design, scores in labels(seed, data, epsilon).items():
                        case = {"data": data, "target": epsilon, "design": design}
                        record({"part": part, "seed": seed, **case, **scores})


if __name__ == "__main__":
    main()
