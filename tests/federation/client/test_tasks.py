"""Requests name tasks; nothing that a server sends is executed."""

from __future__ import annotations

import importlib
import inspect

import pytest

from fedsynth.errors import FederationError, PrivacyError
from fedsynth.federation.client import tasks
from fedsynth.registry import METHODS
from tests.federation.vectors import Vectors


class Other(Vectors):
    name = "test-other"


def test_a_registered_task_is_found_by_its_name():
    task = Other()
    assert tasks.register(task) is task
    assert tasks.lookup("test-other") is task
    # Once more is no second task.
    assert tasks.register(task) is task


def test_no_task_takes_the_name_of_another():
    known = tasks.lookup("test-vectors")
    with pytest.raises(PrivacyError, match="'test-vectors' already"):
        tasks.register(Vectors())
    assert tasks.lookup("test-vectors") is known


@pytest.mark.parametrize("name", ["", "os.system", "__import__('os')", "test-vectors "])
def test_a_task_that_is_not_installed_is_refused_whatever_its_name_says(name: str):
    with pytest.raises(FederationError, match="does not know"):
        tasks.lookup(name)


def test_every_task_asks_whose_rows_are_wanted():
    # A row of a whole client, given where records are drawn and hidden, would be charged as a
    # record's: a task that gives rows of one kind must refuse the other, one of both must ask.
    for method in METHODS.values():
        assert method.name
    importlib.import_module("fedsynth.evaluation.federated.tasks")
    known = [task for task in tasks._TASKS.values() if _is_product(task)]
    assert len(known) >= 17
    for task in known:
        # Those that train at a client are given no client: Steps refuses.
        if not isinstance(task, tasks.Learner):
            assert "protects.per_record" in inspect.getsource(inspect.getmodule(type(task)))


def _is_product(task) -> bool:
    return type(task).__module__.startswith("fedsynth.")
