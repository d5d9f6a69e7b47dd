"""What every runtime promises the server's half, whatever carries its requests.

Each check takes what builds a runtime of a list of clients, and an empty folder, and looks at the
runtime through nothing but its protocol, so that clients may live wherever it puts them.
"""

from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedsynth.errors import FederationError
from fedsynth.federation.client.client import Client
from fedsynth.federation.client.tasks import register
from fedsynth.federation.client.view import View
from fedsynth.federation.request import Answer, Request, Summed
from fedsynth.federation.runtime import Runtime
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.rows.clipping import Rows
from fedsynth.privacy.rows.counting import IndicatorRows
from fedsynth.privacy.rows.dense import DenseRows
from fedsynth.privacy.sampling import Poisson
from fedsynth.privacy.trail.job import Job
from fedsynth.privacy.trail.ledger import Ledger
from tests.federation.vectors import OBEDIENT, Vectors, answered, terms

Build = Callable[[Sequence[Client], Path | None], Runtime]
"""A runtime to clients that, where a folder is given, keep their private vectors in it."""

DIM = 3
ROUNDS = itertools.count()
# As many numbers as two hidden layers of 200 units have for a table of some 100 cells.
WIDE = 84_010


class Reading:
    """Gives what was announced as `values`, once a client."""

    name = "test-reading"

    def contribute(
        self, clients: Sequence[View], samples: Sequence[np.ndarray], request: Request
    ) -> Iterator[tuple[int, Rows]]:
        for index, client in enumerate(clients):
            yield index, DenseRows(np.array([client.board.read("values", tuple)], np.float64))


class Remembering:
    """Gives how often its client was asked before in the job, and keeps one more."""

    name = "test-remembering"

    def contribute(
        self, clients: Sequence[View], samples: Sequence[np.ndarray], request: Request
    ) -> Iterator[tuple[int, Rows]]:
        for index, client in enumerate(clients):
            kept = client.vector.load()
            before = 0.0 if kept is None else float(kept[0])
            yield index, DenseRows(np.array([[before + 1, before]]))

    def keep(self, client: View, values: np.ndarray, request: Request) -> None:
        client.vector.save(values.astype(np.float32))


class Counting:
    """Gives a one at each place that a record names, in a message of any length."""

    name = "test-counting"

    def contribute(
        self, clients: Sequence[View], samples: Sequence[np.ndarray], request: Request
    ) -> Iterator[tuple[int, Rows]]:
        for index, (client, sample) in enumerate(zip(clients, samples, strict=True)):
            yield index, IndicatorRows(client.data[sample], request.dim)


class Dying:
    """Gives its client's rows; a client whose data are none dies."""

    name = "test-dying"

    def contribute(
        self, clients: Sequence[View], samples: Sequence[np.ndarray], request: Request
    ) -> Iterator[tuple[int, Rows]]:
        for index, client in enumerate(clients):
            if client.data is None:
                raise KeyboardInterrupt
            yield index, DenseRows(client.data)


for task in (Reading(), Remembering(), Counting(), Dying()):
    register(task)


def clients(count: int = 4, records: int = 5) -> list[Client]:
    """Clients with rows and coins of their own."""
    rng = np.random.default_rng(0)
    return [
        Client(
            f"c{i}",
            rng.uniform(-0.1, 0.1, (records, DIM)),
            records,
            coins=NoiseSource(i),
            floor=OBEDIENT,
        )
        for i in range(count)
    ]


def ask(job: str = "job", **changes) -> Request:
    """A round that nobody asked before, of all records, without noise unless it is asked for."""
    known = {"unit": "record", "trust": "distributed", "clip": 1.0, "noise_multiplier": 0.0}
    asked = {key: changes.pop(key) for key in ("task", "dim", "kept") if key in changes}
    limit = changes.pop("participations", None)
    own = terms(**{**known, **changes})
    asked = {"task": Vectors.name, "dim": DIM, **asked}
    number = next(ROUNDS)
    return Request(terms=own, job=job, round=number, participations=limit, **asked)


def opened(build: Build, owners: Sequence[Client], private: Path | None = None) -> Runtime:
    runtime = build(owners, private)
    runtime.open("job", {})
    return runtime


def names_clients_and_says_whether_somebody_knows_their_coins(build: Build, folder: Path) -> None:
    owners = clients()
    assert build(owners, None).clients == ("c0", "c1", "c2", "c3")
    assert build(owners, None).insecure
    for client in owners[:3]:
        client.coins = NoiseSource()
    assert build(owners, None).insecure
    owners[3].coins = NoiseSource()
    assert not build(owners, None).insecure


