"""Make folders for a trial's machines: invented owners, a table that comes along cut in three.

    python prepare.py FOLDER [--server HOST:PORT] [--listen HOST:PORT]

FOLDER/server has the job and the server's keys; FOLDER/north, south and west have a site file,
rows, keys, and the other owners' public ones. Folders that are there stay as they are.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

import yaml

import fedsynth as fs
from fedsynth.federation.keys import make_trial
from fedsynth.privacy.trail.signatures import make_key

OWNERS = ("north", "south", "west")


def prepare(folder: Path, server: str, listen: str) -> None:
    if (folder / "server").exists():
        return
    table = fs.load_builtin("health").drop(columns="site")
    parts = fs.partition(table, len(OWNERS), "uniform")
    with tempfile.TemporaryDirectory() as name:
        # Nobody keeps the authority's key of a trial: all keys are made at once.
        made = Path(name) / "keys"
        make_trial(made, OWNERS, server.rpartition(":")[0])
        for machine in ("server", *OWNERS):
            (folder / machine).mkdir(parents=True)
            shutil.copytree(made / machine, folder / machine / "keys")
            fs.builtin_schema("health").save(folder / machine / "schema.yaml")
    for owner, rows in zip(OWNERS, parts.values(), strict=True):
        rows.to_csv(folder / owner / "rows.csv", index=False)
        _, public = make_key(folder / owner / owner)
        for other in OWNERS:
            if other != owner:
                shutil.copy(public, folder / other)
        site = {
            "name": owner,
            "server": server,
            "keys": "keys",
            "data": {"path": "rows.csv"},
            "schema": "schema.yaml",
            "holdout": 0.2,
            "account": {"path": "account.jsonl", "epsilon": 3.0},
            "identity": f"{owner}.key",
            "rules": {
                "trust": "distributed",
                "job_epsilon": 1.0,
                "methods": ["aim", "fedvae"],
                "cohort": len(OWNERS),
                "peers": {other: f"{other}.pub" for other in OWNERS if other != owner},
            },
        }
        (folder / owner / "site.yaml").write_text(yaml.safe_dump(site, sort_keys=False))
    job = {
        "schema": "schema.yaml",
        "privacy": {"epsilon": 1.0, "trust": "distributed"},
        "method": "aim",
        "federation": {
            "runtime": "stream",
            "owners": list(OWNERS),
            "listen": listen,
            "deadline": 600,
            "secure": True,
        },
        "sample": {"rows": 1000},
    }
    (folder / "server" / "job.yaml").write_text(yaml.safe_dump(job, sort_keys=False))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--server", default="localhost:8443", help="that sites dial")
    parser.add_argument("--listen", default="localhost:8443", help="that the server listens at")
    given = parser.parse_args()
    prepare(given.folder, given.server, given.listen)
