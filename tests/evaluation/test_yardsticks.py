"""Yardsticks: synthesizers without privacy, scored as the rows beside them."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import fedsynth as fs
from fedsynth.errors import ConfigError, DataError, MachineError
from fedsynth.evaluation.measures.fidelity import fidelity
from fedsynth.evaluation.measures.quality import Quality
from fedsynth.evaluation.report.page import page
from fedsynth.evaluation.yardsticks import measure_yardsticks
from tests.evaluation.learning_tables import BINARY, frame, rows


class Copies:
    """Gives the rows that it learned from again, in another order."""

    def __init__(self, metadata):
        assert metadata["tables"]["table"]["columns"]["x"] == {"sdtype": "numerical"}
        assert metadata["tables"]["table"]["columns"]["colour"] == {"sdtype": "categorical"}

    def fit(self, data):
        self.rows = data["table"] if isinstance(data, dict) else data
        self.named = isinstance(data, dict)

    def sample(self, count):
        drawn = self.rows.sample(count, replace=True, random_state=np.random.randint(99))  # noqa: NPY002
        return {"table": drawn} if self.named else drawn


class Fails(Copies):
    def fit(self, data):
        raise ValueError("cannot fit 4711")


class Beyond(Copies):
    def sample(self, count):
        return {"table": self.rows.head(count).assign(x=123.45678, size=-3.0)}


@pytest.fixture
def sdv(request, monkeypatch):
    """A stand-in for SDV, whose first version takes frames and whose second takes them by name."""
    metadata = SimpleNamespace(
        METADATA_SPEC_VERSION=getattr(request, "param", "V2"), load_from_dict=lambda c: c
    )
    kinds = SimpleNamespace(
        GaussianCopulaSynthesizer=Copies, CTGANSynthesizer=Fails, TVAESynthesizer=Beyond
    )
    package = SimpleNamespace(metadata=SimpleNamespace(Metadata=metadata), single_table=kinds)
    for name, module in {
        "sdv": package,
        "sdv.metadata": package.metadata,
        "sdv.single_table": kinds,
    }.items():
        monkeypatch.setitem(sys.modules, name, module)
    nothing = Quality(None, None, None, None, None)
    monkeypatch.setattr("fedsynth.evaluation.measures.fidelity.quality", lambda *_: nothing)


def measure(name, model=None, seed=0):
    (found,) = measure_yardsticks([name], rows(200), rows(150, seed=1), 180, model, seed)
    return found


@pytest.mark.parametrize("sdv", ["V1", "V2"], indirect=True)
def test_copies_of_the_learned_rows_are_as_near_as_these(sdv):
    found = measure("copula", "logistic regression")
    # Drawn with replacement from 200, so a little farther than they are.
    same = fidelity(rows(200), rows(200), rows(150, seed=1))
    assert found.pairs < 1.3 * same.marginals[1].mean
    assert found.score > 0.8
    assert found.seconds >= 0


def test_one_seed_gives_one_result_and_leaves_the_process_as_it_was(sdv):
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    first, second = measure("copula", seed=3), measure("copula", seed=3)
    assert first.pairs == second.pairs
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


def test_what_a_synthesizer_draws_beyond_the_bounds_counts_as_the_bound(sdv):
    found = measure("tvae")
    assert 0 < found.columns <= 1


def test_one_that_cannot_be_fitted_is_named_and_quotes_no_cell(sdv):
    with pytest.raises(DataError, match=r"ctgan could not be fitted .* \(ValueError in SDV\)") as e:
        measure("ctgan")
    assert "4711" not in str(e.value)


def test_an_evaluation_shows_them_below_its_own_rows(sdv):
    found = fs.evaluate(
        real=frame(120, seed=1),
        synthetic=frame(110, seed=2),
        train=frame(100, seed=3),
        schema=BINARY,
        against="copula",
        models=["logistic regression"],
        progress=False,
    )
    assert [one.name for one in found.yardsticks] == ["these rows", "copula"]
    own = found.yardsticks[0]
    assert own.pairs == found.fidelity.marginals[1].mean
    assert own.score == found.utility.models[0].synthetic["auroc"]
    shown = page(found.to_dict())
    assert "Yardsticks: what would rows without privacy reach?" in shown
    assert shown.count("no privacy") == 1


def test_without_train_or_by_an_unknown_name_nothing_begins(sdv):
    tables = {"real": frame(20), "synthetic": frame(20), "schema": BINARY}
    with pytest.raises(ConfigError, match="give `train`"):
        fs.evaluate(**tables, against=["copula"])
    with pytest.raises(ConfigError, match="did you mean 'ctgan'"):
        fs.evaluate(**tables, train=frame(20), against=["ctgn"])
    with pytest.raises(ConfigError, match="named twice"):
        fs.evaluate(**tables, train=frame(20), against=["tvae", "tvae"])


def test_without_sdv_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sdv.metadata", None)
    with pytest.raises(MachineError, match=r"pip install fedsynth\[sdv\]"):
        fs.evaluate(real=frame(20), synthetic=frame(20), train=frame(20), against="copula")


def test_sdv_itself_fits_and_draws():
    pytest.importorskip("sdv", reason="needs the extra fedsynth[sdv]")
    (found,) = measure_yardsticks(["copula"], rows(300), rows(200, seed=1), 250, None, 0)
    assert 0 < found.columns < 0.5
