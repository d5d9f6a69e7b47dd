"""What owners' tables are brought to, and that each is read to it as the agreement says."""

from __future__ import annotations

import pandas as pd
import pytest

from fedsynth.data.agreeing import agree
from fedsynth.data.tables import read_table
from fedsynth.errors import DataError
from fedsynth.schema.checking import check
from fedsynth.schema.columns import Datetime
from fedsynth.schema.drafting import draft

ROWS = 40
DAYS = pd.Series(pd.date_range("2021-01-05", periods=ROWS, freq="17D"))
NORTH = pd.DataFrame(
    {
        "age": range(20, 60),
        "sex": ["F", "M"] * 20,
        "seen": DAYS.dt.strftime("%Y-%m-%d"),
        "paid": [1000.5 + k for k in range(ROWS)],
        "died": [0, 1] * 20,
    }
)
SOUTH = pd.DataFrame(
    {
        "Age ": range(30, 70),
        "SEX": ["f", "m"] * 20,
        "Seen": DAYS.dt.strftime("%d.%m.%Y"),
        "PAID": [f"{1000 + k:,}.50 €".replace(",", "'") for k in range(ROWS)],
        "Died": ["no", "yes"] * 20,
        "ward": ["x", "y"] * 20,
    }
)


def one(**columns):
    return pd.DataFrame(columns)


def test_what_differs_in_writing_alone_becomes_one_and_is_read_as_one(tmp_path):
    SOUTH.to_csv(tmp_path / "south.csv", index=False, sep=";")
    found = agree({"north": NORTH, "south": SOUTH})
    assert found.drop == {"south": ["ward"]}
    assert found.rename == {
        "south": {"Age ": "age", "SEX": "sex", "Seen": "seen", "PAID": "paid", "Died": "died"}
    }
    assert found.formats == {"south": {"seen": "%d.%m.%Y", "paid": "1'234.50 €"}}
    assert found.recode == {"south": {"sex": {"f": "F", "m": "M"}, "died": {"no": "0", "yes": "1"}}}
    drafted = draft(found.tables)
    assert drafted.differences == ()
    schema = drafted.schema
    assert isinstance(schema.column("seen"), Datetime)
    rows = read_table(
        tmp_path / "south.csv",
        schema,
        caution=lambda told: None,
        **found.translation_of("south").translated,
    )
    assert check(rows, schema) == []
    assert list(rows["seen"]) == list(NORTH["seen"])
    assert list(rows["paid"]) == list(NORTH["paid"])
    assert list(rows["sex"]) == list(NORTH["sex"]) and list(rows["died"]) == list(NORTH["died"])
    assert found.translation_of("north").translated == {}
    for name in ("ward", "seen", "paid", "sex", "died"):
        assert any(name in told for told in found.told)


def test_a_name_is_spelled_as_the_first_has_it_without_spaces_about_it():
    spelled = {"a": " age", "b": "Age", "c": "AGE", "d": "AGE"}
    found = agree({owner: one(**{name: range(40)}) for owner, name in spelled.items()})
    assert found.rename == {
        owner: {name: "Age"} for owner, name in spelled.items() if name != "Age"
    }


def test_dates_that_have_a_type_at_one_owner_are_dates_of_all(tmp_path):
    """As in a workbook beside a text file."""
    typed = NORTH.assign(seen=DAYS)
    found = agree({"north": NORTH, "west": typed, "south": SOUTH})
    assert set(found.formats) == {"south"}
    assert isinstance(draft(found.tables).schema.column("seen"), Datetime)


@pytest.mark.parametrize(
    ("timed", "plain"), [("%d.%m.%Y %H:%M", "%Y-%m-%d"), ("%Y-%m-%d %H:%M", "%d.%m.%Y")]
)
def test_a_clock_at_one_owner_is_kept_for_all(timed, plain):
    tables = {
        "north": one(seen=DAYS.dt.strftime(plain)),
        "east": one(seen=(DAYS + pd.Timedelta("90min")).dt.strftime(timed)),
    }
    assert draft(agree(tables).tables).schema.column("seen").resolution == "minute"


def test_days_that_could_be_months_are_read_as_another_owner_surely_has_them_and_told():
    doubtful = pd.Series(pd.date_range("2021-01-05", periods=12, freq="D"))[:8]
    sure = one(seen=DAYS.dt.strftime("%m/%d/%Y"))
    either = one(seen=doubtful.dt.strftime("%m/%d/%Y"))
    plain = one(seen=DAYS.dt.strftime("%Y-%m-%d"))
    found = agree({"north": plain, "south": sure, "west": either})
    assert found.formats == {"south": {"seen": "%m/%d/%Y"}, "west": {"seen": "%m/%d/%Y"}}
    assert found.tables["west"]["seen"].tolist() == doubtful.dt.strftime("%Y-%m-%d").tolist()
    assert any("would fit %d/%m/%Y too" in told for told in found.told)


def test_notations_that_all_have_stay():
    german = one(seen=DAYS.dt.strftime("%d.%m.%Y"))
    found = agree({"north": german, "south": german})
    assert not (found.formats or found.told)
    assert draft(found.tables).schema.column("seen").format == "%d.%m.%Y"


@pytest.mark.parametrize(
    "south",
    [
        # Two of one owner's columns differ by just that.
        one(Sex=["F", "M"] * 20, SEX=["x", "y"] * 20, age=range(40)),
        # Its own cells have both spellings.
        one(sex=["F", "f"] * 20),
        # Words that nobody has a table of.
        one(sex=["female", "male"] * 20),
    ],
)
def test_what_is_doubtful_is_left_to_the_owners(south):
    found = agree({"north": NORTH[["sex", "age"]], "south": south})
    assert not (found.rename or found.recode)


def test_a_word_for_no_by_itself_may_be_another():
    assert not agree({"north": one(sex=[0, 1] * 20), "south": one(sex=["F"] * 40)}).recode


def test_numbers_are_no_words_for_yes_and_no():
    found = agree({"north": one(n=[0, 1] * 20), "south": one(n=[0, 1, 2, 3] * 10)})
    assert not found.recode
    assert draft(found.tables).schema.column("n").values == (0, 1, 2, 3)


def test_durations_of_two_units_stay_apart():
    hours = one(spent=[f"{k}:30" for k in range(ROWS)])
    found = agree({"north": one(spent=range(ROWS)), "south": hours})
    assert not found.formats and draft(found.tables).differences


def test_tables_of_nothing_in_common_are_refused():
    with pytest.raises(DataError, match="north, south have no column in common: call them alike"):
        agree({"north": one(a=[1]), "south": one(b=[1])})


def test_one_table_is_let_be():
    found = agree({"north": SOUTH})
    assert found.tables["north"] is SOUTH and not found.told
