"""The server half of a fit: what it knows, divides by and pays for, how it ends and resumes."""

from __future__ import annotations

import functools
import gc
import json
import math
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import torch

from fedsynth.federation.request import PLAN, Released
from fedsynth.federation.server.channel import Channel
from fedsynth.holding import CHECKPOINT
from fedsynth.methods.gan import server
from fedsynth.methods.gan.matching import Matcher, mean_gradients
from fedsynth.methods.gan.synthesizer import FedCTGAN, FedGAN
from fedsynth.methods.gan.tasks.gradient import GradientTask
from fedsynth.methods.training.generating import GeneratorTrainer
from fedsynth.methods.training.learner import Learner
from fedsynth.methods.training.rows import Row
from fedsynth.models import gan
from fedsynth.models.adam import Adam
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.rows.factored import FactoredRows
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.queries.session import Session
from fedsynth.schema import Categorical
from tests.methods.small import SCHEMA, owners, table

FREE = Budget(epsilon=math.inf, trust="central")
FREE_CLIENTS = Budget(epsilon=math.inf, trust="central", unit="client")
QUICK = {
    "rounds": 4,
    "rate": 1.0,
    "hidden": (8,),
    "discriminator_hidden": (8,),
    "latent": 2,
    "generator_steps": 2,
    "generator_batch": 20,
    "look_every": 2,
}
LOCAL = {"local_steps": 2, "batch_size": 8}
KINDS = {
    "record": (
        FedGAN,
        FREE,
        {"discriminator": "mlp", "auxiliary_loss": 1.0, "penalty": 1.0, "mode_seeking_loss": 0.5},
    ),
    "quadratic": (FedGAN, FREE, {"discriminator": "quadratic", "auxiliary_loss": 1.0}),
    "asks": (FedCTGAN, FREE, {}),
    "client": (FedGAN, FREE_CLIENTS, LOCAL),
    "sep": (FedGAN, FREE_CLIENTS, {"scheme": "sep", **LOCAL}),
}


def quick(method=FedGAN, **settings):
    return method(SCHEMA, **{**QUICK, **settings})


@functools.cache
def uninterrupted(kind):
    """A fit under known coins."""
    method, budget, settings = KINDS[kind]
    return quick(method, **settings).fit(owners(20, 15), budget, insecure_noise_seed=4)


@pytest.fixture
def known_coins(monkeypatch):
    """Coins that fall the same for every client in every round, whoever else there is."""
    monkeypatch.setattr(NoiseSource, "generator", lambda self: np.random.default_rng(7))
    monkeypatch.setattr(NoiseSource, "seed", lambda self: 3)


def announced(monkeypatch):
    """Everything that the server tells all clients, as it goes, but a plan, which knows no row."""
    told, genuine = [], Channel.announce

    def announce(self, key, value):
        if key != PLAN:
            told.append((key, json.dumps(value, sort_keys=True)))
        return genuine(self, key, value)

    monkeypatch.setattr(Channel, "announce", announce)
    return told


# Two federations that differ in one row, alone at its client, of a colour nobody else has.
WITHOUT = {"a": table(30).replace({"colour": {"blue": "green"}})}
WITH_IT = {**WITHOUT, "b": table(1, seed=5).assign(colour="blue")}


