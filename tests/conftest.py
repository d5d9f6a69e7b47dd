"""What every run of tests has: examples of hypothesis, and what is slow. What tests share is in
`running.py`, which takes seconds to import, and is where they run."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Before anything is imported that reads it, however the tests are started: several processes share
# the cores, and one that was copied (`fork`) beside threads of OpenMP may wait for them for ever.
os.environ |= {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}

ROOT = Path(__file__).resolve().parent.parent

# Machines differ; no test has a time limit. Chance has no part in a run: examples are the same in
# every one, and so is noise, by `running.py`. `make explore` takes others, and what it finds
# stays as an `@example`. `make quick` tries fewer of whatever names no number of its own.
UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("whole", UNTIMED, derandomize=True, max_examples=20)
settings.register_profile("quick", UNTIMED, derandomize=True, max_examples=10)
settings.register_profile("explore", UNTIMED, max_examples=1000, print_blob=True)
settings.load_profile("whole")

# Seconds of CPU of all that `make quick` runs, collecting apart: what costs least, until they are
# spent. Of CPU, so that what else the machine does has no say in what is slow.
SLOW, QUICK = ROOT / "tests" / "slow.txt", 30.0
_seconds: Counter[str] = Counter()
_told = [0.0]


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    # Who deals tests out to other processes runs none.
    if not config.getoption("numprocesses", None) or hasattr(config, "workerinput"):
        from tests import running

        config.pluginmanager.register(running)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """One more than there are cores where all tests run: some wait, for a browser or for sites. Of
    the fast ones none does, and each process collects them all."""
    return (os.cpu_count() or 1) + (not config.option.markexpr)


def pytest_addoption(parser):
    parser.addoption("--list-slow", action="store_true", help=f"write {SLOW.name} anew")


def pytest_collection_modifyitems(items):
    """Marks what takes long, all its cases together, and what needs a browser or shared data."""
    _told[:] = [sum(os.times()[:4])]
    listed = set(SLOW.read_text(encoding="utf-8").split())
    for item in items:
        if item.originalname in listed or {"shared_data", "browser"} & set(item.fixturenames):
            item.add_marker("slow")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Tells what CPU a phase of a test took, its children's too."""
    report = yield
    report.cpu, _told[:] = sum(os.times()[:4]) - _told[0], [sum(os.times()[:4])]
    return report


def pytest_runtest_logreport(report):
    name = report.nodeid.partition("[")[0].rpartition("::")[2]
    _seconds[name] += getattr(report, "cpu", 0.0)


def pytest_sessionfinish(session):
    if session.config.option.list_slow and not hasattr(session.config, "workerinput"):
        cheapest = sorted(_seconds, key=_seconds.__getitem__)
        spent = itertools.accumulate(_seconds[name] for name in cheapest)
        slow = sorted(name for name, sofar in zip(cheapest, spent, strict=True) if sofar > QUICK)
        SLOW.write_text("\n".join(slow) + "\n", encoding="utf-8")
