"""SDMetrics' scores: those of its own reports on the frames that a user would give it."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sdmetrics.reports.single_table import DiagnosticReport, QualityReport

import fedsynth.evaluation.measures.quality as module
from fedsynth.evaluation.measures.quality import diagnostic, metadata, plain_frame, quality
from fedsynth.evaluation.reading.rows import read_rows, shuffle_columns
from tests.evaluation.compared_people import people, table

METADATA = {
    "columns": {
        "colour": {"sdtype": "categorical"},
        "shape": {"sdtype": "categorical"},
        "count": {"sdtype": "numerical"},
        "x": {"sdtype": "numerical"},
        "day": {"sdtype": "datetime"},
        "flag": {"sdtype": "categorical"},
    }
}


def report(kind: type, real: pd.DataFrame, synthetic: pd.DataFrame, meta: dict) -> list[float]:
    made = kind()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made.generate(real, synthetic, meta, verbose=False)
    return [made.get_score(), *made.get_properties()["Score"]]


def test_figures_are_those_of_the_reports_on_a_users_frames():
    frames = table(300), table(250, 1, 0.2)
    real, made = people(300), people(250, 1, 0.2)
    found = quality(made, people(200, 2), shuffle_columns(real, 0), real)
    expected = report(QualityReport, *frames, METADATA)
    mine = [found.score, found.column_shapes, found.column_pair_trends]
    assert mine == pytest.approx(expected)
    assert found.real == pytest.approx(report(QualityReport, frames[0], table(200, 2), METADATA)[0])
    checked = diagnostic(made, real)
    expected = report(DiagnosticReport, *frames, METADATA)
    mine = [checked.score, checked.data_validity, checked.data_structure]
    assert mine == pytest.approx(expected)


def test_figures_are_those_of_the_reports_on_adult(adult_table):
    frame, schema = adult_table
    frame = frame.iloc[:1500][["age", "workclass", "education", "education-num", "sex", "income"]]
    kinds = dict.fromkeys(frame.columns, "categorical")
    kinds |= {"age": "numerical", "education-num": "numerical"}
    meta = {"columns": {name: {"sdtype": kind} for name, kind in kinds.items()}}
    schema = schema.model_copy(
        update={"columns": tuple(c for c in schema.columns if c.name in kinds)}
    )
    parts = [frame[frame["age"] < 40], frame[frame["age"] >= 35]]
    real, made = (read_rows(part, schema, "adult") for part in parts)
    found = quality(made, real, shuffle_columns(real, 0), real)
    expected = report(QualityReport, *parts, meta)
    assert [found.score, found.column_shapes, found.column_pair_trends] == pytest.approx(expected)


def test_identity_gives_one_and_independent_columns_lose_pairs_only():
    real = people(400)
    found = quality(real, real.take(np.arange(400)[::-1]), shuffle_columns(real, 0), real)
    assert (found.score, found.column_shapes, found.column_pair_trends) == (1, 1, 1)
    assert found.real == pytest.approx(1)
    alone = quality(shuffle_columns(real, 0), real, real, real)
    assert alone.column_shapes == 1
    assert alone.column_pair_trends < 0.8
    assert alone.score == pytest.approx(found.trivial)
    checked = diagnostic(real, real)
    assert (checked.score, checked.data_validity, checked.data_structure) == (1, 1, 1)


def test_values_outside_are_not_hidden_from_the_diagnostic():
    real = people(100)
    # The last day of the schema occurs, so that a date moved there would go unseen.
    real = people(100, day=[None, "2020-01-01", "2020-12-30", "2020-06-01"] * 25)
    for change in ({"count": 101}, {"x": 5.5}, {"day": "2021-02-03"}, {"colour": "pink"}):
        made = people(100, 1, **{"day": "2020-06-01", **change})
        sound = people(100, 1, day="2020-06-01")
        # Of six columns, one has no valid value.
        lost = diagnostic(sound, real).data_validity - diagnostic(made, real).data_validity
        assert lost > 0.12, change


def test_frames_are_spelled_as_the_schema_spells_them():
    rows = people(3, colour=["red", None, "pink"], day=["2020-01-02", None, "9999-01-01"], x=0.5)
    frame = plain_frame(rows, [0, 3, 4, 5])
    assert list(frame.columns) == ["colour", "x", "day", "flag"]
    assert frame["colour"].tolist() == ["red", None, "(not in the schema)"]
    assert frame["x"].tolist() == [0.5] * 3
    assert [str(day)[:10] for day in frame["day"]] == ["2020-01-02", "NaT", "9999-01-01"]
    assert set(frame["flag"]) <= {"True", "False"}
    assert metadata(rows, [4, 0]) == {
        "columns": {"day": {"sdtype": "datetime"}, "colour": {"sdtype": "categorical"}}
    }


def test_columns_without_values_are_left_out_and_without_any_there_is_no_figure():
    real, made = people(60), people(60, 1)
    fewer = quality(people(60, 1, x=None), real, real, real)
    without = {"columns": {k: v for k, v in METADATA["columns"].items() if k != "x"}}
    expected = report(
        QualityReport, table(60).drop(columns="x"), table(60, 1).drop(columns="x"), without
    )
    assert fewer.score == pytest.approx(expected[0], nan_ok=False)
    empty = {"colour": None, "shape": None, "count": None, "x": None, "day": None, "flag": None}
    none = quality(people(30, **empty), real, real, real)
    assert (none.score, none.column_shapes, none.real, none.trivial) == (None,) * 4
    assert diagnostic(made, people(30, **empty)).score is None


def test_no_pair_that_hangs_together_leaves_the_pairs_without_a_figure():
    apart = [shuffle_columns(people(300, seed), seed) for seed in (0, 1)]
    assert quality(apart[1], apart[0], apart[0], apart[0]).column_pair_trends is None


def test_wide_tables_give_spread_columns_and_long_ones_fewer_rows(monkeypatch):
    monkeypatch.setattr(module, "MOST_COLUMNS", 3)
    monkeypatch.setattr(module, "MOST_ROWS", 40)
    seen = []
    plain = module.plain_frame
    monkeypatch.setattr(
        module,
        "plain_frame",
        lambda rows, columns: seen.append((len(rows), columns)) or plain(rows, columns),
    )
    diagnostic(people(50), people(60))
    assert seen == [(40, [0, 2, 5])] * 2


def test_sdmetrics_never_draws_rows_itself():
    from sdmetrics.reports.utils import DEFAULT_NUM_ROWS_SUBSAMPLE

    # It would draw them without a seed, and no evaluation would give the same twice.
    assert module.MOST_ROWS <= DEFAULT_NUM_ROWS_SUBSAMPLE
