"""How often and how far settings tuned on synthetic rows are those that real rows would pick.

    FEDSYNTH_DATA=../shared/data nice python evaluation/studies/tuning.py [--data adult ..]
    python evaluation/studies/tuning.py --tables

The first goes on where it was stopped; five to eight minutes of one processor (OMP_NUM_THREADS=1) a
data set and split.
A data set is cut by its seed into 2,000 rows to learn from, and 4,000 others to test on. Of each
kind of model 50 candidates are drawn at random from the space that `fs.tune` searches, and the
model's own settings stand beside them; forests have 25 trees, all of them, where `fs.tune` has 100.
Every candidate is scored

- on releases at delta 1e-5 by AIM and FedVAE (10 silos, Dirichlet 0.5, nobody trusted), as
  `fs.tune` scores it: trained on one draw of 2,000 rows, scored on another;
- on 500 real rows, trained on 500 others; on all 2,000 by two folds of three;
- and in truth: trained on the 2,000, scored on the 4,000.

regret: what the candidate that a way picks loses in truth against the best of the same list. The
test rows choose that best, so every regret has the same small upward bias. The search itself
(Optuna's TPE) is left out: with one list for all, ways differ by their rows alone.

Of several releases mean ranks decide; what is taken is the most restrained of those within
`fedsynth.tuning.tuned.NEAR` of the best. Results of other rows, folds, trees or candidates are told
from these by their lines and left alone; of a method that was changed, delete the lines ("way").
"""

from __future__ import annotations

import argparse
import hashlib
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
from fedsynth.planning.drawing import draw_lines, save_plot
from fedsynth.tuning.rows import Supervised, score_model, supervise
from fedsynth.tuning.spaces import named_space
from fedsynth.tuning.tuned import NEAR, UNTRAINABLE
from fedsynth.tuning.tuning import _draw

HOME = Path(__file__).resolve().parents[1] / "results"
OUT, PLOT = HOME / "tuning.jsonl", HOME / "tuning.svg"
MODELS = ("gradient boosting", "logistic regression", "random forest", "multilayer perceptron")
DATA = ("adult", "credit_default", "bank_marketing", "randhie")
METHODS = {"aim": fs.AIM, "fedvae": fs.FedVAE}
EPSILONS = (0.3, 1.0, 3.0)
ROWS, TEST, FEW, TRIALS, TREES = 2_000, 4_000, 500, 50, 25
Pair = tuple[Supervised, Supervised]


def cut(data: str, seed: int):
    table, schema = rows_of(data)
    if schema.person is not None:
        # By row, as was measured: a person of randhie may be on both sides.
        table, schema = table.drop(columns=schema.person), schema.drop(schema.person)
    order = np.random.default_rng(seed).permutation(len(table))
    train, test = order[:ROWS], order[ROWS : ROWS + TEST]
    return *(table.iloc[one].reset_index(drop=True) for one in (train, test)), schema


def release(folder: Path, method: str, train, schema, epsilon: float, seed: int) -> Path:
    sites = fs.partition(train, 10, "dirichlet", schema=schema, seed=seed, beta=0.5)
    budget = fs.Budget(epsilon=epsilon, delta=1e-5, trust="distributed")
    told = {"progress": False, "caution": lambda sentence: None, "outside": "allow"}
    synth = METHODS[method](schema).fit(sites, budget, seed=seed, **told)
    synth.release(folder, rows=ROWS, seed=seed)
    return folder


def candidates_of(model: str, schema, seed: int) -> list[dict | None]:
    """The model's own settings, as None, and others drawn at random from its space."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space = named_space(model, schema)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
    drawn = [study.ask(space.distributions()).params for _ in range(TRIALS)]
    return [None, *(space.settings_of(one) for one in drawn)]


def digest_of(candidates: list[dict | None]) -> str:
    """Of all that a score depends on beside data, seed, model and way."""
    parts = [ROWS, TEST, FEW, TREES, candidates]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]


def numbers_of(pairs: list[Pair], model: str, schema) -> list[Pair]:
    """The same rows as the model's first step makes them, once for all candidates: none of them
    has a setting of that step."""
    found = []
    for learned, others in pairs:
        first = named_space(model, schema).build(schema, 0).named_steps["columns"]
        known = Supervised(first.fit_transform(learned.x), learned.y)
        found.append((known, Supervised(first.transform(others.x), others.y)))
    return found


def scores_on(pairs: list[Pair], model: str, candidates, schema, seed: int) -> list[float | None]:
    """Each candidate's mean score over pairs of rows to learn from and to be scored on."""
    pairs = numbers_of(pairs, model, schema)
    found: list[float | None] = []
    for settings in candidates:
        scores = []
        try:
            for learned, others in pairs:
                with silence_warnings():
                    made = named_space(model, schema).build(schema, seed)
                    made.set_params(**(settings or {}))
                    if model == "random forest":
                        made.set_params(model__n_estimators=TREES)
                    last = made.named_steps["model"].fit(learned.x, learned.y)
                    scores.append(
                        score_model(last, others, schema, "auroc" if schema.classes else "r2")
                    )
            found.append(round(float(np.mean(scores)), 6))
        except UNTRAINABLE:
            found.append(None)
    return found


