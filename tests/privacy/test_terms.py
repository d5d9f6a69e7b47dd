"""Terms and budgets: what they refuse, what they derive, and that they survive JSON exactly."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsynth.errors import ConfigError, PrivacyError
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.sampling import Everyone, FixedSize, Poisson, Sampling
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.spelling import read_terms, spell

POSITIVE = st.floats(1e-6, 1e6)
SAMPLINGS = st.one_of(
    st.just(Everyone()),
    st.builds(Poisson, st.floats(1e-9, 1)),
    st.integers(1, 10**6).flatmap(lambda n: st.builds(FixedSize, st.integers(1, n), st.just(n))),
)


def terms(**changes) -> Terms:
    return Terms(
        **{"unit": "client", "trust": "central", "clip": 1.0, "noise_multiplier": 1.0, **changes}
    )


@given(
    unit=st.sampled_from(["record", "client"]),
    trust=st.sampled_from(["central", "distributed", "local"]),
    clip=POSITIVE,
    multiplier=st.floats(0, 1e6),
    sampling=SAMPLINGS,
    survivors=st.integers(1, 1000),
)
def test_terms_come_back_from_json_exactly(
    unit: str, trust: str, clip: float, multiplier: float, sampling: Sampling, survivors: int
):
    if unit == "record" and isinstance(sampling, FixedSize):
        sampling = Everyone()
    made = terms(
        unit=unit,
        trust=trust,
        clip=clip,
        noise_multiplier=multiplier,
        sampling=sampling,
        survivors=survivors,
    )
    assert read_terms(json.loads(json.dumps(spell(made)))) == made


@pytest.mark.parametrize(
    "damage",
    [
        lambda d: d.pop("clip"),
        lambda d: d.pop("norm"),
        lambda d: d.pop("survivors"),
        lambda d: d.update(clip="1"),
        lambda d: d.update(clip=-1.0),
        lambda d: d.update(extra=1),
        lambda d: d.update(sampling={"kind": "poisson", "rate": 2.0}),
        lambda d: d.update(sampling={"kind": "coin"}),
        lambda d: d.update(sampling={"kind": ["everyone"]}),
        lambda d: d.update(sampling=None),
        lambda d: d.update(sampling={"kind": "poisson"}),
    ],
)
def test_a_dict_that_is_not_exactly_terms_is_refused(damage):
    plain = spell(terms())
    damage(plain)
    with pytest.raises(PrivacyError, match="terms"):
        read_terms(plain)


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_a_clip_that_bounds_nothing_is_refused(value: float):
    with pytest.raises(ConfigError, match="clip"):
        terms(clip=value)


@pytest.mark.parametrize("value", [-0.1, math.nan, math.inf])
def test_noise_that_cannot_be_drawn_is_refused(value: float):
    with pytest.raises(ConfigError, match="noise_multiplier"):
        terms(noise_multiplier=value)


@pytest.mark.parametrize("field", ["unit", "trust", "norm", "mechanism"])
def test_a_word_that_is_not_known_is_refused_by_name(field: str):
    with pytest.raises(ConfigError, match=field):
        terms(**{field: "other"})


@pytest.mark.parametrize("rate", [0.0, -0.5, 1.5, math.nan])
def test_a_rate_that_is_no_probability_is_refused(rate: float):
    with pytest.raises(ConfigError, match="rate"):
        Poisson(rate)


@pytest.mark.parametrize(("size", "population"), [(0, 5), (6, 5), (1, 0)])
def test_a_sample_larger_than_its_population_is_refused(size: int, population: int):
    with pytest.raises(ConfigError, match="fixed-size"):
        FixedSize(size, population)


@pytest.mark.parametrize(
    "changes",
    [
        {"mechanism": "laplace"},
        {"norm": "l1"},
        {"unit": "record", "sampling": FixedSize(1, 2)},
    ],
)
def test_combinations_that_protect_nobody_are_refused(changes: dict):
    with pytest.raises(PrivacyError):
        terms(**changes)


@given(clip=POSITIVE, multiplier=POSITIVE, survivors=st.integers(1, 500))
def test_the_shares_of_the_survivors_have_the_variance_of_the_whole(
    clip: float, multiplier: float, survivors: int
):
    shared = terms(trust="distributed", clip=clip, noise_multiplier=multiplier, survivors=survivors)
    assert survivors * shared.client_scale**2 == pytest.approx(shared.scale**2)
    assert terms(trust="central").client_scale == 0
    assert terms(trust="local", survivors=survivors).client_scale == terms().scale


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan])
def test_epsilon_zero_is_refused_with_advice(epsilon: float):
    with pytest.raises(ConfigError, match="epsilon must be positive"):
        Budget(epsilon=epsilon)


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-5, math.nan])
def test_a_delta_that_is_no_small_probability_is_refused(delta: float):
    with pytest.raises(ConfigError, match="delta"):
        Budget(epsilon=1, delta=delta)


@given(st.integers(1, 10**9))
def test_the_default_delta_never_lets_a_whole_unit_out(units: int):
    delta = Budget(epsilon=1, units=units).resolved_delta
    assert delta <= 1e-5
    assert delta < 1 / units
    assert delta == min(1e-5, units**-1.1)


def test_the_default_delta_without_a_count_is_a_constant_that_tells_nothing():
    assert Budget(epsilon=1).resolved_delta == 1e-5


def test_a_delta_at_or_above_one_over_the_units_is_cautioned():
    assert any("outright" in c for c in Budget(epsilon=1, delta=0.1, units=10).cautions())
    assert not Budget(epsilon=1, units=10**6, unit="client").cautions()


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        ({"epsilon": 1, "delta": 1.01e-4}, "delta 0.000101 is above 0.0001"),
        ({"epsilon": 10.1}, "epsilon 10.1 is above 10"),
        ({"epsilon": 0.1, "units": 999}, "epsilon 0.1 is little for 999 records"),
    ],
)
def test_a_budget_that_promises_or_allows_little_is_cautioned(budget, said):
    (caution,) = Budget(**budget).cautions()
    assert caution.startswith(said)
    assert Budget(**budget).cautions(1) == ()


@given(st.floats(1e-9, 1e-4), st.floats(1e-3, 10), st.integers(1, 10**9))
def test_a_common_budget_is_not_cautioned(delta: float, epsilon: float, units: int):
    assert Budget(epsilon=epsilon, delta=delta).cautions() == ()
    if epsilon * units >= 100 and delta < 1 / units:
        assert Budget(epsilon=epsilon, delta=delta, units=units).cautions() == ()


def test_few_clients_and_no_privacy_are_cautioned_in_words():
    assert any("among few" in c for c in Budget(epsilon=1, unit="client", units=10).cautions())
    endless = Budget(epsilon=math.inf)
    assert not endless.private
    assert any("No privacy" in c for c in endless.cautions())


@pytest.mark.parametrize("changes", [{"units": 0}, {"unit": "row"}, {"trust": "nobody"}])
def test_a_budget_with_a_wrong_word_or_count_is_refused(changes: dict):
    with pytest.raises(ConfigError):
        Budget(epsilon=1, **changes)
