"""What a command imports: nothing heavy that it does not use, so that short ones stay short."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.small_jobs import write_job

PROJECT = Path(__file__).parents[1]
HEAVY = {"torch", "opacus", "sdv", "sdmetrics", "statsmodels", "matplotlib"}
LEARNING = {"sklearn", "dp_accounting", "scipy"}
TABLES = {"pandas", "pyarrow"}
NUMBERS = {"numpy", *TABLES, *LEARNING, *HEAVY}

RUN = """
import sys
from fedsynth.cli.app import run
code = run(sys.argv[1:])
print("loaded", *sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
sys.exit(code)
"""


def loaded_modules(*arguments: object, code: int = 0) -> set[str]:
    """Top-level modules that a process of its own has loaded after a command."""
    command = [sys.executable, "-c", RUN, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return set(done.stderr.splitlines()[-1].split()[1:])


def job(folder: Path, **changes: object) -> Path:
    return write_job(folder, **{"method": "aim", "settings": None, "holdout": 0.0, **changes})


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of an AIM job without a holdout, whose process loaded no more than it should."""
    folder = tmp_path_factory.mktemp("aim")
    modules = loaded_modules("run", job(folder / "job"), "--out", folder / "release", "--quiet")
    assert not modules & {*HEAVY, "sklearn"}
    return folder / "release"


@pytest.mark.parametrize("command", [("--help",), ("run", "--help"), ("version",)])
def test_help_imports_no_numbers(command):
    assert not loaded_modules(*command) & {*NUMBERS, "rich"}


@pytest.mark.parametrize(
    "changes",
    [
        {"privacy": {"epsilno": 1.0}},
        {"method": "aims"},
        {"holdouts": 0.1},
        {"sites": {"clients": 3, "scheme": "uniform", "betta": 1.0}},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_mistyped_job_is_refused_without_numbers(tmp_path, changes):
    assert not loaded_modules("run", job(tmp_path, **changes), code=2) & NUMBERS


@pytest.mark.parametrize("method", ["aim", "fedvae", "fusion-gan", "pate-gan", "hybrid-fusion"])
def test_a_mistyped_setting_is_refused_without_tables(tmp_path, method):
    mistyped = job(tmp_path, method=method, settings={"roundz": 3})
    assert not loaded_modules("run", mistyped, code=2) & {*TABLES, *LEARNING, *HEAVY}


def test_settings_of_all_methods_need_no_tables():
    code = (
        "import sys; from fedsynth.registry import SETTINGS; print(len(list(SETTINGS.values()))); "
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(done.stdout.split()) & {*TABLES, *LEARNING, *HEAVY}


def test_an_aim_job_with_a_holdout_needs_no_torch(tmp_path):
    modules = loaded_modules(
        "run", job(tmp_path, holdout=0.2), "--out", tmp_path / "out", "--quiet"
    )
    assert not modules & HEAVY


def test_planning_tables_needs_no_torch(tmp_path):
    assert not loaded_modules("plan", job(tmp_path)) & {*HEAVY, "sklearn"}


def test_counting_needs_no_torch(release):
    assert not loaded_modules("count", release, "age", "income") & {*HEAVY, *LEARNING}


def test_sampling_needs_no_torch(release, tmp_path):
    modules = loaded_modules("sample", release, "-n", 5, "-o", tmp_path / "rows.csv")
    assert not modules & {*HEAVY, *LEARNING, "rich"}


def test_verifying_needs_no_torch_and_no_tables(release):
    assert not loaded_modules("verify", release) & {*HEAVY, *TABLES, "sklearn"}


# A notebook's own kernel has it; elsewhere nobody asks for it.
PRESENT = {"IPython"}

# Of distributions that are imported under other names than their own.
MODULES = {
    "dp-accounting": {"dp_accounting"},
    "prv-accountant": {"prv_accountant"},
    "pydantic": {"pydantic", "pydantic_core"},
    "pyyaml": {"yaml"},
    "scikit-learn": {"sklearn"},
}


def declared_modules(requirements: list[str]) -> dict[str, set[str]]:
    """The modules of each distribution that is required, fedsynth's own extras apart."""
    names = [re.split(r"[<>=\[]", text)[0] for text in requirements]
    return {name: MODULES.get(name, {name}) for name in names if name != "fedsynth"}


def imported_modules() -> set[str]:
    """Top-level modules of others that the product imports anywhere, by name or by text."""
    modules = set()
    for path in (PROJECT / "fedsynth").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                modules |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                modules.add(str(node.module))
            elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
                modules |= {str(a.value) for a in node.args if isinstance(a, ast.Constant)}
    tops = {name.partition(".")[0] for name in modules}
    return tops - set(sys.stdlib_module_names) - {"fedsynth"}


def test_what_is_installed_is_imported_and_what_is_imported_is_installed():
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    needed = declared_modules(project["dependencies"])
    for name, requirements in extras.items():
        if name != "dev":
            needed |= declared_modules(requirements)
    imports = imported_modules()
    assert [name for name, modules in needed.items() if not modules & imports] == []
    assert sorted(imports - PRESENT - set().union(*needed.values())) == []


def test_the_package_of_commands_is_one(tmp_path):
    """`python -m fedsynth.cli`, as the console script."""
    command = [sys.executable, "-m", "fedsynth.cli", "version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0.1.0"
