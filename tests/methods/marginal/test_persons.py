"""Invented persons of a graphical model: each has one value of what is of it, all else given that.

The model is worked out by hand: a quarter are f, of whose rows four in five are at a clinic; of the
others one in five.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fedsynth.encoding.table import TableEncoding
from fedsynth.marginals import Domain, JunctionTree, Model
from fedsynth.methods.marginal.graphical import Learned
from fedsynth.methods.marginal.persons import draw_further
from fedsynth.methods.sampling.persons import draw_sizes
from fedsynth.schema import Categorical, Identifier, Integer, Schema

SCHEMA = Schema(
    columns=[
        Categorical(name="place", values=["clinic", "home"]),
        Identifier(name="who", prefix="P"),
        Categorical(name="sex", values=["f", "m"], of="person"),
        Integer(name="born", lower=1900, upper=1999, edges=[1900, 1950, 1999], of="person"),
        Integer(name="seen", lower=1900, upper=2020, edges=[1900, 1950, 2020]),
    ],
    person="who",
    target="place",
    constraints=[{"ordered": ["born", "seen"]}],
)
SIZES = np.array([0.5, 0.0, 0.5])


@pytest.fixture(scope="module")
def learned():
    encoding = TableEncoding.from_edges(SCHEMA)
    domain = Domain(encoding.sizes)
    table = np.array([[0.2, 0.15], [0.05, 0.6]])
    # Born late, seen late.
    dates = np.array([[0.2, 0.3], [0.0, 0.5]])
    with np.errstate(divide="ignore"):
        factors = {(0, 1): np.log(table), (2, 3): np.log(dates)}
    return Learned(encoding, Model(JunctionTree.of(domain, factors), factors, 1e4), ())


def draw(learned, rows, where=None, proportions=None, seed=0):
    sizes = draw_sizes(SIZES, rows, np.random.default_rng(seed))
    return sizes, learned.draw_persons(sizes, where, proportions, seed)


def test_rows_of_a_person_are_alike_where_they_should_be_and_constraints_hold(learned):
    sizes, rows = draw(learned, 3_001)
    assert len(rows) == 3_001
    persons = rows.groupby("who", sort=False)
    assert sorted(persons.size()) == sorted(sizes)
    assert (persons[["sex", "born"]].nunique() == 1).all(axis=None)
    assert (persons["place"].nunique() > 1).any()
    # A person's rows stand together.
    assert (rows["who"] != rows["who"].shift()).sum() == len(sizes)
    assert (rows["born"] <= rows["seen"]).all()
    # Keys are made anew, and say nothing of the order.
    assert set(rows["who"]) == {f"P{number:04d}" for number in range(1, len(sizes) + 1)}
    assert not rows["who"].is_monotonic_increasing


def test_the_table_of_rows_stays_the_models_and_so_does_that_of_persons(learned):
    _, rows = draw(learned, 40_000)
    wanted = pd.Series({("f", "clinic"): 0.2, ("f", "home"): 0.05})
    wanted = pd.concat([wanted, pd.Series({("m", "clinic"): 0.15, ("m", "home"): 0.6})])
    persons = rows.groupby("who")["sex"].transform("size")
    for weights in (np.ones(len(rows)), 1 / persons):
        shares = rows.assign(w=weights).groupby(["sex", "place"])["w"].sum() / weights.sum()
        # Five deviations of as many independent persons.
        assert (shares - wanted[shares.index]).abs().max() < 5 * 0.5 / 20_000**0.5
    # How many rows somebody has hangs on nothing.
    heads = rows.assign(k=persons).drop_duplicates("who")
    assert heads.groupby("sex")["k"].mean().sub(2).abs().max() < 0.01


def test_rows_of_a_person_are_independent_given_what_is_of_it(learned):
    _, rows = draw(learned, 40_000)
    clinic = rows.assign(at=rows["place"] == "clinic").groupby("who")
    three = clinic.size() == 3
    times, sex = clinic["at"].sum()[three], clinic["sex"].first()[three]
    for one, chance in (("f", 0.8), ("m", 0.2)):
        counts = times[sex == one]
        binomial = [chance**k * (1 - chance) ** (3 - k) * (1, 3, 3, 1)[k] for k in range(4)]
        found = np.bincount(counts, minlength=4) / len(counts)
        assert np.abs(found - binomial).max() < 5 * 0.5 / len(counts) ** 0.5


def test_conditions_and_proportions_hold_for_the_rows_of_persons(learned):
    where = {"born": {"from": 1940, "to": 1960}, "place": "clinic"}
    _, rows = draw(learned, 2_000, where)
    assert rows["born"].between(1940, 1960).all()
    assert (rows["place"] == "clinic").all()
    assert (rows.groupby("who")["born"].nunique() == 1).all()
    assert abs((rows["sex"] == "f").mean() - 0.2 / 0.35) < 0.02
    _, rows = draw(learned, 20_000, None, {"clinic": 0.7, "home": 0.3})
    assert abs((rows["place"] == "clinic").mean() - 0.7) < 0.02


def test_further_rows_keep_out_of_cells_that_are_next_to_empty(learned):
    rng = np.random.default_rng(0)
    whole, sizes = learned.model.sample(500, rng), np.full(500, 4)
    at_home = np.array([[False, False], [True, False]])
    own = np.array([False, True, True, False])
    further = {}
    for name, empty in (("free", []), ("led", [((0, 1), at_home)])):
        codes, persons = draw_further(learned.model, whole, sizes, own, empty, rng)
        assert (codes[::4] == whole).all()
        assert (persons == np.repeat(np.arange(500), 4)).all()
        further[name] = (np.delete(codes, np.s_[::4], axis=0)[:, :2] == [1, 0]).all(axis=1).sum()
    assert further["free"] > 50
    assert further["led"] == 0


def test_a_draw_is_repeatable(learned):
    assert draw(learned, 200)[1].equals(draw(learned, 200)[1])
