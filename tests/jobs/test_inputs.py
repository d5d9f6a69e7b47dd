"""What a job reads: files in any notation and databases, each owner's own; no password is kept."""

from __future__ import annotations

import sqlite3

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsynth.errors import ConfigError
from fedsynth.jobs import run as job
from fedsynth.jobs.accounts import account_files
from fedsynth.jobs.config import Config, load_config
from fedsynth.jobs.data import prepare
from fedsynth.jobs.inputs import Data, Origin, expand_url
from fedsynth.jobs.joining import load_site
from fedsynth.jobs.reading import follow
from fedsynth.yaml_files import write_yaml, yaml_text
from tests.small_jobs import table, write_job


def load(path, *changes):
    return load_config(path, changes)[0]


def write_owners(folder):
    """The same 40 rows for each of five owners, each in another way; the job's sites."""
    frame = table(40).replace({"red": "rot", "green": "grün"})
    frame.to_csv(folder / "north.csv", sep=";", index=False, encoding="cp1252")
    frame.to_csv(folder / "south.tsv", sep="\t", index=False)
    frame.to_parquet(folder / "west.parquet")
    frame.to_excel(folder / "up.xlsx", sheet_name="2024", index=False)
    with sqlite3.connect(folder / "east.db") as database:
        frame.to_sql("people", database, index=False)
    return {
        "north": "north.csv",
        "south": {"path": "south.tsv"},
        "west": "west.parquet",
        "up": {"path": "up.xlsx", "sheet": 2024},
        "east": {"url": "sqlite:///east.db", "query": "select * from people"},
    }


def write_five(folder, **changes):
    path = write_job(folder, data=None, sites={"paths": write_owners(folder)}, **changes)
    schema = (folder / "people.yaml").read_text()
    (folder / "people.yaml").write_text(schema.replace("red", "rot").replace("green", "grün"))
    return path


def test_every_owner_may_keep_its_rows_in_another_way(tmp_path):
    pytest.importorskip("openpyxl"), pytest.importorskip("sqlalchemy")
    said = []
    config = load(write_five(tmp_path))
    assert Config(**config.to_dict()) == config
    data = prepare(config, tmp_path, said.append)
    owned = list(data.owners.values())
    assert len(owned) == 5 and len(owned[0]) == 32
    for one in owned[1:]:
        pd.testing.assert_frame_equal(one, owned[0])
    # Each of a guess of its own file, and nobody of another's.
    assert len(said) == 1 and said[0].startswith(f"for the eyes of north alone: {tmp_path}")
    assert "';' between cells and Windows-1252 letters" in said[0]


def test_what_data_says_of_all_files_holds_where_a_file_does_not_say_otherwise(tmp_path):
    said, sites = [], write_owners(tmp_path)
    sites = {name: sites[name] for name in ("north", "south", "west")}
    sites["south"]["separator"] = "tab"
    data = {"separator": ";", "encoding": "cp1252"}
    # In ASCII, so that one encoding is as good as the other.
    table(40).to_csv(tmp_path / "south.tsv", sep="\t", index=False)
    config = load(write_job(tmp_path, data=data, sites={"paths": sites}))
    assert len(prepare(config, tmp_path, said.append).owners) == 3 and said == []
    sites["south"]["separator"] = ","
    path = write_job(tmp_path, data=data, sites={"paths": sites})
    assert list(prepare(load(path), tmp_path).owners["south"]) == ["age\tcolour\tincome"]


