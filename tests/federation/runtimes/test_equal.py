"""The same job in one process and over sites gives the same model, to the last bit."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import settings

from fedsynth.federation.client.floor import Floor
from fedsynth.federation.runtime import Federation
from fedsynth.federation.runtimes.courier import Courier
from fedsynth.federation.runtimes.hub import Hub
from fedsynth.federation.runtimes.rules import Rules
from fedsynth.federation.runtimes.site import Site
from fedsynth.federation.simulation.simulation import Simulation
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.registry import METHODS
from tests.federation.runtimes.carriers import Direct, identity, pinned
from tests.federation.runtimes.posts import Post, carrying
from tests.methods.contract import OF_PERSONS, QUICK
from tests.methods.small import SCHEMA, table

SEED = 7
TABLES = {name: table(25, seed) for seed, name in enumerate(("north", "south", "west"))}
# Each asks something else of what carries it: choices, sums, a part that stays, groups of records,
# whole trainings. `make explore` has every method.
JOBS = [
    ("aim", "central", {}),
    ("aim", "distributed", {}),
    ("fedvae", "distributed", {"encoder": "private"}),
    ("fusion-gan", "local", {}),
    ("pate-gan", "central", {}),
]
# Few questions, of which each may start a process at its site.
POSTED = [("aim", "central"), ("mean-embedding", "central")]
JOBS += [(*POSTED[1], {})]
if settings.get_current_profile_name() == "explore":
    POSTED += [("aim", "distributed"), ("fedvae", "distributed")]
    JOBS += [(name, "local" if "fusion" in name else "distributed", {}) for name in METHODS]


def coins_of(name: str) -> NoiseSource:
    """An owner's own, from the seed and its name."""
    return NoiseSource(int.from_bytes(hashlib.sha256(f"{SEED}/{name}".encode()).digest()[:8]))


class Together(Simulation):
    """Owners in this process, each with coins of its own."""

    def open(self, *given, **more):
        runtime = super().open(*given, **more)
        for client in runtime._clients.values():
            client.coins = coins_of(client.name)
        return runtime


class Apart(Federation):
    """The same owners as sites with accounts, around a hub; they outlive it."""

    secures = "apart"
    schema = SCHEMA

    def __init__(self, tables: dict[str, pd.DataFrame], folder: Path, private: bool) -> None:
        self.tables, self.folder, self.private = tables, folder, private
        self.hub = Hub(list(tables))
        self.sites: list[Site] = []

    def open(self, coins, ledgers, private, budget, most_records=None, *rest):
        secure = rest[-1]
        self.hub.agree(None, most_records, secure and secure(len(self.tables)))
        self.sites = self.sites or self.start(budget)
        for site in self.sites:
            assert Direct(self.hub, site).join() is None
        return self.hub

    def start(self, budget: Budget) -> list[Site]:
        return [self.site(name, budget) for name in self.tables]

    def site(self, name: str, budget: Budget, coins: NoiseSource | None = None) -> Site:
        most = (20.0, 40.0) if self.private else (math.inf, math.inf)
        limit = Budget(most[0], delta=1e-3, unit=budget.unit, trust=budget.trust)
        rules = Rules(budget=limit, schema=self.schema.digest, cohort=3, insecure=True)
        floor = Floor(budget=limit, cohort=3)
        owner = Simulation({name: self.tables[name]}, self.schema)
        (client,) = owner.clients(NoiseSource(), {}, floor, 1.0, lambda _: None)
        account = Budget(most[1], delta=1e-2, unit=budget.unit, trust="central")
        client.ledger = Ledger.of_owner(self.folder / f"{name}.jsonl", account)
        client.coins = coins or coins_of(name)
        insisted = pinned(name, self.tables, rules)
        return Site(client, insisted, self.folder / name, identity=identity(name))

    def restart(self) -> None:
        """As if all sites' processes were killed, too."""
        for site in self.sites:
            site.close()
            site._client.ledger.close()
        self.sites = []

    def demand_same_rows(self, *, begun: bool) -> None:
        self.hub.begun = begun


class OfPersons(Apart):
    """The same owners, who know whose their rows are."""

    schema = OF_PERSONS


class Mailed(Apart):
    """The same owners, each of whose messages starts a process that knows what is on its disk."""

    def open(self, coins, ledgers, private, budget, most_records=None, *rest):
        secure = rest[-1]
        self.hub.agree(None, most_records, secure and secure(len(self.tables)))
        # What the system gives goes on from process to process, as coins do not.
        own = {name: coins_of(name) for name in self.tables}

        @contextmanager
        def process(name: str) -> Iterator[Site]:
            site = self.site(name, budget, own[name])
            try:
                yield site
            finally:
                site.close()
                site._client.ledger.close()

        post = Post({node: partial(process, name) for node, name in enumerate(self.tables)})
        self.end = carrying(Courier(self.hub, post))
        assert self.hub.wait() == ()
        return self.hub


