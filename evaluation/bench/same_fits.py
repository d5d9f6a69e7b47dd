"""Whether a change of the code changed what methods learn: fits with fixed noise, before and after.

    python evaluation/bench/same_fits.py record before.json     # with the old code installed
    python evaluation/bench/same_fits.py compare before.json    # with the new

Every method is fitted to a small table and, where it can, to small images, under each unit and
trust that it takes, with `insecure_noise_seed`. Recorded are the hashes of the rows, of the model
and of the ledger's events, the certificate's epsilon, and for a fit that is refused the kind of
error. Only the public API is used, so the script runs with any version. Results are equal on one
machine with one set of libraries; between machines the last digits differ.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import fedsynth as fs
from fedsynth.errors import FedsynthError

SCHEMA = fs.Schema(
    columns=[
        fs.Integer(name="age", lower=18, upper=90),
        fs.Categorical(name="colour", values=["red", "green", "blue"], missing=True),
        fs.Continuous(name="dose", lower=0, upper=10, decimals=1),
        fs.Boolean(name="smoker"),
        fs.Categorical(name="outcome", values=["well", "ill"]),
    ],
    target="outcome",
)
PICTURES = fs.ImageSchema(
    shape=[8, 8], maximum=16, target=fs.Categorical(name="digit", values=[str(i) for i in range(4)])
)

NETWORK = {"rounds": 4, "hidden": (8,), "latent": 2}
FITS: dict[str, dict[str, Any]] = {
    "AIM": {},
    "MST": {},
    "PrivBayes": {},
    "FedVAE": {**NETWORK, "rate": 0.5},
    "FedGAN": {**NETWORK, "rate": 0.5, "discriminator_hidden": (8,)},
    "FedCTGAN": {**NETWORK, "rate": 0.5, "discriminator_hidden": (8,), "generator_batch": 64},
    "MeanEmbedding": {"components": 10, "random_features": 20, "steps": 10, "hidden": 8},
    "PrivateFusion": {},
    "Fusion": {},
    "HybridFusion": {},
    "FusionGAN": {"steps": 4, "latent": 2, "hidden": (8,), "discriminator_hidden": (8,)},
    "FedInfer": {},
    "PATE": {"teachers": 3, "queries": 12, "steps": 5},
    "PATEGAN": {"rounds": 3, "hidden": (8,), "latent": 2, "teachers": 3, "queries": 8, "warmup": 3},
}
BUDGETS = {
    f"{unit} {trust}": {"epsilon": 2.0, "delta": 1e-4, "unit": unit, "trust": trust}
    for unit in ("record", "client")
    for trust in ("central", "distributed", "local")
} | {"nothing": {"epsilon": float("inf"), "unit": "record", "trust": "central"}}


def table(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    ill = rng.random(rows) < 0.3
    colour = np.where(ill, "red", rng.choice(["green", "blue"], rows)).astype(object)
    colour[rng.random(rows) < 0.1] = None
    return pd.DataFrame(
        {
            "age": rng.integers(18, 91, rows),
            "colour": colour,
            "dose": np.round(np.where(ill, 7, 2) + rng.random(rows), 1),
            "smoker": rng.random(rows) < 0.5,
            "outcome": np.where(ill, "ill", "well"),
        }
    )


def owners(kind: str) -> dict[str, Any]:
    if kind == "table":
        return {f"site-{i}": table(rows, i) for i, rows in enumerate((60, 40, 50, 0))}
    rng = np.random.default_rng(7)
    return {
        f"site-{i}": fs.Images(
            rng.integers(0, 17, (rows, 8, 8)).astype(np.uint8), rng.integers(0, 4, rows)
        )
        for i, rows in enumerate((60, 40))
    }


def digest(*parts: bytes) -> str:
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


def state_of(folder: Path) -> str:
    """Hash of a release's model: its arrays, whatever their order in the file."""
    from safetensors.numpy import load_file

    arrays = load_file(folder / "model.safetensors")
    return digest(*(arrays[k].tobytes() + k.encode() for k in sorted(arrays)))


def events_of(folder: Path) -> str:
    lines = [json.loads(line) for line in (folder / "ledger.jsonl").read_text().splitlines()]
    events = [line.get("event", line) for line in lines[1:]]
    plain = [{k: v for k, v in e.items() if k not in ("job", "hash", "previous")} for e in events]
    return digest(json.dumps(plain, sort_keys=True).encode())


def fit(method: str, kind: str, budget: dict[str, Any]) -> dict[str, Any]:
    schema = SCHEMA if kind == "table" else PICTURES
    try:
        synth = getattr(fs, method)(schema, **FITS[method])
        synth.fit(owners(kind), fs.Budget(**budget, curious=1), seed=3, insecure_noise_seed=5)
        rows = synth.sample(50, seed=1)
    except FedsynthError as error:
        return {"refused": type(error).__name__}
    with tempfile.TemporaryDirectory() as folder:
        release = Path(folder) / "release"
        certificate = synth.release(release, rows)
        again = fs.load(release).sample(50, seed=1)
        return {
            "rows": _rows_hash(rows),
            "loaded": _rows_hash(again) == _rows_hash(rows),
            "state": state_of(release),
            "events": events_of(release),
            "epsilon": repr(certificate.epsilon),
            "not verified": [check.name for check in fs.verify(release) if not check.passed],
            "remarks": digest("\n".join(synth.remarks).encode()),
        }


def _rows_hash(rows: Any) -> str:
    if isinstance(rows, pd.DataFrame):
        return digest(rows.to_csv(index=False).encode())
    return digest(rows.pixels.tobytes(), np.asarray(rows.labels).tobytes())


def record() -> dict[str, Any]:
    found = {}
    for method in FITS:
        for kind in ("table", "images"):
            for name, budget in BUDGETS.items():
                found[f"{method}, {kind}, {name}"] = fit(method, kind, budget)
        print(f"{method} done", file=sys.stderr)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["record", "compare"])
    parser.add_argument("file", type=Path)
    options = parser.parse_args()
    found = record()
    if options.what == "record":
        options.file.write_text(json.dumps(found, indent=1) + "\n")
        return
    before = json.loads(options.file.read_text())
    changed = [name for name in before if found.get(name) != before[name]]
    for name in changed:
        print(f"CHANGED {name}\n  before {before[name]}\n  now    {found.get(name)}")
    print(f"{len(before) - len(changed)} of {len(before)} fits are as before")
    sys.exit(bool(changed))


if __name__ == "__main__":
    main()
