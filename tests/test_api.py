"""The Python door: every public name is there, and importing it costs nothing."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import fedsynth as fs
from fedsynth.registry import ENTRIES
from tests.small_jobs import SCHEMA, SETTINGS, table


@pytest.mark.parametrize("name", fs.__all__)
def test_every_public_name_is_there(name):
    assert getattr(fs, name) is not None
    assert name in dir(fs)


def test_types_are_told_of_the_names_that_there_are():
    """What a type checker reads, against what is imported when used, the methods' included."""
    tree = ast.parse(Path(fs.__file__).read_text(encoding="utf-8"))
    checked = next(node for node in tree.body if isinstance(node, ast.If))
    homes = {
        name.name: node.module
        for node in checked.body
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    assert sorted(homes) == sorted(fs.__all__)
    assert {entry.kind: entry.module for entry in ENTRIES.values()}.items() <= homes.items()
    for name, home in homes.items():
        assert getattr(importlib.import_module(home), name) is getattr(fs, name)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="FedGuess"):
        _ = fs.FedGuess


@pytest.mark.parametrize("module", ["fedsynth", "fedsynth.cli.app"])
def test_importing_loads_no_heavy_library(module):
    """The bar is `fedsynth --help` under 0.3 s; each of these takes that long or longer."""
    heavy = ["torch", "pandas", "numpy", "scipy", "sklearn", "pydantic", "dp_accounting", "rich"]
    code = f"import sys, {module}; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def _first_python(page):
    text = (Path(__file__).parents[1] / page).read_text(encoding="utf-8")
    return text.split("```python\n")[1].split("```")[0]


def test_the_docs_example_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(_first_python("docs/python.md"), {})
    told = capsys.readouterr().out
    assert "\nAdding or removing any one record" in told
    assert told.endswith("True\n")
    assert (tmp_path / "runs" / "health" / "certificate.json").exists()


def test_the_readmes_three_lines_run():
    code = _first_python("README.md")
    assert len([line for line in code.splitlines() if line]) == 3
    known = {"table": table()}
    exec(code, known)
    assert list(known["rows"]) == list(table()) and len(known["rows"]) == 1_000


def test_tables_of_several_owners_become_rows_of_the_same_kind():
    schema = fs.Schema.from_dict(SCHEMA)
    sites = fs.partition(table(), 3, "dirichlet", schema=schema, beta=0.5, seed=0)
    budget = fs.Budget(epsilon=5.0, delta=1e-4, unit="record", trust="distributed")
    synth = fs.FedVAE(schema, **SETTINGS).fit(sites, budget)
    rows = synth.sample(100, where={"income": "high"}, seed=1)
    assert list(rows) == list(table())
    assert rows.dtypes.equals(table().dtypes)
    assert set(rows["income"]) == {"high"}
    assert rows["age"].between(0, 63).all()
    assert synth.ledger.spent().epsilon <= 5.0


def test_proportions_replace_the_estimated_frequencies():
    schema = fs.Schema.from_dict(SCHEMA)
    synth = fs.FedVAE(schema, **SETTINGS).fit([table()], fs.Budget(epsilon=5.0, delta=1e-4))
    shares = synth.sample(4000, proportions={"low": 3, "high": 1}, seed=0)["income"] == "high"
    # Six standard deviations of a share of 4,000: false alarms below 1e-8.
    assert abs(shares.mean() - 0.25) < 6 * (0.25 * 0.75 / 4000) ** 0.5
