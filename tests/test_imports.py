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
    code = run(command)
    names = {name.partition(".")[0] for name in sys.modules}
    print("loaded", code, *sorted(names), file=sys.stderr)
"""


# Before all else, the accountant as it is in this process.
QUICK_COSTS = """
import numpy as np
from fedsynth.privacy import curves
few = np.array({orders})
curves.MESH, curves.orders = {mesh}, lambda: few
"""


def loaded_after(commands: list[list[str]], code: int = 0, first: str = "") -> list[set[str]]:
    """Top-level modules that a process of its own has loaded after each of its commands."""
    command = [sys.executable, "-c", first + RUN, json.dumps(commands)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    told = [line.split()[1:] for line in done.stderr.splitlines() if line.startswith("loaded ")]
    assert [code] * len(commands) == [int(first) for first, *_ in told], done.stderr
    return [set(names) for _, *names in told]


def job(folder: Path, **changes: object) -> Path:
    return write_job(folder, **{"method": "aim", "settings": None, "holdout": 0.0, **changes})


def test_help_imports_no_numbers():
    told = loaded_after([["--help"], ["run", "--help"], ["version"]])
    assert not told[-1] & {*NUMBERS, "rich"}


MISTYPED = [
    {"privacy": {"epsilno": 1.0}},
    {"method": "aims"},
    {"holdouts": 0.1},
    {"sites": {"clients": 3, "scheme": "uniform", "betta": 1.0}},
]


def test_mistyped_jobs_are_refused_without_numbers_and_mistyped_settings_without_tables(tmp_path):
    """In one process: what a command loads stays for the next, the lightest first."""
    wrong = [{"method": name, "settings": {"roundz": 3}} for name in ENTRIES]
    files = [job(tmp_path / str(i), **changes) for i, changes in enumerate([*MISTYPED, *wrong])]
    told = loaded_after([["run", str(path)] for path in files], code=2)
    assert not told[len(MISTYPED) - 1] & NUMBERS
    assert not told[-1] & {*TABLES, *LEARNING, *HEAVY}


def test_sampling_needs_no_accountant_and_counting_no_torch(call, tmp_path):
    """In one process, as above: the lightest first."""
    release = tmp_path / "release"
    assert call("run", job(tmp_path / "job"), "--out", release, "--quiet")[0] == 0
    rows = ["-n", "5", "-o", str(tmp_path / "rows.csv")]
    commands = [["sample", str(release), *rows], ["count", str(release), "age", "income"]]
    sampled, counted = loaded_after(commands)
    assert not sampled & {*HEAVY, *LEARNING, "rich"}
    assert not counted & {*HEAVY, *LEARNING}


def test_verifying_needs_no_tables_planning_no_learning_and_an_aim_job_no_torch(call, tmp_path):
    release, path = tmp_path / "release", str(job(tmp_path / "job"))
    # Of samples, about which the PRV accountant is asked, and the same for all adversaries.
    noisy = {**SETTINGS, "rounds": 2, "noise_multiplier": 3.0}
    privacy = {"epsilon": 5.0, "delta": 1e-4, "trust": "central"}
    sampled = write_job(tmp_path / "sampled", holdout=0.0, settings=noisy, privacy=privacy)
    assert call("run", sampled, "--out", release, "--quiet")[0] == 0
    held_out = str(job(tmp_path / "held out", holdout=0.2))
    commands = [
        ["verify", str(release)],
        ["plan", path],
        ["run", path, "--out", str(tmp_path / "again"), "--quiet"],
        ["run", held_out, "--out", str(tmp_path / "scored"), "--quiet"],
    ]
    costs = QUICK_COSTS.format(orders=_few_orders().tolist(), mesh=MESH)
    verified, planned, ran, scored = loaded_after(commands, first=costs)
    assert not verified & {*HEAVY, *TABLES, "sklearn"}
    assert "prv_accountant" in verified
    assert not planned & {*HEAVY, "sklearn"}
    assert not ran & {*HEAVY, "sklearn"}
    assert not scored & HEAVY


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
