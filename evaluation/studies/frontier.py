"""Frontier: what rows are worth at epsilon .3 to 10, by method, beside yardsticks without privacy.

    FEDSYNTH_DATA=../shared/data python evaluation/studies/frontier.py [--tables adult ..]
    python evaluation/studies/frontier.py --yardsticks copula ctgan tvae    # with the extra `sdv`
    python evaluation/studies/frontier.py --show

Adult, bank_marketing, credit_default and randhie, one split each: 8,000 rows to learn from, of the
others at most 8,000 to test on; randhie is cut by person, and whole persons are protected there
(rows of a person weigh 1/k), single records elsewhere. Five owners that are alike, nobody is
trusted (`curious: 0`), delta 1e-5, every method at its defaults, one fit at each epsilon, as many
rows as were learned from. `columns`: one histogram by the whole budget, every column drawn from it
on its own. `aim pairs` has `workload: pairs`. What is measured already is left alone.

auroc: gradient boosting trained on the rows. pairs: mean total variation of pairs of columns from
the test rows (20 quantile bins). incoherent: share of rows with two values that real rows hardly
show together. All by the real test rows. `real`: the training rows themselves.

`--show` prints the table, and draws results/frontier.svg.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from uneven_tables import DELTA, SHARED, draw_columns, rows_of

import fedsynth as fs
from fedsynth.data.datasets import builtin_schema, load_builtin
from fedsynth.data.persons import people_of, split_people
from fedsynth.evaluation.measures.coherence import coherence
from fedsynth.evaluation.measures.marginals import marginal_errors
from fedsynth.evaluation.models.classifiers import CLASSIFIERS
from fedsynth.evaluation.models.learners import answer, fit
from fedsynth.evaluation.models.trials import Pool
from fedsynth.evaluation.reading import scores
from fedsynth.evaluation.reading.codes import encode_tables
from fedsynth.evaluation.reading.labelled import label_rows
from fedsynth.evaluation.reading.rows import read_real_rows, read_rows, shuffle_columns
from fedsynth.evaluation.report.charts.drawing import Scale, line, path, px, spread, words
from fedsynth.evaluation.yardsticks import YARDSTICKS, measure_yardsticks
from fedsynth.federation.simulation.partitions import partition
from fedsynth.markup import Html, tag
from fedsynth.registry import METHODS

RESULTS = Path(__file__).resolve().parents[1] / "results"
OUT, PLOT = RESULTS / "frontier.jsonl", RESULTS / "frontier.svg"
TABLES = ("adult", "bank_marketing", "credit_default", "randhie")
NAMES = ("aim", "aim pairs", "fedvae", "private-fusion", "mst", "privbayes", "columns")
EPSILONS = (0.3, 1.0, 3.0, 10.0)
LEARNED = TESTED = 8_000
SCORES = {"auroc": "AUROC", "pairs": "pairs, total variation", "incoherent": "incoherent rows"}
MODEL = "gradient boosting"


def split(name: str, seed: int):
    """Rows to learn from, rows to test on, schema, and the rows of each training row's person."""
    rng = np.random.default_rng(seed)
    if name in SHARED:
        table, schema = rows_of(name)
        order = rng.permutation(len(table))
        parts = order[:LEARNED], order[LEARNED : LEARNED + TESTED]
    else:
        table, schema = load_builtin(name), builtin_schema(name)
        people = people_of(table, schema, name)
        # Persons in a random order, until they have so many rows.
        first, rest = split_people(people, int(people.max() + 1) // 2, rng)
        parts = first[:LEARNED], rest[:TESTED]
    train, test = (table.iloc[part].reset_index(drop=True) for part in parts)
    counts = np.ones(len(train))
    if schema.person is not None:
        whose = people_of(train, schema, name)
        counts = np.bincount(whose)[whose]
    return train, test, schema, counts


def make(name, epsilon, train, schema, counts, seed):
    """As many rows, by a method."""
    if name == "columns":
        return draw_columns(train, schema, epsilon, seed, 1 / counts)
    owners = partition(train, 5, "uniform", schema=schema, seed=seed)
    unit = "record" if schema.person is None else "person"
    budget = fs.Budget(epsilon=epsilon, delta=DELTA, unit=unit, curious=0)
    quiet = {"progress": False, "caution": lambda _: None}
    method, _, workload = name.partition(" ")
    synth = METHODS[method](schema, **({"workload": workload} if workload else {})).fit(
        owners, budget, seed=seed, outside="allow", **quiet
    )
    return synth.sample(len(train), seed=seed)


def figures(rows, learned, real) -> dict[str, float]:
    """What an evaluation says of them, by the three of its figures that are told here."""
    codes = encode_tables([real, rows, learned, shuffle_columns(learned, 0)])
    test = label_rows(real, "test")
    (learner,) = (one for one in CLASSIFIERS if one.name == MODEL)
    pool = Pool.of(label_rows(rows, "rows"), 0)
    answers = answer(fit(learner, pool.part(learner.rows(pool.examples)), 0), test)
    return {
        "auroc": scores.score(answers, test.y.astype(np.int64)).auroc,
        "pairs": marginal_errors(codes, real.names, 2, seed=0)[0].mean,
        "incoherent": coherence(rows, learned, real, 0).synthetic,
    }


def rounded(given: dict[str, float], seconds: float) -> dict[str, float]:
    return {**{k: round(float(v), 4) for k, v in given.items()}, "cpu_seconds": round(seconds, 1)}


def read() -> list[dict]:
    return list(map(json.loads, OUT.read_text().splitlines() if OUT.exists() else []))


def write(line: dict) -> None:
    with OUT.open("a") as file:
        file.write(json.dumps(line) + "\n")
    print(line, flush=True)


def measure(name: str, options) -> None:
    """One table: what is not measured yet."""
    done = {(one["data"], one["method"], one["epsilon"], one["seed"]) for one in read()}
    wanted = [("real", None), *((m, e) for e in options.epsilons for m in options.methods)]
    wanted = [one for one in wanted if (name, *one, options.seed) not in done]
    sticks = [m for m in options.yardsticks if (name, m, None, options.seed) not in done]
    if not wanted and not sticks:
        return
    train, test, schema, counts = split(name, options.seed)
    learned, real = read_real_rows(train, schema, "train"), read_real_rows(test, schema, "test")
    key = {"data": name, "seed": options.seed, "rows": len(train)}
    for method, epsilon in wanted:
        start = time.process_time()
        made = train if epsilon is None else make(
            method, epsilon, train, schema, counts, options.seed
        )  # fmt: skip
        seconds = time.process_time() - start
        found = rounded(figures(read_rows(made, schema, "rows"), learned, real), seconds)
        write({**key, "method": method, "epsilon": epsilon, **found})
    for stick in measure_yardsticks(sticks, learned, real, len(train), MODEL, options.seed):
        found = {"auroc": stick.score, "pairs": stick.pairs, "incoherent": stick.incoherent}
        found = rounded(found, stick.seconds)
        write({**key, "method": stick.name, "epsilon": None, **found})


def show() -> None:
    """The table on the terminal, and the plot."""
    lines, known = read(), {}
    for one in lines:
        known[one["data"], one["method"], one["epsilon"]] = one
    tables = [name for name in TABLES if any(one["data"] == name for one in lines)]
    names = [(m, e) for m in NAMES for e in EPSILONS]
    names += [(m, None) for m in (*YARDSTICKS, "real")]
    print(f"| | epsilon | {' | '.join(tables)} |\n|{' --- |' * (len(tables) + 2)}")
    for method, epsilon in names:
        cells = []
        for name in tables:
            one = known.get((name, method, epsilon))
            cells.append("" if one is None else ", ".join(
                f"{one[score]:.3f}".removeprefix("0") for score in SCORES
            ))  # fmt: skip
        if any(cells):
            print(f"| {method} | {epsilon or 'none'} | {' | '.join(cells)} |")
    PLOT.write_text(draw(tables, known))
    print(PLOT)


STROKES = dict(
    zip(
        (*NAMES, *YARDSTICKS, "real"),
        (
            ("#1f5fa8", ""),
            ("#1f5fa8", "5 4"),
            ("#b5472f", "7 3"),
            ("#3d7d3a", "2 3"),
            ("#7a4fa3", "9 3 2 3"),
            ("#8a6d1d", "4 2"),
            ("#555555", "1 4"),
            ("#c2588f", "12 4"),
            ("#2a8c8c", "6 2 1 2"),
            ("#d08a2e", "3 6"),
            ("#000000", ""),
        ),
        strict=True,
    )
)
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#222}.quiet{fill:#555}.mid{text-anchor:middle}"
    ".end{text-anchor:end}.grid{stroke:#ddd;stroke-width:1;fill:none}"
    ".dot{fill:#fff;stroke-dasharray:none}"
)
WIDTH, HEIGHT, GAP = 220.0, 150.0, 52.0


