"""AIM, MST and PrivBayes beside FedVAE, on raw columns, everything within one epsilon.

    FEDSYNTH_DATA=../shared/data python evaluation/studies/marginals.py [--table NAME] [--seeds 4 5]

Every run cuts a data set 80/20 by its seed, fits on the training rows (delta 1e-5), draws as many
rows, and trains gradient boosting on them to predict the target of the real test rows, numbers as
numbers. tv1, tv2, tv3: mean total variation of 1-, 2- and 3-way marginals against the training rows
(20 quantile bins; up to 1,000 sets of columns). `--thorough`: the best F1 of all classifiers beside
it. What is measured already is left alone. Settings were chosen on the splits of seeds 1 to 3
of Adult; the figures are of others.

`adult`: every method with 10 silos (Dirichlet 0.5 over the label) and nobody trusted, and AIM with
one silo and a trusted server. `peers`: AIM alone, for the splits of `peers.py` (--seeds 1 2 3).
`epsilons`: AIM at 0.3 and 3. `curious`: what shares of noise for all
owners but one cost, by how many there are. `bins`: the real training rows through
AIM's bins and back, for what these lose alone. `messages`: AIM's finer marginals in 1
to 25 messages. `selection`: with a trusted server, choices among exact scores or among noisy sums.
`auto`: what `method: auto` takes on Adult, noise for one curious owner included, with the share of
rows whose values hardly go together (seeds 41 to 45: on no split of theirs was anything chosen).
`choices`: the same, were the tables that tell most known for nothing: what is asked again is chosen
among exact sums, and next to nothing is spent on coarse ones. No private fit: a bound on what
choosing better could bring.
`datasets`: all methods on four more data sets. `epilepsy`: paper 001's comparison with PrivBayes:
179 columns, 20 clients, record level. `ways`: PrivBayes by every way of federating that paper 001
names, the last being each owner's own model, noised and released alone, and rows of all of them by
the numbers of records that they estimate (`apart`: every owner is a job of its own, trusted by
itself; a record is in one of them).
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import time
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd

from fedsynth.data.datasets import builtin_schema, load_builtin
from fedsynth.data.persons import people_of, split_people
from fedsynth.data.tables import conform, read_table
from fedsynth.evaluation.measures import marginals, utility
from fedsynth.evaluation.measures.coherence import coherence
from fedsynth.evaluation.reading.rows import read_real_rows, read_rows
from fedsynth.federation.simulation.partitions import partition
from fedsynth.marginals import Measurement, count
from fedsynth.methods.marginal.search import Search
from fedsynth.privacy.budget import Budget
from fedsynth.registry import METHODS
from fedsynth.schema import Schema

HOME = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("FEDSYNTH_DATA", HOME.parent / "shared/data"))
FILES = {
    "adult": ("adult", "adult/adult.csv.gz"),
    "bank_marketing": ("bank_marketing", "bank_marketing/bank_full.csv.gz"),
    "credit_default": ("credit_default", "credit_default/credit_default.csv.gz"),
    "covertype": ("covertype", "covertype/covertype_15120.csv.gz"),
    "epilepsy": ("seizure", "epilepsy/epilepsy.csv.gz"),
}
SILOS = {"clients": 10, "trust": "distributed"}
ONE = {"clients": 1, "trust": "central", "settings": {"selection": "exponential"}}
EPILEPSY = {"data": "epilepsy", "clients": 20, "trust": "distributed"}
TABLES = {
    "adult": [
        {"method": "aim", **SILOS},
        {"method": "aim", **ONE},
        {"method": "mst", **SILOS},
        {"method": "mst", **ONE},
        {"method": "privbayes", **SILOS},
        {"method": "privbayes", **SILOS, "settings": {"degree": 3}},
        {"method": "privbayes", **SILOS, "settings": {"structure": "votes"}},
        {"method": "fedvae", **SILOS},
    ],
    "ways": [
        {"method": "privbayes", "clients": 10, "trust": trust, "settings": settings, "apart": apart}
        for trust, settings, apart in (
            ("distributed", {}, False),
            ("distributed", {"structure": "votes"}, False),
            ("local", {}, False),
            ("central", {}, True),
        )
    ],
    "peers": [{"method": "aim", **SILOS}, {"method": "aim", **ONE}],
    "epsilons": [
        {"method": "aim", **where, "epsilon": epsilon}
        for epsilon in (0.3, 3.0)
        for where in (SILOS, ONE)
    ],
    "bins": [
        {"method": "aim", **SILOS, "epsilon": epsilon, "bins_alone": True} for epsilon in (1.0, 3.0)
    ],
    "curious": [
        {"method": "aim", "clients": clients, "trust": "distributed", "curious": curious}
        for clients in (2, 3, 5, 10)
        for curious in (0, 1)
    ],
    "messages": [
        {"method": "aim", **SILOS, "settings": {"messages": count}} for count in (1, 2, 4, 8, 25)
    ],
    "selection": [
        {"method": "aim", **ONE, "epsilon": epsilon, "settings": {"selection": selection}}
        for epsilon in (0.3, 1.0, 3.0)
        for selection in ("exponential", "sums")
    ],
    "datasets": [
        {"method": method, "data": data, **SILOS}
        for data in ("bank_marketing", "credit_default", "covertype", "randhie")
        for method in ("aim", "mst", "privbayes", "fedvae")
    ],
    "auto": [{"method": "aim", **SILOS, "curious": 1}],
    "choices": [
        {
            "method": "aim",
            **SILOS,
            "curious": 1,
            "exact_choices": True,
            "settings": {"coarse_share": 0.05},
        }
    ],
    "epilepsy": [
        {
            **EPILEPSY,
            "method": method,
            "scheme": scheme,
            "epsilon": epsilon,
            "settings": settings,
        }
        for epsilon in (1.0, float("inf"))
        for scheme in ("uniform", "kmeans", "geometric")
        for method, settings in (("privbayes", {"degree": 1}), ("aim", {}))
    ]
    + [{**EPILEPSY, "method": "fedvae", "scheme": "uniform"}],
}


def rows_of(data):
    if data == "randhie":
        return load_builtin("randhie"), builtin_schema("randhie")
    name, path = FILES[data]
    schema = Schema.load(HOME / f"configs/schemas/{name}.yaml")
    if data != "epilepsy":
        return read_table(DATA / path, schema), schema
    from fedsynth.jobs.config import load_config
    from fedsynth.jobs.data import prepare

    config, base = load_config(HOME / "configs/epilepsy.yaml", ["holdout=0"])
    return prepare(config, base).train, schema


def exact_candidates(train):
    """What :class:`Search` chooses among, counted in the rows themselves."""

    def find(search):
        encoding, sizes = search.measurer.encoding, search.domain
        codes = encoding.encode(conform(train, encoding.schema))
        pairs = [c for wide in search.workload for c in itertools.combinations(wide, 2)]
        among = dict.fromkeys([*search.workload, *(c for c in pairs if search.target not in c)])
        return [Measurement(c, count(sizes, codes, c), 1.0) for c in among if len(c) > 1]

    return find


def said(seed, method, clients, trust, **more):
    """What tells a line of results from others; None of what it does not say."""
    other = {"data": "adult", "epsilon": 1.0, "settings": None, "scheme": "dirichlet", **more}
    flags = {
        key: other.get(key) or None for key in ("apart", "bins_alone", "exact_choices", "thorough")
    }
    return {
        "data": other["data"],
        "method": method,
        "clients": clients,
        "trust": trust,
        "scheme": other["scheme"],
        "settings": other["settings"] or {},
        "seed": seed,
        "target": str(other["epsilon"]),
        "curious": other.get("curious"),
        **flags,
    }


def run(
    seed,
    method,
    clients,
    trust,
    data="adult",
    epsilon=1.0,
    settings=None,
    scheme="dirichlet",
    bins_alone=False,
    curious=None,
    apart=False,
    exact_choices=False,
    thorough=False,
):
    wanted = said(**locals())
    table, schema = rows_of(data)
    # By person, where a table tells whose its rows are; else every row is somebody's own.
    people = people_of(table, schema, data)
    kept, rest = split_people(people, int(0.8 * (people.max() + 1)), np.random.default_rng(seed))
    train, test = (table.iloc[part].reset_index(drop=True) for part in (kept, rest))
    sites = {"all": train}
    if clients > 1:
        options = {"beta": 0.5} if scheme == "dirichlet" else {}
        sites = partition(train, clients, scheme, schema=schema, seed=seed, **options)
    start = time.process_time()
    insecure = {} if np.isfinite(epsilon) else {"insecure_noise_seed": 0}
    budget = Budget(epsilon=epsilon, delta=1e-5, trust=trust, curious=curious)
    jobs = [{name: own} for name, own in sites.items()] if apart else [sites]
    synths = [METHODS[method](schema, **(settings or {})) for _ in jobs]
    chosen = patch.object(Search, "_candidates", exact_candidates(train))
    with chosen if exact_choices else contextlib.nullcontext():
        for one, job in zip(synths, jobs, strict=True):
            one.fit(job, budget, seed=seed, outside="allow", **insecure)
    known = np.array([one.learned.records if apart else 1.0 for one in synths])
    counts = np.round(len(train) * known / known.sum()).astype(int)
    rows = pd.concat(
        [one.sample(int(n), seed=seed) for one, n in zip(synths, counts, strict=True) if n],
        ignore_index=True,
    )
    synth = max(synths, key=lambda one: one.ledger.spent().epsilon)
    seconds = time.process_time() - start
    if bins_alone:
        encoding = synth.learned.encoding
        codes = encoding.encode(conform(train, schema))
        rows = encoding.decode(codes, np.random.default_rng(seed))
    scores = utility.compare(train, test, rows, schema, seed=0)
    learned, drawn, real = (
        read(part, schema, "rows")
        for read, part in ((read_real_rows, train), (read_rows, rows), (read_real_rows, test))
    )
    sense = coherence(drawn, learned, real)
    best = {}
    if thorough:
        tried = utility.utility(drawn, learned, real, models="thorough", augment=False).models
        figures = [(one.synthetic["f1_positive"] or 0.0, one.name) for one in tried]
        best = {"f1_best": round(max(figures)[0], 4), "best": max(figures)[1], "of": len(figures)}
    orders = (1, 2, 3) if len(schema.modelled) < 60 else (1, 2)
    errors = {
        f"tv{order}": round(marginals.marginal_error(train, rows, schema, order).mean, 4)
        for order in orders
    }
    return {
        **{key: value for key, value in wanted.items() if value is not None},
        "epsilon": str(round(synth.ledger.spent().epsilon, 4)),
        "messages": len(synth.ledger.events),
        "auroc": round(scores.synthetic.auroc, 4),
        "auroc_real": round(scores.real.auroc, 4),
        "f1": round(scores.synthetic.f1_positive, 4),
        "f1_real": round(scores.real.f1_positive, 4),
        "accuracy": round(scores.synthetic.accuracy, 4),
        **best,
        **errors,
        "broken": round(sense.synthetic, 4),
        "broken_real": round(sense.real, 4),
        "seconds": round(seconds, 1),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", choices=TABLES, default="adult")
    parser.add_argument("--seeds", type=int, nargs="*", default=[4, 5, 6, 7, 8])
    parser.add_argument("--data", help="this data set alone")
    parser.add_argument("--thorough", action="store_true", help="add the best of all classifiers")
    parser.add_argument("--cases", nargs="*", type=int, help="of the table, counted from 0")
    options = parser.parse_args()
    out = HOME / f"evaluation/results/marginals_{options.table}.jsonl"
    known = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    for number, case in enumerate(TABLES[options.table]):
        if options.data not in (None, case.get("data", "adult")):
            continue
        if options.cases is not None and number not in options.cases:
            continue
        found = []
        for seed in options.seeds:
            wanted = said(seed, **case, thorough=options.thorough)
            measured = [one for one in known if wanted == {key: one.get(key) for key in wanted}]
            if not measured:
                measured = [run(seed, **case, thorough=options.thorough)]
                with out.open("a") as file:
                    file.write(json.dumps(measured[0]) + "\n")
            found.append(measured[-1])
        print(json.dumps({k: str(v) if v == float("inf") else v for k, v in case.items()}))
        for name in (
            "auroc",
            "auroc_real",
            "f1",
            "tv1",
            "tv2",
            "tv3",
            "broken",
            "broken_real",
            "messages",
            "seconds",
        ):
            values = [one[name] for one in found if name in one]
            if values:
                spread = np.std(values, ddof=1) if len(values) > 1 else 0.0
                print(f"  {name} {np.mean(values):.4f} +- {spread:.4f}", flush=True)


if __name__ == "__main__":
    main()
