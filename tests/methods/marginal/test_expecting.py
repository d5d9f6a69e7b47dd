"""What is expected of tables before any is asked, against hand-worked cases."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from scipy.stats import norm

import fedsynth as fs
from fedsynth.encoding.nominal import nominal_encoding
from fedsynth.marginals import Domain
from fedsynth.methods.marginal.allowing import FINE, Allowance, allow
from fedsynth.methods.marginal.expecting import Asked, expect_tables
from fedsynth.methods.marginal.search import ALONE
from fedsynth.schema import Categorical, Continuous, Integer, Schema

# Third roots of the cells of the three pairs: 2, 4 and 8.
DOMAIN = Domain((2, 4, 128))
PAIRS = [(0, 1), (0, 2), (1, 2)]
MIXED = Schema(
    columns=[
        *(Integer(name=f"n{k}", lower=0, upper=500) for k in range(3)),
        *(Categorical(name=f"c{k}", values=range(6)) for k in range(4)),
    ],
    target="c3",
)
EVEN = Schema(columns=[Categorical(name=f"c{k}", values=range(4)) for k in range(7)], target="c6")


@cache
def planned(schema):
    aim = fs.AIM(schema)
    plan = aim.plan(fs.Budget(epsilon=1, delta=1e-5), 10)
    return aim, plan, aim.resolved(plan.budget)


@cache
def anything(schema):
    """What is expected where nobody says how many records there are."""
    aim, plan, settings = planned(schema)
    return aim.expect(settings, plan)


def test_a_table_that_is_asked_alone_has_the_noise_of_its_message():
    alone = Asked("fine", 1, PAIRS, "asked", 1, by_size=True, small_first=True)
    assert alone.deviations(DOMAIN, 3.0) == dict.fromkeys(PAIRS, 3.0)


def test_small_tables_are_asked_first_and_stand_beside_small_ones():
    cells = np.array([8, 256, 512])
    some = Asked("fine", 2, PAIRS, "asked", 1, by_size=True, small_first=True)
    chances = np.array([some.chances(DOMAIN)[pair] for pair in PAIRS])
    assert chances == pytest.approx(1 / cells / (1 / cells).sum())
    beside = (chances * cells ** (2 / 3)).sum()
    by_hand = [5 * math.sqrt(1 + beside / c ** (2 / 3)) for c in cells]
    assert list(some.deviations(DOMAIN, 5.0).values()) == pytest.approx(by_hand)


def test_what_is_asked_of_all_tables_is_asked_of_each():
    every = Asked("coarse", 3, PAIRS, "asked", 3, small_first=True)
    assert every.chances(DOMAIN) == dict.fromkeys(PAIRS, 1.0)
    assert every.deviations(DOMAIN, 2.0) == pytest.approx(dict.fromkeys(PAIRS, 2 * math.sqrt(3)))


def test_a_number_is_reckoned_with_as_normal_within_its_bounds():
    """Bins are its quantiles: of 20 of equal weight, ends are those of the normal distribution."""
    schema = Schema(columns=[Continuous(name="x", lower=0.0, upper=1000.0, decimals=2)])
    (bins,) = nominal_encoding(schema, 20).bins
    starts = bins.grid.values(bins.starts[1:])
    quantiles = norm.ppf(np.arange(1, 20) / 20, 400, 1000 / 12)
    inside = starts[(starts > quantiles[0] - 10) & (starts < quantiles[-1] + 10)]
    gaps = [np.abs(inside - quantile).min() for quantile in quantiles]
    assert max(gaps) < 10


def test_the_best_columns_pairs_with_the_target_are_each_in_the_triples_of_all_others_of_them():
    """Of 6 columns beside the target the best 4: 6 of 15 triples, a pair with it in 3 of those."""
    aim, plan, settings = planned(EVEN)
    allowed = Allowance(5, "target", 4_000, best=4)
    found = expect_tables(EVEN, 5, plan, lambda domain: aim.asked(settings, domain, allowed))
    errors = {error.what: error.error for error in found.errors}
    one = math.sqrt(2 / math.pi) * plan.terms(FINE).summed_scale(10)
    each = one * math.sqrt(6 / (1 - ALONE))
    assert errors["triples with the target, asked next"] == pytest.approx(each)
    assert errors["pairs, asked next"] == pytest.approx(each * math.sqrt(4))
    assert errors["pairs with the target, asked next"] == pytest.approx(each * math.sqrt(4 / 3))


@pytest.mark.parametrize("records", [150, 900, 4_000, 30_000, 10**6])
def test_whatever_number_of_records_there_is_its_errors_lie_within_the_ranges_of_all(records):
    aim, plan, settings = planned(MIXED)
    anyhow = {error.what: error for error in anything(MIXED).errors}
    known = aim.expect(settings, plan, records)
    assert known.errors and any("the histogram shows" in note for note in known.notes)
    for error in known.errors:
        whole = anyhow.get(error.what)
        if whole is not None:
            least = whole.error if whole.least is None else whole.least
            most = whole.error if whole.most is None else whole.most
            assert least * (1 - 1e-9) <= error.error <= most * (1 + 1e-9), error


def test_what_is_asked_again_has_less_noise_where_a_message_asks_one_table_alone():
    aim, plan, settings = planned(MIXED)
    errors = {error.what: error for error in aim.expect(settings, plan, 30_000).errors}
    assert errors["pairs, asked coarsely"].least is None
    again = errors["triples with the target, asked again"]
    noise = plan.terms(FINE).summed_scale(10)
    alone = math.sqrt(2 / math.pi) * noise / math.sqrt(1 - ALONE)
    assert again.least == pytest.approx(alone) and again.least < again.error < again.most


def test_columns_of_numbers_have_the_range_of_low_to_even_ones_and_categories_none():
    aim, plan, settings = planned(MIXED)
    errors = {error.what: error for error in aim.expect(settings, plan, 30_000).errors}
    numbers, categories = errors["columns of numbers"], errors["columns of categories"]
    assert numbers.least < numbers.error < numbers.most
    assert categories.least is None and categories.most is None


@pytest.mark.parametrize("trust", ["central", "distributed"])
def test_without_noise_tables_that_are_asked_have_no_error(trust):
    found = fs.plan(fs.AIM(MIXED), fs.Budget(epsilon=math.inf, delta=1e-5, trust=trust), 3)
    assert found.errors and all(error.error == 0 for error in found.errors)


def test_of_more_records_columns_counted_finer_are_more_numbers():
    """Twice as many bins of each number, by 48 for 24, where tables have as many."""
    aim, plan, settings = planned(MIXED)
    many = aim.expect(settings, plan, 10**9)
    allowed = allow(MIXED, settings, plan, 10**9)
    assert allowed.bins == 24
    few = expect_tables(MIXED, 24, plan, lambda domain: aim.asked(settings, domain, allowed))
    more = sum(nominal_encoding(MIXED, 48).sizes) - sum(nominal_encoding(MIXED, 24).sizes)
    assert more > 0
    assert many.sizes[FINE] - few.sizes[FINE] == pytest.approx(more)
    assert many.announced > few.announced
