"""How often and how far settings tuned on synthetic rows are those that real rows would pick.

    FEDSYNTH_DATA=../shared/data python evaluation/studies/tuning.py [--data adult ..] [--trials 20]

A data set is cut by its seed into 8,000 rows to learn from, and up to 8,000 others to test on.
Releases at delta 1e-5 by AIM and FedVAE, 10 silos (Dirichlet 0.5), nobody trusted. `fs.tune`
searches each release, and both by mean ranks; every candidate is then trained on the real rows and
tested on the others. regret: what the settings taken lose on them against the best candidate of the
same search. Beside it the regret of the default settings, of the candidate that does best on 500
real rows, and of the one that does best in 3-fold cross-validation on all 8,000.

The test rows choose the best candidate, so every regret has the same small upward bias.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
from marginals import rows_of
from sklearn.model_selection import KFold

import fedsynth as fs
from fedsynth.evaluation.measures.agreement import agreement
from fedsynth.evaluation.models.learners import silence_warnings
from fedsynth.tuning.rows import score_model, supervise
from fedsynth.tuning.tuned import Tuned

OUT = Path(__file__).resolve().parents[1] / "results/tuning.jsonl"
MODELS = ("gradient boosting", "logistic regression", "random forest", "multilayer perceptron")
DATA = ("adult", "bank_marketing", "credit_default", "randhie")
METHODS = {"aim": fs.AIM, "fedvae": fs.FedVAE}
ROWS, FEW = 8_000, 500


def cut(data: str, seed: int):
    table, schema = rows_of(data)
    order = np.random.default_rng(seed).permutation(len(table))
    train, test = order[:ROWS], order[ROWS : 2 * ROWS]
    return *(table.iloc[one].reset_index(drop=True) for one in (train, test)), schema


def release(folder: Path, method: str, train, schema, epsilon: float, seed: int) -> Path:
    sites = fs.partition(train, 10, "dirichlet", schema=schema, seed=seed, beta=0.5)
    budget = fs.Budget(epsilon=epsilon, delta=1e-5, trust="distributed")
    synth = METHODS[method](schema).fit(sites, budget, seed=seed, outside="allow")
    synth.release(folder, rows=ROWS, seed=seed)
    return folder


def on_rows(found: Tuned, settings, parts) -> float | None:
    """The mean score of a setting over pairs of rows to learn from and to test on."""
    scores = []
    for learned, others in parts:
        try:
            with silence_warnings():
                model = found.build(settings).fit(learned.x, learned.y)
                scores.append(score_model(model, others, found.schema, found.metric))
        except ValueError:
            return None
    return float(np.mean(scores))


def judge(found: Tuned, train, test, seed: int) -> dict:
    """Regret of each way to choose among one search's candidates, on the same real test rows."""
    settings = [one.settings for one in found.candidates]
    whole, others = (supervise(rows, found.schema) for rows in (train, test))
    truth = [on_rows(found, one, [(whole, others)]) for one in settings]
    best = max(score for score in truth if score is not None)
    few = supervise(train.iloc[:FEW], found.schema)
    more = supervise(train.iloc[FEW : 2 * FEW], found.schema)
    folds = [
        (supervise(train.iloc[a], found.schema), supervise(train.iloc[b], found.schema))
        for a, b in KFold(3, shuffle=True, random_state=seed).split(train)
    ]
    ways = {
        "synthetic": [one.score for one in found.candidates],
        "real_500": [on_rows(found, one, [(few, more)]) for one in settings],
        "real_all": [on_rows(found, one, folds) for one in settings],
    }
    names = [str(one.number) for one in found.candidates]
    result = {"best": best, "default": best - on_rows(found, None, [(whole, others)])}
    for way, scores in ways.items():
        order = agreement(names, scores, truth).spearman
        place = int(np.argmax([-np.inf if one is None else one for one in scores]))
        taken = found.candidates.index(found.best) if way == "synthetic" else place
        result[way] = {"spearman": order, "regret": best - truth[taken]}
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="*", default=DATA)
    parser.add_argument("--models", nargs="*", default=MODELS)
    parser.add_argument("--epsilons", type=float, nargs="*", default=[0.3, 1.0, 3.0])
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3])
    options = parser.parse_args()
    OUT.unlink(missing_ok=True)
    for seed in options.seeds:
        for data in options.data:
            train, test, schema = cut(data, seed)
            for epsilon in options.epsilons:
                with tempfile.TemporaryDirectory() as folder:
                    made = {
                        method: release(Path(folder) / method, method, train, schema, epsilon, seed)
                        for method in METHODS
                    }
                    searched = {name: [one] for name, one in made.items()}
                    searched["both"] = list(made.values())
                    for model in options.models:
                        for name, releases in searched.items():
                            start = time.process_time()
                            found = fs.tune(releases, model, trials=options.trials, seed=seed)
                            seconds = time.process_time() - start
                            line = {
                                "data": data,
                                "seed": seed,
                                "epsilon": epsilon,
                                "model": model,
                                "releases": name,
                                "trials": options.trials,
                                "cpu_seconds": round(seconds, 1),
                                **judge(found, train, test, seed),
                            }
                            with OUT.open("a") as file:
                                file.write(json.dumps(line) + "\n")
                            way = line["synthetic"]
                            print(
                                f"{data} {epsilon:g} {model}, {name}: regret {way['regret']:.4f} "
                                f"(default {line['default']:.4f}, 500 rows "
                                f"{line['real_500']['regret']:.4f}, all "
                                f"{line['real_all']['regret']:.4f}), Spearman {way['spearman']}",
                                flush=True,
                            )


if __name__ == "__main__":
    main()
