"""Rows of a decoder led to go together as released tables of two columns say."""

import math

import numpy as np
import pandas as pd
import pytest
import torch

from fedsynth.errors import ConfigError, ReleaseError
from fedsynth.marginals import Domain, Measurement, count
from fedsynth.methods.vae import coupling, server
from fedsynth.methods.vae.coupling import Potential, draw_anew, learn_potentials
from fedsynth.methods.vae.settings import FedVAESettings
from fedsynth.methods.vae.synthesizer import FedVAE
from fedsynth.models import vae
from fedsynth.models.spec import VAESpec
from fedsynth.planning.forecast import plan
from fedsynth.privacy.budget import Budget
from fedsynth.queries.tables import PAIRS
from fedsynth.schema import Categorical, Integer, Schema
from tests.methods.small import SCHEMA, owners

SPEC = VAESpec(kind="mlp", latent=1, sizes=(2, 3), hidden=(2,), classes=2)
SHARES = np.array([0.7, 0.3])


def decoder():
    """A decoder of columns that are independent of all but the class: theta."""
    generator = torch.Generator().manual_seed(0)
    spec = VAESpec(**{**vars(SPEC), "label_bias": True})
    shares = [[0.6, 0.4, 0.5, 0.3, 0.2], [0.3, 0.7, 0.2, 0.2, 0.6]]
    _, theta = vae.initial(spec, generator, torch.tensor(shares).log())
    theta[: spec.label_bias_at.start] = 0.0
    return spec, theta.numpy()


def drawn(spec, theta, potentials, rows=20_000):
    generator = torch.Generator().manual_seed(1)
    labels = torch.multinomial(torch.tensor(SHARES), rows, True, generator=generator)

    def anew(codes, logits, own, same):
        return draw_anew(spec.sizes, potentials, codes, logits, own, same)

    codes = vae.sample(spec, torch.from_numpy(theta), labels, generator, anew=anew)
    return codes.numpy(), labels.numpy()


def test_columns_drawn_anew_agree_as_often_as_their_potential_says():
    generator = torch.Generator().manual_seed(0)
    values = np.array([[1.5, 0.0], [0.0, 1.5]], np.float32)
    codes = torch.randint(0, 2, (20_000, 2), generator=generator).int()
    logits = torch.zeros(20_000, 4)
    found = draw_anew((2, 2), [Potential((0, 1), values)], codes, logits, None, generator)
    agree = (found[:, 0] == found[:, 1]).double().mean()
    # Given one of two codes, the other is the same with this chance, whichever it is.
    assert agree == pytest.approx(1 / (1 + math.exp(-1.5)), abs=0.015)
    assert found[:, 0].double().mean() == pytest.approx(0.5, abs=0.02)


def test_potentials_bring_a_table_back_and_leave_columns_of_each_class():
    spec, theta = decoder()
    # Its columns are those of the decoder: .51, .49 and .41, .27, .32.
    table = np.array([[330.0, 150, 30], [80, 120, 290]])
    columns = [table.sum(axis=1), table.sum(axis=0)]
    known = [Measurement((0, 1), table, 1.0)]
    potentials = learn_potentials(spec, theta, SHARES, columns, known, seed=0)
    assert sorted(one.clique for one in potentials) == [(0,), (0, 1), (1,)]
    plain, kinds = drawn(spec, theta, ())
    codes, labels = drawn(spec, theta, potentials)

    def off(own):
        return np.abs(count(Domain((2, 3)), own, (0, 1)) / len(own) - table / table.sum()).sum()

    assert off(plain) > 0.4 and off(codes) < 0.06
    for label in (0, 1):
        for column in (0, 1):
            before, after = (
                np.bincount(own[which == label, column], minlength=3) / (which == label).sum()
                for own, which in ((plain, kinds), (codes, labels))
            )
            np.testing.assert_allclose(after, before, atol=0.05)


def test_tables_that_noise_explains_change_nothing():
    spec, theta = decoder()
    codes, _ = drawn(spec, theta, (), 5_000)
    table = count(Domain((2, 3)), codes, (0, 1))
    noisy = table + np.random.default_rng(0).normal(0, 60, table.shape)
    columns = [table.sum(axis=1), table.sum(axis=0)]
    known = [Measurement((0, 1), noisy, 60.0)]
    assert learn_potentials(spec, theta, SHARES, columns, known, seed=0) == ()


ROLES = Schema(
    columns=[
        Categorical(name="role", values=["husband", "wife", "child", "guest"]),
        Categorical(name="mark", values=["H", "W", "C", "G"]),
        Integer(name="years", lower=0, upper=9),
        Categorical(name="paid", values=["no", "yes"]),
    ],
    target="paid",
)


def roles(rows, seed):
    """Rows whose mark follows from the role, and whose class hangs on it."""
    rng = np.random.default_rng(seed)
    role = rng.integers(0, 4, rows)
    paid = rng.random(rows) < np.array([0.1, 0.3, 0.6, 0.9])[role]
    columns = {
        "role": np.array(["husband", "wife", "child", "guest"])[role],
        "mark": np.array(list("HWCG"))[role],
        "years": rng.integers(0, 10, rows),
        "paid": np.where(paid, "yes", "no"),
    }
    return pd.DataFrame(columns)


