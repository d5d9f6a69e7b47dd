"""What every method promises, checked for each by its name alone: :func:`check_synthesizer`.

A method's own tests keep what is its own idea. Settings that make a method quick, and the privacy
that it takes, stand in one table here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pandas as pd
import pytest

import fedsynth as fs
from fedsynth.data.conforming import conform
from fedsynth.errors import ConfigError, FedsynthError, PrivacyError, ReleaseError
from fedsynth.federation.server.channel import Channel
from fedsynth.methods import synthesizer
from fedsynth.methods.copula import families, private
from fedsynth.methods.copula.families import FAMILIES, Effort
from fedsynth.methods.marginal import search
from fedsynth.methods.pate import learned, student
from fedsynth.methods.pate import synthesizer as pate
from fedsynth.methods.sampling import classifier, drawing
from fedsynth.methods.training import watch
from fedsynth.methods.vae import coupling
from fedsynth.models import matching
from fedsynth.papers.fusion import published
from fedsynth.privacy.budget import Budget
from fedsynth.queries.session import Session
from fedsynth.registry import METHODS, SETTINGS
from fedsynth.schema import (
    Boolean,
    Categorical,
    Datetime,
    Identifier,
    ImageSchema,
    Integer,
    Schema,
)
from fedsynth.schema.checking import check
from fedsynth.schema.target import conditions
from tests.hostile.mutations import mutations
from tests.methods.door import digest, listening, other_table
from tests.methods.odd import ODD
from tests.methods.small import SCHEMA, table

# Nobody is drawn: losses of drawn records take the accountant seconds.
_NETWORKS = {"rounds": 2, "hidden": (6,), "latent": 2, "rate": 1.0}
_GAN = {
    **_NETWORKS,
    "discriminator_hidden": (6,),
    "generator_batch": 16,
    "generator_steps": 2,
}
QUICK: dict[str, dict[str, Any]] = {
    "aim": {"messages": 1, "marginals": 4, "iterations": 10},
    "mst": {"iterations": 10},
    "privbayes": {"iterations": 10},
    "fedvae": _NETWORKS,
    "fedgan": _GAN,
    "fedctgan": _GAN,
    "mean-embedding": {"components": 4, "random_features": 10, "steps": 2, "hidden": 6},
    "fusion": {"effort": "quick", "points": 40},
    "hybrid-fusion": {"effort": "quick", "points": 40, "epochs": 1},
    "fusion-gan": {
        "rate": 1.0,
        "steps": 2,
        "latent": 2,
        "hidden": (6,),
        "discriminator_hidden": (6,),
        "union": 100,
        "union_steps": 10,
    },
    "pate": {"teachers": 2, "queries": 30, "steps": 2},
    "federated-classifier": {"rounds": 2, "rate": 1.0},
    "pate-gan": {
        **_NETWORKS,
        "teachers": 2,
        "queries": 26,
        "warmup": 1,
        "generator_batch": 16,
        "local_steps": 1,
        "generator_steps": 1,
        "student_steps": 1,
    },
}
BUDGETS: dict[str, Budget] = {
    "fusion": Budget(epsilon=math.inf, trust="local"),
    "fusion-gan": Budget(epsilon=2.0, delta=1e-4, trust="local"),
}
OTHERWISE: dict[str, list[dict[str, Any]]] = {
    "fedvae": [{"encoder": "private"}],
    "privbayes": [{"structure": "votes"}],
    "private-fusion": [{"mechanism": "laplace"}, {"mechanism": "stable", "alpha": 1.0}],
    "pate": [{"noise": "laplace"}],
}
"""Settings under which a method asks something else, or has other noise."""
_BUDGET = Budget(epsilon=2.0, delta=1e-4, curious=1)
TRIED = ("norm", "uniform", "logistic", "beta")
"""Of all distributions those that a number is compared with."""

_CLASS = Categorical(name="t", values=["x", "y"])


OF_PERSONS = Schema(columns=[*SCHEMA.columns, Identifier(name="p")], target="outcome", person="p")
"""The small schema, of persons."""


def _drawn(**columns: Any) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({name: column(rng) for name, column in columns.items()})


TABLES: dict[str, tuple[Schema, pd.DataFrame]] = {
    **ODD,
    "missing values, and a rare category": (
        Schema(
            columns=[
                Integer(name="a", lower=0, upper=9, missing=True),
                Categorical(name="t", values=["x", "y", "rare"]),
            ],
            target="t",
        ),
        _drawn(
            a=lambda rng: np.where(rng.random(12) < 0.4, np.nan, rng.integers(0, 10, 12)),
            t=lambda rng: ["rare", *rng.choice(["x", "y"], 11)],
        ),
    ),
    "constraints": (
        Schema(
            columns=[
                Integer(name="sum", lower=0, upper=17),
                Integer(name="a", lower=0, upper=8, step=2),
                Integer(name="b", lower=0, upper=9),
                _CLASS,
                Categorical(name="same", values=["x", "y"]),
                Datetime(name="came", lower="2020-01-01", upper="2020-01-05"),
                Datetime(name="left", lower="2020-01-01", upper="2020-01-07"),
                Integer(name="days", lower=0, upper=2),
            ],
            target="t",
            constraints=[
                {"ordered": ["a", "b"]},
                {"equal": ["same", "t"]},
                {"sum": {"total": "sum", "parts": ["a", "b"]}},
                {"sum": {"total": "left", "parts": ["came", "days"]}},
            ],
        ),
        _drawn(
            sum=lambda rng: np.arange(12),
            a=lambda rng: rng.choice([0, 2, 4], 12),
            b=lambda rng: rng.integers(5, 10, 12),
            t=lambda rng: ["x", "y"] * 6,
            same=lambda rng: ["x", "y"] * 6,
            came=lambda rng: ["2020-01-01", "2020-01-04", "2020-01-05"] * 4,
            # Nobody's table has the days between.
            left=lambda rng: ["2020-01-02", "2020-01-04", "2020-01-07"] * 4,
        ),
    ),
}
"""What a table may look like: a schema, and a few rows."""


def made(name: str, schema: Any = SCHEMA, **settings: Any) -> Any:
    return METHODS[name](schema, {**QUICK.get(name, {}), **settings})


def budget_for(name: str) -> Budget:
    return BUDGETS.get(name, _BUDGET)


def owners(seed: int = 0) -> dict[str, pd.DataFrame]:
    return {"north": table(30, seed), "south": table(20, seed + 1)}


@cache
def plan_for(name: str) -> Any:
    return made(name).plan(budget_for(name), 2)


@cache
def fitted(name: str) -> Any:
    """A fit that no check but the last changes, by the plan that was made without owners, of as
    many records as were agreed."""
    options = {"plan": plan_for(name), "seed": 1, "most_records": 30}
    return made(name).fit(owners(), budget_for(name), **options)


def check_synthesizer(name: str, folder: Path) -> None:
    """Every promise of :class:`fedsynth.methods.synthesizer.Synthesizer`, for one method."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(synthesizer, "_ROWS", 200)
        patch.setattr(student, "_STEPS", 10)
        patch.setattr(pate, "_OTHERS", 100)
        patch.setattr(learned, "_LEAST_CHOICE", 200)
        patch.setattr(search, "_DRAWN", 500)
        patch.setattr(classifier, "_LEAST_STEPS", 5)
        patch.setattr(classifier, "_EPOCHS", 1)
        patch.setattr(drawing, "_LEAST_DRAWS", 5_000)
        patch.setattr(coupling, "_ROWS", 600)
        patch.setattr(coupling, "_COMPARED", 600)
        patch.setattr(coupling, "_STEPS", 4)
        patch.setattr(matching, "_DRAWS", 256)
        patch.setattr(watch, "_PAIRS", 64)
        patch.setattr(private, "_LEAST_ROWS", 50)
        patch.setattr(published, "effort_of", lambda settings: Effort(10, 10, 1, 2))
        patch.setattr(families, "_holds", lambda family, _: FAMILIES[family] in TRIED)
        check_tables(name)
        check_sampling(name)
        check_plan(name)
        check_saving(name, folder / "saving")
        check_resuming(name, folder / "resuming")
        check_refusals(name)
        check_door(name)
        check_failing(name, folder / "failing")


