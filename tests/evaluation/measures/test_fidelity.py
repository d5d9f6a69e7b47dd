"""Fidelity as a whole: pairs against SDMetrics, odd tables, notes, nothing undefined in silence."""

from __future__ import annotations

import contextlib
import itertools
import warnings
from collections.abc import Callable
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
from sdmetrics.column_pairs import ContingencySimilarity, CorrelationSimilarity
from sdmetrics.errors import ConstantInputError

import fedsynth.evaluation.measures.fidelity as module
import fedsynth.evaluation.measures.quality as scores
from fedsynth.evaluation.measures.fidelity import Fidelity, correlation_similarity, fidelity
from fedsynth.evaluation.measures.marginals import marginal_errors
from fedsynth.evaluation.measures.quality import Diagnostic, Quality, plain_frame
from fedsynth.evaluation.reading.codes import encode_tables
from fedsynth.evaluation.reading.rows import Rows, read_rows, shuffle_columns
from fedsynth.plain import make_jsonable
from fedsynth.schema import Continuous, Integer, Schema
from tests.evaluation.compared_people import SCHEMA, people, table

MAY_BE_NONE = {
    "pairs",
    "coherence",
    "declared",
    "example",
    "correlation",
    "contingency",
    "distinguished",
    "pmse",
    "pmse_ratio",
    "real",
    "score",
    "column_shapes",
    "column_pair_trends",
    "trivial",
    "data_validity",
    "data_structure",
    "wasserstein",
    "coverage",
    "mean",
    "deviation",
    "synthetic",
}
"""What the docstrings let be None: nothing of marginals, histograms, notes, or AUROC."""


