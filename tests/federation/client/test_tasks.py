"""Requests name tasks; nothing that a server sends is executed."""

from __future__ import annotations

import pytest

from fedsynth.errors import FederationError
from fedsynth.federation.client import tasks
from tests.federation.vectors import Vectors


def test_a_registered_task_is_found_by_its_name():
    task = Vectors()
    assert tasks.register(task) is task
    assert tasks.lookup("test-vectors") is task


@pytest.mark.parametrize("name", ["", "os.system", "__import__('os')", "test-vectors "])
def test_a_task_that_is_not_installed_is_refused_whatever_its_name_says(name: str):
    with pytest.raises(FederationError, match="does not know"):
        tasks.lookup(name)
