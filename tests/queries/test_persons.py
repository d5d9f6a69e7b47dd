"""The histogram of rows a person: what it counts, what follows from it, and the clip it chooses."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import fedsynth as fs
from fedsynth.errors import ReleaseError
from fedsynth.federation.client.tasks import in_groups
from fedsynth.methods.persons import count_all, person_remarks
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.queries.persons import PRICE, RowsAPerson
from fedsynth.queries.tasks.persons import BINS, bins_of

# Persons of one to fifteen rows, six on average.
MANY = np.array([547, 487, 442, 398, 368, 330, 294, 269, 258, 234, 216, 224, 240, 233, 171])


def histogram(persons: np.ndarray, sigma: float = 0.0) -> RowsAPerson:
    """Of so many persons of 1, 2, .. rows."""
    bins = bins_of(np.arange(1, len(persons) + 1))
    return RowsAPerson(tuple(np.bincount(bins, persons, BINS).tolist()), sigma)


def test_bins_double_beyond_four_and_the_last_has_all_that_have_more():
    rows = np.array([1, 2, 3, 4, 5, 8, 9, 16, 17, 32_768, 32_769, 10**9])
    assert bins_of(rows).tolist() == [0, 1, 2, 3, 4, 4, 5, 5, 6, 16, 17, 17]


def test_persons_and_rows_follow_from_the_histogram():
    known = histogram(MANY)
    assert known.persons == MANY.sum() and known.most == 16
    assert known.sizes.sum() == pytest.approx(1) and (known.sizes >= 0).all()
    # Bins of one number of rows are exact, the others right in sum.
    assert known.sizes[:4] * known.persons == pytest.approx(MANY[:4])
    assert known.sizes[4:8].sum() * known.persons == pytest.approx(MANY[4:8].sum())
    assert known.rows == pytest.approx(MANY @ np.arange(1, 16), rel=0.02)
    assert known.mean == pytest.approx(known.rows / known.persons)


def test_bins_within_the_noise_are_empty_and_noise_alone_is_one_row_each():
    counts = np.zeros(BINS)
    counts[[0, 1, 6, 17]] = 900, -30, 81, 79
    known = RowsAPerson(tuple(counts), 20.0)
    assert known.most == 32 and len(known.sizes) == 32
    assert known.persons == 951 and known.deviation == pytest.approx(20 * math.sqrt(7))
    assert known.sizes[1] == 0 and known.sizes[0] < 1
    nobody = RowsAPerson((-5.0,) * BINS, 20.0)
    assert known.told and not nobody.told
    assert "not known" in person_remarks(nobody, ROWS)[0]
    assert (nobody.persons, nobody.sizes.tolist(), nobody.choose_clip()) == (1.0, [1.0], 1.0)


def test_the_price_is_what_a_clip_of_so_many_rows_costs_beside_one_row_a_person():
    known = histogram(np.array([100, 100]))
    assert (known.price(1), known.price(2)) == (1.0, pytest.approx(2 * 200 / 300))
    every = histogram(np.array([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10]))
    assert every.price(9) == pytest.approx(1.0)


def test_a_clip_is_raised_until_its_price_is_reached():
    known = histogram(MANY)
    clip = known.choose_clip()
    assert clip == round(clip, 1) and known.price(clip) <= PRICE < known.price(clip + 0.11)


def test_a_clip_is_not_above_what_anybody_has():
    four = histogram(np.array([0, 0, 0, 500]))
    assert 1 <= four.choose_clip() <= 4


def test_a_damaged_histogram_is_refused_and_a_whole_one_read():
    known = histogram(MANY, 3.5)
    assert RowsAPerson.from_dict(known.to_dict()) == known
    whole = known.to_dict()
    for damage in (
        {"counts": [1.0]},
        {"sigma": -1.0},
        {"sigma": "much"},
        {"counts": [math.nan] * BINS},
        {"counts": 3},
    ):
        with pytest.raises(ReleaseError, match="damaged"):
            RowsAPerson.from_dict({**whole, **damage})
    with pytest.raises(ReleaseError, match="damaged"):
        RowsAPerson.from_dict({})


COLUMNS = [fs.Categorical(name="a", values=["p", "q", "r"]), fs.Identifier(name="who")]
SCHEMA = fs.Schema(columns=COLUMNS, person="who")
ROWS = Budget(epsilon=1, unit="person", weigh="row", curious=1)


def owners(sizes: list[int]) -> dict[str, pd.DataFrame]:
    """Three owners' tables, each of persons of so many rows."""
    who = np.repeat(np.arange(len(sizes)), sizes)
    table = pd.DataFrame({"a": np.array(["p", "q", "r"])[who % 3], "who": who})
    return dict.fromkeys(("north", "west", "east"), table)


def fitted(sizes: list[int], budget: Budget, **how) -> fs.MST:
    how = {"progress": False, "caution": lambda _: None, **how}
    return fs.MST(SCHEMA).fit(owners(sizes), budget, **how)


def test_a_person_of_a_thousand_rows_is_one_in_one_bin():
    free = replace(ROWS, epsilon=math.inf, trust="central")
    without = fitted([1, 2, 2, 3, 4, 7], free).rows_a_person
    beside = fitted([1, 2, 2, 3, 4, 7, 1000], free).rows_a_person
    assert without.counts[:5] == pytest.approx([3, 6, 3, 3, 3])
    # Of each of three owners.
    moved = np.array(beside.counts) - np.array(without.counts)
    assert moved == pytest.approx(3.0 * (np.arange(BINS) == 11))
    assert (beside.persons, beside.sigma) == (pytest.approx(21), 0.0)


