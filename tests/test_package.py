"""What is installed: a wheel built from these files."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
BUILD = "import setuptools.build_meta as b, sys; print(b.build_wheel(sys.argv[1]))"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel of the package, built in a copy, so that no old build folder gets into it."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    junk = shutil.ignore_patterns("__pycache__", ".*")
    shutil.copytree(ROOT / "fedsynth", source / "fedsynth", ignore=junk)
    command = [sys.executable, "-c", BUILD, str(out)]
    built = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (path,) = out.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        yield {name: archive.read(name) for name in archive.namelist()}


def test_a_wheel_holds_every_file_of_the_package_and_no_other(wheel):
    """Schemas, job files, style sheets and scripts among them."""
    files = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "fedsynth").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith(".")
    }
    assert {name for name in wheel if ".dist-info/" not in name} == files
    for kind in (".yaml", ".css", ".js", ".json", "py.typed"):
        assert any(name.endswith(kind) for name in files)


def test_a_wheel_says_its_licence_and_brings_it(wheel):
    (licence,) = [name for name in wheel if name.endswith(".dist-info/licenses/LICENSE")]
    assert wheel[licence] == (ROOT / "LICENSE").read_bytes()
    assert b"Version 2.0, January 2004" in wheel[licence]
    (metadata,) = [name for name in wheel if name.endswith(".dist-info/METADATA")]
    said = message_from_bytes(wheel[metadata])
    assert said["License-Expression"] == "Apache-2.0"
    assert said["Author"] == "fedsynth contributors"
    assert said.get_all("Project-URL") is None and said["Home-page"] is None


def test_that_every_extra_can_be_had_is_tried_elsewhere_and_told():
    """In the hosted workflow, each by itself; `dev` brings what the tests run on."""
    extras = set(
        tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    )
    extras -= {"dev"}
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text())
    assert set(workflow["jobs"]["extras"]["strategy"]["matrix"]["extra"]) == extras
    told = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    assert all(f"`{extra}`" in told for extra in extras - {"all"}) and ".[all]" in told
