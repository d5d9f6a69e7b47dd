"""A synthesizer as a person sees it, before a fit, after one, and loaded."""

from __future__ import annotations

import pytest

import fedsynth as fs
from tests.methods import small


def told(synth: object) -> str:
    return " ".join(repr(synth).split())


def test_a_synthesizer_that_was_not_fitted_says_what_to_do():
    synth = fs.AIM(small.SCHEMA, bins=16)
    assert "AIM for the schema, not fitted" in told(synth) and "settings bins=16" in told(synth)
    assert "plan (what a fit asks and costs), fit" in told(synth)
    assert "sample" not in told(synth) and "bins=16" in synth._repr_html_()
    assert "all at their defaults" in told(fs.MST(small.SCHEMA))


def test_a_fitted_one_says_what_it_cost_and_a_loaded_one_what_its_certificate_says(tmp_path):
    synth = fs.PrivBayes(small.SCHEMA)
    budget = fs.Budget(epsilon=1.0, delta=1e-5, trust="central")
    synth.fit(small.owners(30, 40), budget, caution=lambda sentence: None)
    spent = synth.ledger.spent().epsilon
    assert f"spent epsilon {spent:.4g} of 1, delta 1e-05, for one record, central" in told(synth)
    assert f"asked {len(synth.ledger.events)} questions, of 2 clients" in told(synth)
    assert "release (rows, model and certificate), save" in told(synth)
    assert len(repr(synth.learned)) < 200, "no wall of numbers"
    certificate = synth.release(tmp_path / "r", rows=5, seed=1)
    again = fs.load(tmp_path / "r")
    assert again.certificate == certificate
    assert "loaded" in told(again) and certificate.sentence in told(again)
    assert "marginal (counts" in told(again) and "release (" not in told(again)
    again.certificate.content["void"] = again.certificate.content["sentence"] = "Void: <no>."
    assert '<p class="void">Void: &lt;no&gt;.</p>' in again._repr_html_()


def test_a_fit_that_failed_leaves_nothing_to_sample_from(monkeypatch):
    synth = fs.PrivBayes(small.SCHEMA)
    monkeypatch.setattr(synth, "learn", lambda session: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        synth.fit(small.owners(30, 40), fs.Budget(epsilon=1.0, trust="central"))
    assert "! The last fit failed, so there is nothing to sample from." in told(synth)


def test_images_are_counted_and_not_shown():
    assert repr(fs.load_builtin("digits").take([0, 1])) == "<2 images of 8 x 8, with labels>"