def check_tables(name: str) -> None:
    """Rows of any table are rows of its schema, the same for a seed; with noise and without."""
    # Of two rounds, which are like each other, one.
    few = {"rounds": 1} if "rounds" in QUICK.get(name, {}) else {}
    for number, (schema, frame) in enumerate(TABLES.values()):
        try:
            synth = made(name, schema, **few)
        except ConfigError:
            continue
        noisy = number % 2 or name == "hybrid-fusion"
        unit: Any = "client" if number % 4 else "record"
        free = Budget(epsilon=math.inf, unit=unit, trust="central")
        # Clients have no rows; of one table nobody has any, and noise is all that is learned.
        none = number == 1 and name != "fusion"
        frames = [frame[: 0 if none else None], frame[:0], frame[:0]]
        synth.fit(frames, budget_for(name) if noisy else free, outside="allow")
        rows = synth.sample(9, seed=3)
        if hasattr(synth, "probabilities"):
            _demand_probabilities(synth, frame)
        _demand_rows(rows, schema, 9)
        if number % 4 < 2:
            pd.testing.assert_frame_equal(rows, synth.sample(9, seed=3))


def check_sampling(name: str) -> None:
    """Conditions and shares hold in every row, or are refused in words."""
    synth = fitted(name)
    for where in ({"outcome": "ill"}, {"smoker": True}, {"dose": {"from": 1, "to": 9}}):
        try:
            rows = synth.sample(6, where=where, seed=0)
        except ConfigError as error:
            assert where != {"outcome": "ill"}
            # What is rare in one model alone is known after its fit; all else before.
            if "hardly a row" not in str(error):
                with pytest.raises(ConfigError):
                    made(name).check_draw(where, None)
            continue
        made(name).check_draw(where, None)
        _demand_rows(rows, SCHEMA, 6)
        (column, wanted), *_ = where.items()
        met = rows[column].between(1, 9) if column == "dose" else rows[column] == wanted
        assert met.all()
    shares = synth.sample(40, proportions={"well": 0.0, "ill": 1.0}, seed=0)
    assert (shares["outcome"] == "ill").all()
    assert not synth.sample(40, seed=0).equals(synth.sample(40, seed=1))
    for wrong in (
        {"rows": 0}, {"rows": 2.5}, {"rows": True}, {"rows": 3, "where": "ill"},
        {"rows": 3, "where": {"outcom": "ill"}}, {"rows": 3, "where": {"outcome": "dead"}},
        {"rows": 3, "proportions": ["ill"]}, {"rows": 3, "seed": -1}, {"rows": 3, "sede": 1},
    ):  # fmt: skip
        with pytest.raises(ConfigError):
            synth.sample(**wrong)
    # What no fit could mend is told before one.
    made(name).check_draw(None, {"well": 0.0, "ill": 1.0})
    for where, wrong_shares in (
        ({"outcom": "ill"}, None), ({"outcome": "dead"}, None), ({"dose": "much"}, None),
        (None, {"dead": 1.0}), (None, {"ill": 0.0}), ({"outcome": "ill"}, {"ill": 1.0}),
    ):  # fmt: skip
        for use in (made(name).check_draw, partial(synth.sample, 3)):
            with pytest.raises(ConfigError):
                use(where, wrong_shares)


