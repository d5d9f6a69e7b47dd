"""What a job releases, what it costs, and which budgets it is refused under."""

from __future__ import annotations

import math

import dp_accounting as dp
import pytest
from dp_accounting import pld, rdp

from fedsynth.errors import ConfigError, PrivacyError
from fedsynth.papers.fusion_gan.networks import Networks
from fedsynth.papers.fusion_gan.plan import plan_message
from fedsynth.papers.fusion_gan.settings import FusionGANSettings
from fedsynth.privacy.budget import Budget
from fedsynth.schema import Categorical, ImageSchema, Integer, Schema

SCHEMA = Schema(
    columns=[Integer(name="a", lower=0, upper=9), Categorical(name="y", values=["u", "v"])],
    target="y",
)
DIGITS = ImageSchema(shape=(28, 28), target=Categorical(name="d", values=list("0123456789")))


@pytest.mark.parametrize(("epsilon", "rate", "steps"), [(3.0, 0.1, 200), (1.0, 1.0, 40)])
def test_a_message_costs_the_budget_by_other_accountants_too(epsilon, rate, steps):
    budget = Budget(epsilon=epsilon, delta=1e-5, trust="local")
    settings = FusionGANSettings(rate=rate, steps=steps).resolved(budget, SCHEMA)
    plan = plan_message(settings, budget)
    assert plan.count == steps
    assert (plan.terms.unit, plan.terms.trust) == ("record", "local")
    noise = dp.GaussianDpEvent(plan.terms.noise_multiplier)
    event = dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(rate, noise), steps)
    tight = pld.PLDAccountant().compose(event).get_epsilon(1e-5)
    assert 0.98 * epsilon <= tight <= epsilon * (1 + 1e-4)
    assert rdp.RdpAccountant().compose(event).get_epsilon(1e-5) >= tight - 1e-6


def test_as_published_nothing_is_added_and_epsilon_is_infinite():
    budget = Budget(epsilon=math.inf)
    plan = plan_message(FusionGANSettings().resolved(budget, SCHEMA), budget)
    assert (plan.count, plan.terms.noise_multiplier, plan.terms.unit) == (1, 0.0, "client")


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        (Budget(epsilon=1.0, trust="central"), "trust: local"),
        (Budget(epsilon=1.0, trust="distributed"), "a message of their own"),
        (Budget(epsilon=1.0, trust="local", unit="client", units=9), "unit: record"),
    ],
)
def test_budgets_that_a_lone_message_cannot_keep_are_refused(budget, words):
    with pytest.raises(PrivacyError, match=words):
        FusionGANSettings().resolved(budget, SCHEMA)


@pytest.mark.parametrize(
    ("given", "schema"),
    [
        ({"architecture": "conv"}, SCHEMA),
        ({"architecture": "conv"}, ImageSchema(shape=(8, 8))),
        ({"hidden": (3, 4), "architecture": "conv"}, DIGITS),
        ({"conditional": True}, Schema(columns=[Integer(name="a", lower=0, upper=9)])),
    ],
)
def test_settings_that_contradict_the_schema_are_refused(given, schema):
    with pytest.raises(ConfigError, match="fusion-gan"):
        FusionGANSettings(**given).resolved(Budget(epsilon=math.inf), schema)


@pytest.mark.parametrize("schema", [SCHEMA, DIGITS, ImageSchema(shape=(8, 8))])
@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_a_message_is_generator_classifier_and_counts(schema, epsilon):
    budget = Budget(epsilon=epsilon, trust="local")
    networks = Networks.of(FusionGANSettings().resolved(budget, schema), schema)
    parts = networks.generator.dim + networks.classifier_dim + max(1, schema.classes)
    assert networks.dim == parts
    assert Networks.from_dict(networks.to_dict()) == networks


def test_the_size_of_the_published_message_is_that_of_its_layers():
    networks = Networks.of(FusionGANSettings().resolved(Budget(epsilon=math.inf), DIGITS), DIGITS)
    generator = 3136 * 101 + 32 * (64 * 16 + 1) + 1 * (32 * 16 + 1)
    classifier = 32 * 10 + 64 * (32 * 9 + 1) + 64 * (64 * 9 + 1) + 10 * (64 * 16 + 1)
    assert networks.dim == generator + classifier + 10
