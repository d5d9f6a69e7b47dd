"""A release, by its folder or as a synthesizer, brings rows, schema and certificate along."""

from __future__ import annotations

import pandas as pd
import pytest

import fedsynth as fs
from fedsynth.errors import ConfigError, ReleaseError
from fedsynth.evaluation import evaluating
from fedsynth.evaluation.reading.released import errors_of, read_released
from tests.small_jobs import SCHEMA, table

schema = fs.Schema.from_dict(SCHEMA)


@pytest.fixture(scope="module")
def synth() -> fs.FedInfer:
    return fs.FedInfer(schema).fit([table()], epsilon=2.0, trust="central")


def test_the_folder_of_a_release_gives_its_rows(synth, tmp_path):
    sealed = synth.release(tmp_path / "r", 30, seed=1)
    for folder in (tmp_path / "r", str(tmp_path / "r")):
        rows, known, certificate = read_released(folder, 0, table(9), {"schema": None})
        pd.testing.assert_frame_equal(rows, synth.sample(30, seed=1))
        assert known == schema and certificate == sealed


def test_a_synthesizer_draws_as_many_rows_as_there_are_real_ones(synth, tmp_path):
    sealed = synth.release(tmp_path / "r", 30)
    for made in (synth, fs.load(tmp_path / "r")):
        rows, known, certificate = read_released(made, 4, table(9), {})
        pd.testing.assert_frame_equal(rows, synth.sample(9, seed=4))
        assert known == schema and certificate.sentence == sealed.sentence


def test_what_a_release_brings_along_is_not_given_beside_it(synth):
    with pytest.raises(ConfigError, match="brings its target along: leave target away"):
        read_released(synth, 0, table(9), {"schema": None, "target": "income"})


def test_a_release_that_was_changed_is_not_evaluated(synth, tmp_path):
    synth.release(tmp_path / "r", 5)
    (tmp_path / "r" / "rows.csv").write_text("age\n1\n")
    with pytest.raises(ReleaseError, match="was changed"):
        fs.evaluate(tmp_path / "r", real=table(9))


def test_a_release_and_its_rows_are_compared_alike(synth, tmp_path, monkeypatch):
    class Enough(Exception):
        pass

    def stop(*given):
        raise Enough(given)

    def compared(*given, **named):
        with pytest.raises(Enough) as stopped:
            fs.evaluate(*given, seed=3, **named)
        sides, known, *rest, _progress = stopped.value.args[0]
        return {side: data.to_csv() for side, data in sides.items()}, known, rest

    monkeypatch.setattr(evaluating, "_compare", stop)
    synth.release(tmp_path / "r", 40, seed=1)
    real, train, rows = table(40, 5), table(20, 6), synth.sample(40, seed=1)
    by_folder = compared(tmp_path / "r", real=real, train=train)
    assert compared(real=real, synthetic=rows, schema=schema, train=train) == by_folder
    assert compared(real, rows, schema, train=train) == by_folder
    assert compared(synth, real=real, train=train) != by_folder


def test_a_model_of_marginals_tells_how_far_its_counts_may_be_off_and_others_do_not(synth):
    told = errors_of(fs.MST(schema).fit([table()], epsilon=2.0, trust="central"))
    names = [[column.name] for column in schema.modelled]
    assert [row["columns"] for row in told if len(row["columns"]) == 1] == names
    assert all(row["use"] in ("well", "roughly", "hardly") for row in told)
    assert errors_of(synth) is None and errors_of("a folder") is None
