"""Jobs rehearsed on invented rows."""

from __future__ import annotations

import pytest

import fedsynth as fs
from fedsynth.data.tables import conform
from fedsynth.errors import ConfigError
from fedsynth.federation.simulation import repeats
from fedsynth.planning.rehearsal import Rehearsal, invent, rehearse
from tests.small_jobs import SCHEMA

SMALL = fs.Schema.from_dict(SCHEMA)


def test_invented_rows_fit_the_schema_and_their_columns_hang_together():
    rows = invent(SMALL, 5000, 0)
    conformed = conform(rows, SMALL)
    assert conformed.rows == 5000 and len(conformed.columns) == 3
    assert rows.equals(invent(SMALL, 5000, 0)) and not rows.equals(invent(SMALL, 5000, 1))
    young = rows[rows["age"] < rows["age"].median()]
    assert abs((young["income"] == "low").mean() - (rows["income"] == "low").mean()) > 0.01


def test_a_rehearsal_leaves_the_synthesizer_and_the_memory_of_jobs_as_they_are():
    synth, before = fs.MST(SMALL), dict(repeats._JOBS)
    found = rehearse(synth, fs.Budget(epsilon=1.0), 2, 100)
    assert found.records == 100 and found.processor_seconds > 0
    assert before == repeats._JOBS
    with pytest.raises(ConfigError, match="fit"):
        synth.sample(1)


def test_images_are_not_invented():
    images = fs.MeanEmbedding(fs.builtin_schema("digits"))
    with pytest.raises(ConfigError, match="rows of tables"):
        rehearse(images, fs.Budget(epsilon=1.0), 3, 100)


def test_seconds_and_bytes_are_told_as_people_read_them():
    told = Rehearsal(48_842, 1234.5, 6.25, 257e6, 200e6).sentence
    assert "48,842 invented rows" in told and "1,234 s, 6.2 s of processors" in told
    assert "257 MB of memory (200 MB before the fit)" in told
