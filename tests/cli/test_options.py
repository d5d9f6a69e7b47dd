"""Commands read a user's tables as their options say, and say what they had to guess."""

from __future__ import annotations

import sqlite3

import numpy as np
import pandas as pd
import pytest

import fedsynth as fs
from fedsynth.cli import queries
from fedsynth.cli.score import load_job
from fedsynth.errors import ConfigError
from fedsynth.evaluation import evaluating
from fedsynth.jobs import loading
from fedsynth.yaml_files import write_yaml
from tests.small_jobs import SCHEMA, table, write_job

WRITTEN = ("--separator", ";", "--decimal", ",", "--encoding", "cp1252")


@pytest.fixture
def north(tmp_path):
    """A file of 40 rows in an unusual notation, and the schema of people beside it."""
    write_yaml(SCHEMA, tmp_path / "people.yaml")
    table(40).to_csv(tmp_path / "north.csv", sep=";", index=False, encoding="cp1252")
    return tmp_path / "north.csv"


def test_what_is_guessed_of_a_table_is_said_on_stderr_and_nowhere_else(call, north):
    told = f"Caution: {north}: read with ';' between cells; say `separator: \";\"` to settle it\n"
    code, draft, err = call("schema", "draft", north)
    assert code == 0 and err.startswith(told) and "Caution" not in draft
    code, out, err = call("schema", "draft", north, *WRITTEN)
    assert (code, out) == (0, draft) and "Caution" not in err
    for more in ((), ("--json",)):
        code, out, err = call("schema", "check", north, north.parent / "people.yaml", *more)
        assert code == 0 and err.startswith(told) and "Caution" not in out
    code, _, err = call("schema", "check", north, north.parent / "people.yaml", *WRITTEN)
    assert code == 0 and "Caution" not in err


def test_evaluate_reads_all_tables_as_its_options_say(call, north, monkeypatch):
    seen = []

    def look(real, synthetic, schema, *, train, **options):
        seen.extend([real, synthetic, train])
        raise ConfigError("enough")

    monkeypatch.setattr(evaluating, "evaluate", look)
    given = ("--real", north, "--synthetic", north, "--train", north)
    given += ("--schema", north.parent / "people.yaml", "--out", north.parent / "report")
    code, _, err = call("evaluate", *given, *WRITTEN)
    assert code == 2 and err == "Error: enough\n"
    assert [len(frame) for frame in seen] == [40, 40, 40]
    assert all(frame.equals(seen[0]) for frame in seen) and list(seen[0]) == list(table(1))
    assert call("evaluate", *given)[2].count("Caution: ") == 3


def test_impute_and_predict_read_as_their_options_say(call, north, tmp_path, monkeypatch):
    class Coin:
        name, schema = "coin", fs.Schema.from_dict(SCHEMA)

        def impute(self, frame, seed):
            return frame.fillna({"colour": "red"})

        def probabilities(self, frame):
            assert list(frame) == list(table(1))
            return np.full((len(frame), 2), 0.5)

    monkeypatch.setattr(queries, "_load_graphical", lambda folder: Coin())
    code, _, err = call("impute", "r", north, "-o", tmp_path / "whole.csv", *WRITTEN)
    assert code == 0 and "Caution" not in err
    whole = pd.read_csv(tmp_path / "whole.csv")
    assert whole.equals(table(40).fillna({"colour": "red"}))
    monkeypatch.setattr(loading, "load_model", lambda folder: Coin())
    code, _, err = call("predict", "r", north, "-o", tmp_path / "classes.csv", *WRITTEN)
    assert code == 0 and len(pd.read_csv(tmp_path / "classes.csv")) == 40 and "Caution" not in err


def test_a_query_stands_beside_the_address_of_a_database(call, north, monkeypatch):
    pytest.importorskip("sqlalchemy")
    monkeypatch.chdir(north.parent)
    with sqlite3.connect("clinic.db") as database:
        table(40).to_sql("people", database, index=False)
    asked = ("sqlite:///clinic.db", "--query", "select * from people")
    code, out, _ = call("schema", "draft", *asked)
    assert code == 0 and out == call("schema", "draft", north, *WRITTEN)[1]
    code, _, err = call("schema", "check", asked[0], "people.yaml", *asked[1:])
    assert (code, err) == (0, "sqlite:///clinic.db: everything is within people.yaml\n")
    monkeypatch.setenv("PLACE", "clinic.db")
    assert call("schema", "draft", "sqlite:///${PLACE}", *asked[1:])[1] == out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("sqlite:///clinic.db",), "needs --query"),
        (("north.csv", "--query", "select 1"), "--query is of a database"),
        (("sqlite:///a.db", "--query", "q", "--sheet", "x"), "`sheet` is of files"),
        (("north.csv", "--separator", "ab"), "`separator` must be one character"),
        (("north.csv", "--decimal", "x"), '`decimal` must be "," or "."'),
        (("north.csv", "--encoding", "utf-5"), "`encoding` 'utf-5' is no encoding"),
        (("north.csv", "--sheet", "x"), "`sheet` is of Excel workbooks"),
        (("postgresql://me:geheim@host/a", "--query", "q"), "holds a password"),
    ],
)
def test_options_that_do_not_go_with_a_table_are_refused(
    call, north, monkeypatch, arguments, message
):
    monkeypatch.chdir(north.parent)
    code, out, err = call("schema", "draft", *arguments)
    assert (code, out) == (2, "") and message in err and "geheim" not in err


def test_a_run_says_what_it_guessed_before_anybody_is_asked(call, north):
    sites = {"paths": {"north": "north.csv", "south": "north.csv"}}
    changes = {"data": None, "sites": sites, "method": "mst", "settings": None, "holdout": 0.2}
    changes["privacy"] = {"epsilon": 5.0, "delta": 1e-4, "curious": 1}
    job, out = write_job(north.parent, **changes), north.parent / "r"
    code, _, err = call("run", job, "--out", out, "--quiet")
    assert code == 0, err
    assert err.count("Caution: for the eyes of") == 2
    assert err.startswith(f"Caution: for the eyes of north alone: {north}: read with ';'")
    # The rows of the job are read again, and what was guessed is said again.
    said: list[str] = []
    load_job(out, said.append)
    assert [sentence.split(":")[0] for sentence in said] == [
        "for the eyes of north alone",
        "for the eyes of south alone",
    ]
