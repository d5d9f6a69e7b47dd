"""Persons in whole fits: what one gives away with all its rows is within epsilon, or refused."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import fedsynth as fs
import fedsynth.evaluation.federated.tasks as scores
from evaluation.studies import transcript_audit as audit
from fedsynth.errors import ConfigError, DataError
from fedsynth.methods.fitting import Method
from fedsynth.methods.persons import demand_joined, person_cautions
from fedsynth.privacy.budget import Budget
from fedsynth.registry import METHODS
from fedsynth.schema import Identifier, ImageSchema
from tests.methods.contract import OF_PERSONS
from tests.methods.contract import SCHEMA as SMALL

REFUSED = {"fedinfer", "fusion", "hybrid-fusion", "fusion-gan"}
BUDGET = Budget(epsilon=2.0, delta=1e-4, unit="person", curious=1)
PERSON, ROW, CHOSEN = audit.WEIGHED
EMBEDDING = {"components": 4, "random_features": 20, "steps": 2, "hidden": 6}
AUDITED = [
    ("aim", {"iterations": 5, "marginals": 2}, "central", (PERSON, ROW, CHOSEN)),
    ("aim", {"iterations": 5, "marginals": 2}, "distributed", (CHOSEN,)),
    ("privbayes", {"structure": "votes"}, "distributed", (PERSON, ROW)),
    ("private-fusion", {"mechanism": "laplace"}, "local", (PERSON, ROW, CHOSEN)),
    ("mean-embedding", EMBEDDING, "local", (PERSON, ROW, CHOSEN)),
    ("pate", {"teachers": 2, "queries": 20, "steps": 2}, "distributed", (PERSON, ROW)),
]
"""A method's rows are weighed by person, by row, or by row under a clip asked for. The others
are in the study's own table (evaluation/studies/transcript_audit.py)."""


@pytest.mark.parametrize(
    ("name", "settings", "trust", "weigh"),
    [(*case, weigh) for *case, weighed in AUDITED for weigh in weighed],
)
def test_a_person_with_all_its_rows_gives_away_no_more_than_is_claimed(
    name, settings, trust, weigh
):
    found = audit.audit_method(name, settings, "person", trust, 0, weigh, least=1)
    # Its seven rows are unlike all others, so that it is near the bound.
    assert 0.5 < found["ratio"] <= 1.0 and found["claimed"] <= audit.EPSILON


IMAGES = ImageSchema(
    shape=(4, 4), target=fs.Categorical(name="y", values=["no", "yes"]), person="writer"
)


