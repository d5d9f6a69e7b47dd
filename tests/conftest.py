from __future__ import annotations

import os
from pathlib import Path

import pytest

from fedsynth.cli import app as cli

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of the papers' data sets (adult/adult.csv.gz, mnist/mnist.npz, ..)."""
    path = Path(os.environ.get("FEDSYNTH_DATA", ROOT.parent / "shared" / "data"))
    if not path.is_dir():
        pytest.skip(f"no data in {path}: set FEDSYNTH_DATA to the folder with adult/, mnist/, ..")
    return path


@pytest.fixture(scope="session")
def configs() -> Path:
    """The repository's configs/ folder."""
    return ROOT / "configs"


@pytest.fixture
def call(capsys):
    """Runs a command line; its exit code, stdout and stderr."""

    def run(*arguments):
        code = cli.run([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return run
