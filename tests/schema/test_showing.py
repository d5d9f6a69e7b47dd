"""Schemas, columns and drafts as a person sees them."""

from __future__ import annotations

import pandas as pd
import pytest

import fedsynth as fs

SCHEMA = fs.Schema(
    name="people",
    columns=[
        fs.Identifier(name="key", prefix="P"),
        fs.Integer(name="age", lower=0, upper=1200, missing=True, edges=[0, 600, 1200]),
        fs.Continuous(name="dose", lower=-1, upper=2.5, decimals=2, spikes=[0]),
        fs.Datetime(name="seen", lower="2020-01-01", upper="2021-12-31", format="%d/%m/%Y"),
        fs.Boolean(name="smoker"),
        fs.Categorical(name="town", values=[f"town {n}" for n in range(5000)], other="else"),
        fs.Categorical(name="outcome", values=["well", "ill"]),
    ],
    target="outcome",
    missing_values=["NA", "?"],
    constraints=[
        {"never": {"smoker": True, "age": {"to": 15}}},
        {"ordered": ["dose", "age"]},
    ],
)


def test_a_schema_is_a_table_of_what_it_declares():
    lines = [" ".join(line.split()) for line in SCHEMA._view().text(200).splitlines()]
    assert lines == [
        "Schema 'people': 7 columns, target outcome, provenance declared",
        "column kind values missing also",
        "key identifier made anew, after 'P'",
        "age integer 0 to 1,200 may be edges 0, 600, 1,200",
        "dose continuous -1 to 2.5 decimals 2; spikes 0",
        "seen datetime 01/01/2020 to 31/12/2021 by the day; format %d/%m/%Y",
        "smoker boolean false, true",
        "town categorical town 0, town 1, town 2, town 3, town 4, town 5, and 4,994 more others "
        "become else",
        "outcome (target) categorical well, ill",
        "",
        "constraint",
        "never smoker: True, age: to 15",
        "ordered dose <= age",
        "",
        "Missing is spelled 'NA', '?'.",
    ]
    html = SCHEMA._repr_html_()
    assert str(SCHEMA) == repr(SCHEMA) and "<th>outcome (target)</th>" in html
    assert all(f">{column.name}<" in html for column in SCHEMA.columns[:-1])


def test_a_schema_of_images_says_shape_and_labels():
    schema = fs.builtin_schema("digits")
    assert (
        schema._view()
        .text(90)
        .startswith(
            "Image schema 'digits': images of 8 x 8, pixels from 0 to 16, target digit, provenance"
        )
    )
    assert "0, 1, 2, 3, 4, 5, 6, 7, 8, 9" in schema._repr_html_()


@pytest.mark.parametrize("column", [*SCHEMA.columns[:5], SCHEMA.columns[-1]])
def test_a_short_column_is_shown_as_it_is_written(column):
    if column.kind == "datetime":
        assert "lower=datetime.datetime(2020, 1, 1, 0, 0)" in repr(column)
        return
    assert eval(repr(column), {type(column).__name__: type(column)}) == column


def test_a_long_column_is_cut_short():
    assert len(repr(SCHEMA.column("town"))) < 250 and "'town 9', ...)" in repr(
        SCHEMA.column("town")
    )


def test_a_draft_shows_its_findings_and_whose_eyes_they_are_for():
    visits = [*range(60), *range(60), "lots"]
    frame = pd.DataFrame({"visits": visits, "<i>": [*["a", "b", "c\x1b[31m"] * 40, ""]})
    draft = fs.draft(frame)
    shown, html = draft._view().text(110), draft._repr_html_()
    assert "Draft: 2 columns, no target, provenance private-data" in shown
    assert "! Drafted from private rows" in shown and "Review each" in html
    assert any(one.cells for one in draft.findings)
    for finding in draft.findings:
        assert all(repr(cell) in shown for cell in finding.cells)
    assert "! The findings quote private cells: for the eyes of who owns the rows" in shown
    assert "\x1b" not in shown + html and "&lt;i&gt;" in html and "<i>" not in html


def test_a_draft_that_is_in_order_says_so():
    frame = pd.DataFrame({"sex": ["f", "m"] * 20, "smoker": [True, False, False, True] * 10})
    shown = repr(fs.draft(frame))
    assert "Nothing odd was found." in shown and "private cells" not in shown


def test_whose_a_row_is_stands_beside_the_columns_name():
    schema = fs.Schema(columns=SCHEMA.columns, target="outcome", person="key")
    lines = [line.split("  ")[0].strip() for line in schema._view().text(200).splitlines()]
    assert lines[2] == "key (person)"
    assert lines[8] == "outcome (target)"