@pytest.mark.parametrize("kind", ["record", "quadratic", "asks"])
def test_a_rare_category_leaves_a_trace_in_its_clipped_gradient_alone(
    monkeypatch, known_coins, kind
):
    method, _, settings = KINDS[kind]
    genuine, first = server.ask_preliminaries, []

    def asked(session, schema, bins):
        # As if noise had hidden the row: the same released values for both federations.
        if not first:
            first.append(genuine(session, schema, bins))
        session.channel.announce("encoding", first[0].encoding.to_dict())
        return first[0]

    monkeypatch.setattr(server, "ask_preliminaries", asked)
    contribute, silenced = GradientTask.contribute, []

    def without_the_row(self, clients, samples, request):
        for index, rows in contribute(self, clients, samples, request):
            if silenced and clients[index].name == "b":
                layers = [(left * 0, right) for left, right in rows.layers]
                rows = FactoredRows(layers, width=rows.dim)
            yield index, rows

    monkeypatch.setattr(GradientTask, "contribute", without_the_row)
    told = announced(monkeypatch)

    def fit(tables):
        del told[:]
        synth = quick(method, rounds=3, **settings).fit(tables, FREE, insecure_noise_seed=1)
        encoding = [entry for entry in told if entry[0] == "encoding"]
        return synth, sorted({*encoding, *(entry for entry in told if entry[0] != "encoding")})

    old, told_before = fit(WITHOUT)
    new, told_after = fit(WITH_IT)
    silenced.append(True)
    hidden, told_hidden = fit(WITH_IT)
    # All that was announced, and all that the sampler knows beside the weights, is the same.
    assert told_before == told_after == told_hidden
    (arrays, meta), (others, told_meta) = old.model_state(), new.model_state()
    assert meta == told_meta
    assert sorted(arrays) == sorted(others)
    for name in set(arrays) - {"generators"}:
        np.testing.assert_array_equal(arrays[name], others[name])
    for one, other in ((old, new), (old, hidden)):
        mine, theirs = one.learned.conditions, other.learned.conditions
        np.testing.assert_array_equal(mine.classes, theirs.classes)
        if mine.cells is not None:
            np.testing.assert_array_equal(mine.cells, theirs.cells)
    # The weights differ by the row's gradients, and by nothing else of it.
    assert not np.array_equal(arrays["generators"], others["generators"])
    np.testing.assert_array_equal(arrays["generators"], hidden.model_state()[0]["generators"])


def test_a_category_that_only_one_row_has_is_no_label_of_its_own_beyond_the_schema():
    # Shapes are the schema's and the noisy histogram's: with noise, never a row's.
    budget = Budget(epsilon=0.01, trust="central")
    result = [
        quick(FedCTGAN, rounds=1).fit(tables, budget, insecure_noise_seed=2).learned.game
        for tables in (WITHOUT, WITH_IT)
    ]
    assert result[0] == result[1]


@pytest.mark.parametrize("trust", ["central", "distributed", "local"])
def test_a_round_whose_sample_is_empty_is_charged_and_noised(monkeypatch, trust):
    released, genuine = [], Channel.sum

    def watched(self, task, terms, dim, **rest):
        result = genuine(self, task, terms, dim, **rest)
        if task == "gan-gradient":
            released.append((result.value, terms))
        return result

    monkeypatch.setattr(Channel, "sum", watched)
    budget = Budget(epsilon=math.inf, trust=trust)
    synth = quick(rate=1e-9, noise_multiplier=3.0, clip=2.0).fit(owners(20, 10), budget)
    labels = [event.label for event in synth.ledger.events]
    assert labels[-4:] == ["gan-gradient"] * 4 and len(released) == 4
    values = np.concatenate([value for value, _ in released])
    scale = released[0][1].summed_scale(2)
    assert scale >= 6.0
    # Nothing but noise: six deviations of its spread.
    assert abs(values.std() / scale - 1) < 6 / np.sqrt(2 * len(values))
    assert np.isfinite(synth.learned.generators).all()


@pytest.mark.parametrize(
    ("settings", "clients", "expected", "answered"),
    [
        ({"rate": 1.0}, 4, 4.0, 0),
        ({"rate": 1.0}, 4, 4.0, 3),
        ({"rate": 0.4}, 4, 1.6, 1),
        ({"rate": 0.4}, 4, 1.6, 3),
        ({"rate": 0.1, "sampling": "fixed"}, 3, 1.0, 0),
        ({"rate": 0.5, "sampling": "fixed"}, 4, 2.0, 1),
    ],
)
def test_a_discriminator_moves_by_the_sum_over_the_expected_number_whoever_answered(
    monkeypatch, settings, clients, expected, answered
):
    # Dividing by those who answered would need the number that coin flips keep secret.
    genuine, weights = Channel.sum, []

    def ones(self, task, terms, dim, **rest):
        if task != "gan-training":
            return genuine(self, task, terms, dim, **rest)
        weights.append(rest["arrays"]["weights"].copy())
        return Released(np.ones(dim), clients, answered)

    monkeypatch.setattr(Channel, "sum", ones)
    budget = Budget(epsilon=math.inf, unit="client", trust="central", units=clients)
    quick(rounds=3, **LOCAL, **settings).fit(owners(*[5] * clients), budget)
    for before, after in pairwise(weights):
        np.testing.assert_allclose(after - before, 1 / expected, rtol=1e-4)


