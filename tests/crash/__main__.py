"""Every method, killed everywhere: `make crash`. Prints a table, and writes a line a trial."""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

from fedsynth.registry import ENTRIES
from tests.crash.trials import Trial, kill_all, preload, to_line
from tests.running import quick_costs

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "evaluation" / "results" / "crash.jsonl"
KINDS = (
    "open", "write", "half a write", "fsync", "rename", "link", "remove", "mkdir", "rmdir",
    "truncate", "answer", "end", "any instant", "two instants",
)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("methods", nargs="*", default=list(ENTRIES))
    parser.add_argument("--instants", type=int, default=20, help="random kills, and pairs of them")
    parser.add_argument("--most", type=int, help="points of one kind at one file; default all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path, default=RESULTS)
    given = parser.parse_args()
    rng = random.Random(given.seed)
    trials: list[Trial] = []
    given.output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, given.output.open("w") as file:
        base = Path(folder)
        (base / "costs").mkdir()
        with quick_costs(base / "costs"):
            for method in given.methods:
                began = time.monotonic()
                preload(base / method, method)
                for trial in kill_all(base / method, method, given.instants, rng, given.most):
                    trials.append(trial)
                    file.write(to_line(trial) + "\n")
                    file.flush()
                    if trial.outcome != "ok":
                        print(f"{method}: {trial.outcome} at {trial.point}: {trial.codes} "
                              f"{trial.said} {trial.faults}", flush=True)  # fmt: skip
                print(f"{method}: {time.monotonic() - began:.0f} s", flush=True)
    show(trials)
    return int(any(trial.outcome != "ok" for trial in trials))


def show(trials: Iterable[Trial]) -> None:
    """The table: a method a row, a kind of point a column; trials, dead ends and lost ones."""
    cells: dict[tuple[str, str], Counter[str]] = {}
    for trial in trials:
        assert trial.point is not None
        cells.setdefault((trial.method, trial.point.kind), Counter())[trial.outcome] += 1
    methods = list(dict.fromkeys(method for method, _ in cells))
    others = sorted({kind for _, kind in cells}.difference(KINDS))
    kinds = [kind for kind in (*KINDS, *others) if any((m, kind) in cells for m in methods)]
    print("\nok / dead end / lost\n")
    print(f"{'':16}" + "".join(f"{kind:>14}" for kind in kinds))
    for method in methods:
        row = [cells.get((method, kind), Counter()) for kind in kinds]
        told = [f"{c['ok']}/{c['dead end']}/{c['lost']}" if c else "" for c in row]
        print(f"{method:16}" + "".join(f"{cell:>14}" for cell in told))


if __name__ == "__main__":
    raise SystemExit(main())
