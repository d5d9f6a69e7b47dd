"""Rows of one person: what a split by row makes of real rows' scores, and of attacks' alarms.

    python evaluation/studies/persons.py [--seeds 1 2 3] [--attacks 10]

randhie: 20,190 years of 5,912 persons, one to five each. `scores`: four fifths of the rows, or of
the persons, teach a classifier, which is tested on the others; `known` is the share of test rows
whose person is among those learned from. `alarms`: training rows, held-out and "synthetic" rows
are those of different random persons (800, 800, and a row each of 2,000), so that the table gives
nobody away; how many of so many draws raise an alarm, by each attack, when it takes every row for
independent and when it knows whose the rows are.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np

from fedsynth.data.datasets import builtin_schema, load_builtin
from fedsynth.data.persons import people_of, split_people
from fedsynth.evaluation.attacks.suite import attack_table
from fedsynth.evaluation.measures.utility import compare
from fedsynth.evaluation.reading.rows import Rows, read_rows

OUT = Path(__file__).resolve().parents[1] / "results/persons.jsonl"
LEARNED, DRAWN = 800, 2_000


def score(table, schema, seed: int, by: str) -> dict[str, object]:
    """AUROC and accuracy of real rows, split by "row" or by "person"."""
    persons = people_of(table, schema, "randhie")
    people = persons if by == "person" else np.arange(len(table))
    count = int(0.8 * (people.max() + 1))
    parts = split_people(people, count, np.random.default_rng(seed))
    train, test = (table.iloc[part].reset_index(drop=True) for part in parts)
    found = compare(train, test, train, schema, seed=0).real
    known = float(np.isin(persons[parts[1]], persons[parts[0]]).mean())
    figures = {"auroc": found.auroc, "accuracy": found.accuracy, "known": known}
    return {"what": "scores", "by": by, "seed": seed} | {k: round(v, 4) for k, v in figures.items()}


def alarms(rows: Rows, seed: int, by: str) -> dict[str, object]:
    """The attacks that raised one, on a table that gives nobody away."""
    rng = np.random.default_rng(seed)
    train, rest = (rows.take(part) for part in split_people(rows.people, LEARNED, rng))
    real, rest = (rest.take(part) for part in split_people(rest.people, LEARNED, rng))
    made = rest.one_each(seed).sample(DRAWN, seed)
    made = replace(made, persons=None)
    if by == "row":
        train, real = replace(train, persons=None), replace(real, persons=None)
    found = attack_table(made, train, real, seed=seed, progress=lambda done, total: None)
    attacks = [*found.membership, *found.risks]
    raised = [one.name for one in attacks if one.caught]
    return {"what": "alarms", "by": by, "seed": seed, "tried": len(attacks), "raised": raised}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3])
    parser.add_argument("--attacks", type=int, default=10)
    options = parser.parse_args()
    table, schema = load_builtin("randhie"), builtin_schema("randhie")
    rows = read_rows(table, schema, "randhie")
    lines = []
    for by in ("row", "person"):
        scored = [score(table, schema, seed, by) for seed in options.seeds]
        tried = [alarms(rows, seed, by) for seed in range(options.attacks)]
        lines += [*scored, *tried]
        for name in ("auroc", "accuracy", "known"):
            values = [one[name] for one in scored]
            print(f"by {by}: {name} {np.mean(values):.3f} ({min(values):.3f} to {max(values):.3f})")
        raised = Counter(name for one in tried for name in set(one["raised"]))
        print(f"by {by}: of {len(tried)} draws alarms by {dict(raised)}", flush=True)
    OUT.write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
