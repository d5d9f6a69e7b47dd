import math

import pytest

from fedsynth.encoding.histogram import HistogramLayout
from fedsynth.errors import ConfigError, PrivacyError
from fedsynth.methods.vae.server import training_task
from fedsynth.methods.vae.settings import FedVAESettings
from fedsynth.methods.vae.synthesizer import FedVAE
from fedsynth.methods.vae.tasks.gradient import GRADIENT
from fedsynth.methods.vae.tasks.local_training import TRAINING
from fedsynth.privacy.accounting import charged, spent
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.calibration import optimal_gaussian_sigma
from fedsynth.privacy.sampling import Everyone, FixedSize, Poisson
from fedsynth.queries.rounds import expected_units as expected_of
from fedsynth.schema import Categorical, Integer, Schema
from tests.methods.small import SCHEMA


def plan_of(budget, clients=10, survivors=1.0, **settings):
    return FedVAE(SCHEMA, **settings).plan(budget, clients, survivors)


def training(plan):
    return plan.releases[-1].terms


def cost(plan, budget):
    counts = {}
    for planned in plan.releases:
        counts[planned.terms] = counts.get(planned.terms, 0) + planned.count
    return spent(charged(counts, plan.participations), budget.resolved_delta).epsilon


@pytest.mark.parametrize(
    ("unit", "trust", "epsilon"),
    [
        ("record", "central", 0.3),
        ("record", "distributed", 8.0),
        ("record", "local", 0.3),
        ("client", "central", 8.0),
        ("client", "distributed", 0.3),
        ("client", "local", 8.0),
        ("client", "local", 0.3),
    ],
)
def test_the_whole_job_costs_no_more_than_the_budget_and_hardly_less(unit, trust, epsilon):
    budget = Budget(epsilon=epsilon, unit=unit, trust=trust, units=1000)
    plan = plan_of(budget, clients=1000, rounds=50)
    assert 0.99 * epsilon <= cost(plan, budget) <= epsilon
    assert plan.epsilon() == pytest.approx(cost(plan, budget))


def test_fixed_size_rounds_are_paid_for_as_well():
    budget = Budget(epsilon=4.0, unit="client", trust="central", units=1000)
    plan = plan_of(budget, clients=1000, rounds=50, sampling="fixed", rate=0.05)
    assert training(plan).sampling == FixedSize(50, 1000)
    assert 0.98 * 4 <= cost(plan, budget) <= 4


@pytest.mark.parametrize(
    ("sampling", "clients", "rate", "expected"),
    [("fixed", 3, 0.1, 1), ("fixed", 1000, 0.0517, 52), ("poisson", 3, 0.1, 0.3), (None, 7, 1, 7)],
)
def test_a_rounds_sum_is_divided_by_the_public_number_of_clients_in_it(
    sampling, clients, rate, expected
):
    budget = Budget(epsilon=math.inf, unit="client", trust="central", units=clients)
    plan = plan_of(budget, clients, rounds=2, sampling=sampling or "poisson", rate=rate)
    assert expected_of(training(plan).sampling, clients) == pytest.approx(expected, rel=1e-12)


def test_records_are_divided_by_their_estimated_number_times_the_rate():
    budget = Budget(epsilon=math.inf)
    assert expected_of(training(plan_of(budget, rate=0.25)).sampling, 1234.5) == 0.25 * 1234.5
    assert expected_of(training(plan_of(budget, rate=1.0)).sampling, 1234.5) == 1234.5


def test_clips_of_counts_are_the_norms_of_their_rows_and_no_wider():
    plan = plan_of(Budget(epsilon=math.inf))
    columns = len(SCHEMA.modelled)
    # A record adds a one to the table of every other column by the label.
    assert plan.terms("label-tables").clip == pytest.approx(math.sqrt(columns - 1), rel=1e-4)
    assert plan.terms("label-tables").clip >= math.sqrt(columns - 1)
    ones = HistogramLayout.of(SCHEMA).per_record
    assert plan.terms("histogram").clip == pytest.approx(math.sqrt(ones), rel=1e-4)
    assert plan.terms("histogram").clip >= math.sqrt(ones)


def test_two_histograms_with_their_shares_cost_what_one_release_with_the_sum_would():
    budget = Budget(epsilon=1.0)
    plan = plan_of(budget, rounds=10, rate=1.0, histogram_share=0.3, label_table_share=0.5)
    alone = optimal_gaussian_sigma(1.0, budget.resolved_delta)
    together = (
        plan.terms("histogram").noise_multiplier ** -2
        + plan.terms("label-tables").noise_multiplier ** -2
    )
    assert together == pytest.approx(0.8 / alone**2)


def test_a_server_that_knows_whom_it_drew_is_charged_for_every_round_a_client_may_join():
    budget = Budget(epsilon=5.0, unit="client", trust="local", units=100)
    plan = plan_of(budget, clients=100, rounds=400, rate=0.1)
    # 40 rounds are expected; a binomial stays below the limit but for about 1e-9.
    assert 40 < plan.participations < 100
    assert (
        plan_of(Budget(epsilon=5.0, unit="client", trust="central", units=100)).participations
        is None
    )