def check_plan(name: str) -> None:
    """A plan needs no owner, is what the ledger holds, and costs no more than the budget."""
    plan, synth = plan_for(name), fitted(name)
    assert plan == made(name).plan(budget_for(name), 2)
    assert (synth.ledger.job.plan, synth.ledger.job.budget) == (plan.releases, plan.budget)
    assert synth.ledger.job.participations == plan.participations
    assert len(set(plan.labels)) == len(plan.releases)
    allowed: dict[Any, int] = {}
    for planned in plan.releases:
        allowed[planned.terms] = allowed.get(planned.terms, 0) + planned.count
    for terms, count in synth.ledger.counts.items():
        assert count <= allowed[terms], "asked beyond the plan"
    if plan.budget.private:
        assert synth.ledger.spent().epsilon <= plan.epsilon() <= plan.budget.epsilon
        promised = [one.epsilon for one in plan.adversaries() if one.promised]
        assert max(promised) == pytest.approx(plan.epsilon(), rel=1e-9)
        assert plan.epsilon() > 0.95 * plan.budget.epsilon, "hardly less than the budget"
        assert plan.epsilon(1e-3) < plan.epsilon(), "a larger delta costs less"
    for clients, wrong in ((3, budget_for(name)), (2, Budget(epsilon=math.inf, trust="central"))):
        with pytest.raises((ConfigError, PrivacyError)):
            made(name).fit([table(9)] * clients, wrong, plan=plan)
    with pytest.raises(ConfigError):
        made(name).plan(budget_for(name), 0)


