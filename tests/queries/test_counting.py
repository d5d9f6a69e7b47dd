import numpy as np
import pandas as pd
import pytest

from fedsynth.data.tables import conform
from fedsynth.encoding.histogram import HistogramLayout
from fedsynth.encoding.table import TableEncoding
from fedsynth.federation.client.answering import answer
from fedsynth.federation.request import Request
from fedsynth.privacy.budget import Budget
from fedsynth.queries.counting import ask_counts, counting_terms, question
from fedsynth.queries.tasks.counting import HISTOGRAM, LABEL_TABLES, pair_starts
from fedsynth.schema.target import target_index
from tests.methods.small import SCHEMA, federation, owners, silent_channel, table

FREE = Budget(epsilon=float("inf"), trust="central")


def exact(frame: pd.DataFrame) -> np.ndarray:
    layout = HistogramLayout.of(SCHEMA)
    positions = layout.positions(conform(frame, SCHEMA))
    return np.bincount(positions.ravel(), minlength=layout.dim).astype(float)


def test_without_noise_the_histogram_is_that_of_the_pooled_rows():
    tables = owners(30, 50, 1)
    task, starts, dim = question(SCHEMA)
    terms = counting_terms(len(starts), 0.0, FREE, 3)
    counts = ask_counts(silent_channel(tables), task, terms, starts, dim)
    np.testing.assert_allclose(counts.values, exact(pd.concat(tables.values())), rtol=1e-6)
    assert counts.sigma == 0


def test_without_noise_label_tables_are_cross_tabulations():
    tables = owners(40, 60)
    pooled = pd.concat(tables.values())
    encoding = TableEncoding.from_histogram(SCHEMA, exact(pooled), 0.0, bins=5)
    channel = silent_channel(tables)
    channel.announce("encoding", encoding.to_dict())
    target = target_index(SCHEMA)
    starts, dim = pair_starts(encoding.sizes, target)
    terms = counting_terms(len(encoding.sizes) - 1, 0.0, FREE, 2)
    counts = ask_counts(channel, LABEL_TABLES, terms, starts, dim)
    codes = encoding.encode(conform(pooled, SCHEMA))
    others = [j for j in range(len(encoding.sizes)) if j != target]
    for start, j in zip(starts, others, strict=True):
        size = encoding.sizes[j]
        wanted = np.zeros((2, size))
        np.add.at(wanted, (codes[:, target], codes[:, j]), 1)
        table = counts.values[start : start + 2 * size].reshape(2, size)
        np.testing.assert_allclose(table, wanted, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("row", range(5))
def test_a_record_moves_the_histogram_by_its_whole_sensitivity_and_no_more(row):
    frame = table(20)
    task, starts, dim = question(SCHEMA)
    terms = counting_terms(len(starts), 0.0, FREE, 1)
    more = ask_counts(silent_channel({"a": frame}), task, terms, starts, dim).values
    less = ask_counts(silent_channel({"a": frame.drop(index=row)}), task, terms, starts, dim).values
    moved = np.linalg.norm(more - less)
    assert moved == pytest.approx(np.sqrt(len(starts)), rel=1e-5)
    assert moved <= terms.clip


def test_a_client_weighs_the_same_however_many_rows_it_has():
    _, starts, dim = question(SCHEMA)
    budget = Budget(epsilon=float("inf"), unit="client", trust="central", units=3)
    terms = counting_terms(len(starts), 0.0, budget, 1)
    frames = {"a": table(10, 0), "b": table(3, 1), "c": table(70, 2)}
    result = ask_counts(silent_channel(frames, "client"), HISTOGRAM, terms, starts, dim).values
    means = [exact(frame) / len(frame) for frame in frames.values()]
    np.testing.assert_allclose(result, sum(means), rtol=1e-9, atol=1e-12)
    for frame, mean in zip(frames.values(), means, strict=True):
        channel = silent_channel({"a": frame}, "client")
        alone = ask_counts(channel, HISTOGRAM, terms, starts, dim).values
        np.testing.assert_allclose(alone, mean, rtol=1e-9, atol=1e-12)
        assert np.linalg.norm(alone) <= terms.clip


def test_a_client_without_rows_contributes_zeros():
    task, starts, dim = question(SCHEMA)
    tables = {"full": table(5), "empty": table(5).iloc[:0]}
    for unit in ("record", "client"):
        budget = Budget(epsilon=float("inf"), unit=unit, trust="central", units=2)
        request = Request(task.name, counting_terms(len(starts), 0.0, budget, 1), dim)
        full, empty = answer(federation(tables), request)
        assert np.count_nonzero(empty.values) == 0
        assert np.count_nonzero(full.values) > 0


@pytest.mark.parametrize("trust", ["central", "distributed", "local"])
def test_the_stated_sigma_is_that_of_the_noise(trust):
    # 3 clients without rows leave noise alone; chi-square bounds at 1e-7 on each side.
    from scipy.stats import chi2

    task, starts, dim = question(SCHEMA)
    budget = Budget(epsilon=1.0, trust=trust)
    terms = counting_terms(len(starts), 2.0, budget, 2)
    tables = {"a": table(1), "b": table(1).iloc[:0], "c": table(1).iloc[:0]}
    channel = silent_channel(tables)
    values = []
    for _ in range(20):
        counts = ask_counts(channel, task, terms, starts, dim)
        values.append(counts.values)
    noise = np.concatenate([v - exact(tables["a"]) for v in values])
    assert counts.sigma == terms.summed_scale(3)
    ratio = np.sum(noise**2) / counts.sigma**2
    assert chi2.ppf(1e-7, noise.size) < ratio < chi2.isf(1e-7, noise.size)