def measure(data: str, seed: int, models, epsilons, known: dict[tuple, dict]) -> None:
    train, test, schema = cut(data, seed)
    whole, others = supervise(train, schema), supervise(test, schema)
    few = [supervise(train.iloc[a : a + FEW], schema) for a in (0, FEW)]
    folds = [
        (supervise(train.iloc[a], schema), supervise(train.iloc[b], schema))
        for a, b in list(KFold(3, shuffle=True, random_state=seed).split(train))[:2]
    ]
    real = {"truth": [(whole, others)], "real 500": [tuple(few)], "real all": folds}
    lists = {model: candidates_of(model, schema, seed) for model in models}

    def missing(model: str, way: str, epsilon: float | None) -> bool:
        line = known.get((data, seed, model, way, epsilon))
        return line is None or line["list"] != digest_of(lists[model])

    def tell(model: str, way: str, epsilon: float | None, pairs) -> None:
        start, candidates = time.process_time(), lists[model]
        line = {"data": data, "seed": seed, "model": model, "way": way, "epsilon": epsilon}
        line["list"] = digest_of(candidates)
        line["scores"] = scores_on(pairs, model, candidates, schema, seed)
        if way == "truth":
            capacity = named_space(model, schema).capacity
            line["capacity"] = [None, *(round(capacity(one), 4) for one in candidates[1:])]
        with OUT.open("a") as file:
            file.write(json.dumps(line) + "\n")
        spent = time.process_time() - start
        print(f"{data} {seed} {model} {way} {epsilon or ''}: {spent:.0f} CPU s", flush=True)

    for model in models:
        for way, pairs in real.items():
            if missing(model, way, None):
                tell(model, way, None, pairs)
    for epsilon in epsilons:
        for method in METHODS:
            wanted = [model for model in models if missing(model, method, epsilon)]
            if not wanted:
                continue
            with tempfile.TemporaryDirectory() as folder:
                made = release(Path(folder) / "release", method, train, schema, epsilon, seed)
                for model in wanted:
                    pairs = _draw(made, schema, ROWS, named_space(model, schema).pairs, seed).pairs
                    tell(model, method, epsilon, pairs)


def read() -> dict[tuple, dict]:
    """Lines by data, seed, model, way and epsilon; of each the last, and none that a kill cut."""
    text = OUT.read_text() if OUT.exists() else ""
    lines = map(json.loads, text[: text.rfind("\n") + 1].splitlines())
    return {
        (one["data"], one["seed"], one["model"], one["way"], one["epsilon"]): one for one in lines
    }


def pick(scores: np.ndarray, capacity: list[float | None], near: float) -> int:
    """The most restrained of the candidates that are near the best; the default knows no restraint
    of its own, so it is taken only where nothing else is."""
    close = np.flatnonzero(scores >= np.nanmax(scores) - near)
    known = [place for place in close if capacity[place] is not None]
    return min(known, key=lambda place: capacity[place]) if known else int(close[0])


BEST, NEARBY = "the best", f"the most restrained within {NEAR:g}"
WAYS = {
    "the default": "nothing: the default",
    "aim, best": f"AIM's rows: {BEST}",
    "aim, near": f".. {NEARBY}",
    "fedvae, best": f"FedVAE's rows: {BEST}",
    "fedvae, near": f".. {NEARBY}",
    "both, ranks": f"both, by mean ranks: {BEST}",
    "both, near": f"both, by mean scores: {NEARBY}",
    "real 500": "500 real rows",
    "real all": f"all {ROWS:,}, two folds of three",
}
DRAWN = {
    "the default": "the default",
    "aim, near": "AIM's rows",
    "fedvae, near": "FedVAE's rows",
    "both, near": "both methods' rows",
    "real 500": "500 real rows",
    "real all": f"all {ROWS:,} real rows",
}