def sums_exactly_where_there_is_no_noise(build: Build, folder: Path) -> None:
    owners = clients()
    summed = opened(build, owners).sum(ask(), ["c0", "c1", "c2", "c3"])
    wanted = np.concatenate([client.data for client in owners]).sum(axis=0)
    np.testing.assert_allclose(summed.total, wanted, rtol=1e-6)
    assert (summed.answered, tuple(summed.incidents)) == (4, ())


def asks_the_cohort_and_nobody_else(build: Build, folder: Path) -> None:
    owners = clients()
    runtime = opened(build, owners)
    summed = runtime.sum(ask(), ["c3", "c1", "c0"])
    wanted = sum(owners[place].data.sum(axis=0) for place in (0, 1, 3))
    np.testing.assert_allclose(summed.total, wanted, rtol=1e-6)
    assert summed.answered == 3
    messages, _ = runtime.collect(ask(trust="local"), ["c2"])
    assert [message.client for message in messages] == ["c2"]


def sums_what_clients_answer_one_by_one(build: Build, folder: Path) -> None:
    # The same coins fall for a client alone: of its secret sample, and of its share of the noise.
    asked = ask(noise_multiplier=2.0, sampling=Poisson(0.5), survivors=3)
    summed = opened(build, clients()).sum(asked, ["c0", "c1", "c2", "c3"])
    alone = [answered([client], asked)[0].values for client in clients()]
    np.testing.assert_allclose(summed.total, np.sum(alone, axis=0), rtol=1e-12)
    assert np.abs(summed.total).max() > 0.1


def shows_no_single_answer_under_a_sum(build: Build, folder: Path) -> None:
    summed = opened(build, clients()).sum(ask(), ["c0", "c1", "c2", "c3"])
    assert type(summed) is Summed
    assert set(vars(summed)) == {"total", "answered", "incidents", "needed"}
    total = summed.total
    assert type(total) is np.ndarray
    assert (total.shape, total.dtype) == ((DIM,), np.float64)
    # A row of a larger array would carry the others with it.
    assert total.base is None or np.size(total.base) == DIM
    assert type(summed.answered) is int


def names_who_refuses_and_sums_the_others(build: Build, folder: Path) -> None:
    owners = clients()
    spent = Budget(epsilon=0.01, delta=1e-6, unit="record", trust="distributed")
    owners[1].ledger = Ledger.create(Job(budget=spent))
    runtime = opened(build, owners)
    asked = ask(noise_multiplier=1e-9)
    summed = runtime.sum(asked, list(runtime.clients))
    (incident,) = summed.incidents
    assert (incident.client, incident.round) == ("c1", asked.round)
    assert incident.reason == "refuses: its own budget is spent"
    wanted = sum(client.data.sum(axis=0) for client in owners if client.name != "c1")
    np.testing.assert_allclose(summed.total, wanted, atol=1e-6)
    assert summed.answered == 3
    local = Budget(epsilon=0.01, delta=1e-6, unit="record", trust="local")
    owners = clients()
    owners[2].ledger = Ledger.create(Job(budget=local))
    messages, (incident,) = opened(build, owners).collect(
        ask(trust="local", noise_multiplier=1e-9), ["c0", "c1", "c2", "c3"]
    )
    assert incident.client == "c2"
    assert {message.client for message in messages} == {"c0", "c1", "c3"}


def brings_messages_by_client(build: Build, folder: Path) -> None:
    owners = clients()
    asked = ask(trust="local")
    messages, incidents = opened(build, owners).collect(asked, ["c2", "c0", "c3"])
    assert not incidents
    assert all(type(message) is Answer for message in messages)
    assert all((message.job, message.round) == ("job", asked.round) for message in messages)
    result = {message.client: message.values for message in messages}
    assert len(messages) == len(result) == 3
    for name in ("c2", "c0", "c3"):
        wanted = owners[int(name[1])].data.sum(axis=0)
        np.testing.assert_allclose(result[name], wanted, rtol=1e-6)


def announces_before_it_asks(build: Build, folder: Path) -> None:
    runtime = opened(build, clients())
    everybody, asked = list(runtime.clients), {"task": Reading.name, "clip": 10.0}
    with pytest.raises(FederationError, match="announced"):
        runtime.sum(ask(**asked), everybody)
    runtime.announce("job", "values", [1.0, 2.0, 3.0])
    np.testing.assert_allclose(runtime.sum(ask(**asked), everybody).total, [4, 8, 12])
    runtime.announce("job", "values", [0.0, 0.0, 1.0])
    np.testing.assert_allclose(runtime.sum(ask(**asked), everybody).total, [0, 0, 4])


