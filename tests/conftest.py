"""What all tests share: data, command lines, hypothesis' effort, and the accountant's answers."""

from __future__ import annotations

import functools
import hashlib
import os
import pickle
from pathlib import Path

import pytest
from hypothesis import settings

from fedsynth.cli import app as cli
from fedsynth.privacy import accounting

ROOT = Path(__file__).resolve().parent.parent

# Machines differ; no test has a time limit. `make quick` tries fewer examples of everything.
settings.register_profile("whole", deadline=None)
settings.register_profile("quick", deadline=None, max_examples=10)
settings.load_profile("whole")

COSTLY = ((accounting, "tight"), (accounting, "_curve"))


@pytest.fixture(scope="session", autouse=True)
def _known_costs(tmp_path_factory):
    """Composing losses and sampled Renyi curves takes seconds: each is computed once a run.

    The answers lie in the run's own temporary folder, where its processes share them and no later
    run finds them. The accountant's own tests do without (tests/privacy/conftest.py).
    """
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "costs"
    folder.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        for module, name in COSTLY:
            patch.setattr(module, name, _remembered(getattr(module, name), folder))
        yield


def _remembered(compute, folder):
    """The same function, its answers in files; its arguments are told apart by their repr."""

    @functools.wraps(compute)
    def known(*arguments):
        question = f"{compute.__module__}.{compute.__qualname__}{arguments!r}"
        answer = folder / hashlib.sha256(question.encode()).hexdigest()
        if not answer.exists():
            fresh = answer.with_suffix(f".{os.getpid()}")
            fresh.write_bytes(pickle.dumps(compute(*arguments)))
            fresh.replace(answer)
        return pickle.loads(answer.read_bytes())

    return known


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
