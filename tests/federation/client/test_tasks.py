"""Requests name tasks; nothing that a server sends is executed."""

from __future__ import annotations

import pytest

from fedsynth.errors import FederationError, PrivacyError
from fedsynth.federation.client import tasks
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
