"""How long an evaluation takes and what it holds, beside SDMetrics' own quality report.

    FEDSYNTH_DATA=../shared/data python evaluation/bench/evaluation.py [--part PART]

adult: all metrics but shadow models on 39,073 synthetic and 39,073 learned rows, 9,769 held out.
sdmetrics: the columns' and pairs' scores of the same tables, each timed five times in turn, against
SDMetrics' quality report, which compares the same columns and pairs; and with triples, two-sample
tests and all baselines. million: a million rows of 20 mixed columns in each of three tables.

Seconds of one processor; memory is the peak of the process, libraries and the tables included.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

import fedsynth as fs
from fedsynth.evaluation.measures.columns import column_scores
from fedsynth.evaluation.measures.fidelity import correlation_similarity, fidelity
from fedsynth.evaluation.measures.marginals import pair_distances
from fedsynth.evaluation.measures.quality import metadata, plain_frame
from fedsynth.evaluation.reading.codes import encode_tables
from fedsynth.evaluation.reading.rows import Rows, read_rows

HOME = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("FEDSYNTH_DATA", HOME.parent / "shared" / "data"))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--part", choices=("adult", "sdmetrics", "million"), default="adult")
    {"adult": adult, "sdmetrics": sdmetrics, "million": million}[parser.parse_args().part]()


def tables() -> tuple[fs.Schema, pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Adult: schema, learned rows, held-out rows, synthetic rows of AIM at epsilon 1."""
    schema = fs.Schema.load(HOME / "configs/schemas/adult.yaml")
    table = fs.read_table(DATA / "adult/adult.csv.gz", schema)
    order = np.random.default_rng(0).permutation(len(table))
    train, real = table.iloc[order[:39073]], table.iloc[order[39073:]]
    sites = fs.partition(train, 10, "dirichlet", schema=schema, beta=0.5, seed=0)
    budget = fs.Budget(epsilon=1.0, delta=1e-5, unit="record", trust="distributed")
    return schema, train, real, fs.AIM(schema).fit(sites, budget, seed=0).sample(len(train), seed=0)


def adult() -> None:
    schema, train, real, synthetic = tables()
    timed(
        lambda step: fs.evaluate(
            real, synthetic, schema, train=train, models="thorough", progress=step
        )
    )


def million() -> None:
    rng = np.random.default_rng(0)
    columns: list[object] = [fs.Boolean(name="y")]
    columns += [fs.Integer(name=f"n{k}", lower=0, upper=1000) for k in range(5)]
    columns += [fs.Continuous(name=f"x{k}", lower=-9, upper=9, decimals=3) for k in range(6)]
    columns += [
        fs.Categorical(name=f"c{k}", values=tuple(map(str, range(3 + 5 * k)))) for k in range(8)
    ]
    schema = fs.Schema(columns=tuple(columns), target="y")

    weights = {column.name: rng.standard_normal(3) for column in schema.columns}

    def draw(rows: int) -> pd.DataFrame:
        latent = rng.standard_normal((rows, 3))
        made: dict[str, object] = {"y": latent[:, 0] + rng.standard_normal(rows) > 0.5}
        for column in schema.columns[1:]:
            mixed = latent @ weights[column.name] + rng.standard_normal(rows)
            if isinstance(column, fs.Integer):
                made[column.name] = np.clip(300 + 150 * mixed, 0, 1000).astype(np.int64)
            elif isinstance(column, fs.Continuous):
                made[column.name] = np.clip(mixed, -9, 9).round(3)
            else:
                cells = len(column.values)
                codes = np.clip((mixed + 3) / 6 * cells, 0, cells - 1).astype(np.int64)
                made[column.name] = np.array(column.values, dtype=object)[codes]
        return pd.DataFrame(made)

    train, real, synthetic = draw(10**6), draw(10**6), draw(10**6)
    timed(
        lambda step: fs.evaluate(
            real, synthetic, schema, train=train, models="thorough", progress=step
        )
    )


def timed(run: Callable[[Callable[[str, int, int], None]], fs.Evaluation]) -> None:
    """Print the seconds of each part, and the peak of memory."""
    last = [time.process_time()]
    spent: dict[str, float] = {}

    def progress(step: str, done: int, total: int) -> None:
        now = time.process_time()
        spent[step] = spent.get(step, 0.0) + now - last[0]
        last[0] = now

    started, before = time.process_time(), peak()
    found = run(progress)
    total = time.process_time() - started
    for step, seconds in spent.items():
        print(f"{step}: {seconds:.1f} s")
    print(f"all: {total:.1f} s; {peak():.2f} GiB, before it {before:.2f} GiB")
    print(*found.notes, sep="\n")


def peak() -> float:
    """GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def sdmetrics() -> None:
    schema, *frames = tables()
    train, real, synthetic = (read_rows(frame, schema, "table") for frame in frames)
    ours, theirs, whole = [], [], []
    for _ in range(5):
        ours.append(seconds(lambda: same_scores(synthetic, real)))
        theirs.append(seconds(lambda: their_report(synthetic, real)))
        whole.append(seconds(lambda: fidelity(synthetic, train, real)))
    times = [statistics.median(part) for part in (ours, theirs, whole)]
    print(f"columns and pairs: {times[0]:.2f} s; SDMetrics' quality report: {times[1]:.2f} s")
    print(f"ratio {times[1] / times[0]:.1f}; all of fidelity: {times[2]:.2f} s")


def same_scores(synthetic: Rows, real: Rows) -> None:
    """What the quality report scores: columns, correlations, pairs."""
    column_scores(synthetic, real, real)
    correlation_similarity(real, synthetic)
    pair_distances(encode_tables([real, synthetic]))


def their_report(synthetic: Rows, real: Rows) -> None:
    from sdmetrics.reports import single_table

    columns = list(range(len(real.names)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = single_table.QualityReport()
        report.generate(
            plain_frame(real, columns),
            plain_frame(synthetic, columns),
            metadata(real, columns),
            verbose=False,
        )


def seconds(run: Callable[[], None]) -> float:
    started = time.process_time()
    run()
    return time.process_time() - started


if __name__ == "__main__":
    main()
