"""A plan and a budget as a person sees them."""

from __future__ import annotations

import math

import fedsynth as fs
from tests.methods.small import SCHEMA


def test_a_plan_shows_its_questions_their_noise_and_who_learns_how_much():
    plan = fs.MST(SCHEMA).plan(fs.Budget(epsilon=1.0, delta=1e-5, curious=1), 4)
    shown, html = " ".join(repr(plan).split()), plan._repr_html_()
    assert (
        f"Plan of {plan.total} questions to 4 clients: epsilon {plan.epsilon():.4g} of 1" in shown
    )
    for one in plan.releases:
        terms = f"gaussian {one.terms.noise_multiplier:.4g} {one.terms.clip:.4g} everybody"
        assert f"{one.label} {one.count} {terms}" in shown and one.label in html
    for adversary in plan.adversaries():
        assert f"{adversary.epsilon:.4g}" in shown and adversary.who in html


def test_a_budget_is_shown_as_it_is_written_with_what_is_in_force():
    budget = fs.Budget(epsilon=1.0, units=1000)
    assert math.isclose(budget.resolved_delta, 1e-5)
    written = "Budget(epsilon=1.0, delta=1e-05, unit='record', trust='distributed', units=1000)"
    assert repr(budget) == written and repr(eval(written, {"Budget": fs.Budget})) == written
    assert "secure aggregation is assumed" in budget._repr_html_()


def test_a_budget_without_privacy_says_so():
    html = fs.Budget(epsilon=math.inf)._repr_html_()
    assert '<p class="caution">No privacy: epsilon is infinite.</p>' in html
