"""What the tests of tuning search on."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from optuna.storages._rdb.storage import _VersionManager

import fedsynth as fs
from tests.methods.small import SCHEMA, table


def release(folder: Path, schema: fs.Schema, frame: pd.DataFrame, seed: int = 0) -> Path:
    synth = fs.MST(schema).fit(frame, {"epsilon": 20.0, "curious": 0}, insecure_noise_seed=seed)
    synth.release(folder, rows=200, seed=1)
    return folder


@pytest.fixture(scope="session", autouse=True)
def _one_history():
    """optuna reads how its tables changed over the years anew for every storage, which takes longer
    than a search here."""
    known, read = [], _VersionManager._create_alembic_script

    def once(self):
        if not known:
            known.append(read(self))
        return known[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_VersionManager, "_create_alembic_script", once)
        yield


@pytest.fixture(scope="session")
def releases(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two of the same rows, with other noise."""
    folder = tmp_path_factory.mktemp("releases")
    return [release(folder / name, SCHEMA, table(400), place) for place, name in enumerate("ab")]
