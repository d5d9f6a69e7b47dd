"""No text that somebody else wrote rules the terminal of whoever reads it."""

from __future__ import annotations

import ast
from pathlib import Path

import pandas as pd
import pytest

from fedsynth.cli.terminal import on_stderr, on_stdout
from fedsynth.plain import print_note
from fedsynth.yaml_files import yaml_text
from tests.small_jobs import write_job

ROOT = Path(__file__).parents[2]
EVIL = "\x1b]0 title\x07\x1b[2J\x9b31m\x85evil\u202e"


def harmless(text):
    return all(letter.isprintable() or letter == "\n" for letter in text)


def test_notes_and_consoles_spell_controls_out(capsys):
    print_note(f"a {EVIL}")
    on_stdout().print(f"b {EVIL}\nc", markup=False)
    on_stderr().print(f"d {EVIL}")
    out, err = capsys.readouterr()
    assert harmless(out) and harmless(err)
    assert r"\x1b]0 title\x07" in out and "evil" in err and out.endswith("c\n")


SCHEMA = {
    "kind": "table",
    "target": EVIL,
    "columns": [
        {"kind": "categorical", "name": EVIL, "values": ["x" + EVIL, "y"]},
        {"kind": "integer", "name": "age", "lower": 0, "upper": 9},
    ],
}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    folder = tmp_path_factory.mktemp("terminal")
    frame = pd.DataFrame({EVIL: ["x" + EVIL, "y"] * 30, "age": list(range(10)) * 6})
    write_job(folder, frame, method="mst", settings=None)
    (folder / "people.yaml").write_text(yaml_text(SCHEMA))
    frame.replace("y", "z" + EVIL).to_csv(folder / "other.csv", index=False)
    return folder


def test_every_verb_that_prints_values_spells_them_out(hostile, call):
    release, table, job = hostile / "r", hostile / "table.csv", hostile / "job.yaml"
    schema, other = hostile / "people.yaml", hostile / "other.csv"
    commands = [
        (0, "run", job, "--out", release, "--quiet"),
        (0, "count", release, EVIL, "age"),
        (2, "count", release, EVIL + "x"),
        (0, "verify", release),
        (3, "schema", "check", other, schema),
        (3, "schema", "check", hostile / EVIL, schema),
        (0, "schema", "draft", table),
        (0, "schema", "draft", table, other),
        (2, "sample", release, "-n", "3", "-o", hostile / "o.csv", "--where", f"{EVIL}={EVIL}"),
        (0, "sample", release, "-n", "3", "-o", hostile / f"o{EVIL}.csv"),
        (2, "run", job, "--set", f"method={EVIL}", "--out", hostile / "x"),
    ]
    for wanted, *command in commands:
        code, out, err = call(*command)
        assert code == wanted, err
        assert harmless(out) and harmless(err), command


def test_the_command_line_prints_by_no_other_way():
    """Where else `print` is called, what is printed is fedsynth's own, or escaped already."""
    allowed = {"plain.py": 2, "drafting.py": 1, "app.py": 1, "network.py": 1}
    for path in [*(ROOT / "fedsynth/cli").glob("*.py"), ROOT / "fedsynth/plain.py"]:
        calls = [
            node
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print"
        ]
        assert len(calls) <= allowed.get(path.name, 0), path
