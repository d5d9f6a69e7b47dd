"""What owners that are late, leave or come late do to epsilon and to a classifier.

    FEDSYNTH_DATA=../shared/data python evaluation/studies/coming_and_going.py [--seeds 1 2 3]
    python evaluation/studies/coming_and_going.py --tables

fs.FederatedClassifier (logistic regression) on Adult, at its defaults; AUROC on 15,060 other rows.
What is measured already is left alone.

`record`: 10 silos (Dirichlet .5 over the label), records protected, epsilon 1, distributed trust,
three rounds in ten may lack anybody (`survivors: .3`). `client`: 100 owners of 240 rows each,
owners protected, noise fixed at 1 (so that epsilon is what that costs), the server trusted.

Each round of the training (the count before it has everybody):
    everybody       nobody is missing
    late SHARE      so many owners, others each time, are late for the round, and not waited for
    gone SHARE      so many owners answer the first half of the rounds, and none after
    new SHARE       so many answer the second half alone
Owners that leave, or come late, are those with the most rows of the rarer class: the worst for the
model. The sums are divided by what is public, all owners or the records counted, whoever answered.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import pandas as pd
from federated_classifier import cut, scores

import fedsynth as fs
from fedsynth.data.conforming import conform
from fedsynth.federation.request import Incident
from fedsynth.federation.simulation.simulation import Simulation

OUT = Path(__file__).resolve().parents[1] / "results/coming_and_going.jsonl"
CASES = (
    ("everybody", 0.0),
    *(("late", share) for share in (0.1, 0.3, 0.5)),
    *(("gone", share) for share in (0.3, 0.5)),
    *(("new", share) for share in (0.3, 0.5)),
)
BUDGETS = {
    "record": fs.Budget(epsilon=1.0, delta=1e-5, trust="distributed"),
    "client": fs.Budget(epsilon=float("inf"), delta=1e-3, unit="client", trust="central"),
}


class Unsteady(Simulation):
    """Owners of whom some are not there in rounds of the training.

    Args:
        away: who is missing, from the training's round and all owners.
    """

    def __init__(self, owners, schema, away) -> None:
        super().__init__(owners, schema)
        self._away = away

    def open(self, *given, **named):
        runtime = super().open(*given, **named)
        ask = runtime._ask

        def ask_those_there(request, cohort):
            away = set() if request.round == 0 else self._away(request.round - 1)
            yield from ask(request, [name for name in cohort if name not in away])
            yield from (
                Incident(name, request.round, "did not answer") for name in cohort if name in away
            )

        runtime._ask = ask_those_there
        return runtime


def absence(case: str, share: float, names: list[str], rounds: int, seed: int):
    """Names of who is away, by the round; `names` is in the order in which they would leave."""
    rng = np.random.default_rng(seed)
    many, half = round(share * len(names)), rounds // 2
    late = [set(rng.permutation(names)[:many].tolist()) for _ in range(rounds)]
    some = set(names[:many])
    return {
        "everybody": lambda number: set(),
        "late": lambda number: late[number],
        "gone": lambda number: some if number >= half else set(),
        "new": lambda number: some if number < half else set(),
    }[case]


def measure(unit: str, case: str, share: float, seed: int) -> dict[str, object]:
    train, test, schema = cut("adult", seed, 24_000)
    many = {"record": 10, "client": 100}[unit]
    scheme = {"scheme": "dirichlet", "beta": 0.5} if unit == "record" else {"scheme": "uniform"}
    owners = fs.partition(train, clients=many, schema=schema, seed=seed, **scheme)
    rare = train[schema.target].value_counts().index[-1]
    names = sorted(owners, key=lambda name: -int((owners[name][schema.target] == rare).sum()))
    settings = {} if unit == "record" else {"noise_multiplier": 1.0}
    model = fs.FederatedClassifier(schema, **settings)
    rounds = model.resolved(BUDGETS[unit]).rounds
    away = absence(case, share, names, rounds, seed)
    told: list[str] = []
    model.fit(
        Unsteady(owners, schema, away), BUDGETS[unit], seed=seed, outside="allow", progress=False,
        survivors=0.3 if unit == "record" else 1.0, caution=told.append,
    )  # fmt: skip
    found = scores(model.predict_proba(test), conform(test, schema).columns[schema.target])
    spent = model.ledger.spent().epsilon
    answered = sum(many - len(away(number)) for number in range(len(model.ledger.events) - 1)) / (
        many * rounds
    )
    return {**found, "epsilon": round(spent, 4), "answered": round(answered, 4),
            "told": len(model.incidents)}  # fmt: skip


def read() -> list[dict]:
    return [json.loads(line) for line in OUT.read_text().splitlines()] if OUT.exists() else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--units", nargs="*", default=list(BUDGETS), choices=list(BUDGETS))
    parser.add_argument("--cases", nargs="*", default=[case for case, _ in CASES])
    parser.add_argument("--shares", type=float, nargs="*", default=[0.0, 0.1, 0.3, 0.5])
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3])
    parser.add_argument("--tables", action="store_true")
    options = parser.parse_args()
    if options.tables:
        keys = ["unit", "case", "share"]
        told = pd.DataFrame(read()).groupby(keys, sort=False).agg(
            epsilon=("epsilon", "max"), answered=("answered", "mean"), auroc=("auroc", "mean"),
            accuracy=("accuracy", "mean"),
            splits=("seed", "nunique"),
        )  # fmt: skip
        print(told.round(4).to_string())
        return
    known = {(one["unit"], one["case"], one["share"], one["seed"]) for one in read()}
    for seed in options.seeds:
        for unit in options.units:
            for case, share in CASES:
                asked = case in options.cases and share in options.shares
                if not asked or (unit, case, share, seed) in known:
                    continue
                start = time.process_time()
                found = measure(unit, case, share, seed)
                line = {"unit": unit, "case": case, "share": share, "seed": seed, **found,
                        "cpu_seconds": round(time.process_time() - start, 1)}  # fmt: skip
                with OUT.open("a") as file:
                    file.write(json.dumps(line) + "\n")
                print(line, flush=True)


if __name__ == "__main__":
    main()