def serves_two_jobs_apart(build: Build, folder: Path) -> None:
    for private in (None, folder):
        runtime = build(clients(), private)
        everybody = list(runtime.clients)
        for job, values in (("one", [1.0, 0.0, 0.0]), ("two", [0.0, 1.0, 0.0])):
            runtime.open(job, {})
            runtime.announce(job, "values", values)
        before = [remembered(runtime, job) for job in ("one", "two", "one")]
        assert before == [0, 0, 1]
        # The rest is the same wherever private vectors are kept.
        for job, wanted in (("one", [4, 0, 0]), ("two", [0, 4, 0])) if private is None else ():
            summed = runtime.sum(ask(job, task=Reading.name, clip=10.0), everybody)
            np.testing.assert_allclose(summed.total, wanted, rtol=1e-6)
        for job, taken in zip(("one", "one", "one", "two"), (4, 4, 0, 4), strict=True):
            if private is None:
                assert runtime.sum(ask(job, participations=2), everybody).answered == taken
        runtime.close("one", finished=True)
        assert remembered(runtime, "two") == 1
        runtime.close("two", finished=True)


def keeps_participations(build: Build, folder: Path) -> None:
    runtime = build(clients(), None)
    runtime.open("job", {"c0": 2, "c1": 1})

    def refusing() -> list[str]:
        asked = ask(participations=2)
        summed = runtime.sum(asked, list(runtime.clients))
        assert all("has taken part in 2 rounds" in one.reason for one in summed.incidents)
        assert summed.answered == 4 - len(summed.incidents)
        return [incident.client for incident in summed.incidents]

    assert refusing() == ["c0"]
    assert refusing() == ["c0", "c1"]
    assert refusing() == ["c0", "c1", "c2", "c3"]
    # A server that opens the job anew makes nobody forget what it took part in.
    runtime.close("job", finished=False)
    runtime.open("job", {})
    assert refusing() == ["c0", "c1", "c2", "c3"]
    runtime.close("job", finished=True)


def remembered(runtime: Runtime, job: str = "job", cohort: Sequence[str] = ()) -> float:
    """How often the clients asked say that they were asked before, all of them alike."""
    asked = ask(job, task=Remembering.name, dim=1, kept=1, clip=100.0)
    names = list(cohort) or list(runtime.clients)
    return float(runtime.sum(asked, names).total[0]) / len(names)


def forgets_a_finished_job_and_no_other(build: Build, folder: Path) -> None:
    for private in (None, folder):
        runtime = opened(build, clients(), private)
        runtime.announce("job", "values", [1.0, 1.0, 1.0])
        assert [remembered(runtime) for _ in range(2)] == [0, 1]
        runtime.close("job", finished=False)
        runtime.open("job", {})
        assert remembered(runtime) == 2
        runtime.close("job", finished=True)
        runtime.open("job", {})
        assert remembered(runtime) == 0
        with pytest.raises(FederationError, match="announced"):
            runtime.sum(ask(task=Reading.name), list(runtime.clients))
        runtime.close("job", finished=True)


def keeps_private_vectors_on_disk(build: Build, folder: Path) -> None:
    def written() -> set[Path]:
        return {path for path in folder.rglob("*") if path.is_file()}

    first = opened(build, clients(), folder)
    # What is kept of any job that is open.
    before = written()
    assert [remembered(first, cohort=["c0", "c1", "c2"]) for _ in range(2)] == [0, 1]
    assert written() > before and all(path.stat().st_mode & 0o077 == 0 for path in written())
    first.close("job", finished=False)
    # Other clients of the same names, as after a restart, go on with them.
    again = opened(build, clients(), folder)
    assert remembered(again, cohort=["c0", "c1", "c2"]) == 2
    assert remembered(again, cohort=["c1", "c2", "c3"]) == 2  # 3, 3 and 0
    again.close("job", finished=True)
    assert not written()


def peak_of_a_sum(build: Build, count: int) -> int:
    """Largest number of bytes that a record-level sum over so many clients takes at once.

    Every client has one record, of a few ones in a message of many numbers: the data do not count.
    """
    places = np.arange(5)[None]
    owners = [Client(f"c{i}", places, 1, floor=OBEDIENT) for i in range(count)]
    runtime = opened(build, owners)
    asked = ask(task=Counting.name, dim=WIDE, clip=3.0, noise_multiplier=1.0, survivors=count)
    tracemalloc.start()
    try:
        summed = runtime.sum(asked, list(runtime.clients))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert summed.answered == count
    return peak