def test_shares_of_noise_are_sized_for_those_who_are_sure_to_answer():
    budget = Budget(epsilon=1.0)
    assert training(plan_of(budget, clients=10, survivors=0.8)).survivors == 8
    assert training(plan_of(budget, clients=10)).survivors == 10
    client = Budget(epsilon=1.0, unit="client", units=1000)
    drawn = training(plan_of(client, clients=1000, rate=0.1)).survivors
    assert drawn == math.floor(100 - 6 * math.sqrt(90))


def test_the_unit_decides_the_task_and_the_sampling():
    record = Budget(epsilon=1.0)
    assert training_task(record) is GRADIENT
    assert training(plan_of(record, rate=0.2)).sampling == Poisson(0.2)
    client = Budget(epsilon=1.0, unit="client", units=10)
    assert training_task(client) is TRAINING
    assert training(plan_of(client, rate=1.0)).sampling == Everyone()


def test_a_noise_multiplier_of_ones_own_is_kept_and_accounted_for():
    budget = Budget(epsilon=math.inf, unit="client", trust="central", units=20)
    plan = plan_of(budget, clients=20, noise_multiplier=0.5, rounds=10)
    assert training(plan).noise_multiplier == 0.5
    assert math.isfinite(cost(plan, budget))


@pytest.mark.parametrize("sampling", ["poisson", "fixed"])
def test_counts_beside_a_training_of_given_noise_have_a_noise_of_their_own(sampling):
    """Unsampled, a histogram of the training's noise would cost 4.4 beside its .68."""
    budget = Budget(epsilon=math.inf, unit="client", trust="central", units=30_000)
    noise = {"noise_multiplier": 1.0, "rounds": 1500, "rate": 100 / 30_000, "sampling": sampling}
    plan = plan_of(budget, clients=30_000, scheme="uni", label_table_share=0.03, **noise)
    delta = budget.resolved_delta
    alone = spent({training(plan): 1500}, delta).epsilon
    own = optimal_gaussian_sigma(alone, delta) * (2 if sampling == "fixed" else 1)
    assert plan.terms("histogram").noise_multiplier == pytest.approx(own / math.sqrt(0.03))
    assert alone < plan.epsilon() < 1.1 * alone


def test_without_a_budget_and_a_multiplier_there_is_no_noise():
    plan = plan_of(Budget(epsilon=math.inf))
    assert training(plan).noise_multiplier == plan.terms("histogram").noise_multiplier == 0


def test_a_plan_that_cannot_fit_is_refused_before_anything_is_asked():
    with pytest.raises(PrivacyError):
        plan_of(Budget(epsilon=0.5), noise_multiplier=0.3)


NUMERIC = Schema(columns=[Integer(name="a", lower=0, upper=9)])


@pytest.mark.parametrize(
    ("schema", "budget", "settings", "said"),
    [
        (NUMERIC, Budget(epsilon=1), {"scheme": "sep"}, "categorical target"),
        (SCHEMA, Budget(epsilon=1), {"architecture": "conv"}, "for images"),
        (SCHEMA, Budget(epsilon=1), {"sampling": "fixed"}, "Poisson-sampled"),
        (SCHEMA, Budget(epsilon=1, unit="client"), {"encoder": "frozen"}, "private or shared"),
        (SCHEMA, Budget(epsilon=1), {"scheme": "sep", "label_table_share": 0.1}, "scheme uni"),
        (SCHEMA, Budget(epsilon=1), {"scheme": "sep", "classifier_weight": 1}, "scheme uni"),
    ],
)
def test_contradicting_settings_are_refused(schema, budget, settings, said):
    with pytest.raises(ConfigError, match=said):
        FedVAESettings(**settings).resolved(budget, schema)


@pytest.mark.parametrize(
    "wrong",
    [{"rouns": 3}, {"rate": 0}, {"rate": 1.5}, {"clip": -1}, {"latent": 0}, {"scheme": "both"}],
)
def test_a_setting_out_of_range_or_misspelt_is_named(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        FedVAESettings(**wrong)


def test_a_table_without_classes_gets_one_vae_for_all():
    resolved = FedVAESettings().resolved(Budget(epsilon=1), NUMERIC)
    assert resolved.scheme == "uni"
    assert not resolved.label_table_share
    resolved = FedVAESettings().resolved(Budget(epsilon=1, unit="client"), NUMERIC)
    assert resolved.scheme == "uni"


def test_a_single_class_is_a_class():
    schema = Schema(
        columns=[Integer(name="a", lower=0, upper=9), Categorical(name="t", values=["only"])],
        target="t",
    )
    assert FedVAESettings().resolved(Budget(epsilon=1), schema).scheme == "uni"
