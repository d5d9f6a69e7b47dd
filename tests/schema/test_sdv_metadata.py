from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given, settings

from fedsynth.data.datasets import builtin_schema, load_builtin
from fedsynth.errors import SchemaError
from fedsynth.methods.marginal.mst import MST
from fedsynth.schema import Boolean, Categorical, Continuous, Datetime, Identifier, Integer, Schema
from fedsynth.schema.sdv_metadata import sdv_content
from tests.schemas import schemas

SCHEMA = Schema(
    columns=[
        Identifier(name="id"),
        Integer(name="i", lower=-3, upper=7, missing=True),
        Continuous(name="x", lower=0, upper=2.5, decimals=2),
        Categorical(name="c", values=["b", "a"]),
        Boolean(name="b", missing=True),
        Datetime(name="t", lower="2020-01-01", upper="2020-03-01", format="%d.%m.%Y"),
    ]
)


def test_the_second_version_says_all_that_sdv_can_hold():
    content = sdv_content(SCHEMA.columns, "V2")
    assert content["METADATA_SPEC_VERSION"] == "V2"
    table = content["tables"]["table"]
    assert table["primary_key"] == "id"
    assert table["columns"] == {
        "id": {"sdtype": "id"},
        "i": {
            "sdtype": "numerical",
            "range_min": -3,
            "range_max": 7,
            "decimal_places": 0,
            "range_is_nullable": True,
        },
        "x": {
            "sdtype": "numerical",
            "range_min": 0,
            "range_max": 2.5,
            "range_is_nullable": False,
        },
        "c": {"sdtype": "categorical", "range_values": ["b", "a"], "range_is_nullable": False},
        "b": {"sdtype": "boolean", "range_is_nullable": True},
        "t": {
            "sdtype": "datetime",
            "datetime_format": "%d.%m.%Y",
            "range_min": "01.01.2020",
            "range_max": "01.03.2020",
            "range_is_nullable": False,
        },
    }


def test_the_first_version_says_kinds_alone():
    columns = sdv_content(SCHEMA.columns, "V1")["tables"]["table"]["columns"]
    assert columns["i"] == {"sdtype": "numerical"}
    assert columns["t"] == {"sdtype": "datetime", "datetime_format": "%d.%m.%Y"}


def test_numbers_in_a_notation_are_described_as_numbers_and_moments_by_their_offset():
    columns = (
        Integer(name="stay", lower=0, upper=600, format="h:mm", dtype="object"),
        Datetime(
            name="t",
            lower="2020-01-01",
            upper="2020-07-01",
            resolution="hour",
            zone="Europe/Berlin",
        ),
    )
    entries = sdv_content(columns, "V2")["tables"]["table"]["columns"]
    assert entries["stay"]["sdtype"] == "numerical" and entries["stay"]["range_max"] == 600
    # An hour before UTC in winter, two in summer.
    bounds = (entries["t"]["range_min"], entries["t"]["range_max"])
    assert bounds == ("2020-01-01 00:00+0100", "2020-07-01 00:00+0200")


def test_what_sdv_can_hold_comes_back():
    copy = Schema.from_sdv(sdv_content(SCHEMA.columns, "V2"))
    # But for decimals, which SDV takes for a rule of cells.
    assert copy.edit("x", decimals=2).columns == SCHEMA.columns
    assert copy.provenance == "private-data"


@given(schemas())
@settings(max_examples=20, deadline=None)
def test_kinds_bounds_and_missing_values_come_back_for_any_schema(schema):
    copy = Schema.from_sdv(sdv_content(schema.columns, "V2"))
    for before, after in zip(schema.modelled, copy.modelled, strict=True):
        assert before.name == after.name
        assert before.missing == after.missing
        if isinstance(before, Categorical):
            assert before.values == after.values
        elif isinstance(before, Datetime):
            # SDV's metadata names no zone, and so the bounds come back in UTC.
            assert before.origin == after.origin
            if before.zone is None:
                assert (before.lower, before.upper) == (after.lower, after.upper)
        elif isinstance(before, Integer | Continuous):
            assert (before.low, before.high) == (after.low, after.high)


def test_ranges_that_sdv_lacks_are_read_off_the_table():
    content = {
        "METADATA_SPEC_VERSION": "SINGLE_TABLE_V1",
        "primary_key": "key",
        "columns": {
            "key": {"sdtype": "id"},
            "phone": {"sdtype": "phone_number"},
            "age": {"sdtype": "numerical"},
            "code": {"sdtype": "categorical"},
            "flag": {"sdtype": "boolean"},
            "day": {"sdtype": "datetime", "datetime_format": "%Y-%m-%d"},
        },
    }
    table = pd.DataFrame(
        {
            "key": [f"P{i}" for i in range(1, 61)],
            "phone": "555",
            "age": [i + 0.0 for i in range(20, 80)],
            "code": [10, 20, 30] * 20,
            "flag": [True, None, False] * 20,
            "day": "2020-01-05",
        }
    )
    columns = Schema.from_sdv(content, table, target="code").columns
    assert [column.kind for column in columns] == [
        "identifier",
        "identifier",
        "integer",
        "categorical",
        "boolean",
        "datetime",
    ]
    assert (columns[2].lower, columns[2].upper) == (20, 80)
    assert columns[3].values == (10, 20, 30)
    assert columns[4].missing
    with pytest.raises(SchemaError, match=r"'age'.*pass the table"):
        Schema.from_sdv(content)


def test_several_tables_are_refused():
    with pytest.raises(SchemaError, match="2 tables"):
        Schema.from_sdv({"tables": {"a": {}, "b": {}}})


def test_whose_rows_are_together_is_no_key_for_it_repeats():
    content = sdv_content(SCHEMA.columns, "V2", person="id")["tables"]["table"]
    assert "primary_key" not in content
    assert content["columns"]["id"] == {"sdtype": "id"}


def test_sdv_itself_accepts_and_returns_the_metadata():
    pytest.importorskip("sdv", reason="needs the extra fedsynth[sdv]")
    metadata = SCHEMA.to_sdv()
    metadata.validate()
    assert [column.name for column in Schema.from_sdv(metadata).columns] == [
        "id",
        *"ixcbt",
    ]


def test_sdv_fits_the_built_in_table_by_its_schema_and_a_method_by_what_sdv_detects():
    reason = "needs the extras fedsynth[sdv] and fedsynth[randhie]"
    single_table = pytest.importorskip("sdv.single_table", reason=reason)
    pytest.importorskip("statsmodels", reason=reason)
    from sdv.metadata import Metadata

    table = load_builtin("randhie").head(300)
    metadata = builtin_schema("randhie").to_sdv()
    second = Metadata.METADATA_SPEC_VERSION != "V1"
    given = {"table": table} if second else table
    copula = single_table.GaussianCopulaSynthesizer(metadata)
    gan = single_table.CTGANSynthesizer(metadata, epochs=1)
    for synthesizer in (copula, gan):
        synthesizer.fit(given)
        drawn = synthesizer.sample(20)
        drawn = drawn["table"] if second else drawn
        assert list(drawn) == list(table)
        assert drawn["chronic_diseases"].between(0, 100).all()

    detected = Metadata.detect_from_dataframes({"table": table})
    schema = Schema.from_sdv(detected, table).drop("person")
    rows = MST(schema).fit(table.drop(columns="person"), epsilon=1.0, seed=0).sample(20, seed=0)
    assert set(rows["health"]) <= set(table["health"])