def test_no_guess_and_no_password_gets_into_a_release(tmp_path, monkeypatch):
    pytest.importorskip("openpyxl"), pytest.importorskip("sqlalchemy")
    monkeypatch.setenv("PLACE", str(tmp_path / "east.db"))
    said = []
    changes = {"method": "mst", "settings": None, "holdout": 0}
    config = load(write_five(tmp_path, **changes), "sites.paths.east.url=sqlite:///${PLACE}")
    job.start(config, tmp_path, tmp_path / "out" / "r", lambda *told: None, said.append)
    assert any("Windows-1252" in sentence for sentence in said)
    for file in (tmp_path / "out" / "r").iterdir():
        body = file.read_bytes()
        for word in (b"1252", b"separator", b"for the eyes", str(tmp_path).encode()):
            assert word not in body, (file.name, word)
    # Which finds its data from where it is, also in a database.
    kept, base = load_config(tmp_path / "out" / "r" / "config.yaml")
    assert kept.sites.paths["east"].url == "sqlite:///${PLACE}"
    moved = load(tmp_path / "job.yaml").map_paths(lambda text: f"../{text}")
    assert moved.sites.paths["east"].url == "sqlite:///../east.db"
    assert list(prepare(kept, base, said.append).owners) == list(config.sites.paths)
    (tmp_path / "out" / "people.yaml").write_bytes((tmp_path / "people.yaml").read_bytes())
    again = prepare(moved, tmp_path / "out", said.append)
    assert len(again.owners["east"]) == 40


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://reader:geheim@host/clinic",
        "postgresql://reader:${USER}geheim@host/clinic",
        "postgresql://reader:a/geheim@host/clinic",
        "postgresql://:geheim@host",
        "mysql+pymysql://host/clinic?user=reader&password=geheim",
        "mssql+pyodbc:///?odbc_connect=DRIVER%3Dx%3BPWD%3Dgeheim",
        "snowflake://reader@account?token=geheim",
        {"password": "geheim"},
        ["geheim"],
    ],
)
def test_an_address_with_a_password_is_refused_and_not_repeated(tmp_path, url):
    entry = {"url": url, "query": "select 1"}
    for changes in (
        {"data": entry},
        {"data": None, "sites": {"paths": {"north": entry}}},
        {"data": None, "sites": {"paths": {"north": {**entry, "unknown": 1}}}},
        {"data": None, "sites": {"paths": {"north": url}}},
        {"data": None, "sites": {"paths": [url]}},
        {"data": {"path": url}},
        {"public": entry},
    ):
        with pytest.raises(ConfigError) as error:
            load(write_job(tmp_path, **changes))
        assert "geheim" not in str(error.value) and error.value.__suppress_context__


def test_a_password_in_a_variable_is_taken(monkeypatch):
    url = "postgresql://reader:${PASSWORD}@host/clinic?sslkey=${KEY}"
    assert Origin(url=url, query="q").url == url
    monkeypatch.delenv("PASSWORD", raising=False)
    with pytest.raises(ConfigError, match="variable 'PASSWORD' is not set"):
        expand_url(url, None)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1))
def test_any_password_reaches_the_driver_as_it_is(password):
    make_url = pytest.importorskip("sqlalchemy").engine.make_url
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PASSWORD", password)
        filled = make_url(expand_url("postgresql://reader:${PASSWORD}@host:5/clinic", None))
        assert (filled.password, filled.host, filled.database) == (password, "host", "clinic")


def test_a_whole_address_may_be_a_variable(tmp_path, monkeypatch):
    monkeypatch.setenv("CLINIC", "postgresql://reader:a%40b@host/clinic")
    assert expand_url("${CLINIC}", tmp_path) == "postgresql://reader:a%40b@host/clinic"


def test_a_database_in_a_file_lies_beside_the_job_file(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDSYNTH_DATA", str(tmp_path / "sets"))
    assert expand_url("sqlite:///a.db", tmp_path) == f"sqlite:///{tmp_path}/a.db"
    assert expand_url("sqlite:////b/a.db", tmp_path) == "sqlite:////b/a.db"
    assert expand_url("sqlite:///:memory:", tmp_path) == "sqlite:///:memory:"
    assert expand_url("sqlite:///${FEDSYNTH_DATA}/a.db", tmp_path) == (
        f"sqlite:///{tmp_path}/sets/a.db"
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"url": "sqlite:///a.db"}, "`url` and `query` go together"),
        ({"path": "a.csv", "query": "q"}, "`url` and `query` go together"),
        ({"path": "a.csv", "url": "sqlite://", "query": "q"}, "give `path`, or `url`"),
        ({"url": "sqlite://", "query": "q", "decimal": ","}, "`decimal` is of files"),
        ({"path": "a.csv", "separater": ";"}, "did you mean 'separator'"),
        ({"path": "a.csv", "separator": "ab"}, "`separator` must be one character"),
        ({"builtin": "randhie", "encoding": "utf-8"}, "`encoding` is of files"),
        ({"path": "a.csv", "recode": {"a": {"b": "c"}}}, "a job file is released: put it, with"),
    ],
)
def test_a_fault_is_named_with_its_place(tmp_path, content, message):
    with pytest.raises(ConfigError) as error:
        load(write_job(tmp_path, data=content))
    assert "data: " in str(error.value) and message in str(error.value)
    if "builtin" in content:
        return
    with pytest.raises(ConfigError) as error:
        load(write_job(tmp_path, data=None, sites={"paths": {"north": content}}))
    assert "sites: `paths` of north: " in str(error.value) and message in str(error.value)


