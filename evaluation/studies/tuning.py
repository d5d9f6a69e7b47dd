"""How often and how far settings tuned on synthetic rows are those that real rows would pick.

    FEDSYNTH_DATA=../shared/data python evaluation/studies/tuning.py [--data adult ..]
    python evaluation/studies/tuning.py --tables

A data set is cut by its seed into 4,000 rows to learn from, and up to 8,000 others to test on.
Of each kind of model 50 candidates are drawn at random from the space that `fs.tune` searches, and
the model's own settings stand beside them. Every candidate is scored

- on releases at delta 1e-5 by AIM and FedVAE (10 silos, Dirichlet 0.5, nobody trusted), as
  `fs.tune` scores it: trained on one draw, scored on another;
- on 500 real rows, trained on 500 others; on all 4,000 by 3-fold cross-validation;
- and in truth: trained on the 4,000, scored on the others.

regret: what the candidate that a way picks loses in truth against the best of the same list. The
test rows choose that best, so every regret has the same small upward bias. The search itself
(Optuna's TPE) is left out: with one list for all, ways differ by their rows alone.

Of several releases mean ranks decide; what is taken is the most restrained of those within
`fedsynth.tuning.tuned.NEAR` of the best.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
from marginals import rows_of
from scipy.stats import rankdata, spearmanr
from sklearn.model_selection import KFold

import fedsynth as fs
from fedsynth.evaluation.models.learners import silence_warnings
from fedsynth.tuning.rows import score_model, supervise
from fedsynth.tuning.spaces import named_space
from fedsynth.tuning.tuned import NEAR, UNTRAINABLE
from fedsynth.tuning.tuning import _draw

OUT = Path(__file__).resolve().parents[1] / "results/tuning.jsonl"
MODELS = ("gradient boosting", "logistic regression", "random forest", "multilayer perceptron")
DATA = ("adult", "credit_default", "bank_marketing", "randhie")
METHODS = {"aim": fs.AIM, "fedvae": fs.FedVAE}
EPSILONS = (0.3, 1.0, 3.0)
ROWS, TEST, FEW, TRIALS = 4_000, 8_000, 500, 50


def cut(data: str, seed: int):
    table, schema = rows_of(data)
    order = np.random.default_rng(seed).permutation(len(table))
    train, test = order[:ROWS], order[ROWS : ROWS + TEST]
    return *(table.iloc[one].reset_index(drop=True) for one in (train, test)), schema


def release(folder: Path, method: str, train, schema, epsilon: float, seed: int) -> Path:
    sites = fs.partition(train, 10, "dirichlet", schema=schema, seed=seed, beta=0.5)
    budget = fs.Budget(epsilon=epsilon, delta=1e-5, trust="distributed")
    synth = METHODS[method](schema).fit(sites, budget, seed=seed, outside="allow")
    synth.release(folder, rows=ROWS, seed=seed)
    return folder


def candidates_of(model: str, schema, seed: int) -> list[dict | None]:
    """The model's own settings, as None, and others drawn at random from its space."""
    import optuna

    space = named_space(model, schema)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
    drawn = [study.ask(space.distributions()).params for _ in range(TRIALS)]
    return [None, *(space.settings_of(one) for one in drawn)]


def scores_on(pairs, model: str, candidates, schema, seed: int) -> list[float | None]:
    """Each candidate's mean score over pairs of rows to learn from and to be scored on."""
    found: list[float | None] = []
    for settings in candidates:
        scores = []
        try:
            for learned, others in pairs:
                with silence_warnings():
                    made = named_space(model, schema).build(schema, seed)
                    made.set_params(**(settings or {})).fit(learned.x, learned.y)
                    scores.append(
                        score_model(made, others, schema, "auroc" if schema.classes else "r2")
                    )
            found.append(round(float(np.mean(scores)), 6))
        except UNTRAINABLE:
            found.append(None)
    return found