def test_a_step_follows_the_released_mean_of_real_rows_and_the_mean_of_generated_ones(monkeypatch):
    weights, fakes, values = [], [], []
    genuine, rows, rng = Channel.sum, GeneratorTrainer.rows, np.random.default_rng(0)

    def drawn(self, task, terms, dim, **rest):
        if task != "gan-gradient":
            return genuine(self, task, terms, dim, **rest)
        weights.append(torch.from_numpy(rest["arrays"]["weights"].copy()))
        values.append(rng.standard_normal(dim))
        return Released(values[-1], 2, 2)

    monkeypatch.setattr(Channel, "sum", drawn)
    monkeypatch.setattr(
        GeneratorTrainer, "rows", lambda self, n: fakes.append(rows(self, n)) or fakes[-1]
    )
    synth = quick(
        rounds=2, rate=0.5, discriminator="mlp", smoothing=0.0, clip=1e3, penalty=2.0,
        schedule="constant", discriminator_learning_rate=0.01, loss="wasserstein",
    ).fit(owners(40, 40), FREE)  # fmt: skip
    game, known = synth.learned.game, synth.learned.known
    own = gan.leaves(weights[0], game.discriminator.layers)
    cells, labels = fakes[0]

    def verdict(at):
        logits = game.discriminator.logits(own, at)
        return logits[:, 0] + logits.gather(1, 1 + labels[:, None])[:, 0]

    at = cells.clone().requires_grad_()
    (slope,) = torch.autograd.grad(verdict(at).sum(), at, create_graph=True)
    loss = verdict(cells).mean() + 2.0 * (slope.norm(dim=1) - 1).clamp(min=0).square().mean()
    loss.backward()
    grads = [torch.zeros_like(w) if w.grad is None else w.grad for w in own]
    gradient = gan.flatten(grads) + torch.from_numpy(values[0] / (0.5 * known.records)).float()
    reference = weights[0].clone().requires_grad_()
    Adam([reference], 0.01, betas=(0.5, 0.999)).step([gradient])
    # Adam's first step is a sign: where a gradient nearly vanishes, rounding decides.
    clear = gradient.abs() > 1e-5
    assert clear.float().mean() > 0.9
    np.testing.assert_allclose(
        weights[1][clear].numpy(), reference.detach()[clear].numpy(), atol=1e-5
    )


@pytest.mark.parametrize("auxiliary_loss", [0.0, 1.0])
def test_real_and_generated_rows_are_clipped_alike_before_a_quadratic_discriminator(
    monkeypatch, auxiliary_loss
):
    # A generator brings its mean gradient to the released one: of the same rows they must agree.
    rows, compared = [], []
    of, remember = Row.of, Matcher.remember

    def watched(self, released):
        own = mean_gradients(self.weights[None], rows[-1], self.clip)[0]
        compared.append((own, released.view_as(own)))
        remember(self, released)

    def noted(self, seen, weights):
        rows.append(seen.blurred)
        return of(self, seen, weights)

    monkeypatch.setattr(Row, "of", noted)
    monkeypatch.setattr(Matcher, "remember", watched)
    quick(discriminator="quadratic", auxiliary_loss=auxiliary_loss, clip=0.3).fit(owners(40), FREE)
    assert len(compared) == 4
    for own, released in compared:
        assert released.abs().max() > 1e-3
        assert torch.allclose(own, released, atol=1e-5)