def check_saving(name: str, folder: Path) -> None:
    """Saved, loaded, released and verified it draws the same rows."""
    synth = fitted(name)
    rows = synth.sample(8, seed=2)
    synth.save(str(folder / "model"))
    again = METHODS[name].load(str(folder / "model"))
    pd.testing.assert_frame_equal(again.sample(8, seed=2), rows)
    with pytest.raises(ConfigError, match="not fitted here"):
        _ = again.ledger
    with pytest.raises(ReleaseError):
        synth.save(folder / "model")
    synth.release(str(folder / "release"), rows)
    loaded = fs.load(folder / "release")
    pd.testing.assert_frame_equal(loaded.sample(8, seed=2), rows)
    # It has no account, by which a budget may be too small for what was counted.
    assert loaded.remarks == tuple(one for one in synth.remarks if "noisy count" not in one)
    assert synth.incidents == ()
    if hasattr(synth, "probabilities"):
        told = synth.probabilities(table(9))
        np.testing.assert_allclose(loaded.probabilities(table(9)), told, atol=1e-6)
    failed = [check.name for check in fs.verify(folder / "release") if not check.passed]
    assert not failed or not plan_for(name).budget.private
    arrays, plain = synth.model_state()
    damaged: list[tuple[Any, Any]] = [({}, {}), (arrays, {**plain, "settings": {"no such": 1}})]
    damaged.append((arrays, dict.fromkeys(plain, 3)))
    if arrays:
        first, last = next(iter(arrays)), list(arrays)[-1]
        short = arrays[first].ravel()[:-1].astype(str)
        damaged += [({last: arrays[last]}, plain), ({**arrays, first: short}, plain)]
    if "frequencies" in arrays:
        # Shares that are none: else the first draw would fail in a library's words.
        shares = arrays["frequencies"]
        damaged += [
            ({**arrays, "frequencies": np.full_like(shares, bad)}, plain) for bad in (np.nan, -1, 0)
        ]
    for broken in damaged:
        with pytest.raises(ReleaseError):
            METHODS[name].from_state(SCHEMA, *broken)
    check_hostile(name)


def check_hostile(name: str) -> None:
    """What a stranger writes into a model's files is refused in words, if not read as a model."""
    arrays, plain = fitted(name).model_state()
    state = list(mutations(arrays, json.loads(json.dumps(plain))))
    each = 1 if hypothesis.settings.get_current_profile_name() == "explore" else len(state) // 40
    for what, make in state[:: max(each, 1)]:
        parts, told = make()
        try:
            loaded = METHODS[name].from_state(SCHEMA, parts, told)
            loaded.sample(3, seed=0)
            if hasattr(loaded, "marginal"):
                loaded.marginal(["age", "outcome"])
        except FedsynthError:
            continue
        except Exception as error:
            raise AssertionError(f"{name}, {what}: {error!r}") from error