def judge(lines: dict[tuple, dict], data: str, seed: int, model: str, epsilon: float):
    """Regret and rank correlation (where it has one) of each way to pick, by the way: nothing where
    one of them was not measured yet, or on another list of candidates."""
    ways = {name: (name, epsilon) for name in METHODS} | {
        name: (name, None) for name in ("real 500", "real all", "truth")
    }
    found = {name: lines.get((data, seed, model, *key)) for name, key in ways.items()}
    if None in found.values() or len({line["list"] for line in found.values()}) > 1:
        return {}
    scores = {name: np.array(line["scores"], float) for name, line in found.items()}
    true, capacity = scores.pop("truth"), found["truth"]["capacity"]
    best = np.nanmax(true)

    def order(given):
        return float(spearmanr(given, true, nan_policy="omit").statistic)

    told = {"the default": (best - true[0], None)}
    for name, given in scores.items():
        way = name if name.startswith("real") else f"{name}, best"
        told[way] = best - true[int(np.nanargmax(given))], order(given)
        if not name.startswith("real"):
            told[f"{name}, near"] = best - true[pick(given, capacity, NEAR)], None
    ranks = sum(rankdata(-scores[name]) for name in METHODS)
    told["both, ranks"] = best - true[int(np.argmin(ranks))], order(-ranks)
    mean = sum(scores[name] for name in METHODS) / len(METHODS)
    told["both, near"] = best - true[pick(mean, capacity, NEAR)], None
    return told


def show_tables() -> None:
    """Mean regrets by model, by epsilon and by data set, in Markdown; and a plot by epsilon."""
    lines = read()
    splits = sorted({(data, seed) for data, seed, *_ in lines})
    cases = [
        (data, seed, model, epsilon, found)
        for data, seed in splits
        for model in MODELS
        for epsilon in EPSILONS
        if (found := judge(lines, data, seed, model, epsilon))
    ]
    if not cases:
        print("nothing is measured whole yet")
        return
    counts = {data: len({seed for one, seed, *_ in cases if one == data}) for data in DATA}
    print(f"{len(cases)} cases; splits: {counts}\n")

    def mean(way: str, keep=lambda case: True) -> str:
        told = [case[4][way] for case in cases if keep(case)]
        if not told:
            return ""
        orders = [order for _, order in told if order is not None]
        shown = f" ({np.mean(orders):.2f})" if orders else ""
        return f"{np.mean([regret for regret, _ in told]):.4f}{shown}"

    def print_table(head: list[str], keeps, last=lambda way: []) -> None:
        print(f"| settings by | {' | '.join(head)} |\n|{' --- |' * (len(head) + 1)}")
        for way, words in WAYS.items():
            print(f"| {words} | {' | '.join([*(mean(way, keep) for keep in keeps), *last(way)])} |")
        print()

    def over_splits(way: str) -> list[str]:
        by = {}
        for data, seed, _, _, found in cases:
            by.setdefault((data, seed), []).append(found[way][0])
        means = [np.mean(each) for each in by.values()]
        error = f" +- {np.std(means, ddof=1) / len(means) ** 0.5:.4f}" if len(means) > 1 else ""
        worst = max(regret for each in by.values() for regret in each)
        return [f"{np.mean(means):.4f}{error}, {worst:.4f}"]

    print_table(
        [*MODELS, "all: mean +- standard error over splits, worst"],
        [lambda case, one=one: case[2] == one for one in MODELS],
        over_splits,
    )
    print_table(
        [f"epsilon {one:g}" for one in EPSILONS],
        [lambda case, one=one: case[3] == one for one in EPSILONS],
    )
    print_table(list(DATA), [lambda case, one=one: case[0] == one for one in DATA])
    drawn = {
        name: [
            (epsilon, float(np.mean([case[4][way][0] for case in cases if case[3] == epsilon])))
            for epsilon in sorted({case[3] for case in cases})
        ]
        for way, name in DRAWN.items()
    }
    label = "Mean regret in AUROC by epsilon of the releases, for each way to choose settings"
    plot = draw_lines(drawn, across="epsilon of each release", up="regret (AUROC)", label=label)
    PLOT.unlink(missing_ok=True)
    save_plot(plot, PLOT)
    print(PLOT)


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
            measure(data, seed, options.models, options.epsilons, read())


if __name__ == "__main__":
    main()