def draw(tables, known) -> Html:
    """A row of panels a score, a column a table; yardsticks and real rows are level lines."""
    parts, right = [], GAP + len(tables) * (WIDTH + GAP)
    for row, (score, said) in enumerate(SCORES.items()):
        top = 34 + row * (HEIGHT + GAP)
        for column, table in enumerate(tables):
            left = GAP + column * (WIDTH + GAP)
            own = {k[1:]: one[score] for k, one in known.items() if k[0] == table}
            x = Scale(EPSILONS[0], EPSILONS[-1], left, left + WIDTH, log=True)
            y = Scale(*spread(list(own.values()), 0.04), top + HEIGHT, top)
            for value in EPSILONS:
                parts.append(line(x(value), top, x(value), top + HEIGHT, "grid"))
                parts.append(words(x(value), top + HEIGHT + 16, f"{value:g}", "middle", "quiet"))
            for value in y.ticks(4):
                parts.append(line(left, y(value), left + WIDTH, y(value), "grid"))
                parts.append(words(left - 6, y(value) + 4, f"{value:g}", "end", "quiet"))
            parts.append(words(left + WIDTH / 2, top - 8, f"{table}: {said}", "middle"))
            for method in STROKES:
                points = [(e, own[method, e]) for e in EPSILONS if (method, e) in own]
                if (method, None) in own:
                    points = [(e, own[method, None]) for e in (EPSILONS[0], EPSILONS[-1])]
                if points:
                    told = tag("title", f"{method}, {table}: {said}")
                    places = [(x(a), y(b)) for a, b in points]
                    curve = path(places, "line")
                    # Fits; one that stands alone is no line.
                    dots = [] if (method, None) in own else [
                        tag("circle", cx=px(a), cy=px(b), r="2.5", class_="dot")
                        for a, b in places
                    ]  # fmt: skip
                    parts.append(tag("g", told, curve, *dots, style=stroke(method)))
    drawn = {method for _, method, _ in known}
    for place, method in enumerate(one for one in STROKES if one in drawn):
        height = 44 + 20 * place
        key = path([(right, height), (right + 30, height)], "line")
        parts.append(tag("g", key, style=stroke(method)))
        free = "" if method in NAMES else ", no privacy"
        parts.append(words(right + 36, height + 4, f"{method}{free}"))
    height = 34 + len(SCORES) * (HEIGHT + GAP)
    parts.append(words(right / 2, height - 8, "epsilon", "middle"))
    style = tag("style", Html(STYLE))
    ground = tag("rect", width="100%", height="100%", fill="#fff")
    size = {"viewBox": f"0 0 {px(right + 180)} {px(height)}", "width": px(right + 180)}
    label = "AUROC, error of pairs and incoherent rows by epsilon, for each method and table"
    xml = {"xmlns": "http://www.w3.org/2000/svg", "role": "img", "aria_label": label}
    return tag("svg", style, ground, *parts, **size, height=px(height), **xml)


def stroke(method: str) -> str:
    colour, dashes = STROKES[method]
    return f"stroke:{colour};stroke-width:2;fill:none;stroke-dasharray:{dashes or 'none'}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="*", choices=TABLES, default=TABLES)
    parser.add_argument("--methods", nargs="*", choices=NAMES, default=NAMES)
    parser.add_argument("--epsilons", type=float, nargs="*", default=EPSILONS)
    parser.add_argument("--yardsticks", nargs="*", choices=YARDSTICKS, default=())
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="the table and the plot")
    options = parser.parse_args()
    if options.show:
        show()
        return
    for name in options.tables:
        measure(name, options)


if __name__ == "__main__":
    main()