@pytest.mark.parametrize(("name", "trust", "changes"), JOBS, ids=str)
def test_one_process_and_sites_learn_the_same_to_the_last_bit(name, trust, changes, tmp_path):
    private = name != "fusion"
    budget = Budget(5.0 if private else math.inf, delta=1e-4, trust=trust)
    fitted = []
    posted = (name, trust) in POSTED
    apart = (Mailed if posted else Apart)(TABLES, tmp_path, private)
    for owners in (Together(TABLES, SCHEMA), apart):
        made = METHODS[name](SCHEMA, {**QUICK.get(name, {}), **changes})
        # Apart no share leaves but into sums that nobody can open.
        secure = trust == "distributed" and isinstance(owners, Apart)
        made.fit(owners, budget, insecure_noise_seed=SEED, secure=secure, progress=False,
                 caution=lambda _: None)  # fmt: skip
        assert made.ledger.job.secure == ("apart" if secure else "")
        fitted.append(made)
    if posted:
        apart.end()
    together, others = (made.model_state() for made in fitted)
    assert together[0].keys() == others[0].keys()
    for name, array in together[0].items():
        assert np.asarray(others[0][name]).tobytes() == np.asarray(array).tobytes(), name
    assert together[1] == others[1]
    lines = [made.ledger.events for made in fitted]
    assert [(e.label, e.round, e.terms) for e in lines[0]] == [
        (e.label, e.round, e.terms) for e in lines[1]
    ]
    # Of a job that is finished nothing stays at its owners but what they paid.
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{n}.jsonl" for n in TABLES]
    for name in TABLES:
        charged = Ledger.read(tmp_path / f"{name}.jsonl").events
        assert [event.round for event in charged] == [event.round for event in lines[1]]


def of_persons(name: str) -> pd.DataFrame:
    """An owner's table, of persons of one row to seven."""
    rows = np.repeat(np.arange(7), np.arange(1, 8))[: len(TABLES[name])]
    return TABLES[name].assign(p=np.resize(rows, len(TABLES[name])))


def test_sites_clip_persons_as_what_was_released_says(tmp_path):
    tables = {name: of_persons(name) for name in TABLES}
    budget, fitted = Budget(5.0, delta=1e-4, unit="person", weigh="row"), []
    for owners in (Together(tables, OF_PERSONS), OfPersons(tables, tmp_path, private=True)):
        made = METHODS["mst"](OF_PERSONS, {"iterations": 5})
        made.fit(owners, budget, insecure_noise_seed=SEED, secure=isinstance(owners, Apart),
                 progress=False, caution=lambda _: None)  # fmt: skip
        fitted.append(made)
    assert fitted[0].rows_a_person == fitted[1].rows_a_person
    assert fitted[0].learned.records == fitted[1].learned.records
    for name in TABLES:
        charged = Ledger.read(tmp_path / f"{name}.jsonl").events
        assert [one.terms for one in charged] == [one.terms for one in fitted[0].ledger.events]


class Dying(Hub):
    """A hub whose server dies at one of its exchanges: before it, or once all have answered."""

    place, when = -1, "before"

    def sum(self, request, cohort):
        self.place -= 1
        if self.place == 0 and self.when == "before":
            raise KeyboardInterrupt
        summed = super().sum(request, cohort)
        if self.place == 0:
            raise KeyboardInterrupt
        return summed


def learned(
    folder: Path,
    place: int = -1,
    when: str = "before",
    sites_too: bool = False,
    persons: bool = False,
) -> tuple:
    """What MST learns without noise, and what all paid; of a server that died, of its successor."""
    owners, unit = Apart(TABLES, folder, private=False), {}
    if persons:
        owners = OfPersons({name: of_persons(name) for name in TABLES}, folder, private=False)
        unit = {"unit": "person", "weigh": "row"}
    made = METHODS["mst"](owners.schema, {"iterations": 5})
    owners.hub = Dying(list(TABLES))
    owners.hub.place, owners.hub.when = place, when
    fit = partial(made.fit, epsilon=math.inf, trust="central", folder=folder / "job", **unit,
                  progress=False, caution=lambda _: None)  # fmt: skip
    try:
        fit(owners)
    except KeyboardInterrupt:
        if sites_too:
            owners.restart()
        owners.hub = Hub(list(TABLES))
        fit(owners, resume=True)
    arrays = {name: np.asarray(one).tobytes() for name, one in made.model_state()[0].items()}
    accounts = [Ledger.read(folder / f"{name}.jsonl").events for name in TABLES]
    return arrays, [[event.round for event in one] for one in accounts]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> tuple:
    return learned(tmp_path_factory.mktemp("whole"))


@pytest.mark.parametrize(
    ("place", "when", "sites_too"),
    [(1, "before", True), (2, "behind", False), (2, "behind", True), (3, "before", False)],
)
def test_a_server_that_died_at_an_exchange_ends_with_the_same_model_and_costs(
    place, when, sites_too, undisturbed, tmp_path
):
    assert learned(tmp_path, place, when, sites_too) == undisturbed
    assert undisturbed[1] == [[0, 1, 2, 3, 4, 5]] * 3


def test_a_clip_that_was_chosen_is_the_same_for_the_successor_of_a_server(tmp_path):
    whole = learned(tmp_path / "whole", persons=True)
    for place, sites_too in ((1, True), (3, False)):
        folder = tmp_path / f"dead at {place}"
        assert learned(folder, place, "behind", sites_too, persons=True) == whole
    assert whole[1] == [[0, 1, 2, 3, 4, 5, 6]] * 3
