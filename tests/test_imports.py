"""What a command imports: nothing heavy that it does not use, so that short ones stay short."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from fedsynth.cli import app as cli
from fedsynth.registry import ENTRIES
from tests.running import MESH, _few_orders
from tests.small_jobs import SETTINGS, write_job

PROJECT = Path(__file__).parents[1]
HEAVY = {"torch", "opacus", "sdv", "sdmetrics", "statsmodels", "matplotlib"}
LEARNING = {"sklearn", "dp_accounting", "scipy"}
TABLES = {"pandas", "pyarrow"}
NUMBERS = {"numpy", *TABLES, *LEARNING, *HEAVY}

RUN = """
import json, sys
from fedsynth.cli.app import run
for command in json.loads(sys.argv[1]):
    if isinstance(command, str):
        exec(command)
        continue
    code = run(command)
    names = {name.partition(".")[0] for name in sys.modules}
    print("loaded", code, *sorted(names), file=sys.stderr)
"""


# The accountant as it is in this process.
QUICK_COSTS = """
import numpy as np
import fedsynth.privacy.curves
few = np.array({orders})
for name, module in list(sys.modules.items()):
    if name.startswith("fedsynth.") and hasattr(module, "MESH"):
        module.MESH = {mesh}
    if name.startswith("fedsynth.") and hasattr(module, "orders"):
        module.orders = lambda: few
"""

MISTYPED = [
    {"privacy": {"epsilno": 1.0}},
    {"method": "aims"},
    {"holdouts": 0.1},
    {"sites": {"clients": 3, "scheme": "uniform", "betta": 1.0}},
]
WRONG = [*MISTYPED, *({"method": name, "settings": {"roundz": 3}} for name in ENTRIES)]


def loaded_after(*commands: list[str] | str) -> list[tuple[int, set[str]]]:
    """Exit code of each command and the top-level modules that are loaded by then, in a process of
    its own; a text is run as code."""
    command = [sys.executable, "-c", RUN, json.dumps(commands)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    told = [line.split()[1:] for line in done.stderr.splitlines() if line.startswith("loaded ")]
    assert len(told) == sum(isinstance(each, list) for each in commands), done.stderr
    return [(int(code), set(names)) for code, *names in told]


def job(folder: Path, **changes: object) -> Path:
    return write_job(folder, **{"method": "aim", "settings": None, "holdout": 0.0, **changes})


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """What was loaded after each of these, in two processes: what a command loads stays for the
    next, so each has the lightest first."""
    folder = tmp_path_factory.mktemp("jobs")
    # Of samples, about which the PRV accountant is asked, and the same for all adversaries.
    noisy = {**SETTINGS, "rounds": 2, "rate": 0.1, "noise_multiplier": 3.0}
    privacy = {"epsilon": 5.0, "delta": 1e-4, "trust": "central"}
    sampled = write_job(folder / "sampled", holdout=0.0, settings=noisy, privacy=privacy)
    release, again = str(folder / "release"), str(folder / "again")
    assert cli.run(["run", str(sampled), "--out", release, "--quiet"]) == 0
    wrong = [str(job(folder / f"wrong {i}", **changes)) for i, changes in enumerate(WRONG)]
    whole, held_out = str(job(folder / "whole")), str(job(folder / "held out", holdout=0.2))
    told = loaded_after(
        ["--help"],
        ["run", "--help"],
        ["version"],
        *(["run", path] for path in wrong),
        QUICK_COSTS.format(orders=_few_orders().tolist(), mesh=MESH),
        ["verify", release],
        ["plan", whole],
        ["run", whole, "--out", again, "--quiet"],
        ["run", held_out, "--out", str(folder / "scored"), "--quiet"],
    )
    rows = ["-n", "5", "-o", str(folder / "rows.csv")]
    told += loaded_after(["sample", again, *rows], ["count", again, "age", "income"])
    names = ["help", "help of run", "version", *(f"wrong {i}" for i in range(len(WRONG)))]
    names += ["verify", "plan", "run", "run and score", "sample", "count"]
    codes = [2 if name.startswith("wrong") else 0 for name in names]
    assert [code for code, _ in told] == codes
    return dict(zip(names, (modules for _, modules in told), strict=True))


def test_help_imports_no_numbers(loaded):
    assert not loaded["version"] & {*NUMBERS, "rich"}


def test_mistyped_jobs_are_refused_without_numbers_and_mistyped_settings_without_tables(loaded):
    assert not loaded[f"wrong {len(MISTYPED) - 1}"] & NUMBERS
    assert not loaded[f"wrong {len(WRONG) - 1}"] & {*TABLES, *LEARNING, *HEAVY}


def test_sampling_needs_no_accountant_and_counting_no_torch(loaded):
    assert not loaded["sample"] & {*HEAVY, *LEARNING, "rich"}
    assert not loaded["count"] & {*HEAVY, *LEARNING}


def test_verifying_needs_no_tables_planning_no_learning_and_an_aim_job_no_torch(loaded):
    assert not loaded["verify"] & {*HEAVY, *TABLES, "sklearn"}
    assert "prv_accountant" in loaded["verify"]
    assert not loaded["plan"] & {*HEAVY, "sklearn"}
    assert not loaded["run"] & {*HEAVY, "sklearn"}
    assert not loaded["run and score"] & HEAVY


# A notebook's own kernel has it; elsewhere nobody asks for it.
PRESENT = {"IPython"}

# Of distributions that are imported under other names than their own.
MODULES = {
    "dp-accounting": {"dp_accounting"},
    "grpcio": {"grpc"},
    "prv-accountant": {"prv_accountant"},
    "resvg-py": {"resvg_py"},
    "pydantic": {"pydantic", "pydantic_core"},
    "pyyaml": {"yaml"},
    "scikit-learn": {"sklearn"},
}


def declared_modules(requirements: list[str]) -> dict[str, set[str]]:
    """The modules of each distribution that is required, fedsynth's own extras apart."""
    names = [re.split(r"[<>=\[]", text)[0] for text in requirements]
    return {name: MODULES.get(name, {name}) for name in names if name != "fedsynth"}


def _called(node: ast.Call) -> str:
    """The name of what is called, without what it belongs to."""
    return str(getattr(node.func, "attr", getattr(node.func, "id", "")))


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
    """All of them, without what they are made of."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
            yield node
            yield from _statements(node)


def imported_modules() -> set[str]:
    """Top-level modules of others that the product imports anywhere, by name or by text."""
    modules = set()
    for path in (PROJECT / "fedsynth").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        for node in ast.walk(tree) if "import_module" in text else _statements(tree):
            if isinstance(node, ast.Import):
                modules |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                modules.add(str(node.module))
            elif isinstance(node, ast.Call) and _called(node) == "import_module":
                modules |= {str(a.value) for a in node.args if isinstance(a, ast.Constant)}
    tops = {name.partition(".")[0] for name in modules}
    return tops - set(sys.stdlib_module_names) - {"fedsynth"}


def test_what_is_installed_is_imported_and_what_is_imported_is_installed():
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    needed = declared_modules(project["dependencies"])
    for name, requirements in extras.items():
        if name not in ("dev", "docs"):
            needed |= declared_modules(requirements)
    imports = imported_modules()
    assert [name for name, modules in needed.items() if not modules & imports] == []
    assert sorted(imports - PRESENT - set().union(*needed.values())) == []


def test_the_package_of_commands_is_one(tmp_path):
    """`python -m fedsynth.cli`, as the console script."""
    command = [sys.executable, "-m", "fedsynth.cli", "version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0.1.0"