def takes_memory_for_an_answer_and_not_for_all(build: Build, folder: Path) -> None:
    peak_of_a_sum(build, 1)  # what is imported or cached with the first
    few, many = peak_of_a_sum(build, 4), peak_of_a_sum(build, 16)
    assert many < 1.3 * few


def with_accounts(folder: Path) -> list[Client]:
    """The same clients after a restart: two of them have accounts on disk."""
    owners = clients()
    budget = Budget(epsilon=100.0, delta=1e-5, unit="record", trust="central")
    for client in owners[1:3]:
        client.ledger = Ledger.of_owner(folder / f"{client.name}.jsonl", budget)
        client.coins = NoiseSource()
    return owners


def restarted(build: Build, folder: Path, owners: Sequence[Client]) -> tuple[Runtime, list[Client]]:
    for client in owners:
        if client.ledger is not None:
            client.ledger.close()
    again = with_accounts(folder)
    return opened(build, again), again


def charged(folder: Path, name: str = "c1") -> int:
    return len(Ledger.read(folder / f"{name}.jsonl").events)


def brings_the_same_again_until_it_is_settled(build: Build, folder: Path) -> None:
    owners = with_accounts(folder)
    runtime = opened(build, owners)
    everybody = list(runtime.clients)
    noisy = {"noise_multiplier": 2.0, "survivors": 3}
    for changes in (noisy, {**noisy, "trust": "local", "survivors": 1}):
        asked, local = ask(**changes), changes.get("trust") == "local"

        def had(runtime: Runtime, asked: Request = asked, local: bool = local) -> tuple:
            if not local:
                summed = runtime.sum(asked, everybody)
                return summed.answered, summed.total.tobytes()
            messages, _ = runtime.collect(asked, everybody)
            values = [(one.client, one.round, one.values.tobytes()) for one in messages]
            return len(messages), *values

        before = charged(folder)
        first = had(runtime)
        assert first[0] == 4 and had(runtime) == first
        runtime.close("job", finished=False)
        runtime, owners = restarted(build, folder, owners)
        assert had(runtime) == first and charged(folder) == before + 1
        assert had(runtime, replace(asked, settings={"another": 1}))[0] == 0
        assert had(runtime) == first
        runtime.settle("job", asked.round + 1)
        assert had(runtime)[0] == 0 and charged(folder) == before + 1
        runtime.close("job", finished=False)
        runtime, owners = restarted(build, folder, owners)
        assert had(runtime)[0] == 0 and charged(folder) == before + 1
    runtime.close("job", finished=True)
    assert sorted(path.name for path in folder.iterdir()) == ["c1.jsonl", "c2.jsonl"]


def makes_under_its_charge_what_never_left(build: Build, folder: Path) -> None:
    owners = with_accounts(folder)
    owners[3].data = None
    runtime = opened(build, owners)
    asked = ask(task=Dying.name, noise_multiplier=2.0, survivors=3)
    with pytest.raises(KeyboardInterrupt):
        runtime.sum(asked, list(runtime.clients))
    assert charged(folder) == 1
    runtime.close("job", finished=False)
    runtime, owners = restarted(build, folder, owners)
    # Not another question: its terms may be what was paid for, its task is not.
    assert runtime.sum(replace(asked, task=Vectors.name), ["c1", "c2"]).answered == 0
    assert runtime.sum(asked, list(runtime.clients)).answered == 4
    assert charged(folder) == 1
    # Nor of a finished job, or where what was given is not known any more.
    runtime.close("job", finished=True)
    runtime.open("job", {})
    assert runtime.sum(asked, ["c1", "c2"]).answered == 0


def opens_no_sum_that_lacks_noise(build: Build, folder: Path) -> None:
    asked = ask(noise_multiplier=2.0, survivors=3)
    summed = opened(build, clients()).sum(asked, ["c0", "c1"])
    assert summed.answered == 2 and not summed.total.any()
    assert opened(build, clients()).sum(asked, ["c0", "c1", "c2"]).total.any()


CHECKS = (
    names_clients_and_says_whether_somebody_knows_their_coins,
    sums_exactly_where_there_is_no_noise,
    asks_the_cohort_and_nobody_else,
    sums_what_clients_answer_one_by_one,
    shows_no_single_answer_under_a_sum,
    names_who_refuses_and_sums_the_others,
    brings_messages_by_client,
    announces_before_it_asks,
    serves_two_jobs_apart,
    keeps_participations,
    forgets_a_finished_job_and_no_other,
    keeps_private_vectors_on_disk,
    takes_memory_for_an_answer_and_not_for_all,
    brings_the_same_again_until_it_is_settled,
    makes_under_its_charge_what_never_left,
    opens_no_sum_that_lacks_noise,
)
