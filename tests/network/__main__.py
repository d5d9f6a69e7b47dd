"""Every fault between machines, in a job of its own: prints the table of docs/deploying.md, and
writes a line a fault."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import pytest

from tests.network import faults
from tests.network.faults import FAULTS
from tests.network.world import world

RESULTS = Path(__file__).resolve().parents[2] / "evaluation" / "results" / "faults.jsonl"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.network", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=RESULTS)
    given = parser.parse_args()
    faults.STILL = 30.0
    print("| what goes wrong | what happens | epsilon: of the job, of its ledger, of an owner |")
    print("| --- | --- | --- |")
    with given.output.open("w") as file:
        for name, run in FAULTS.items():
            with tempfile.TemporaryDirectory() as folder, world(Path(folder)) as made:
                began = time.process_time()
                try:
                    happened, costs = run(made), made.costs()
                except pytest.skip.Exception as why:
                    print(f"| {name} | not tried: {why} | |", flush=True)
                    continue
                took = time.process_time() - began
            line = {"fault": name, "happened": happened, "epsilon": costs, "cpu": round(took, 1)}
            file.write(json.dumps(line) + "\n")
            spelled = ", ".join(f"{one:.4g}" for one in costs)
            print(f"| {name} | {happened} | {spelled} |", flush=True)


if __name__ == "__main__":
    main()
