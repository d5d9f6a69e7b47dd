"""What a client keeps of a job belongs to that job, and follows what its server announces."""

from __future__ import annotations

import numpy as np
import pytest

from fedsynth.errors import FederationError
from fedsynth.federation.client.client import Client
from fedsynth.federation.client.memory import Board
from fedsynth.federation.client.view import View
from fedsynth.federation.runtimes.local import LocalRuntime
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.sampling import Poisson
from tests.federation.vectors import channel, clients, ledger, terms


def test_a_posted_value_is_parsed_once_and_anew_after_the_next_post():
    board, parsed = Board(), []

    def parse(value: int) -> int:
        parsed.append(value)
        return value + 1

    with pytest.raises(FederationError, match="announced 'x'"):
        board.read("x", parse)
    board.post("x", 1)
    assert board.read("x", parse) == board.read("x", parse) == 2
    board.post("x", 5)
    assert board.read("x", parse) == 6
    assert parsed == [1, 5]


def scaled(client: View) -> np.ndarray:
    return client.data * client.board.read("scale", float)


def test_what_was_derived_from_an_announcement_is_made_anew_after_the_next():
    client = Client("c", np.ones(2), 2)
    view, board = View(client, "job"), client.memory("job").board
    board.post("scale", 3)
    assert view.derive("scale", scaled) is view.derive("scale", scaled)
    assert view.derive("scale", scaled).tolist() == [3, 3]
    board.post("scale", 4)
    assert view.derive("scale", scaled).tolist() == [4, 4]


def test_a_client_that_serves_two_jobs_at_once_keeps_them_apart():
    owners = clients(3)
    runtime = LocalRuntime(owners)
    accounts = [ledger(trust="local", participations=2) for _ in range(2)]
    one, two = (channel(runtime, account, quorum=1e-9) for account in accounts)
    one.announce("scale", 3)
    two.announce("scale", 5)
    views = [View(owners[0], account.job.job) for account in accounts]
    assert [view.derive("scale", scaled)[0, 0] for view in views] == pytest.approx([0.3, 0.5])
    views[0].vector.save(np.ones(3, np.float32))
    assert views[1].vector.load() is None
    drawn = terms(trust="local", sampling=Poisson(1.0))
    for _ in range(2):
        one.sum("test-vectors", drawn, 3)
    # The first job has used up its rounds, and the second has all of its own.
    with pytest.raises(FederationError, match="2 rounds"):
        one.sum("test-vectors", drawn, 3)
    assert two.sum("test-vectors", drawn, 3).answered == 3
    counts = [owners[0].memory(account.job.job).participations for account in accounts]
    assert counts == [2, 1]
    one.close(finished=True)
    assert views[1].board.read("scale", int) == 5
    assert list(owners[0].memories) == [accounts[1].job.job]


def test_a_view_shows_no_ledger_no_consent_and_no_other_job():
    client = Client("c", np.ones((1, 3)), 1, ledger(), NoiseSource())
    seen = {name for name in dir(View(client, "job")) if not name.startswith("_")}
    assert seen == {"name", "data", "records", "persons", "coins", "board", "vector", "derive"}
