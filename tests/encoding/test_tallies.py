"""Tallies against least squares written out, and against the noise that they declare."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import null_space

from fedsynth.data.tables import conform
from fedsynth.encoding.histogram import HistogramLayout
from fedsynth.encoding.table import TableEncoding
from fedsynth.encoding.tallies import tally
from fedsynth.schema import Categorical, Continuous, Integer, Schema

SCHEMA = Schema(
    columns=[
        Integer(name="weight", lower=-20, upper=599, missing=True),
        Integer(name="grade", lower=0, upper=9, edges=[0, 3, 6, 9]),
        Categorical(name="town", values=list("abcdefgh"), missing=True),
    ]
)


def table(rows, rng):
    weight = np.where(rng.random(rows) < 0.2, 0, rng.gamma(3.0, 40.0, rows).clip(-20, 599).round())
    return pd.DataFrame(
        {
            "weight": np.where(rng.random(rows) < 0.1, np.nan, weight),
            "grade": rng.integers(0, 10, rows),
            "town": rng.choice(
                list("abcdefgh"), rows, p=[0.4, 0.3, 0.2, 0.06, 0.01, 0.01, 0.01, 0.01]
            ),
        }
    )


def histogram(frame):
    conformed, layout = conform(frame, SCHEMA), HistogramLayout.of(SCHEMA)
    counts = np.bincount(layout.positions(conformed).ravel(), minlength=layout.dim)
    return conformed, counts.astype(float)


def test_a_tally_is_the_least_squares_of_all_counts():
    """Unknown: records of every value, column by column, whose sums over columns agree."""
    rng = np.random.default_rng(0)
    _, counts = histogram(table(3000, rng))
    noisy = counts + rng.normal(0, 9, len(counts))
    encoding = TableEncoding.from_histogram(SCHEMA, noisy, 9.0, bins=8)
    everything = pd.DataFrame(
        {
            "weight": [*range(-20, 600), np.nan] + [0] * 19,
            "grade": list(range(10)) * 64,
            "town": [*"abcdefgh", None] + ["a"] * 631,
        }
    )
    conformed = conform(everything, SCHEMA)
    # One record of each value of a column, whatever its other columns.
    values = {"weight": 621, "grade": 10, "town": 9}
    layout, codes = HistogramLayout.of(SCHEMA), encoding.encode(conformed)
    design, members, places = [], [], np.cumsum([0, *values.values()])
    for k, (name, size) in enumerate(values.items()):
        own = layout.slices[name]
        touched = own.start + layout.columns[k].positions(conformed.columns[name][:size])
        block = np.zeros((len(counts), size))
        np.add.at(block, (touched.T, np.arange(size)), 1.0)
        design.append(block)
        members.append((codes[:size, k] == np.arange(encoding.sizes[k])[:, None]).astype(float))
    # The tree leaves a cell of nothing but a spike (-20, 0, 599) as free as any other.
    column, ghosts = layout.columns[0], np.zeros((len(counts), 3))
    firsts = np.cumsum([0, *(size + column.extras for size in column.levels[:-1])])
    for ghost, cell in enumerate((0, 20, 619)):
        depths = np.arange(len(column.levels))[::-1]
        ghosts[layout.slices["weight"].start + firsts + cell // 16**depths, ghost] = 1.0
    free = np.concatenate([*design, ghosts], axis=1)
    agree = np.zeros((2, free.shape[1]))
    for row, k in enumerate((0, 1)):
        agree[row, places[k] : places[k + 1]] = 1.0
        agree[row, places[k + 1] : places[k + 2]] = -1.0
    agree[0, -3:] = 1.0
    # Values that no count tells apart stay undecided: a pseudo-inverse, for sums that are told.
    basis = null_space(agree)
    inverse = np.linalg.pinv(free @ basis, rcond=1e-10)
    for k, own in enumerate(tally(encoding, noisy, 9.0)):
        weights = members[k] @ basis[places[k] : places[k + 1]] @ inverse
        np.testing.assert_allclose(own.values, weights @ noisy, atol=1e-6)
        np.testing.assert_allclose(own.deviations, 9 * np.linalg.norm(weights, axis=1), rtol=1e-6)


def test_intervals_of_every_columns_codes_hold_as_often_as_they_say():
    rng = np.random.default_rng(1)
    conformed, counts = histogram(table(5_000, rng))
    held = {"weight": [], "grade": [], "town": []}
    for _ in range(100):
        noisy = counts + rng.normal(0, 30, len(counts))
        encoding = TableEncoding.from_histogram(SCHEMA, noisy, 30.0, bins=12)
        codes = encoding.encode(conformed)
        for k, (name, own) in enumerate(zip(held, tally(encoding, noisy, 30.0), strict=True)):
            exact = np.bincount(codes[:, k], minlength=encoding.sizes[k])
            held[name] += (np.abs(own.values - exact) < 1.96 * own.deviations).tolist()
    for name, inside in held.items():
        assert np.mean(inside) == pytest.approx(0.95, abs=0.02), name


def test_without_noise_a_tally_is_exact():
    conformed, counts = histogram(table(500, np.random.default_rng(2)))
    encoding = TableEncoding.from_histogram(SCHEMA, counts, 0.0, bins=6)
    codes = encoding.encode(conformed)
    for k, own in enumerate(tally(encoding, counts, 0.0)):
        np.testing.assert_allclose(
            own.values, np.bincount(codes[:, k], minlength=len(own.values)), atol=1e-9
        )
        assert not own.deviations.any()


@pytest.mark.parametrize("bins", [1, 2, 5])
def test_deviations_are_those_of_sums_of_noise_where_spikes_lie_within_cells(bins):
    """A tally is linear in the counts, so a code's variance is its row's squares, each count's."""
    dose = Continuous(
        name="dose", lower=0, upper=100, decimals=0, edges=[0, 20, 60, 100], spikes=[30, 31, 80]
    )
    schema = Schema(columns=[dose, Categorical(name="town", values=list("ab"))])
    layout = HistogramLayout.of(schema)
    noisy = np.random.default_rng(0).uniform(200, 900, layout.dim)
    encoding = TableEncoding.from_histogram(schema, noisy, 1.0, bins)
    columns = zip(*(tally(encoding, unit, 2.0) for unit in np.eye(layout.dim)), strict=True)
    for several, known in zip(columns, tally(encoding, noisy, 2.0), strict=True):
        rows = np.stack([one.values for one in several], axis=1)
        np.testing.assert_allclose(known.values, rows @ noisy)
        np.testing.assert_allclose(known.deviations, 2 * np.linalg.norm(rows, axis=1))
