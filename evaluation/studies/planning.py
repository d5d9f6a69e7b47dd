"""What `fedsynth plan` expects of AIM's tables, beside what a fit's tables turn out to be.

    FEDSYNTH_DATA=../shared/data python evaluation/studies/planning.py [--data NAME] [--seeds 1 2]

Every run plans AIM for ten owners (epsilon 1, delta 1e-5, records, distributed trust), then fits it
on all rows of a data set, and compares every noisy table with the exact counts of the codes that
the fit chose: `expected` is the plan's mean error of a cell, `measured` the mean over all such
tables, `ratio` the second over the first. `model` is the fitted model's error of the same tables,
over the expected one: of those that were asked coarsely, of those that were asked again.
Columns are measured over 50 draws of the histogram's noise alone. `inside`: the share of a column's
intervals of 95 % (histogram, coarse and fine tables together) that hold the exact count.
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
from fedsynth.methods.marginal.candidates import maximal, workload_of

DATA = ("adult", "bank_marketing", "credit_default", "randhie")
DRAWS = 50
BUDGET = fs.Budget(epsilon=1.0, delta=1e-5)


def subsets(measured, width, target, with_target):
    """Every measured table summed onto its parts of so many columns, by the parts."""
    found = {}
    for one in measured:
        for part in itertools.combinations(one.clique, width):
            if (target in part) == with_target:
                found.setdefault(part, []).append(one)
    return {part: estimate_marginal(several, part) for part, several in found.items()}


def column_errors(schema, table, sigma, seed):
    """Mean errors of the histogram's columns, by kind, over draws of its noise."""
    conformed, layout = conform(table, schema), HistogramLayout.of(schema)
    exact = np.bincount(layout.positions(conformed).ravel(), minlength=layout.dim)
    rng, found = np.random.default_rng(seed), {}
    for _ in range(DRAWS):
        noisy = exact + rng.normal(0, sigma, layout.dim)
        encoding = TableEncoding.from_histogram(schema, noisy, sigma)
        codes = encoding.encode(conformed)
        for k, own in enumerate(tally(encoding, noisy, sigma)):
            numbers = isinstance(encoding.bins[k], Bins)
            kind = "columns of numbers" if numbers else "columns of categories"
            truth = np.bincount(codes[:, k], minlength=encoding.sizes[k])
            found.setdefault(kind, []).append(float(np.abs(own.values - truth).mean()))
    return found


def run(data, seed):
    table, schema = rows_of(data)
    started = time.process_time()
    forecast = fs.plan(fs.AIM(schema), BUDGET, 10, records=len(table))
    planned = time.process_time() - started
    expected = {error.what: error.error for error in forecast.errors}
    owners = fs.partition(table, 10, "uniform", schema=schema, seed=seed)
    synth = fs.AIM(schema).fit(owners, BUDGET, seed=seed, insecure_noise_seed=seed)
    learned, settings = synth.learned, synth.resolved(forecast.plan.budget)
    codes = learned.encoding.encode(conform(table, schema))
    names = [column.name for column in schema.modelled]
    target = names.index(schema.target) if schema.target in names else None
    width = len(names)
    coarse = len(maximal(workload_of(schema, settings, learned.domain)))
    tables = learned.measurements
    first = tables[width : width + coarse]
    again = tables[width + coarse :]

    def error(values, clique):
        return float(np.abs(values - count(learned.domain, codes, clique)).mean())

    lines = [
        {"what": kind, "measured": float(np.mean(errors)), "draws": DRAWS}
        for kind, errors in column_errors(schema, table, forecast.questions[0].noise, seed).items()
    ]
    for asked, measured in (("asked coarsely", first), ("asked again", again)):
        for size, what in ((2, "pairs"), (3, "triples")):
            for with_target in (False, True):
                name = f"{what}{' with the target' * with_target}, {asked}"
                found = subsets(measured, size, target, with_target)
                if name not in expected or not found:
                    continue
                errors = [error(m.values, c) for c, m in found.items()]
                model = [error(learned.model.marginal(c) * learned.model.total, c) for c in found]
                line = {"what": name, "measured": float(np.mean(errors)), "tables": len(found)}
                ratios = np.array(model) / expected[name]
                line |= {"model_median": float(np.median(ratios)), "model_worst": ratios.max()}
                lines.append(line)
    inside = {}
    for k, name in enumerate(names):
        known = estimate_marginal(tables, (k,))
        miss = np.abs(known.values - count(learned.domain, codes, (k,)))
        inside[name] = float((miss < 1.96 * known.deviations).mean())
    sent, own = synth.traffic, forecast.bytes_up
    base = {"data": data, "seed": seed}
    for line in lines:
        line |= {"expected": expected[line["what"]]}
        line["ratio"] = line["measured"] / line["expected"]
        yield {**base, **{k: round(v, 4) if isinstance(v, float) else v for k, v in line.items()}}
    certain = synth.ledger.spent().epsilon
    yield {
        **base,
        "what": "job",
        "epsilon": certain,
        "expected": forecast.epsilon,
        "bytes_up": round(sent.up / 10),
        "expected_bytes_up": round(own),
        "bytes_down": round(sent.down / 10),
        "expected_bytes_down": round(forecast.bytes_down),
        "plan_seconds": round(planned, 2),
        "inside": {name: round(share, 3) for name, share in inside.items()},
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=DATA, default=DATA)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2])
    given = parser.parse_args()
    for data in given.data:
        for seed in given.seeds:
            for line in run(data, seed):
                print(json.dumps(line, default=float), flush=True)


if __name__ == "__main__":
    main()
