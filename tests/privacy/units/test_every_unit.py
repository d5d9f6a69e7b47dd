"""What every registered unit keeps to, and trust models beside them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from fedsynth.errors import ConfigError, PrivacyError
from fedsynth.privacy import units
from fedsynth.privacy.accounting import charged
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.rows.clipping import clip_and_sum
from fedsynth.privacy.rows.dense import DenseRows
from fedsynth.privacy.rows.joining import JoinedRows
from fedsynth.privacy.sampling import Everyone, Poisson
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.job import Event, Job
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.privacy.trust import TRUSTS, trust_of
from fedsynth.privacy.units import register, unit_of
from fedsynth.privacy.units.unit import Unit

DIM, CLIP = 3, 0.5


def terms(unit: str, noise: float = 4.0, **changes) -> Terms:
    given = {"unit": unit, "trust": "central", "clip": CLIP, "noise_multiplier": noise}
    given["weigh"] = "row" if unit_of(unit).joined else None
    return Terms(**{**given, **changes})


def summed(clients: list[tuple[np.ndarray, np.ndarray]], rows_of: Unit) -> np.ndarray:
    """The clipped sum of everybody's rows, as they are of this unit.

    Args:
        clients: records of each, and whose they are.
    """
    total = np.zeros(DIM)
    for records, persons in clients:
        rows = DenseRows(records if rows_of.per_record else records.sum(axis=0, keepdims=True))
        assert len(rows) == rows_of.rows(len(records))
        if rows_of.joined:
            starts = np.unique(persons, return_index=True)[1]
            rows = JoinedRows(rows, starts, np.ones(len(records)))
        total += clip_and_sum(rows, CLIP)
    return total


def neighbours(clients: list[tuple[np.ndarray, np.ndarray]], unit: Unit):
    """The same clients without one record, one person, or one client."""
    for i, (records, persons) in enumerate(clients):
        if not unit.per_record:
            yield clients[:i] + clients[i + 1 :]
            continue
        for one in np.unique(persons) if unit.joined else range(len(records)):
            kept = persons != one if unit.joined else np.arange(len(records)) != one
            yield [*clients[:i], (records[kept], persons[kept]), *clients[i + 1 :]]


def check_unit(name: str) -> None:
    """Everything that the rest of fedsynth relies on."""
    unit = unit_of(name)
    check_registered(unit)
    check_moves(unit)
    check_charges(unit)
    check_budgets(unit)


def check_registered(unit: Unit) -> None:
    assert unit.name in units.names() and unit.words
    with pytest.raises(ConfigError, match="already"):
        register(unit)
    assert unit.rows(7) == (7 if unit.per_record else 1)
    assert terms(unit.name).protects is unit and Budget(epsilon=1, unit=unit.name).protects is unit


def check_moves(unit: Unit) -> None:
    """No unit moves a sum further than is said, and some come near."""
    rng = np.random.default_rng(5)
    assert unit.moved[unit.name] == 1
    for other in units.names():
        furthest = 0.0
        for trial in range(25):
            scale = 10.0 ** rng.integers(-2, 2)
            persons = np.array([0, 1, 1])
            clients = [(rng.normal(0, scale, (3, DIM)), persons) for _ in range(3)]
            if trial == 0:
                # A record that turns its client's row round.
                clients[0] = np.array([[9.0, 0, 0], [-4.0, 0, 0], [0, 0, 0]]), persons
            whole = summed(clients, unit_of(other))
            for without in neighbours(clients, unit):
                moved = np.linalg.norm(whole - summed(without, unit_of(other)))
                furthest = max(furthest, float(moved) / CLIP)
        # Of a sum that is refused nothing need be known.
        if other in unit.moved:
            assert 0.99 * unit.moved[other] < furthest <= unit.moved[other] * (1 + 1e-9)


def check_charges(unit: Unit) -> None:
    """Rows of another unit are charged for how far they are moved, or refused; everywhere."""
    for other in units.names():
        whole = terms(other)
        ledger = Ledger.create(Job(budget=Budget(epsilon=50, trust="central", unit=unit.name)))
        if other not in unit.moved:
            with pytest.raises(PrivacyError, match="bound"):
                charged({whole: 1}, unit=unit.name)
            with pytest.raises(PrivacyError, match=f"{unit.name}s"):
                ledger.charge(Event("t", 0, whole))
            continue
        weigh = None if not unit.joined else "row" if other == unit.name else "person"
        alone = terms(unit.name, 4.0 / unit.moved[other], weigh=weigh)
        assert charged({whole: 2}, unit=unit.name) == {alone: 2}
        ledger.charge(Event("t", 0, whole))
        drawn = terms(other, sampling=Poisson(0.1))
        if other != unit.name:
            # Whoever drew them, this unit's part in them is not amplified.
            assert charged({drawn: 2}, unit=unit.name) == {alone: 2}
            with pytest.raises(PrivacyError, match=f"{unit.name}s"):
                ledger.charge(Event("t", 1, drawn))


def check_budgets(unit: Unit) -> None:
    assert 0 < Budget(epsilon=1, unit=unit.name).resolved_delta <= 1e-5
    assert Budget(epsilon=1, unit=unit.name, units=10**6).resolved_delta == pytest.approx(10**-6.6)
    few = Budget(epsilon=9, unit=unit.name, units=20).cautions()
    assert bool(few) is bool(unit.few) and all("20 " in caution for caution in few)
    assert not Budget(epsilon=1, unit=unit.name, units=10**6).cautions()
    # Who the clients are is public; that a record is there is not.
    assert unit.neighbours == ("add-or-remove-one" if unit.per_record else "zero-out-one")


@pytest.mark.parametrize("name", units.names())
def test_every_unit_keeps_to_what_is_asked_of_it(name: str):
    check_unit(name)


@pytest.mark.parametrize(("name", "trust"), list(itertools.product(units.names(), TRUSTS)))
def test_drawing_protects_where_nobody_knows_who_was_drawn(name: str, trust: str):
    drawn = terms(name, trust=trust, sampling=Poisson(0.1))
    secret = unit_of(name).per_record or trust_of(trust).server_adds
    wanted = drawn if secret else terms(name, trust=trust, sampling=Everyone())
    assert charged({drawn: 5}) == {wanted: 5}


def test_trust_models_are_ordered_by_what_they_protect_from():
    central, distributed, local = (TRUSTS[n] for n in ("central", "distributed", "local"))
    assert central.protection < distributed.protection < local.protection
    # Who adds noise: exactly one of them, and only who adds all of it may be heard alone.
    assert [t.server_adds for t in (central, distributed, local)] == [True, False, False]
    assert [t.shares for t in (central, distributed, local)] == [False, True, False]
    assert [t.alone for t in (central, distributed, local)] == [False, False, True]


@pytest.mark.parametrize("ask", [unit_of, trust_of])
def test_names_that_nobody_knows_are_refused(ask):
    with pytest.raises(ConfigError, match="nobody"):
        ask("nobody")
