"""What a record adds to FedInfer's statistic, and how sums of it are read."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.data.tables import conform
from fedsynth.federation.request import Request
from fedsynth.methods.inference.coordinates import Coordinates
from fedsynth.methods.inference.statistic import Statistic, request_settings
from fedsynth.methods.inference.tasks import MOMENTS
from fedsynth.privacy.rows.clipping import clip_and_sum
from fedsynth.privacy.terms import Terms
from tests.methods.inference.clinics import SCHEMA, owners, table
from tests.methods.small import federation, silent_channel, views
from tests.schemas import arrays, schemas

FREE = {"trust": "central", "noise_multiplier": 0.0}


def statistic(by_class=True, clip=1.0, norm="l2", schema=SCHEMA):
    return Statistic.of(schema, request_settings(clip, by_class), norm)


def pooled_joint(frame, form):
    """Sum over the rows of q q^T, q = (1, v, one-hot class), row by row."""
    conformed = conform(frame, SCHEMA, "pooled")
    v = form.coordinates.matrix(conformed.columns, conformed.rows)
    total = np.zeros((form.size, form.size))
    for row, label in zip(v, conformed.columns["outcome"], strict=True):
        q = np.concatenate([[1.0], row, np.eye(2)[label]])
        total += np.outer(q, q)
    return total


@pytest.mark.parametrize("by_class", [True, False])
@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_the_released_sum_without_noise_is_that_of_the_pooled_rows(by_class, norm):
    form, tables = statistic(by_class, norm=norm), owners(40, 25, 1)
    mechanism = "gaussian" if norm == "l2" else "laplace"
    terms = Terms(
        unit="record", clip=form.bound * (1 + 1e-5), norm=norm, mechanism=mechanism, **FREE
    )
    released = silent_channel(tables, schema=SCHEMA).sum(
        MOMENTS.name, terms, form.dim, settings=request_settings(1.0, by_class)
    )
    exact = sum(pooled_joint(frame, form) for frame in tables.values())
    np.testing.assert_allclose(form.joint(released.value), exact, atol=1e-9)
    counts, sums = form.first(released.value)
    np.testing.assert_allclose(counts, np.diag(exact)[-2:], atol=1e-9)
    np.testing.assert_allclose(sums, exact[-2:, 1:-2], atol=1e-9)
    second = form.second(released.value).sum(axis=0)
    np.testing.assert_allclose(second, exact[1:-2, 1:-2], atol=1e-9)


def test_second_moments_of_a_class_are_those_of_its_rows():
    form, frame = statistic(), table(60)
    conformed = conform(frame, SCHEMA, "t")
    v, labels = form.coordinates.matrix(conformed.columns, 60), conformed.columns["outcome"]
    total = form.contributions(v, labels).weighted_sum(np.ones(60))
    for label in (0, 1):
        own = v[labels == label]
        np.testing.assert_allclose(form.second(total)[label], own.T @ own, atol=1e-12)


def test_a_client_sends_the_mean_of_its_records():
    form, tables = statistic(), owners(30, 5)
    terms = Terms(unit="client", clip=form.bound * (1 + 1e-5), **FREE)
    released = silent_channel(tables, "client", SCHEMA).sum(
        MOMENTS.name, terms, form.dim, settings=request_settings(1.0, True)
    )
    exact = sum(pooled_joint(frame, form) / len(frame) for frame in tables.values())
    np.testing.assert_allclose(form.joint(released.value), exact, atol=1e-10)


@pytest.mark.parametrize("unit", ["record", "client"])
def test_a_clients_contribution_does_not_depend_on_who_is_simulated_beside_it(unit):
    form, clients = statistic(), views(federation(owners(12, 0, 7), SCHEMA))
    request = Request(
        MOMENTS.name,
        Terms(unit=unit, clip=form.bound, **FREE),
        form.dim,
        settings=request_settings(1.0, True),
    )

    def sums(chosen):
        result = {client.name: np.zeros(form.dim) for client in chosen}
        samples = [np.arange(client.records) for client in chosen]
        for index, rows in MOMENTS.contribute(chosen, samples, request):
            result[chosen[index].name] += clip_and_sum(rows, form.bound)
        return result

    together = sums(clients)
    for client in clients:
        assert (sums([client])[client.name] == together[client.name]).all()
    assert not together["site-1"].any()


@settings(max_examples=10, deadline=None)
@given(schema=schemas(), seed=st.integers(0, 99), share=st.floats(0.05, 1), by_class=st.booleans())
@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_no_record_exceeds_the_bound(norm, schema, seed, share, by_class):
    targeted = schema.model_copy(
        update={
            "target": "first",
            "columns": (
                schema.columns[0].model_copy(update={"missing": False}),
                *schema.columns[1:],
            ),
        }
    )
    form = statistic(by_class, share, norm, targeted)
    columns = arrays(targeted, 20, np.random.default_rng(seed))
    v = form.coordinates.matrix(columns, 20)
    rows = form.contributions(v, columns["first"] if form.classes else None)
    assert rows.dim == form.dim
    norms = rows.norms(norm)
    assert (norms <= form.bound * (1 + 1e-9)).all()
    assert (norms >= 0.5 - 1e-9).all()
    assert (np.linalg.norm(v, 1 if norm == "l1" else 2, axis=1)).max() <= (
        form.coordinates.largest_norm(norm) + 1e-9
    )


@settings(max_examples=20, deadline=None)
@given(schema=schemas(), seed=st.integers(0, 99))
def test_terms_read_back_the_natural_values(schema, seed):
    columns = arrays(schema, 15, np.random.default_rng(seed))
    form = Coordinates.of(schema.modelled)
    names, weights = form.terms()
    result = weights[:, 0] + form.matrix(columns, 15) @ weights[:, 1:].T
    for column in schema.modelled:
        values = columns[column.name]
        if not hasattr(column, "categories"):
            there = ~np.isnan(values)
            read = result[:, names.index(column.name)][there]
            np.testing.assert_allclose(read, values[there], rtol=1e-9, atol=1e-9)
            continue
        for code, category in enumerate(column.categories):
            read = result[:, names.index(f"{column.name}={category}")]
            np.testing.assert_allclose(read, values == code, atol=1e-12)


def test_noise_has_the_variance_that_the_statistic_names():
    form, rng = statistic(), np.random.default_rng(0)
    draws = rng.standard_normal((4000, form.dim))
    joints = np.array([form.joint(draw) for draw in draws])
    np.testing.assert_allclose(joints.var(axis=0), form.noise_variances(), rtol=0.15)
    r = rng.standard_normal(form.size)
    np.testing.assert_allclose(
        np.cov((joints @ r).T), form.times(r), atol=0.1 * form.times(r).max()
    )
    assert (r @ joints @ r).var() == pytest.approx(form.quadratic(r), rel=0.1)


def test_symmetric_cells_of_a_block_carry_the_noise_of_a_weighted_triangle():
    # A triangle with sqrt(2) off its diagonal has the same norm; its cells have noise 1 / sqrt(2).
    form = statistic()
    draws = np.random.default_rng(0).standard_normal((3000, form.dim))
    blocks = np.array([form.second(draw)[0] for draw in draws]) / form.clip**2
    assert blocks[:, 0, 1].std() == pytest.approx(1 / np.sqrt(2), rel=0.05)
    assert blocks[:, 0, 0].std() == pytest.approx(1, rel=0.05)