def writers(other: int, _: str) -> dict[str, fs.Images]:
    """Owners' images of ten writers; of one more in the other world, nearly all unlike the rest."""
    dark, bright = np.zeros((20, 4, 4), np.uint8), np.full((audit.ROWS - 1, 4, 4), 255, np.uint8)
    usual = np.zeros(20, np.int64)
    many = fs.Images(dark, usual, np.arange(20) // 2)
    if not other:
        return {audit.TARGET: many, "second": many, "third": many}
    pixels = np.concatenate([dark, bright, dark[:1]])
    labels = np.concatenate([usual, np.ones(len(bright), np.int64), usual[:1]])
    owned = fs.Images(pixels, labels, np.append(np.arange(20) // 2, [10] * audit.ROWS))
    return {audit.TARGET: owned, "second": many, "third": many}


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("mean-embedding", EMBEDDING),
        ("fedvae", {"rounds": 2, "latent": 2, "hidden": (6,), "rate": 1.0, "architecture": "mlp"}),
    ],
)
def test_a_writer_with_all_its_images_gives_away_no_more_than_is_claimed(name, settings):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(audit, "world", writers)
        patch.setattr(audit, "OF_PERSONS", IMAGES)
        weigh = {"weigh": "row"}
        found = audit.audit_method(name, settings, "person", "distributed", 0, weigh, least=1)
    assert 0.3 < found["ratio"] <= 1.0 and found["claimed"] <= audit.EPSILON


def test_rows_that_are_protected_one_by_one_give_a_person_away():
    """The audit finds what it looks for: the same worlds, of which records are the unit."""
    worlds = audit.world

    def of_persons(other, unit):
        return {k: v.drop(columns="p") for k, v in worlds(other, "person").items()}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(audit, "world", of_persons)
        found = audit.audit_method("mst", {"iterations": 10}, "record", "local", 0, None, least=1)
    assert found["ratio"] > 2


@pytest.mark.parametrize("name", METHODS)
def test_a_method_that_cannot_protect_persons_says_so_before_anything_is_asked(name):
    if name not in REFUSED:
        assert METHODS[name].no_persons == ""
        return
    with pytest.raises(ConfigError, match="cannot protect persons: "):
        METHODS[name](OF_PERSONS).plan(replace(BUDGET, trust="local", curious=None), 3)


def test_a_method_that_says_nothing_of_persons_is_refused():
    class New(fs.AIM):
        no_persons = Method.no_persons

    with pytest.raises(ConfigError, match="nobody saw to it"):
        New(OF_PERSONS).plan(BUDGET, 3)


def test_a_task_that_does_not_keep_the_order_of_rows_is_not_planned_for_persons():
    releases = fs.AIM(OF_PERSONS).plan(BUDGET, 3).releases
    demand_joined(releases, BUDGET, "aim")
    other = replace(releases[0], label=scores.TASK.name)
    with pytest.raises(ConfigError, match="added up by person"):
        demand_joined([other], BUDGET, "aim")
    # Nor is a clip chosen by what nobody asks.
    with pytest.raises(ConfigError, match="weigh: row needs person_clip"):
        demand_joined(releases[1:], replace(BUDGET, weigh="row", person_clip=None), "aim")


def test_somebody_must_say_whose_a_row_is():
    with pytest.raises(ConfigError, match="needs a schema that says whose"):
        fs.AIM(SMALL).plan(BUDGET, 3)
    images = ImageSchema(shape=(8, 8))
    with pytest.raises(ConfigError, match="whose an image is"):
        fs.MeanEmbedding(images).plan(BUDGET, 3)
    # An owner's images may lack what their schema names.
    named = ImageSchema(shape=(8, 8), person="writer")
    bare = fs.Images(np.zeros((6, 8, 8), np.uint8))
    with pytest.raises(DataError, match="whose an image is"):
        fs.MeanEmbedding(named).fit([bare] * 3, BUDGET)


def test_a_network_for_each_class_takes_persons_apart_and_is_refused():
    with pytest.raises(ConfigError, match="scheme sep takes a person"):
        fs.FedVAE(OF_PERSONS, scheme="sep").plan(BUDGET, 3)


def test_messages_whose_clip_binds_differently_are_not_held_against_each_other():
    rng = np.random.default_rng(0)
    persons = np.repeat(np.arange(200), 4)
    frame = pd.DataFrame(
        {
            "a": rng.choice(["p", "q", "r"], 800),
            "b": rng.choice(["p", "q"], 800),
            "n": rng.integers(0, 16, 800),
            "y": np.repeat(rng.choice(["no", "yes"], 200), 4),
            "p": persons,
        }
    )
    assert isinstance(audit.OF_PERSONS.columns[-1], Identifier)
    free = {"epsilon": math.inf, "unit": "person", "trust": "central", "weigh": "row"}
    free = Budget(**free, person_clip=2.0, person_share=0)
    synth = fs.AIM(audit.OF_PERSONS, iterations=5, marginals=2)
    synth.fit(frame, free, progress=False)
    totals = {m.clique: float(m.values.sum()) for m in synth.learned.measurements}
    # No less than two rows a person, no more than all four.
    assert all(2 * 200 * 0.99 < total < 800 for total in totals.values())
    assert max(totals.values()) > 1.02 * min(totals.values())


def test_that_persons_are_named_and_their_rows_protected_one_by_one_is_told():
    schema = fs.Schema(columns=[Identifier(name="k"), fs.Boolean(name="b")], person="k")
    rows = pd.DataFrame({"k": np.arange(60) // 3, "b": np.arange(60) % 2 == 0})
    told = []
    for unit in ("record", "person"):
        synth = fs.MST(schema).fit(
            rows, Budget(epsilon=1, trust="central", unit=unit), caution=told.append
        )
        assert len(synth.sample(3, seed=0)) == 3
    (about,) = [sentence for sentence in told if "whose a row is" in sentence]
    assert "('k')" in about and "`unit: person` does" in about
    bare = fs.Schema(columns=schema.columns)
    assert person_cautions(bare, Budget(epsilon=1)) == ()
    assert person_cautions(schema, Budget(epsilon=1, unit="client")) == ()
    assert len(person_cautions(schema, Budget(epsilon=1))) == 1