def check_resuming(name: str, folder: Path) -> None:
    """After a crash between two messages nothing is asked twice, and the job is finished."""
    plan, genuine = plan_for(name), Session.checkpoint
    options = {"plan": plan, "folder": str(folder), "checkpoint_every": 1}

    def crashing(self: Session, arrays: Any, meta: Mapping[str, Any]) -> None:
        genuine(self, arrays, meta)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Session, "checkpoint", crashing)
        with pytest.raises(KeyboardInterrupt):
            made(name).fit(owners(), budget_for(name), **options)
    synth = made(name).fit(owners(), budget_for(name), resume=True, **options)
    labels = [event.label for event in synth.ledger.events]
    whole = [event.label for event in fitted(name).ledger.events]
    assert sorted(labels) == sorted(whole)
    _demand_rows(synth.sample(5, seed=0), SCHEMA, 5)
    with pytest.raises(ConfigError, match="to resume was started with"):
        made(name).fit(
            owners(), Budget(epsilon=budget_for(name).epsilon, delta=1e-3, trust="central")
            if name == "fusion" else replace(budget_for(name), epsilon=1.5),
            folder=folder, resume=True,
        )  # fmt: skip


def check_failing(name: str, folder: Path) -> None:
    """A model and its account belong together: after a fit that fails there is none to release."""
    synth = fitted(name)
    rows = synth.sample(3, seed=0)

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        for ask in ("sum", "collect", "select"):
            patch.setattr(Channel, ask, interrupted)
        with pytest.raises(KeyboardInterrupt):
            synth.fit(owners(), budget_for(name), plan=plan_for(name), again=True)
    # It is of no more use to any check.
    fitted.cache_clear()
    for use in (lambda: synth.sample(3), lambda: synth.release(folder, rows)):
        with pytest.raises(ConfigError, match="nothing to sample from"):
            use()
    assert not (folder / "certificate.json").exists()


def check_refusals(name: str) -> None:
    """What makes no sense is refused in words, before anything is asked."""
    method, pictures = METHODS[name], ImageSchema(shape=(2, 2))
    assert method.name == method.settings_type.method == name
    if not method.images:
        with pytest.raises(ConfigError, match="tables"):
            method(pictures)
    for wrong in (
        {"schema": SCHEMA.to_dict()}, {"schema": SCHEMA, "settings": 3},
        {"schema": SCHEMA, "no_such": 1}, {"schema": SCHEMA, "settings": {"nosuch": 1}},
    ):  # fmt: skip
        with pytest.raises(ConfigError):
            method(**wrong)
    synth, budget = made(name), budget_for(name)
    for options, said in (
        ({"sede": 1}, "did you mean 'seed'"), ({"surviors": 0.5}, "did you mean 'survivors'"),
        ({"folder": 3}, "folder"), ({"seed": 0.5}, "seed"), ({"survivors": 2}, "survivors"),
        ({"checkpoint_every": 0}, "checkpoint_every"), ({"resume": True}, "folder"),
        ({"most_records": 0}, "most_records"),
    ):  # fmt: skip
        with pytest.raises(ConfigError, match=said):
            synth.fit(owners(), budget, **options)
    for wrong in ("much", {"epsilo": 1.0}, {}, None, True):
        with pytest.raises(ConfigError, match="budget"):
            synth.fit(owners(), wrong)
    unfitted = (lambda: synth.ledger, lambda: synth.traffic, lambda: synth.incidents)
    for use in (lambda: synth.sample(3), *unfitted):
        with pytest.raises(ConfigError):
            use()
    assert synth.remarks == ()
    with pytest.raises(ConfigError, match="folder"):
        fitted(name).release("somewhere", table(3), foldr="x")


