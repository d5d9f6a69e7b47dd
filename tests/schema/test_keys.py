"""Keys with repeats are found by name, by shape or by what hangs together, and labels are not."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fedsynth as fs
from fedsynth.schema.keys import find_repeated_keys
from fedsynth.yaml_files import yaml_text


def visits(persons=60, name="who", key=lambda person: 7_000 + 3 * person, seed=0):
    """One to six rows a person, together, with two columns that stay within a person."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(persons), rng.integers(1, 7, persons))
    return pd.DataFrame(
        {
            name: [key(person) for person in who],
            "sex": rng.choice(["f", "m"], persons)[who],
            "born": rng.integers(1930, 2000, persons)[who],
            "cost": rng.gamma(2, 100, len(who)).round(2),
        }
    )


def shuffled(frame):
    return frame.sample(frac=1, random_state=1, ignore_index=True)


FOUND = {
    "numbers, by what hangs together": visits(),
    "numbers with a zero, of floats": visits(key=float),
    "numbers in texts": visits(key=lambda person: f"{person:05d}"),
    "named as a person's": shuffled(visits(name="patient_id")),
    "named as a person's, few persons": shuffled(visits(25, "Subject")),
    "named as a key": shuffled(visits(name="code_number")),
    "numbered behind the same letters": shuffled(visits(key=lambda person: f"P-{person:04d}")),
    "random signs": shuffled(visits(key=lambda person: f"{int(person) * 0x9E3779B97F4A7C15:024x}")),
    "a categorical dtype": visits(key=lambda person: f"P{person:04d}").astype({"who": "category"}),
}


@pytest.mark.parametrize("frame", FOUND.values(), ids=FOUND)
def test_a_repeated_key_is_the_persons_identifier_and_no_key_stands_in_the_schema(frame):
    name = frame.columns[0]
    drafted = fs.draft(frame)
    assert drafted.schema.person == name
    assert isinstance(drafted.schema.column(name), fs.Identifier)
    text = yaml_text(drafted.schema.to_dict())
    assert not any(str(key) in text for key in set(frame[name].astype(str)) if len(str(key)) > 3)
    (told,) = [one for one in drafted.findings if one.column == name and one.kind != "dtype"]
    counts = frame[name].value_counts()
    assert told.kind == "person"
    assert f"{len(counts):,} keys in {len(frame):,} rows" in told.text
    assert f"{counts.max()} at most" in told.text


def test_what_warnings_say_holds_no_figure():
    frame = visits()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        fs.Schema.draft(frame)
    assert "who (person)" in str(warned[0].message)
    assert str(len(frame)) not in str(warned[0].message)


RNG = np.random.default_rng(3)
CITIES = [f"{chr(65 + c % 26)}ville{'x' * (c // 26)}" for c in range(60)]
DAYS = pd.Series(pd.date_range("2020-01-01", periods=60)).repeat(4)
NOT_FOUND = {
    "amounts, sorted": pd.DataFrame({"a": np.sort(RNG.integers(0, 200, 400)), "b": True}),
    "counts of persons": pd.DataFrame({"cases": RNG.integers(0, 90, 400), "b": True}),
    "few values": pd.DataFrame({"patient": np.arange(15).repeat(10), "b": True}),
    "many rows a value": pd.DataFrame({"ward_id": np.arange(50).repeat(20), "b": True}),
    "towns that tell the state and the country": shuffled(
        pd.DataFrame({"town": CITIES, "state": [c % 7 for c in range(60)], "land": "x"}).loc[
            np.arange(60).repeat(4)
        ]
    ),
    "days that tell month and weekday": pd.DataFrame(
        {"day": DAYS.dt.strftime("%d/%m/%Y"), "month": DAYS.dt.month, "wd": DAYS.dt.weekday}
    ),
    "codes of several letters": pd.DataFrame(
        {"icd": [f"{'ABC'[c % 3]}{100 + c}" for c in range(60)] * 5, "b": True}
    ),
    "a key without repeats": pd.DataFrame({"patient_id": range(100), "b": True}),
}


@pytest.mark.parametrize("frame", NOT_FOUND.values(), ids=NOT_FOUND)
def test_labels_amounts_and_dates_are_no_keys(frame):
    assert find_repeated_keys({"table": frame}) == []


def test_the_target_is_learned_whatever_it_looks_like():
    assert fs.draft(visits(name="patient_id"), "patient_id").schema.person is None


def test_of_two_keys_the_one_named_a_persons_is_and_the_other_is_told():
    frame = shuffled(visits(name="patient_id"))
    order = np.arange(len(frame)) // 2
    both = frame.assign(stay_id=order)
    assert both["stay_id"].nunique() > both["patient_id"].nunique()
    drafted = fs.draft(both)
    assert drafted.schema.person == "patient_id"
    assert isinstance(drafted.schema.column("stay_id"), fs.Identifier)
    kinds = {one.column: one.kind for one in drafted.findings}
    assert (kinds["patient_id"], kinds["stay_id"]) == ("person", "repeated-key")


def test_a_key_with_gaps_is_never_learned_and_named_as_the_persons_by_none():
    frame = visits(name="patient_id").astype({"patient_id": object})
    frame.loc[[3, 5], "patient_id"] = None
    drafted = fs.draft(frame)
    assert drafted.schema.person is None
    assert isinstance(drafted.schema.column("patient_id"), fs.Identifier)
    (told,) = [one for one in drafted.findings if one.kind == "repeated-key"]
    assert "2 rows have none" in told.text


def test_owners_who_count_from_one_are_looked_at_together():
    owners = {name: visits(40, key=int, seed=seed) for seed, name in enumerate(("north", "south"))}
    drafted = fs.draft(owners)
    assert drafted.schema.person == "who"
    (told,) = [one for one in drafted.findings if one.kind == "person"]
    assert told.text.startswith("a key with repeats, 80 keys in")


def test_the_draft_allows_the_rows_that_it_was_made_of(tmp_path: Path):
    frame = visits()
    schema = fs.draft(frame).schema
    schema.save(tmp_path / "s.yaml")
    from fedsynth.data.conforming import conform

    conformed = conform(frame, fs.Schema.load(tmp_path / "s.yaml"))
    assert conformed.rows == len(frame)
    assert np.array_equal(conformed.persons, pd.factorize(frame["who"])[0])