def undefined(content: object, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Paths to every None."""
    if isinstance(content, dict):
        return [p for key, value in content.items() for p in undefined(value, (*path, key))]
    if isinstance(content, list | tuple):
        return [p for value in content for p in undefined(value, path)]
    return [path] if content is None else []


@pytest.fixture
def unscored(monkeypatch):
    """Without SDMetrics' reports, half of the work, where they are not looked at."""
    leave_reports_out(monkeypatch)


@pytest.fixture
def two_columns(monkeypatch):
    """SDMetrics is told of two, where its scores are not looked at."""
    tell_of_columns(monkeypatch, 2)


def tell_of_columns(monkeypatch, count):
    for each in (module, scores):
        monkeypatch.setattr(each, "MOST_COLUMNS", count)


def leave_reports_out(monkeypatch):
    monkeypatch.setattr(module, "quality", lambda *_: Quality(*[None] * 5))
    monkeypatch.setattr(module, "diagnostic", lambda *_: Diagnostic(*[None] * 3))


@pytest.fixture
def told_once(monkeypatch):
    """Each of SDMetrics' reports is made once of the same tables."""
    known, report = {}, scores._report

    def once(kind, rows, real, columns):
        asked = kind, rows.values.tobytes(), real.values.tobytes(), tuple(columns)
        if asked not in known:
            known[asked] = report(kind, rows, real, columns)
        return known[asked]

    monkeypatch.setattr(scores, "_report", once)


def checked(synthetic: Rows, train: Rows, real: Rows) -> Fidelity:
    """With warnings as errors, and all that is None or not finite accounted for."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = fidelity(synthetic, train, real)
    raw = asdict(found)
    places = undefined(raw)
    # Nothing became None because it was NaN or infinite.
    assert undefined(make_jsonable(raw)) == places
    assert {path[-1] for path in places} <= MAY_BE_NONE
    assert not [path for path in places if path[0] == "marginals"]
    for score in found.columns:
        assert 0 <= score.score <= 1
        assert sum(score.histogram.real) == pytest.approx(1)
        assert sum(score.histogram.synthetic) == pytest.approx(1)
    for error in found.marginals:
        assert -1e-12 <= error.mean <= error.worst + 1e-12 <= 1 + 1e-9
    return found


EMPTY = dict.fromkeys(column.name for column in SCHEMA.columns)
CONSTANT = {
    "colour": "red",
    "shape": "odd",
    "count": 3,
    "x": 1.5,
    "day": "2020-05-05",
    "flag": True,
}
ODD = {
    "colour": "pink",
    "shape": ["round", 7, None] * 20,
    "count": [np.inf, -np.inf, 2.5] * 20,
    "x": [1e300, "many", True] * 20,
    "day": ["9999-01-01", "0001-01-01", "soon"] * 20,
    "flag": ["yes", 0, "perhaps"] * 20,
}


@pytest.mark.usefixtures("told_once")
@pytest.mark.parametrize("odd", [EMPTY, CONSTANT, ODD], ids=["empty", "constant", "odd"])
def test_odd_tables_pass_in_every_role(odd, monkeypatch):
    if odd is not ODD:
        # SDMetrics is told of one column of each kind.
        tell_of_columns(monkeypatch, 4)
    strange, usual = people(60, 1, **odd), [people(60, seed) for seed in (2, 3)]
    for parts in (
        (strange, *usual),
        (*usual, strange),
        (strange, strange, strange),
    ):
        checked(*parts)
    # They do not look at rows that were learned from.
    leave_reports_out(monkeypatch)
    checked(usual[0], strange, usual[1])


@pytest.mark.usefixtures("two_columns")
@pytest.mark.parametrize("name", [column.name for column in SCHEMA.columns])
def test_single_columns_alone_and_without_values(name, monkeypatch):
    schema = Schema(columns=tuple(c for c in SCHEMA.columns if c.name == name))
    alone = [read_rows(table(40, seed)[[name]], schema, "rows") for seed in range(3)]
    found = checked(*alone)
    assert found.pairs is None
    assert [error.order for error in found.marginals] == [1]
    leave_reports_out(monkeypatch)
    gone = people(40, **{name: None})
    noted = checked(gone, people(40, 1), people(40, 2)).notes
    assert f"SDMetrics: left out columns without a value: {name}." in noted


@pytest.mark.usefixtures("two_columns")
def test_few_rows_and_one_row():
    for sizes in ((10, 10, 10), (2, 2, 2), (1, 1, 1), (1, 60, 60), (60, 60, 1), (60, 1, 60)):
        found = checked(*[people(n, seed) for seed, n in enumerate(sizes)])
        few = f"Telling synthetic from real: {min(sizes[0], sizes[2])} rows are too few to try."
        assert (few in found.notes) == (not found.detection)
        assert bool(found.detection) == (sizes == (60, 1, 60))


@pytest.mark.parametrize("names", [("count", "x", "day"), ("colour", "shape", "flag")])
def test_only_numbers_or_only_categories(names):
    schema = Schema(columns=tuple(c for c in SCHEMA.columns if c.name in names))
    rows = [read_rows(table(60, seed)[list(names)], schema, "rows") for seed in range(3)]
    pairs = checked(*rows).pairs
    assert (pairs.correlation is None, pairs.contingency is None) == (
        "x" not in names,
        "x" in names,
    )


def mean_of_pairs(metric: type, real: Rows, made: Rows, chosen: Callable[[int], bool]) -> float:
    places = [j for j, size in enumerate(real.sizes) if chosen(size)]
    theirs, ours = plain_frame(real, places), plain_frame(made, places)
    found = []
    for a, b in itertools.combinations(theirs, 2):
        # It refuses pairs with a column that does not vary.
        with contextlib.suppress(ConstantInputError):
            found.append(metric.compute(theirs[[a, b]], ours[[a, b]]))
    return float(np.mean(found))


def assert_sdmetrics_agrees(real: Rows, made: Rows) -> None:
    found = correlation_similarity(real, made)
    expected = mean_of_pairs(CorrelationSimilarity, real, made, lambda size: size == 0)
    assert found == pytest.approx(expected)
    pairs = module._pairs(encode_tables([real, made, real, real]), real, made, 0)
    expected = mean_of_pairs(ContingencySimilarity, real, made, lambda size: size > 0)
    assert pairs.contingency == pytest.approx(expected)
    assert pairs.correlation == found


def test_correlation_and_contingency_are_sdmetrics_with_gaps_and_undeclared_values():
    assert_sdmetrics_agrees(people(400), people(300, 1, 0.25))
    odd = people(60, 2, colour=["pink", "red", None] * 20, count=[1, 2, 500] * 20)
    assert_sdmetrics_agrees(people(80), odd)
    # A pair with a column that does not vary has no correlation, here and there.
    assert_sdmetrics_agrees(people(80), people(80, 1, count=3))


def test_correlation_and_contingency_are_sdmetrics_on_adult(adult_rows: Rows):
    rows = adult_rows.take(np.arange(2000))
    young = rows.values[:, 0] < 35
    assert_sdmetrics_agrees(rows.take(~young), rows.take(young))


def test_the_tables_of_pairs_are_those_of_pandas_and_the_worst_are_kept(monkeypatch):
    monkeypatch.setattr(module, "_CHARTS", 2)
    distance = np.zeros((6, 6))
    distance[0, 1] = distance[1, 2] = 1.0
    joint = module._join(distance, np.arange(6), people(300, 1), people(200, 2))
    assert joint.places == ((0, 1), (1, 2))
    assert joint.labels[0] == ("red", "green", "blue", "missing")
    for shares, frame in ((joint.real, table(300, 1)), (joint.synthetic, table(200, 2))):
        counts = pd.crosstab(frame["colour"].fillna("missing"), frame["shape"])
        known = counts.loc[list(joint.labels[0]), list(joint.labels[1])].to_numpy()
        assert shares[0] == tuple(np.rint(10_000 * known.ravel() / len(frame)))
        # The bins of numbers leave no row out.
        assert sum(shares[1]) == pytest.approx(10_000, abs=len(shares[1]) / 2)


def test_correlation_by_hand():
    schema = Schema(columns=tuple(Integer(name=n, lower=0, upper=9) for n in "ab"))
    rising = read_rows(pd.DataFrame({"a": [1, 2, 3], "b": [2, 4, 6]}), schema, "rows")
    falling = read_rows(pd.DataFrame({"a": [1, 2, 3], "b": [6, 4, 2]}), schema, "rows")
    assert correlation_similarity(rising, rising) == pytest.approx(1)
    assert correlation_similarity(rising, falling) == pytest.approx(0)
    level = read_rows(pd.DataFrame({"a": [1, 2, 1, 2], "b": [1, 1, 2, 2]}), schema, "rows")
    assert correlation_similarity(rising, level) == pytest.approx(0.5)


def test_a_copy_of_the_real_rows_scores_best_and_shuffled_columns_lose_relations(monkeypatch):
    real = people(500)
    found = checked(real, people(500, 1), real)
    assert max(error.worst for error in found.marginals) == 0
    assert np.max(found.pairs.distance) == 0
    assert (found.pairs.correlation, found.pairs.contingency) == (1, 1)
    assert all(score.score == 1 for score in found.columns)
    assert found.quality.score == found.diagnostic.score == 1
    # A copy in the other half bears the wrong label: no better than a guess.
    assert max(one.auroc for one in found.detection) < 0.6
    leave_reports_out(monkeypatch)
    alone = checked(shuffle_columns(real, 1), people(500, 1), real)
    assert alone.marginals[0].worst == 0
    assert alone.marginals[1].mean > 1.2 * alone.marginals[1].real
    assert alone.pairs.correlation < 0.9
    assert alone.distinguished > 0.6
    assert alone.detection[1].auroc > 0.6


@pytest.mark.usefixtures("unscored")
def test_yardsticks_are_other_real_rows_and_their_columns_shuffled():
    synthetic, train, real = people(300, 1, 0.2), people(350, 2), people(400, 3)
    found = fidelity(synthetic, train, real, seed=4)
    # As many other real rows as there are synthetic ones.
    train = train.sample(300, 4)
    codes = encode_tables([real, synthetic, train, shuffle_columns(train, 4)])
    for error in found.marginals:
        ours, theirs, alone = marginal_errors(codes, real.names, error.order)
        assert (error.mean, error.worst) == (ours.mean, ours.worst)
        assert error.worst_columns == ours.worst_columns
        assert (error.real, error.trivial) == (theirs.mean, alone.mean)
    own = [error.mean for error in found.marginals[:1]]
    distances = np.array(found.pairs.distance)
    assert np.diag(distances).mean() == pytest.approx(own[0])
    reference = np.array(found.pairs.reference)
    assert reference[np.triu_indices(6, 1)].mean() == pytest.approx(found.marginals[1].real)
    np.testing.assert_array_equal(distances, distances.T)
    assert found.pairs.names == real.names


@pytest.mark.usefixtures("two_columns")
def test_the_order_of_rows_changes_no_distance():
    parts = [people(150, seed, 0.1 * seed) for seed in range(3)]
    order = np.random.default_rng(0).permutation(150)
    found = fidelity(*parts)
    shuffled = fidelity(parts[0].take(order), parts[1], parts[2].take(order))
    assert found.pairs.distance == shuffled.pairs.distance
    assert found.pairs.correlation == pytest.approx(shuffled.pairs.correlation)
    assert found.marginals == shuffled.marginals
    for one, two in zip(found.columns, shuffled.columns, strict=True):
        assert (one.score, one.histogram, one.missing) == (two.score, two.histogram, two.missing)
        assert one.mean is None or one.mean == pytest.approx(two.mean)
    assert found.quality.score == pytest.approx(shuffled.quality.score)
    assert fidelity(*parts) == found


@pytest.mark.usefixtures("two_columns")
def test_wide_tables_show_the_columns_that_are_furthest_off(monkeypatch):
    monkeypatch.setattr(module, "detection", lambda *_: ())
    monkeypatch.setattr(module, "attempt_all", lambda *_: ())
    monkeypatch.setattr(module, "coherence", lambda *_: None)
    names = [f"x{k}" for k in range(70)]
    schema = Schema(columns=tuple(Continuous(name=n, lower=-9, upper=9, decimals=1) for n in names))
    frames = [
        pd.DataFrame(np.random.default_rng(seed).normal(size=(80, 70)), columns=names)
        for seed in range(3)
    ]
    far = names[::2]
    frames[0][far] += 3
    found = checked(*[read_rows(frame, schema, "wide") for frame in frames])
    assert len(found.pairs.names) == 60
    assert set(far) < set(found.pairs.names)
    assert np.shape(found.pairs.distance) == np.shape(found.pairs.reference) == (60, 60)
    assert len(found.columns) == 70
    assert [error.sets for error in found.marginals] == [70, 1000, 1000]
    assert "Marginals of 2 columns: 1,000 sets drawn at random." in found.notes
    assert "Marginals of 3 columns: 1,000 sets drawn at random." in found.notes
    assert "Pairs: the map shows the 60 of 70 columns that are furthest off." in found.notes
    assert "SDMetrics: given 2 of the 70 columns." in found.notes
    assert not any(note.startswith("Marginals of 1 ") for note in found.notes)


@pytest.mark.usefixtures("unscored")
def test_large_tables_are_sampled_and_the_notes_say_so(monkeypatch):
    assert checked(people(100), people(100, 1), people(100, 2)).notes == ()
    monkeypatch.setattr(module, "_SET_ROWS", 60)
    monkeypatch.setattr(module, "MOST", 70)
    monkeypatch.setattr(module, "MOST_ROWS", 80)
    seen = []
    real_coded = module.encode_tables
    monkeypatch.setattr(
        module, "encode_tables", lambda tables: seen.extend(map(len, tables)) or real_coded(tables)
    )
    notes = checked(people(100), people(100, 1), people(100, 2)).notes
    assert seen == [60] * 4
    assert notes == (
        "Marginals and pairs: counted in 60 rows of each table at most.",
        "Telling synthetic from real: tried on 70 rows of each table.",
        "SDMetrics: given 80 rows of each table at most.",
    )


@pytest.mark.usefixtures("unscored")
def test_progress_is_told_in_five_steps():
    seen = []
    parts = [people(30, seed) for seed in range(3)]
    fidelity(*parts, progress=lambda done, steps: seen.append((done, steps)))
    assert seen == [(k, 5) for k in range(6)]


@pytest.mark.usefixtures("unscored")
@pytest.mark.parametrize(("made", "taught"), [(200, 3000), (3000, 200)])
def test_a_perfect_release_of_another_size_is_as_far_off_as_real_rows(made, taught):
    synthetic, train, real = people(made, 1), people(taught, 2), people(1500, 3)
    found = fidelity(synthetic, train, real)
    for error in found.marginals:
        assert error.mean == pytest.approx(error.real, rel=0.25)
    assert f"{min(made, taught):,} each are compared" in found.notes[0]


@pytest.mark.usefixtures("unscored")
def test_values_outside_the_schema_are_sought_in_all_synthetic_rows():
    synthetic, train, real = people(3000, 1), people(60, 2), people(100, 3)
    synthetic.outside[7, 0] = True
    assert fidelity(synthetic, train, real).columns[0].outside == pytest.approx(1 / 3000)