def check_door(name: str) -> None:
    """What leaves a client carries its noise, and nothing is learned but from what was released."""
    first = {"north": table(30, 0), "south": table(20, 1), "west": table(10, 2)}
    other = {"north": other_table(7, 3), "south": first["south"][:0], "west": other_table(41, 4)}
    for seed, (synth, plan) in enumerate(ways(name)):
        known = {"plan": plan, "insecure_noise_seed": seed}
        ours, theirs = first, other
        if plan.budget.unit == "person":
            # Those of an owner have one to three rows, or all of them are one's.
            ours = {k: rows.assign(p=np.arange(len(rows)) ** 2 % 23) for k, rows in first.items()}
            theirs = {k: rows.assign(p=0) for k, rows in other.items()}
        with listening() as heard:
            synth.fit(ours, plan.budget, **known)
        state, rows = synth.model_state(), synth.sample(5, seed=2)
        with listening(instead=heard) as again:
            synth.fit(theirs, plan.budget, again=True, **known)
        way = f"{synth.settings!r}, {plan.budget.unit}, {plan.budget.trust}"
        assert len(again.said) == len(heard.said) > len(heard.released) > 0
        for ours, theirs in zip(state, synth.model_state(), strict=True):
            assert ours.keys() == theirs.keys()
            private = [part for part in ours if digest(ours[part]) != digest(theirs[part])]
            assert not private, f"{way}: something private is in {private}"
        pd.testing.assert_frame_equal(rows, synth.sample(5, seed=2))


def ways(name: str) -> Iterator[tuple[Any, Any]]:
    """Synthesizers, and plans for three owners: of every unit and every trust, each with one of the
    other, of records with a trusted server, too, and with settings under which something else is
    asked."""
    budget, found = budget_for(name), 0
    # Noise that is given need not be calibrated.
    given = {"noise_multiplier": 20.0} if "noise_multiplier" in SETTINGS[name].model_fields else {}
    last = "record" if METHODS[name].no_persons else "person"
    wanted = [("record", "distributed", {}), ("client", "central", {}), (last, "local", {})]
    wanted += [("record", "central", {})]
    wanted += [("record", "distributed", settings) for settings in OTHERWISE.get(name, ())]
    for unit, trust, settings in wanted if budget.private else [("record", budget.trust, {})]:
        synth = made(name, OF_PERSONS if unit == "person" else SCHEMA, **given, **settings)
        # Persons are clipped as what was released says.
        weigh = "row" if unit == "person" else None
        with suppress(PrivacyError):
            plan = synth.plan(replace(budget, unit=unit, trust=trust, weigh=weigh), 3)
            found += 1
            yield synth, plan
    assert found, "no way to fit it"


def _demand_rows(rows: pd.DataFrame, schema: Schema, count: int) -> None:
    """Rows of the schema: its columns in order, values that it allows, kinds as it says."""
    assert list(rows.columns) == [column.name for column in schema.columns]
    assert len(rows) == count
    conformed = conform(rows, schema)
    assert not any(conformed.outside.values())
    # Of all that it may break, no number between two steps, nor a constraint.
    assert [one.rule for one in check(rows, schema)] == []
    for column in schema.columns:
        kind = rows[column.name].dropna()
        if isinstance(column, Integer):
            assert all(float(value).is_integer() for value in kind)
        if isinstance(column, Boolean):
            assert set(kind.tolist()) <= {True, False}
        if isinstance(column, Identifier):
            assert kind.is_unique
        if isinstance(column, Categorical):
            assert set(kind) <= set(column.categories)


def _demand_probabilities(synth: Any, frame: pd.DataFrame) -> None:
    """Of every class, whatever is known of the label; there is nothing to tell without classes."""
    if not conditions(synth.schema):
        with pytest.raises(ConfigError):
            synth.probabilities(frame)
        return
    told = synth.probabilities(frame)
    assert told.shape == (len(frame), synth.schema.classes)
    np.testing.assert_allclose(told.sum(axis=1), 1, atol=1e-6)
