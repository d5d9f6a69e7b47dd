"""What a synthesizer is made with and fitted by, whatever the method."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
from contextlib import suppress
from dataclasses import replace

import pandas as pd
import pytest
from sklearn.base import clone

import fedsynth as fs
from fedsynth.errors import ConfigError, FederationError, PrivacyError, PrivacyWarning
from fedsynth.privacy.trail.job import Job
from fedsynth.privacy.trail.ledger import Ledger
from tests.small_jobs import SCHEMA, table

BUDGET = {"epsilon": 2.0, "delta": 1e-4, "unit": "record", "trust": "local"}
schema = fs.Schema.from_dict(SCHEMA)


def fitted(**options) -> fs.FedInfer:
    return fs.FedInfer(schema).fit([table(40, 7), table(30, 8)], **options)


@pytest.fixture(scope="module")
def synth() -> fs.FedInfer:
    return fitted(**BUDGET)


@pytest.mark.parametrize("said", [{"budget": BUDGET}, {"budget": fs.Budget(**BUDGET)}, BUDGET])
def test_keywords_say_the_same_as_a_budget(said, synth):
    assert fitted(**said).ledger.job.budget == synth.ledger.job.budget
    wanted = {"clients": 2, **said}
    assert fs.FedInfer(schema).plan(**wanted) == fs.FedInfer(schema).plan(BUDGET, 2)


def test_what_fit_takes_can_be_read_off_it():
    words = inspect.signature(fs.AIM.fit).parameters
    assert {"owners", "budget", "epsilon", "delta", "unit", "trust", "again"} <= set(words)
    assert words["epsilon"].default is None
    told = re.findall(r"^ {12}([a-z_][a-z_, ]*): ", fs.AIM.fit.__doc__ or "", re.M)
    explained = [word for words in told for word in words.split(", ")]
    assert sorted([*explained, "self", "unknown"]) == sorted(words)


def test_rows_are_drawn_by_the_words_of_other_tools(synth):
    rows = synth.sample(5, seed=1)
    for words in ({"num_rows": 5, "random_state": 1}, {"n": 5.0, "seed": 1}):
        pd.testing.assert_frame_equal(synth.sample(**words), rows)


def test_a_release_is_drawn_by_them_too(synth, tmp_path):
    synth.release(tmp_path / "r", num_rows=7, random_state=1)
    assert len(fs.read_table(tmp_path / "r" / "rows.csv", schema)) == 7


def test_a_second_fit_is_refused_and_leaves_the_first(synth):
    rows, head = synth.sample(5, seed=1), synth.ledger.head
    with pytest.raises(PrivacyError, match=r"fitted already, for epsilon 2.*costs epsilon [23]\."):
        synth.fit([table(40, 7), table(30, 8)], **BUDGET)
    assert synth.ledger.head == head
    pd.testing.assert_frame_equal(synth.sample(5, seed=1), rows)


def test_a_fit_that_is_asked_for_again_replaces_the_first():
    synth = fitted(**BUDGET)
    first = synth.ledger
    assert synth.fit([table(40, 7), table(30, 8)], again=True, **BUDGET).ledger is not first


def test_a_fit_that_failed_after_it_had_asked_is_paid_for_too(monkeypatch):
    synth, learn = fs.FedInfer(schema), fs.FedInfer.learn

    def fail(self, session):
        learn(self, session)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(fs.FedInfer, "learn", fail)
        synth.fit([table(40, 7)] * 2, **BUDGET)
    with pytest.raises(PrivacyError, match=r"began a fit that failed, for epsilon 2"):
        synth.fit([table(40, 7)] * 2, **BUDGET)


def test_a_fit_that_was_refused_before_anything_was_asked_can_be_made():
    synth = fs.FedInfer(schema)
    with pytest.raises(ConfigError):
        synth.fit([table(40, 7)] * 2, epsilon=1.0)  # Of two owners, curious is to be chosen.
    synth.fit([table(40, 7)] * 2, **BUDGET)


@pytest.mark.parametrize("trust, told", [("distributed", 1), ("local", 1), ("central", 0)])
def test_a_single_owner_is_told_what_a_federation_of_one_means(trust, told):
    found: list[str] = []
    fs.FedInfer(schema).fit(table(40, 9), epsilon=1, units=200, trust=trust, caution=found.append)
    assert sum("there is one owner" in one and "trust central" in one for one in found) == told


def test_without_privacy_one_owner_hears_of_that_alone():
    plan = fs.FedInfer(schema).plan(float("inf"), clients=1)
    assert plan.cautions() == ("No privacy: epsilon is infinite.",)


def test_cautions_point_at_the_user_s_line():
    with pytest.warns(PrivacyWarning, match="above 10") as caught:
        fs.FedInfer(schema).fit(table(40, 9), epsilon=11)
    assert {warning.filename for warning in caught} == {__file__}


def test_parameters_are_the_schema_and_the_settings():
    synth = fs.AIM(schema, {"bins": 5}, rare=1.5)
    found = synth.get_params()
    assert found["schema"] is schema and (found["bins"], found["rare"]) == (5, 1.5)
    assert set(found) == {"schema", *fs.AIM.settings_type.model_fields}
    again = fs.AIM(**found)
    assert again.get_params() == found


def test_parameters_change_before_a_fit_and_not_after(synth):
    made = fs.FedInfer(schema)
    assert made.set_params(clip=0.5) is made and made.settings.clip == 0.5
    with pytest.raises(ConfigError, match="'clipp'; did you mean 'clip'"):
        made.set_params(clipp=0.5)
    with pytest.raises(ConfigError, match="make another"):
        synth.set_params(clip=0.5)


def test_scikit_learn_clones_it_unfitted(synth):
    made = clone(synth)
    assert type(made) is fs.FedInfer and made.get_params() == synth.get_params()
    with pytest.raises(ConfigError, match="call fit first"):
        made.sample(1)


def test_pate_is_cloned_with_its_public_rows():
    public = table(50, 3)
    made = clone(fs.PATE(schema, public=public, queries=10))
    assert made.public is not None and made.resolved(fs.Budget(1)).queries == 10


def pickled(made: fs.FedInfer) -> fs.FedInfer:
    return pickle.loads(pickle.dumps(made))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickled])
def test_what_there_is_not_is_no_attribute_of_a_copy_either(copied):
    made = copied(fs.FedInfer(schema))
    assert not hasattr(made, "impute") and not hasattr(made, "_repr_html_of_nobody")
    with pytest.raises(AttributeError, match="FedInfer has no 'sampel'; did you mean 'sample'"):
        _ = made.sampel


def test_an_account_that_will_not_carry_the_plan_is_told_before_the_first_charge():
    spending = fs.Budget(epsilon=2.0, delta=1e-4, trust="central")

    def told(epsilon: float) -> list[str]:
        own = Ledger.create(Job(budget=replace(spending, epsilon=epsilon)))
        found = []

        def caution(sentence: str) -> None:
            if "own account" in sentence:
                assert not own.events
                found.append(sentence)

        with suppress(FederationError):
            fs.FedInfer(schema).fit(
                {"north": table(40, 7), "south": table(30, 8)},
                spending,
                owners_ledgers={"north": own},
                caution=caution,
            )
        # A filter counts: nearly twice the epsilon does.
        assert bool(own.events) == (epsilon > 2)
        return found

    assert told(4.0) == []
    (sentence,) = told(0.5)
    assert "north" in sentence and "refuse" in sentence