def test_a_clip_is_chosen_after_the_plan_and_all_noise_goes_with_it(tmp_path):
    synth = fitted([1, 2, 3, 4, 8] * 200, ROWS, folder=tmp_path / "job")
    known, budget = synth.rows_a_person, synth.ledger.job.budget
    clip = known.choose_clip()
    assert budget.chooses_clip and 1.5 < clip < 3
    planned = {one.label: one.terms for one in synth.ledger.job.plan}
    first, histogram, *_ = synth.ledger.events
    assert (first.label, first.round) == ("rows-a-person", 0)
    assert first.terms == planned["rows-a-person"] and first.terms.clip == pytest.approx(
        1, abs=1e-4
    )
    assert histogram.terms.clip == pytest.approx(clip * planned["histogram"].clip)
    assert histogram.terms.noise_multiplier == planned["histogram"].noise_multiplier
    assert synth.ledger.spent().epsilon <= 1
    assert any(f"clipped to {clip:g} rows" in sentence for sentence in synth.remarks)
    certificate = synth.release(tmp_path / "job", rows=5)
    told = " ".join(certificate.content["cautions"])
    assert f"no further than {clip:g} rows could, a number chosen from the released" in told
    assert all(check.passed for check in fs.verify(tmp_path / "job"))
    assert fs.load(tmp_path / "job").rows_a_person == known


def test_the_histogram_takes_its_share_and_none_where_it_gets_none():
    plans = {
        share: fs.MST(SCHEMA).plan(replace(ROWS, person_clip=2.0, person_share=share), 3)
        for share in (0, None, 0.5)
    }
    assert "rows-a-person" not in plans[0].labels
    noises = {share: plan.terms("histogram").noise_multiplier for share, plan in plans.items()}
    assert noises[None] / noises[0] == pytest.approx((1 - 0.01) ** -0.5, rel=1e-3)
    assert noises[0.5] / noises[0] == pytest.approx(0.5**-0.5, rel=1e-3)
    assert all(plan.epsilon() <= 1 for plan in plans.values())
    assert fitted([1, 2, 3], replace(ROWS, person_clip=2.0, person_share=0)).rows_a_person is None


def test_groups_and_the_histogram_itself_keep_their_clip():
    schema = fs.Schema(
        columns=[*COLUMNS, fs.Boolean(name="b"), fs.Boolean(name="y")], person="who", target="y"
    )
    plan = fs.PATE(schema, teachers=3).plan(replace(ROWS, trust="local", curious=None), 3)
    clipped = plan.clipped(3.0)
    for before, after in zip(plan.releases, clipped.releases, strict=True):
        alone = before.label == "rows-a-person" or in_groups(before.label)
        assert after.terms.clip == before.terms.clip * (1.0 if alone else 3.0)
        assert replace(after.terms, clip=1.0) == replace(before.terms, clip=1.0)
    assert "Clips are of one row" in str(plan) and "of one row" not in str(clipped)
    assert clipped.epsilon() == plan.epsilon() and clipped.budget.person_clip == 3.0
    assert any(in_groups(label) for label in plan.labels)


def test_owners_that_insist_on_a_plan_answer_under_a_clip_that_was_chosen(tmp_path):
    own = replace(ROWS, epsilon=1.5, curious=None)
    ledgers = {name: Ledger.of_owner(tmp_path / f"{name}.jsonl", own) for name in owners([1])}
    synth = fitted([1, 2, 3, 4, 8] * 200, ROWS, owners_ledgers=ledgers)
    assert not synth.incidents
    assert {len(one.events) for one in ledgers.values()} == {len(synth.ledger.events)}


def test_counts_of_clipped_persons_are_told_to_be_too_low_by_no_more_than_they_can_be():
    known = RowsAPerson((1000.0, *[0.0] * (BINS - 1)), 2.0)
    alike = Budget(epsilon=1, unit="person", trust="central")
    assert count_all(known, alike, 900.0) == pytest.approx(1000 / 900)
    # Persons whose rows agree count .85, and none counts less.
    assert count_all(known, alike, 500.0) == pytest.approx(1 / 0.85)
    # Nothing is made of noise, and of nothing.
    assert [count_all(known, alike, one) for one in (999.0, 1200.0)] == [1.0, 1.0]
    assert count_all(None, alike, 900.0) == 1.0
    assert person_remarks(None, alike) == ()
    assert "person_clip: 1" in person_remarks(known, alike)[0]
    assert "person_clip" not in person_remarks(known, replace(alike, person_clip=1.0))[0]
    rows = replace(alike, weigh="row", person_clip=2.0)
    several = RowsAPerson((0.0, 0.0, 0.0, 0.0, 1000.0, *[0.0] * (BINS - 5)), 2.0)
    assert count_all(several, rows, 3000.0) == pytest.approx(several.rows / 3000)
    assert count_all(several, rows, 1500.0) == 4.0


def test_a_table_of_clipped_persons_has_as_many_as_there_are():
    sizes, found = [1, 2, 3, 4, 6] * 400, {}
    for budget in (Budget(epsilon=5, unit="person", trust="central"), replace(ROWS, epsilon=5)):
        synth = fitted(sizes, budget, insecure_noise_seed=3)
        found[budget.weigh] = synth.learned.records
        table = synth.marginal("a")
        assert table["count"].sum() == pytest.approx(synth.learned.records)
        assert any("multiplied by" in sentence for sentence in synth.remarks)
        # Of messages that clipped otherwise too.
        totals = [one.values.sum() for one in synth.learned.measurements]
        assert totals == pytest.approx([synth.learned.records] * len(totals), rel=0.05)
    # All rows of a person agree here, so it counts .85, and 2 or so of its rows.
    assert found["person"] == pytest.approx(3 * 2000, rel=0.05)
    assert found["row"] == pytest.approx(3 * 6400, rel=0.05)
