"""Job files: every key is known, every path is found, every message says where."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsynth.errors import ConfigError, DataError
from fedsynth.jobs.config import Config, Sample, builtin_jobs, load_config
from fedsynth.jobs.data import prepare, split_rows
from fedsynth.jobs.inputs import expand_path
from fedsynth.schema import Schema
from fedsynth.yaml_files import write_yaml
from tests.small_jobs import SCHEMA, table, write_job

WITH_PERSONS = {
    **SCHEMA,
    "person": "key",
    "columns": [{"kind": "identifier", "name": "key"}, *SCHEMA["columns"]],
}


def load(path, *changes):
    return load_config(path, changes)[0]


def test_a_saved_job_builds_an_equal_one(tmp_path):
    job = load(write_job(tmp_path, privacy={"epsilon": "inf"}), "sample.where={income: high}")
    job.save(tmp_path / "again.yaml")
    assert load(tmp_path / "again.yaml") == job


def test_a_tuple_that_a_file_would_keep_as_a_list_is_refused():
    with pytest.raises(ConfigError, match="from: 30"):
        Sample(where={"age": (30, 40)})


def test_no_privacy_is_said_in_one_word(tmp_path):
    spelled = load(write_job(tmp_path), "privacy=none")
    assert not spelled.privacy.budget.private
    assert spelled == load(write_job(tmp_path, privacy={"epsilon": "inf"}))
    spelled.save(tmp_path / "again.yaml")
    assert load(tmp_path / "again.yaml") == spelled


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("sampel.rows=5", "unknown key 'sampel'; did you mean 'sample'?"),
        ("privacy.epsilom=1", "privacy: unknown key 'epsilom'; did you mean 'epsilon'?"),
        ("settings.round=5", "unknown key 'round'; did you mean 'rounds'?"),
        ("sites.betta=5", "sites: unknown key 'betta'; did you mean 'beta'?"),
        ("privacy.epsilon=0", "privacy: epsilon must be positive, not 0"),
        ("privacy.epsilon=abc", "privacy: `epsilon` must be a number above 0, or inf"),
        ("privacy=nothing", "privacy: holds no keys"),
        ("privacy.delta=2", "delta must be between 0 and 1"),
        (
            "privacy.unit=persons",
            "privacy: unit must be one of record, client, person, not 'persons'",
        ),
        ("sample.rows=0", "sample: `rows` must be a whole number of at least 1, not 0"),
        ("sites.names=[a]", "sites: `names` go with `column`"),
        ("sites={column: age, names: []}", "sites: `names` must be a list of names"),
        ("sites={column: age, names: a}", "sites: `names` must be a list of names"),
        ("sites={names: null, clients: 3}", "sites: give one of `scheme`"),
        ("sites.column=age", "sites: give one of `scheme` (with `clients`), `column` and `paths`"),
        (
            "data.builtin=digits",
            "job: give one of `data.path`, `data.url`, `data.builtin` and `sites.paths`",
        ),
        ("method=aimm", "`method` 'aimm' is not known; did you mean 'aim'?"),
        ("method={name: aim}", "`method` must be a method's name"),
        ("sites=5", "sites: holds no keys"),
        ("holdout=1", "`holdout` must be a share from 0 to below 1"),
        ("privacy.epsilon.x=1", "--set privacy.epsilon.x=1: privacy.epsilon holds no keys"),
        ("privacy.epsilon", "expected key=value"),
        ("settings.rounds=ten", "settings of fedvae: `rounds` must be a whole number"),
    ],
)
def test_a_wrong_key_or_value_is_named_with_its_place(tmp_path, change, message):
    path = write_job(tmp_path)
    with pytest.raises(ConfigError) as caught:
        load(path, change)
    assert message in str(caught.value)


def test_a_fault_in_the_file_names_the_file(tmp_path):
    path = write_job(tmp_path, privacy={"epsilon": 1, "trust": "nobody"})
    with pytest.raises(ConfigError, match=r"job\.yaml: privacy: trust must be one of central"):
        load(path)


def test_set_reads_values_as_yaml_does(tmp_path):
    job = load(
        write_job(tmp_path),
        "privacy.epsilon=1e-1",
        "settings.hidden=[16, 8]",
        "sample.format=parquet",
        "sample.where={income: high}",
    )
    assert job.privacy.epsilon == 0.1
    assert job.settings.hidden == (16, 8)
    assert (job.sample.format, job.sample.where) == ("parquet", {"income": "high"})


@given(st.floats(1e-3, 1e3), st.integers(1, 10**6), st.sampled_from(["record", "client"]))
def test_what_is_set_is_what_is_read(epsilon, rows, unit):
    content = {"data": {"builtin": "randhie"}, "sites": {"clients": 2, "scheme": "uniform"}}
    job = Config(**content, privacy={"epsilon": epsilon, "unit": unit}, sample={"rows": rows})
    assert Config(**job.to_dict()) == job
    assert (job.privacy.budget.epsilon, job.sample.rows) == (epsilon, rows)


@pytest.mark.parametrize("name", builtin_jobs())
def test_builtin_jobs_load_by_name(name):
    assert load(name).data.builtin is not None


@pytest.mark.parametrize(("named", "meant"), [("{}/jbo.yaml", "{}/job.yaml"), ("demmo", "demo")])
def test_of_a_job_that_is_not_there_the_nearest_is_named(tmp_path, named, meant):
    write_job(tmp_path)
    with pytest.raises(ConfigError) as caught:
        load(named.format(tmp_path))
    assert f"did you mean {meant.format(tmp_path)!r}?" in str(caught.value)


@pytest.mark.parametrize("path", sorted((Path(__file__).parents[2] / "configs").glob("*.yaml")))
def test_the_jobs_of_the_repository_load_and_find_their_schemas(path):
    job = load(path)
    assert job.schema_ is None or (path.parent / job.schema_).is_file()


def test_the_variable_for_data_sets_is_filled_in(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDSYNTH_DATA", str(tmp_path / "sets"))
    assert expand_path("${FEDSYNTH_DATA}/a.csv", tmp_path) == tmp_path / "sets" / "a.csv"
    with pytest.raises(ConfigError, match="only"):
        expand_path("${HOME}/a.csv", tmp_path)


def test_data_sets_are_looked_for_beside_the_project(tmp_path, monkeypatch):
    monkeypatch.delenv("FEDSYNTH_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shared" / "data").mkdir(parents=True)
    (tmp_path / "project" / "configs").mkdir(parents=True)
    path = expand_path("${FEDSYNTH_DATA}/a.csv", tmp_path / "project" / "configs")
    assert path.resolve() == tmp_path / "shared" / "data" / "a.csv"


def test_absent_data_say_where_they_can_be_had(tmp_path):
    path = write_job(tmp_path, data={"path": "none.csv", "source": "ask the archive"})
    with pytest.raises(
        DataError, match=r"none\.csv: no such file\. ask the archive\. .*data\.path"
    ):
        prepare(load(path), tmp_path)


def test_the_holdout_is_cut_by_seed_and_is_never_learned_from(tmp_path):
    job = load(write_job(tmp_path))
    first, again = prepare(job, tmp_path), prepare(job, tmp_path)
    other = prepare(load(tmp_path / "job.yaml", "seed=1"), tmp_path)
    assert (len(first.train), len(first.test)) == (160, 40)
    assert sum(map(len, first.owners.values())) == 160
    assert first.test.equals(again.test)
    assert not first.test.equals(other.test)


def test_each_owner_may_bring_a_file_of_its_own(tmp_path):
    write_job(tmp_path / "a")
    write_job(tmp_path / "b")
    paths = {"north": "a/table.csv", "south": "b/table.csv"}
    job = load(write_job(tmp_path, data=None, sites={"paths": paths}))
    ready = prepare(job, tmp_path)
    assert {name: len(rows) for name, rows in ready.owners.items()} == {"north": 160, "south": 160}
    assert len(ready.test) == 80


def sorted_rows(frames):
    whole = pd.concat(frames)
    return whole.sort_values(list(whole), ignore_index=True)


def test_held_out_rows_of_simulated_owners_are_nobodys(tmp_path):
    # Dealt out by the scheme, one row would decide whose the others are.
    ready = prepare(load(write_job(tmp_path)), tmp_path)
    assert list(ready.held_out) == ["holdout"] and ready.held_out["holdout"].equals(ready.test)


@given(st.integers(0, 60), st.floats(0.01, 0.99), st.integers(0, 9))
def test_a_holdout_leaves_every_owner_with_rows_one_to_learn_from(rows, holdout, seed):
    kept, rest = split_rows(table(rows), Schema.from_dict(SCHEMA), "t", holdout, seed)
    assert sorted([*kept, *rest]) == list(range(rows))
    assert len(kept) == max(min(rows, 1), int((1 - holdout) * rows))


@given(st.lists(st.integers(0, 9), max_size=40), st.floats(0.01, 0.99), st.integers(0, 9))
def test_a_holdout_keeps_all_rows_of_a_person_on_one_side(keys, holdout, seed):
    schema = Schema.from_dict(WITH_PERSONS)
    kept, rest = split_rows(table(len(keys)).assign(key=keys), schema, "t", holdout, seed)
    assert sorted([*kept, *rest]) == list(range(len(keys)))
    mine, others = ({keys[row] for row in part} for part in (kept, rest))
    persons = len(set(keys))
    assert not mine & others
    assert len(mine) == max(min(persons, 1), int((1 - holdout) * persons))


@pytest.mark.parametrize("by_file", [False, True])
def test_a_jobs_persons_are_learned_from_or_held_out_and_at_one_owner(tmp_path, by_file):
    rows = table(120).assign(key=[row // 3 for row in range(120)])
    change = {}
    if by_file:
        change = {"data": None, "sites": {"paths": {"a": "table.csv", "b": "table.csv"}}}
    job = write_job(tmp_path, rows, **change)
    write_yaml(WITH_PERSONS, tmp_path / "people.yaml")
    ready = prepare(load(job), tmp_path)
    held = [{*part["key"]} for part in ready.held_out.values()]
    owners = [{*part["key"]} for part in ready.owners.values()]
    for number, mine in enumerate(owners):
        assert mine and not mine & held[number if by_file else 0]
    if not by_file:
        assert sum(map(len, owners)) + len(held[0]) == 40


@pytest.mark.parametrize("holdout", [0, 0.2])
def test_an_owners_file_may_hold_no_rows(tmp_path, holdout):
    for rows, name in enumerate("abc"):
        write_job(tmp_path / name, table(rows))
    paths = {name: f"{name}/table.csv" for name in "abc"}
    job = load(write_job(tmp_path, data=None, sites={"paths": paths}, holdout=holdout))
    ready = prepare(job, tmp_path)
    held = {name: len(ready.held_out.get(name, ())) for name in "abc"}
    assert held == {"a": 0, "b": 0, "c": 1 if holdout else 0}
    assert {name: len(rows) + held[name] for name, rows in ready.owners.items()} == {
        "a": 0, "b": 1, "c": 2,
    }  # fmt: skip
    assert all(list(rows) == list(table(1)) for rows in ready.owners.values())
    assert ready.owners_provenance == "declared" and (ready.test is None) == (holdout == 0)


def test_one_row_of_a_single_file_cannot_be_held_out(tmp_path):
    job = write_job(tmp_path, table(1), sites={"clients": 1, "scheme": "uniform"})
    with pytest.raises(DataError, match="too few rows to hold out"):
        prepare(load(job), tmp_path)


def test_every_client_of_a_cut_is_an_owner(tmp_path):
    sites = {"clients": 9, "scheme": "dirichlet", "beta": 0.01}
    ready = prepare(load(write_job(tmp_path, table(30), sites=sites)), tmp_path)
    assert list(ready.owners) == [f"client-{k:02d}" for k in range(9)]
    assert not all(map(len, ready.owners.values()))


@pytest.mark.parametrize("holdout", [0, 0.2])
@pytest.mark.parametrize("file", [None, "towns.npz"])
def test_declared_names_are_the_owners_whatever_the_rows(tmp_path, holdout, file):
    towns = np.arange(200) % 3
    frame = table() if file else table().assign(town=towns)
    np.savez(tmp_path / "towns.npz", town=towns)
    sites = {"column": "town", "names": [9, "0..2", "north"]} | ({"path": file} if file else {})
    job = load(write_job(tmp_path, frame, sites=sites, holdout=holdout))
    assert Config(**job.to_dict()) == job
    ready = prepare(job, tmp_path)
    assert list(ready.owners) == ["9", "0", "1", "2", "north"]
    assert list(ready.held_out) == (list(ready.owners) if holdout else [])
    assert [len(rows) > 0 for rows in ready.owners.values()] == [False, True, True, True, False]
    assert ready.owners_provenance == "declared"
    assert all(list(rows) == list(table(1)) for rows in [*ready.owners.values(), ready.train])


def test_a_row_of_an_undeclared_owner_is_refused_wherever_the_cut_puts_it(tmp_path):
    for place in (0, 7, 19):
        towns = np.where(np.arange(20) == place, "secret", "north")
        sites = {"column": "town", "names": ["north", "south"]}
        job = load(write_job(tmp_path, table(20).assign(town=towns), sites=sites))
        with pytest.raises(DataError, match=f"column 'town': row {place + 1} names") as error:
            prepare(job, tmp_path)
        assert "secret" not in str(error.value)


def test_the_schemas_values_are_the_names_of_a_categorical_columns_owners(tmp_path):
    frame = table().query("colour == 'red'")
    job = load(write_job(tmp_path, frame, sites={"column": "colour"}))
    ready = prepare(job, tmp_path)
    assert [*ready.owners] == ["red", "green"] and len(ready.owners["green"]) == 0
    assert ready.owners_provenance == "declared"
    assert "colour" in ready.owners["red"]
    drafted = {**SCHEMA, "provenance": "private-data"}
    write_yaml(drafted, tmp_path / "people.yaml")
    ready = prepare(job, tmp_path)
    assert [*ready.owners] == ["red"] and ready.owners_provenance == "private-data"


@pytest.mark.parametrize("sites", [{"column": "age"}, {"column": "town", "path": "towns.csv"}])
def test_names_that_nobody_declared_are_private_data(tmp_path, sites):
    pd.DataFrame({"town": np.arange(200) % 3}).to_csv(tmp_path / "towns.csv", index=False)
    ready = prepare(load(write_job(tmp_path, sites=sites)), tmp_path)
    assert ready.owners_provenance == "private-data"
    assert list(ready.owners) == list(ready.held_out)


def test_every_owner_of_a_column_holds_rows_out_if_only_none(tmp_path):
    frame = table().assign(town=["tiny"] * 1 + ["large"] * 199)
    job = load(write_job(tmp_path, frame, sites={"column": "town"}))
    ready = prepare(job, tmp_path)
    assert set(ready.held_out) == {"tiny", "large"} == set(ready.owners)
    assert sorted(map(len, ready.held_out.values()))[0] in (0, 1)
    assert all(list(rows) == list(ready.test) for rows in ready.held_out.values())
    assert sorted_rows(ready.held_out.values()).equals(sorted_rows([ready.test]))


def test_without_a_holdout_nothing_is_held(tmp_path):
    ready = prepare(load(write_job(tmp_path, holdout=0)), tmp_path)
    assert ready.test is None and ready.held_out == {}


def test_each_owners_file_holds_out_rows_of_its_own(tmp_path):
    write_job(tmp_path / "a", table(50, 1))
    write_job(tmp_path / "b", table(100, 2))
    write_job(tmp_path / "c", table(1, 3))
    paths = {name: f"{name}/table.csv" for name in "abc"}
    ready = prepare(load(write_job(tmp_path, data=None, sites={"paths": paths})), tmp_path)
    assert {name: len(rows) for name, rows in ready.held_out.items()} == {"a": 10, "b": 20, "c": 0}
    assert {name: len(rows) for name, rows in ready.owners.items()} == {"a": 40, "b": 80, "c": 1}
    for name, seed, rows in (("a", 1, 50), ("b", 2, 100)):
        whole = [ready.held_out[name], ready.owners[name]]
        assert sorted_rows(whole).equals(sorted_rows([table(rows, seed)]))


def test_test_images_of_a_file_are_held_as_one(tmp_path):
    rng = np.random.default_rng(0)
    arrays = {
        "x": rng.integers(0, 255, (40, 6, 6), dtype=np.uint8),
        "tx": rng.integers(0, 255, (9, 6, 6), dtype=np.uint8),
    }
    np.savez(tmp_path / "i.npz", y=np.arange(40) % 2, ty=np.arange(9) % 2, **arrays)
    data = {"path": "i.npz", "keys": ["x", "y"], "test_keys": ["tx", "ty"]}
    job = write_job(tmp_path, data=data, holdout=0)
    target = {"kind": "categorical", "name": "digit", "values": [0, 1]}
    write_yaml({"kind": "image", "shape": [6, 6], "target": target}, tmp_path / "people.yaml")
    ready = prepare(load(job), tmp_path)
    assert list(ready.held_out) == ["holdout"] and ready.held_out["holdout"] is ready.test
    np.testing.assert_array_equal(ready.test.pixels, arrays["tx"])


@pytest.mark.parametrize("file", ["table.csv", "owners.csv", "owners.npz"])
def test_a_column_names_each_rows_owner(tmp_path, file):
    frame = table().assign(town=np.arange(200) % 4)
    if file == "table.csv":
        job = write_job(tmp_path, frame, sites={"column": "town"})
    else:
        job = write_job(tmp_path, sites={"column": "town", "path": file})
        frame[["town"]].to_csv(tmp_path / "owners.csv", index=False)
        np.savez(tmp_path / "owners.npz", town=frame["town"].to_numpy())
    ready = prepare(load(job), tmp_path)
    assert list(ready.owners) == ["0", "1", "2", "3"]
    assert list(ready.held_out) == ["0", "1", "2", "3"]
    frames = [*ready.owners.values(), ready.train, ready.test, *ready.held_out.values()]
    assert all("town" not in rows for rows in frames)
    towns = [set(frame.loc[frame["town"] == k, "age"]) for k in range(4)]
    for side in (ready.owners, ready.held_out):
        assert all(set(rows["age"]) <= towns[int(name)] for name, rows in side.items())


def test_a_file_without_the_owners_column_is_named(tmp_path):
    job = write_job(tmp_path, sites={"column": "town", "path": "table.csv"})
    with pytest.raises(DataError, match=r"table\.csv: has no column 'town'"):
        prepare(load(job), tmp_path)


def test_a_job_needs_its_sections(tmp_path):
    write_yaml({"data": {"builtin": "randhie"}}, tmp_path / "job.yaml")
    with pytest.raises(ConfigError, match="`sites` is needed"):
        load(tmp_path / "job.yaml")
