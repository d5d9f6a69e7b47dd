from __future__ import annotations

import numpy as np
import pytest

from fedsynth.data.tables import conform, read_table
from fedsynth.schema import Categorical, Schema
from fedsynth.schema.checking import check

# Rows, and how many have each value of the target, as the data sets' descriptions count them.
TABLES = {
    "wdbc": ("breast_cancer/wdbc.csv.gz", {"B": 357, "M": 212}),
    "voice": ("gender_voice/voice.csv.gz", {"female": 1584, "male": 1584}),
    "audit": ("audit/trial.csv.gz", {0: 290, 1: 486}),
}


@pytest.fixture(params=TABLES)
def table(request, configs, shared_data):
    path, counts = TABLES[request.param]
    schema = Schema.load(configs / "schemas" / f"{request.param}.yaml")
    return schema, read_table(shared_data / path, schema), counts


def test_a_papers_table_is_within_its_schema_in_every_cell(table):
    schema, frame, _ = table
    assert schema.provenance == "declared"
    assert check(frame, schema) == []
    assert list(frame.columns) == [column.name for column in schema.columns]


def test_a_papers_target_has_its_published_counts(table):
    schema, frame, counts = table
    assert frame[schema.target].value_counts().to_dict() == counts


def test_a_papers_numbers_lose_nothing_to_rounding(table):
    schema, frame, _ = table
    conformed = conform(frame, schema, "a table")
    for column in schema.modelled:
        if isinstance(column, Categorical):
            continue
        kept, given = conformed.columns[column.name], frame[column.name].to_numpy(float)
        assert np.array_equal(np.isnan(kept), np.isnan(given))
        # voice.csv has binary fractions of 15 digits; its schema keeps six places.
        assert np.nanmax(np.abs(kept - given)) <= column.unit / 2 * (1 + 1e-6)


def test_bounds_leave_room_beyond_the_rows_at_hand(table):
    # A bound that is a row's own value would tell it.
    schema, frame, _ = table
    for column in schema.modelled:
        if not isinstance(column, Categorical):
            natural = column.high in (1.0, 0.28)
            assert natural or frame[column.name].max() < column.high


def test_firms_of_named_locations_and_a_blank_sum_are_read(configs, shared_data):
    schema = Schema.load(configs / "schemas" / "audit.yaml")
    frame = read_table(shared_data / "audit" / "trial.csv.gz", schema)
    assert {"LOHARU", "NUH", "SAFIDON"} < set(frame["LOCATION_ID"])
    assert frame["Money_Value"].isna().sum() == 1