def interrupted(monkeypatch, folder, kind, saves):
    """A job that crashes right after so many checkpoints of its training."""
    method, budget, settings = KINDS[kind]
    genuine, done = Session.checkpoint, []

    def crashing(self, arrays, meta):
        genuine(self, arrays, meta)
        done.append(meta["round"])
        if len(done) == saves:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Session, "checkpoint", crashing)
        with pytest.raises(KeyboardInterrupt):
            quick(method, **settings).fit(
                owners(20, 15), budget, folder=folder, checkpoint_every=2, insecure_noise_seed=4
            )
    gc.collect()
    return done[-1]


@pytest.mark.parametrize("kind", KINDS)
def test_a_resumed_job_ends_with_the_generator_of_an_uninterrupted_one(
    monkeypatch, tmp_path, known_coins, kind
):
    method, budget, settings = KINDS[kind]
    expected = uninterrupted(kind)
    # Before the first round one of those that begin alike, and one that has a centre.
    for saves in (1, 2) if kind in ("record", "quadratic") else (2,):
        folder = tmp_path / str(saves)
        at = interrupted(monkeypatch, folder, kind, saves)
        assert at == 2 * (saves - 1)
        told = announced(monkeypatch)
        resumed = quick(method, **settings).fit(
            owners(20, 15), budget, folder=folder, resume=True, insecure_noise_seed=4
        )
        np.testing.assert_array_equal(resumed.learned.generators, expected.learned.generators)
        assert resumed.remarks == expected.remarks
        # Nothing is asked again, and clients hear all that tasks read.
        assert len(resumed.ledger.events) == len(expected.ledger.events)
        heard = ["schema", "encoding", "game"] + ["conditions"] * (budget.unit == "client")
        assert [key for key, _ in told] == heard + ["centre"] * (kind == "quadratic")
        where = {"outcome": "ill"}
        pd.testing.assert_frame_equal(
            resumed.sample(20, where=where, seed=1), expected.sample(20, where=where, seed=1)
        )


def test_a_checkpoint_holds_released_values_and_what_was_made_of_them_alone(monkeypatch, tmp_path):
    kept = []
    genuine = Session.checkpoint

    def watched(self, arrays, meta):
        kept.append((set(arrays), set(meta)))
        genuine(self, arrays, meta)

    monkeypatch.setattr(Session, "checkpoint", watched)
    quick(auxiliary_loss=1.0, discriminator="mlp").fit(owners(20), FREE, folder=tmp_path)
    first, last = kept[0], kept[-1]
    networks = ("discriminator0", "generator0", "classifier")
    public = {"source", "frequencies", "profiles"}
    public |= {f"watch0.{part}" for part in ("kept", "at", "looks")}
    public |= {f"{name}.{part}" for name in networks for part in ("weights", "average")}
    assert first == (public, {"round", "records", "encoding"})
    public |= {f"{name}.{part}" for name in networks for part in ("steps", "first", "second")}
    assert last == (public, {"round", "records", "encoding"})
    assert {path.name for path in (tmp_path / CHECKPOINT).iterdir()} == {
        "origin",
        "rows.json",
        "state.safetensors",
    }


def test_a_job_that_lost_rounds_is_looked_at_once_more_before_it_ends(monkeypatch, tmp_path):
    # It ends between two looks; what broke since the last one must not be released.
    budget = Budget(epsilon=2.0, trust="central")
    settings = {"rounds": 9, "look_every": 4}

    def crash(step, done, *_):
        if (step, done) == ("training", 6):
            raise KeyboardInterrupt

    options = {"folder": tmp_path, "checkpoint_every": 4}
    with pytest.raises(KeyboardInterrupt):
        quick(**settings).fit(owners(30), budget, progress=crash, **options)
    gc.collect()
    # With the file of their values gone, the rounds since the checkpoint are lost.
    (values,) = tmp_path.rglob("*.released")
    values.unlink()
    genuine = GeneratorTrainer.step

    def broken(self, *arguments):
        self.learner.move(torch.full((self.generator.dim,), float("nan")))
        return genuine(self, *arguments)

    monkeypatch.setattr(GeneratorTrainer, "step", broken)
    told = []
    resumed = quick(**settings).fit(
        owners(30), budget, resume=True, progress=lambda *step: told.append(step[:2]), **options
    )
    # Two rounds were lost, so it ended at 7 of 9.
    assert told[-1] == ("training", 7)
    assert len(Ledger.read(tmp_path / "ledger.jsonl").events) == 2 + 9
    assert np.isfinite(resumed.learned.generators).all()
    assert any("diverged by round 7" in one for one in resumed.remarks)
    assert resumed.ledger.spent().epsilon <= 2.0