def measure(data: str, seed: int, models, epsilons, known: set[tuple]) -> None:
    train, test, schema = cut(data, seed)
    whole, others = supervise(train, schema), supervise(test, schema)
    few = [supervise(train.iloc[a : a + FEW], schema) for a in (0, FEW)]
    folds = [
        (supervise(train.iloc[a], schema), supervise(train.iloc[b], schema))
        for a, b in KFold(3, shuffle=True, random_state=seed).split(train)
    ]
    real = {"truth": [(whole, others)], "real 500": [tuple(few)], "real all": folds}
    for model in models:
        candidates = candidates_of(model, schema, seed)
        capacity = named_space(model, schema).capacity
        for way, pairs in real.items():
            key = (data, seed, model, way, None)
            if key not in known:
                measured = scores_on(pairs, model, candidates, schema, seed)
                levels = [None, *(round(capacity(one), 4) for one in candidates[1:])]
                tell(key, measured, **({"capacity": levels} if way == "truth" else {}))
    for epsilon in epsilons:
        for method in METHODS:
            missing = [one for one in models if (data, seed, one, method, epsilon) not in known]
            if not missing:
                continue
            with tempfile.TemporaryDirectory() as folder:
                start = time.process_time()
                made = release(Path(folder) / "release", method, train, schema, epsilon, seed)
                print(
                    f"{method} at {epsilon:g}: {time.process_time() - start:.0f} CPU s", flush=True
                )
                for model in missing:
                    pairs = _draw(made, schema, ROWS, named_space(model, schema).pairs, seed).pairs
                    candidates = candidates_of(model, schema, seed)
                    measured = scores_on(pairs, model, candidates, schema, seed)
                    tell((data, seed, model, method, epsilon), measured)


def tell(key: tuple, scores, **more) -> None:
    data, seed, model, way, epsilon = key
    line = {"data": data, "seed": seed, "model": model, "way": way, "epsilon": epsilon}
    with OUT.open("a") as file:
        file.write(json.dumps({**line, "scores": scores, **more}) + "\n")
    print(*key, max(one for one in scores if one is not None), flush=True)


def read() -> dict[tuple, dict]:
    if not OUT.exists():
        return {}
    lines = map(json.loads, OUT.read_text().splitlines())
    return {
        (one["data"], one["seed"], one["model"], one["way"], one["epsilon"]): one for one in lines
    }


def pick(scores: np.ndarray, capacity: list[float | None], near: float) -> int:
    """The most restrained of the candidates that are near the best; the default knows no restraint
    of its own, so it is taken only where nothing else is."""
    close = np.flatnonzero(scores >= np.nanmax(scores) - near)
    known = [place for place in close if capacity[place] is not None]
    return min(known, key=lambda place: capacity[place]) if known else int(close[0])


def judge(lines: dict[tuple, dict], data: str, seed: int, model: str, epsilon: float):
    """Regrets and rank correlations of each way to pick, where all of them were measured."""
    ways = {name: (name, epsilon) for name in METHODS} | {
        name: (name, None) for name in ("real 500", "real all")
    }
    found = {name: lines.get((data, seed, model, *key)) for name, key in ways.items()}
    truth = lines.get((data, seed, model, "truth", None))
    if truth is None or None in found.values():
        return
    true = np.array(truth["scores"], float)
    scores = {name: np.array(line["scores"], float) for name, line in found.items()}
    ranks = sum(rankdata(-scores[name]) for name in METHODS)
    scores["both, mean score"] = sum(scores[name] for name in METHODS) / len(METHODS)
    best = np.nanmax(true)
    yield "the default", best - true[0], None
    for name, given in scores.items():
        order = float(spearmanr(given, true, nan_policy="omit").statistic)
        yield f"{name}: the best", best - true[int(np.nanargmax(given))], order
        if not name.startswith("real"):
            taken = pick(given, truth["capacity"], NEAR)
            yield f"{name}: near the best", best - true[taken], order
    yield "both, mean rank: the best", best - true[int(np.argmin(ranks))], None


def show_tables() -> None:
    """Means over data sets and splits, by model and epsilon."""
    lines = read()
    for model in MODELS:
        for epsilon in EPSILONS:
            found: dict[str, list[tuple[float, float | None]]] = {}
            cases = sorted({(data, seed) for data, seed, *_ in lines})
            for data, seed in cases:
                for way, regret, order in judge(lines, data, seed, model, epsilon):
                    found.setdefault(way, []).append((regret, order))
            for way, several in found.items():
                regrets = [regret for regret, _ in several]
                orders = [order for _, order in several if order is not None]
                told = f", Spearman {np.mean(orders):.2f}" if orders else ""
                print(
                    f"{model}, epsilon {epsilon:g}, {way}: regret {np.mean(regrets):.4f}, at worst "
                    f"{max(regrets):.4f}{told} ({len(regrets)} cases)"
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="*", default=DATA)
    parser.add_argument("--models", nargs="*", default=MODELS)
    parser.add_argument("--epsilons", type=float, nargs="*", default=EPSILONS)
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3])
    parser.add_argument("--tables", action="store_true")
    options = parser.parse_args()
    if options.tables:
        show_tables()
        return
    for seed in options.seeds:
        for data in options.data:
            measure(data, seed, options.models, options.epsilons, set(read()))


if __name__ == "__main__":
    main()
