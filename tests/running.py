"""What all tests share where they run: data, command lines, chance, the accountant's answers."""

from __future__ import annotations

import functools
import gc
import hashlib
import importlib
import os
import pickle
import warnings
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import settings

from fedsynth.cli import app as cli
from fedsynth.data.tables import read_table
from fedsynth.evaluation.measures import agreement, fidelity, quality, utility
from fedsynth.evaluation.models import classifiers, regressors
from fedsynth.evaluation.reading import confidence
from fedsynth.evaluation.reading.rows import read_rows
from fedsynth.federation.simulation import repeats
from fedsynth.models import matching
from fedsynth.planning import selecting as pricing
from fedsynth.privacy import accounting, curves, filters, noise, selecting
from fedsynth.privacy.mechanisms import laplace, pure
from fedsynth.privacy.verify import opinions
from fedsynth.schema import Schema

ROOT = Path(__file__).resolve().parent.parent
EVERY_COLUMN, EVERY_DEAL = quality.MOST_COLUMNS, confidence._DEALS


@contextmanager
def _noise_of(name, node):
    """What stands for the operating system's entropy where noise is not the matter: drawn from a
    seed that is a test's or fixture's name. Nothing else knows of it, so releases are not void."""
    fresh = settings.get_current_profile_name() == "explore"
    if fresh or node.get_closest_marker("fresh_noise"):
        yield
        return

    @functools.cache
    def generator():
        return np.random.default_rng(list(name.encode()))

    before, noise.os = noise.os, SimpleNamespace(urandom=lambda count: generator().bytes(count))
    try:
        yield
    finally:
        noise.os = before


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection(session):
    """Where several processes collect the same files, each first imports its share of them: pytest
    rewrites their assertions, half of collecting, and keeps what came of it for the others."""
    # What is imported and collected stays: no garbage is looked for.
    gc.disable()
    try:
        _import_share(session.config)
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def _import_share(config):
    worker = getattr(config, "workerinput", None)
    if worker is None:
        return
    asked = {Path(argument.partition("::")[0]).resolve() for argument in config.args}
    every = sorted((ROOT / "tests").rglob("test_*.py"))
    files = [path for path in every if asked & {path, *path.parents}]
    # What is wrong with a file is told where it is collected.
    with warnings.catch_warnings(action="ignore"):
        for path in files[int(worker["workerid"].removeprefix("gw")) :: worker["workercount"]]:
            with suppress(Exception, pytest.skip.Exception):
                importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup():
    # A process of its own, which remembers no rows.
    repeats._JOBS.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    with _noise_of(item.nodeid, item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    with _noise_of(f"{fixturedef.baseid}::{fixturedef.argname}", request.node):
        return (yield)


def pytest_configure():
    """What is promised of classifiers and their scores is promised of an eighth of the trees, and
    of three of the settings that a tuner would try: twelve take longer than everything else.
    Scores of attacks are dealt out a fifth as often, which a third of `ALARM` is still above.
    Decoders are matched on an eighth of the draws.
    SDMetrics is told of two columns, and of all where its scores are the matter."""
    # Looked for in what is young a tenth as often: half of the time that it takes.
    gc.set_threshold(10_000, 20, 20)
    classifiers.TREES = regressors.TREES = 12
    agreement._ROUNDS = 30
    matching._DRAWS = 512
    confidence._DEALS = 4_000
    quality.MOST_COLUMNS = fidelity.MOST_COLUMNS = 2
    utility.SETTINGS = utility.SETTINGS[::5]


@pytest.fixture(scope="module", autouse=True)
def _little_garbage():
    """What is there stays: no collection, which tests of crashes ask for, looks at it again."""
    gc.collect()
    gc.freeze()


COSTLY = ((accounting, "tight"), (accounting, "_curve"), (opinions, "prv"))
CACHES = (accounting._spent, accounting._curve)
# Wider than the accountant's own 1e-4: a bound as sound, less than 0.1 % above, ten times as soon.
MESH, EXACT_MESH = 1e-3, curves.MESH
MESHED = (curves, laplace)
# A Renyi bound at fewer orders is as sound too, less than 1 % above, ten times as soon: those above
# 128, which only an epsilon below 0.2 would need, take most of the time.
ORDERED, EXACT_ORDERS = (accounting, curves, filters, pure, selecting, pricing), curves.orders


@functools.cache
def _few_orders():
    every = EXACT_ORDERS()
    return np.append(every[4:-4:5], every[-4])


@pytest.fixture(scope="session", autouse=True)
def _quick_costs(tmp_path_factory):
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "costs"
    folder.mkdir(exist_ok=True)
    with quick_costs(folder):
        yield


@contextmanager
def quick_costs(folder):
    """Accounting takes seconds: on a wide mesh, at few orders, and each composition once a run.

    The answers lie in the run's own temporary folder, where its processes share them and no later
    run finds them.
    """
    with pytest.MonkeyPatch.context() as patch:
        for module in MESHED:
            patch.setattr(module, "MESH", MESH)
        for module in ORDERED:
            patch.setattr(module, "orders", _few_orders)
        for module, name in COSTLY:
            patch.setattr(module, name, _remembered(getattr(module, name), folder))
        yield


def _remembered(compute, folder):
    """The same function, its answers in memory and in files, by the repr of its arguments."""
    memory = {}

    @functools.wraps(compute)
    def known(*arguments):
        question = f"{compute.__module__}.{compute.__qualname__}{arguments!r}"
        if question not in memory:
            answer = folder / hashlib.sha256(question.encode()).hexdigest()
            if not answer.exists():
                fresh = answer.with_suffix(f".{os.getpid()}")
                fresh.write_bytes(pickle.dumps(compute(*arguments)))
                fresh.replace(answer)
            memory[question] = pickle.loads(answer.read_bytes())
        return memory[question]

    return known


@pytest.fixture(scope="module")
def exact_costs():
    """The accountant as it is, for tests of what it says."""
    _forget()
    with pytest.MonkeyPatch.context() as patch:
        for module in MESHED:
            patch.setattr(module, "MESH", EXACT_MESH)
        for module in ORDERED:
            patch.setattr(module, "orders", EXACT_ORDERS)
        for module, name in COSTLY:
            patch.setattr(module, name, getattr(module, name).__wrapped__)
        yield
    _forget()


def _forget():
    for cached in CACHES:
        cached.cache_clear()


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


@pytest.fixture(scope="session")
def adult_table(shared_data, configs):
    """Adult as its schema reads it, and the schema; whoever changes rows takes a copy."""
    schema = Schema.load(configs / "schemas" / "adult.yaml")
    return read_table(shared_data / "adult" / "adult.csv.gz", schema), schema


@pytest.fixture(scope="session")
def adult_rows(adult_table):
    """The same as numbers."""
    return read_rows(*adult_table, "adult")


@pytest.fixture
def call(capsys):
    """Runs a command line; its exit code, stdout and stderr."""

    def run(*arguments):
        # A process of its own, which remembers no rows.
        repeats._JOBS.clear()
        code = cli.run([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return run