def test_patience_ends_the_job_by_released_tables_and_saves_budget(monkeypatch):
    told = []
    synth = quick(
        rounds=40, look_every=1, patience=2, learning_rate=1e-9, generator_steps=1, average=0.0
    )
    synth.fit(owners(40), Budget(epsilon=2.0), progress=lambda *step: told.append(step[:2]))
    # Looks use the same random numbers, so a generator that stands still stays as near.
    rounds = told[-1][1]
    assert rounds <= 40 and synth.remarks == ()
    monkeypatch.setattr(
        "fedsynth.methods.training.watch._distance",
        lambda *_, seen=[]: seen.append(1) or float(len(seen)),
    )
    del told[:]
    synth.fit(
        owners(40),
        Budget(epsilon=2.0),
        again=True,
        progress=lambda *step: told.append(step[:2]),
    )
    assert told[-1] == ("training", 3)
    assert synth.ledger.spent().epsilon < 1.5


@pytest.mark.parametrize("kind", KINDS)
def test_looking_and_saving_change_no_generator(tmp_path, known_coins, kind):
    method, budget, settings = KINDS[kind]
    often = quick(method, **{**settings, "look_every": 1}).fit(
        owners(20, 15), budget, insecure_noise_seed=4, folder=tmp_path, checkpoint_every=1
    )
    seldom = uninterrupted(kind)
    np.testing.assert_array_equal(often.learned.generators, seldom.learned.generators)


def test_a_class_that_no_row_has_is_drawn_when_it_is_asked_for():
    columns = [
        *(column for column in SCHEMA.columns if column.name != "outcome"),
        Categorical(name="outcome", values=["well", "ill", "x"]),
    ]
    schema = SCHEMA.model_copy(update={"columns": tuple(columns)})
    for budget, settings in ((FREE, {}), (FREE_CLIENTS, {"scheme": "sep", **LOCAL})):
        synth = FedGAN(schema, **{**QUICK, **settings}).fit(owners(30), budget)
        assert (synth.sample(10, where={"outcome": "x"}, seed=0)["outcome"] == "x").all()


@pytest.mark.parametrize("kind", ["record", "quadratic", "sep"])
def test_what_is_released_are_the_generators_moving_averages(monkeypatch, kind):
    genuine, seen = server.Training.run, []

    def run(self):
        seen.append(self)
        return genuine(self)

    monkeypatch.setattr(server.Training, "run", run)
    method, budget, settings = KINDS[kind]
    synth = quick(method, **settings, average=0.9).fit(owners(60, 40), budget)
    assert not synth.remarks
    learners = [trainer.learner for trainer in seen[0].trainers]
    released = torch.from_numpy(synth.model_state()[0]["generators"])
    assert torch.equal(released, torch.cat([learner.average for learner in learners]))
    assert not torch.equal(released, torch.cat([learner.flat for learner in learners]))


@pytest.mark.parametrize(("schedule", "last"), [("linear", 1 / 4), ("constant", 1.0)])
def test_both_learning_rates_follow_the_schedule(monkeypatch, schedule, last):
    rates, genuine = {}, Learner.pace

    def pace(self, rate):
        rates.setdefault(id(self), []).append(rate)
        return genuine(self, rate)

    monkeypatch.setattr(Learner, "pace", pace)
    quick(
        discriminator="mlp", schedule=schedule, learning_rate=0.3, discriminator_learning_rate=0.6
    ).fit(owners(60), FREE)
    wanted = np.linspace(1.0, last, 4)
    for result, first in zip(rates.values(), (0.6, 0.3), strict=True):
        np.testing.assert_allclose(result, first * wanted)
