"""A job small enough to run in a test, and what runs it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from fedsynth.yaml_files import write_yaml

SCHEMA = {
    "kind": "table",
    "target": "income",
    "columns": [
        {"kind": "integer", "name": "age", "lower": 0, "upper": 63},
        {"kind": "categorical", "name": "colour", "values": ["red", "green"], "missing": True},
        {"kind": "categorical", "name": "income", "values": ["low", "high"]},
    ],
}
# Tables of pairs are asked in the contract of all methods, and between sites in `test_equal.py`.
SETTINGS = {"hidden": [8], "latent": 2, "rounds": 6, "rate": 0.2, "pair_share": 0.0}


def table(rows: int = 200, seed: int = 0) -> pd.DataFrame:
    """Ages that tell incomes, colours that tell nothing and are missing now and then."""
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 64, rows)
    return pd.DataFrame(
        {
            "age": age,
            "colour": rng.choice(np.array(["red", "green", None], dtype=object), rows),
            "income": np.where(age + rng.normal(0, 8, rows) > 32, "high", "low"),
        }
    )


def write_job(folder: Path, frame: pd.DataFrame | None = None, **changes: object) -> Path:
    """Write a table, its schema and a job of them; a change replaces a whole section."""
    folder.mkdir(parents=True, exist_ok=True)
    (table() if frame is None else frame).to_csv(folder / "table.csv", index=False)
    write_yaml(SCHEMA, folder / "people.yaml")
    job: dict[str, object] = {
        "data": {"path": "table.csv"},
        "schema": "people.yaml",
        "holdout": 0.2,
        "sites": {"clients": 3, "scheme": "uniform"},
        "privacy": {"epsilon": 5.0, "delta": 1e-4},
        "method": "fedvae",
        "settings": SETTINGS,
        "sample": {"rows": 50},
    }
    path = folder / "job.yaml"
    write_yaml({k: v for k, v in {**job, **changes}.items() if v is not None}, path)
    return path