@pytest.fixture(scope="module")
def fitted():
    tables = {"a": roles(1_500, 0), "b": roles(1_500, 1)}
    synth = FedVAE(ROLES, rounds=2, rate=1.0, hidden=(8,), latent=2)
    return synth.fit(tables, Budget(epsilon=1.0, curious=0), seed=0, insecure_noise_seed=0)


def agrees(rows):
    return (rows["role"].str[0].str.upper() == rows["mark"]).mean()


def test_what_follows_from_another_column_follows_in_the_rows(fitted):
    rows = fitted.sample(2_000, seed=0)
    assert agrees(rows) == 1
    shares = rows["role"].value_counts(normalize=True)
    assert (shares - 0.25).abs().max() < 0.06
    # Without potentials, as before pairs were asked, the same decoder's hardly do.
    arrays, plain = fitted.model_state()
    bare = {name: one for name, one in arrays.items() if not name.startswith("potentials")}
    before = FedVAE.from_state(ROLES, bare, {**plain, "potentials": []})
    assert agrees(before.sample(2_000, seed=0)) < 0.6
    (said,) = fitted.remarks
    assert "12 of role with mark" in said and before.remarks == ()


def test_conditions_hold_and_a_saved_model_draws_the_same(fitted, tmp_path):
    rows = fitted.sample(500, where={"paid": "yes"}, seed=3)
    assert (rows["paid"] == "yes").all() and agrees(rows) == 1
    fitted.save(tmp_path / "model")
    pd.testing.assert_frame_equal(
        FedVAE.load(tmp_path / "model").sample(50, seed=4), fitted.sample(50, seed=4)
    )


def test_potentials_of_other_columns_are_refused(fitted):
    arrays, plain = fitted.model_state()
    ours = next(name for name in arrays if name.startswith("potentials"))
    with pytest.raises(ReleaseError, match="potentials"):
        FedVAE.from_state(ROLES, {**arrays, ours: arrays[ours][:1]}, plain)


def test_pairs_are_in_the_ledger_and_cost_their_share(fitted):
    events = fitted.ledger.events
    assert [event.label for event in events][:3] == ["histogram", "label-tables", "marginals"]
    noise = [event.terms.noise_multiplier for event in events[:3]]
    assert noise[0] / noise[2] == pytest.approx(math.sqrt(0.1 / 0.03))
    assert fitted.ledger.job.plan[2].label == PAIRS


@pytest.mark.parametrize("columns", [1, 2, 25, 26])
def test_pairs_are_asked_of_few_columns_only(columns):
    named = [Categorical(name=f"c{k}", values=["a", "b"]) for k in range(columns + 1)]
    schema = Schema(columns=named, target="c0")
    resolved = FedVAESettings().resolved(Budget(epsilon=1.0), schema)
    assert resolved.pair_share == (0.1 if 2 <= columns <= 25 else 0.0)


@pytest.mark.parametrize("settings", [{"scheme": "sep"}, {"likelihood": "gaussian"}])
def test_pairs_need_codes_of_all_records_together(settings):
    with pytest.raises(ConfigError, match="pair_share needs"):
        FedVAE(SCHEMA, pair_share=0.1, **settings).fit(owners(20), Budget(epsilon=1.0))


def test_pairs_without_a_table_are_told_before_the_budget_and_in_the_release(monkeypatch, tmp_path):
    # 4 x 4 counts of role and mark; of years with either, at least 4 more.
    monkeypatch.setattr(server, "_MOST_COUNTS", 19)
    # How well the others are learned is not the matter.
    monkeypatch.setattr(coupling, "_STEPS", 4)
    synth = FedVAE(ROLES, rounds=2, hidden=(8,), latent=2)
    said = []
    budget = Budget(epsilon=1.0, curious=0)
    tables = {"a": roles(400, 0), "b": roles(400, 1)}
    synth.fit(tables, budget, seed=0, insecure_noise_seed=0, caution=said.append)
    sentences = [one for one in said if "not asked" in one]
    assert len(sentences) == 1
    assert "of 3 pairs" in sentences[0] and "role with years, mark with years." in sentences[0]
    assert sentences[0] in synth.remarks
    synth.save(tmp_path / "model")
    assert sentences[0] in FedVAE.load(tmp_path / "model").remarks
    # The plan knows schema and settings alone.
    (told,) = (n for n in plan(FedVAE(ROLES, rounds=2), budget, 2).notes if "not asked" in n)
    assert told.startswith("Unless values are so rare") and told.endswith(sentences[0])


def test_pairs_that_all_have_tables_leave_nothing_to_tell():
    assert server.tell_left_out(ROLES, Domain((1_000, 1_000, 9, 2))) == ()
    (told,) = server.tell_left_out(ROLES, Domain((2_000, 2_000, 9, 2)))
    assert "role with mark" in told and "years" not in told
