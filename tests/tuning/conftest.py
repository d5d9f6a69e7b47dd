"""What the tests of tuning search on."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import fedsynth as fs
from tests.methods.small import SCHEMA, table


def release(folder: Path, schema: fs.Schema, frame: pd.DataFrame, seed: int = 0) -> Path:
    synth = fs.MST(schema).fit(frame, {"epsilon": 20.0, "curious": 0}, insecure_noise_seed=seed)
    synth.release(folder, rows=200, seed=1)
    return folder


@pytest.fixture(scope="session")
def releases(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two of the same rows, with other noise."""
    folder = tmp_path_factory.mktemp("releases")
    return [release(folder / name, SCHEMA, table(400), place) for place, name in enumerate("ab")]