@pytest.mark.parametrize("paths", [{}, [], None, {"north": None}, {"north": {}}, {"north": 5}])
def test_owners_without_a_table_are_refused(tmp_path, paths):
    with pytest.raises(ConfigError, match=r"sites: |scheme"):
        load(write_job(tmp_path, data=None, sites={"paths": paths}))


def test_an_owners_file_says_how_its_table_is_read_and_is_not_released(tmp_path):
    """From the folder of the job file, where it stands, to its table."""
    rows = table(60)
    rows.rename(columns={"age": "Alter"}).to_csv(tmp_path / "south.csv", index=False, sep=";")
    rows.to_csv(tmp_path / "north.csv", index=False)
    (tmp_path / "jobs").mkdir()
    words = {
        "path": "../south.csv",
        "rename": {"Alter": "age"},
        "recode": {"colour": {"rot": "red"}},
    }
    site = {
        "name": "south",
        "data": words,
        "schema": "people.yaml",
        "account": {"path": "south.jsonl", "epsilon": 3.0},
        "rules": {"trust": "central", "job_epsilon": 1.0, "methods": ["aim"], "cohort": 2},
    }
    write_yaml(site, tmp_path / "jobs" / "south.yaml")
    assert load_site(tmp_path / "jobs" / "south.yaml").data.rename == {"Alter": "age"}
    paths = {"north": "../north.csv", "south": "south.yaml"}
    write_job(tmp_path / "jobs", data=None, sites={"paths": paths})
    config, base = load_config(tmp_path / "jobs" / "job.yaml")
    said = []
    owners = prepare(config, base, said.append).owners
    assert list(owners["north"]["age"]) == list(owners["south"]["age"])
    assert "rot" not in yaml_text(config.to_dict())
    # Its account is that of the table, as if the job named it.
    files = account_files(config, owners, base)
    assert {file.parent.resolve() for file in files.values()} == {tmp_path / "accounts"}
    assert len(said) == 1 and "south.csv: read with ';'" in said[0]


@pytest.mark.parametrize(
    ("content", "origin", "message"),
    [
        ({"name": "south"}, {}, "own.yaml: tells of no table: give `path`"),
        ({"data": "a.csv"}, {}, "own.yaml: tells of no table"),
        ({"path": "a.csv", "renames": {"a": "b"}}, {}, "did you mean 'rename'"),
        ({"path": "a.csv", "recode": {"a": "b"}}, {}, "own.yaml: .*`recode` must have a mapping"),
        ({"path": "own.yaml"}, {}, "`path` is to be the table's: own.yaml is no table"),
        (
            {"path": "a.csv"},
            {"separator": ";"},
            "`separator` is of a table, and .*own.yaml says how",
        ),
    ],
)
def test_an_owners_file_that_tells_of_no_table_is_refused(tmp_path, content, origin, message):
    write_yaml(content, tmp_path / "own.yaml")
    with pytest.raises(ConfigError, match=message):
        follow(Origin(path="own.yaml", **origin), tmp_path)


def test_a_sheets_name_may_look_like_a_number():
    assert Data(path="a.xlsx", sheet=2024).sheet == "2024"


def test_owners_names_and_public_rows_may_be_written_in_another_way(tmp_path):
    towns = np.arange(200) % 2
    pd.DataFrame({"town": towns, "weight": 1.5}).to_csv(
        tmp_path / "towns.csv", sep=";", decimal=",", index=False
    )
    origin = {"path": "towns.csv", "separator": ";", "decimal": ","}
    said = []
    for path in (origin, "towns.csv"):
        sites = {"column": "town", "names": [0, 1], "path": path}
        data = prepare(load(write_job(tmp_path, sites=sites)), tmp_path, said.append)
        assert [len(rows) for rows in data.owners.values()] == [
            int((towns[np.random.default_rng(0).permutation(200)[:160]] == k).sum()) for k in (0, 1)
        ]
    assert len(said) == 1 and "towns.csv: read with ';'" in said[0]
