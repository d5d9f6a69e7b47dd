"""What `fedsynth plan` expects of AIM's tables, beside what a fit's tables turn out to be.

    FEDSYNTH_DATA=../shared/data python evaluation/studies/planning.py [--data NAME] [--seeds 1 2]

Every run plans AIM for ten owners (epsilon 1, delta 1e-5, records, distributed trust), with the
number of records (of `NAME@ROWS` so many, drawn at random), then fits it, and compares every noisy
table with the exact counts of the codes that the fit chose: `expected` is the plan's mean error of
a cell, `measured` the mean over all such tables, `ratio` the second over the first, `least` and
`most` the plan's range where what is asked hangs on what is found. `anyhow` is the range of a plan
that does not know how many records there are. `model` is the fitted model's error of the same
tables, over the expected one: of those that were asked coarsely, of those that were asked again.
Columns are measured over 50 draws of the histogram's noise alone, in the fit's number of bins.
`inside`: the share of a column's intervals of 95 % (histogram, coarse and fine tables together)
that hold the exact count.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time

import numpy as np
from marginals import rows_of

import fedsynth as fs
from fedsynth.data.tables import conform
from fedsynth.encoding.bins import Bins
from fedsynth.encoding.histogram import HistogramLayout
from fedsynth.encoding.table import TableEncoding
from fedsynth.encoding.tallies import tally
from fedsynth.marginals import count, estimate_marginal
from fedsynth.methods.marginal.allowing import COARSE, FINE, allow
from fedsynth.methods.marginal.measurer import Measurer

DATA = ("adult", "bank_marketing", "credit_default", "randhie")
DRAWS = 50
BUDGET = fs.Budget(epsilon=1.0, delta=1e-5)


def listen():
    """A list that the tables of every message are put into, by label."""
    heard, ask = [], Measurer.ask

    def listening(self, label, cliques, weights):
        found = ask(self, label, cliques, weights)
        heard.append((label, [one for one in found if len(one.clique) > 1]))
        return found

    Measurer.ask = listening
    return heard


def subsets(measured, width, target, with_target):
    """Every measured table summed onto its parts of so many columns, by the parts."""
    found = {}
    for one in measured:
        for part in itertools.combinations(one.clique, width):
            if (target in part) == with_target:
                found.setdefault(part, []).append(one)
    return {part: estimate_marginal(several, part) for part, several in found.items()}


def column_errors(schema, table, sigma, bins, seed):
    """Mean errors of the histogram's columns, by kind, over draws of its noise."""
    conformed, layout = conform(table, schema), HistogramLayout.of(schema)
    exact = np.bincount(layout.positions(conformed).ravel(), minlength=layout.dim)
    rng, found = np.random.default_rng(seed), {}
    for _ in range(DRAWS):
        noisy = exact + rng.normal(0, sigma, layout.dim)
        encoding = TableEncoding.from_histogram(schema, noisy, sigma, bins)
        codes = encoding.encode(conformed)
        for k, own in enumerate(tally(encoding, noisy, sigma)):
            numbers = isinstance(encoding.bins[k], Bins)
            kind = "columns of numbers" if numbers else "columns of categories"
            truth = np.bincount(codes[:, k], minlength=encoding.sizes[k])
            found.setdefault(kind, []).append(float(np.abs(own.values - truth).mean()))
    return found


def run(data, seed, heard):
    name, _, rows = data.partition("@")
    table, schema = rows_of(name)
    if rows:
        table = table.sample(int(rows), random_state=seed).reset_index(drop=True)
    started = time.process_time()
    forecast = fs.plan(fs.AIM(schema), BUDGET, 10, records=len(table))
    planned = time.process_time() - started
    expected = {error.what: error for error in forecast.errors}
    anyhow = {error.what: error for error in fs.plan(fs.AIM(schema), BUDGET, 10).errors}
    owners = fs.partition(table, 10, "uniform", schema=schema, seed=seed)
    heard.clear()
    synth = fs.AIM(schema).fit(owners, BUDGET, seed=seed, insecure_noise_seed=seed, progress=False)
    learned, settings = synth.learned, synth.resolved(forecast.plan.budget)
    codes = learned.encoding.encode(conform(table, schema))
    names = [column.name for column in schema.modelled]
    target = names.index(schema.target) if schema.target in names else None
    allowed = allow(schema, settings, forecast.plan, learned.records)
    fine = [tables for label, tables in heard if label == FINE]
    asked = {
        "asked coarsely": [one for label, tables in heard if label == COARSE for one in tables],
        "asked next": fine[0] if allowed.best else [],
        "asked again": [one for tables in fine[allowed.best > 0 :] for one in tables],
    }

    def error(values, clique):
        return float(np.abs(values - count(learned.domain, codes, clique)).mean())

    lines = [
        {"what": kind, "measured": float(np.mean(errors)), "draws": DRAWS}
        for kind, errors in column_errors(
            schema, table, forecast.questions[0].noise, allowed.bins, seed
        ).items()
    ]
    for when, measured in asked.items():
        for size, what in ((2, "pairs"), (3, "triples")):
            for with_target in (False, True):
                name = f"{what}{' with the target' * with_target}, {when}"
                found = subsets(measured, size, target, with_target)
                if name not in expected or not found:
                    continue
                errors = [error(m.values, c) for c, m in found.items()]
                model = [error(learned.model.marginal(c) * learned.model.total, c) for c in found]
                line = {"what": name, "measured": float(np.mean(errors)), "tables": len(found)}
                ratios = np.array(model) / expected[name].error
                line |= {"model_median": float(np.median(ratios)), "model_worst": ratios.max()}
                lines.append(line)
    inside = {}
    for k, name in enumerate(names):
        known = estimate_marginal(learned.measurements, (k,))
        miss = np.abs(known.values - count(learned.domain, codes, (k,)))
        inside[name] = float((miss < 1.96 * known.deviations).mean())
    sent = synth.traffic
    base = {"data": data, "seed": seed}
    asked_each = [len(tables) for tables in fine]
    for line in lines:
        own, other = expected[line["what"]], anyhow.get(line["what"])
        line |= {"expected": own.error, "least": own.least, "most": own.most}
        line["ratio"] = line["measured"] / own.error
        if other is not None:
            line["anyhow"] = [other.least or other.error, other.most or other.error]
        yield {**base, **{k: round(v, 4) if isinstance(v, float) else v for k, v in line.items()}}
    certain = synth.ledger.spent().epsilon
    yield {
        **base,
        "what": "job",
        "tier": allowed.tier,
        "bins": allowed.bins,
        "fine_tables": asked_each,
        "epsilon": certain,
        "expected": forecast.epsilon,
        "bytes_up": round(sent.up / 10),
        "expected_bytes_up": round(forecast.bytes_up),
        "bytes_down": round(sent.down / 10),
        "expected_bytes_down": round(forecast.bytes_down),
        "plan_seconds": round(planned, 2),
        "inside": {name: round(share, 3) for name, share in inside.items()},
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=DATA)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2])
    given = parser.parse_args()
    heard = listen()
    for data in given.data:
        for seed in given.seeds:
            for line in run(data, seed, heard):
                print(json.dumps(line, default=float), flush=True)


if __name__ == "__main__":
    main()
