"""How many changes to `privacy/` and `federation/` the tests notice, from a sample: `make mutate`.

mutmut makes the changes (mutants) and knows which tests run which function. As many as are asked
for are drawn by a seed, each with the same probability: the first of one order, so a larger sample
goes on where a smaller one ended. Each is tried in a process forked off one that has read all
tests: those that run the changed function, the fastest first, until one fails or they have had
`MOST` seconds. What later ones, or those of other folders, would notice counts as survived; so does
a change that changes nothing, or nothing but words, or what ran once before the fork.
"""

from __future__ import annotations

import argparse
import bisect
import contextlib
import io
import itertools
import json
import os
import random
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from mutmut.__main__ import copy_also_copy_files, copy_src_dir, create_mutants, setup_source_paths
from mutmut.configuration import config
from mutmut.mutation.trampoline import set_mutant_under_test
from mutmut.runners.harness import PytestRunner
from mutmut.state import state
from mutmut.stats import load_stats, save_stats
from mutmut.utils.format_utils import mangled_name_from_mutant_name
from mutmut.workers.isolation import run_in_fork
from scipy.stats import binomtest

TREE = Path("mutants")
RESULTS = TREE / "sample.jsonl"
MOST = 60.0  # seconds of tests, as they took unchanged
UNRUN = 4  # pytest's own, of tests that it does not find
OUTCOMES = ("killed", "survived", "not covered", "timed out")


def generate() -> list[str]:
    """All mutants' names, in one order, of a tree that is made where there is none."""
    TREE.mkdir(exist_ok=True)
    copy_src_dir()
    with contextlib.redirect_stdout(io.StringIO()):  # .. a line a file
        copy_also_copy_files()
        create_mutants(os.cpu_count() or 1)
    found = (json.loads(path.read_text())["exit_code_by_key"] for path in TREE.rglob("*.py.meta"))
    return sorted(name for names in found for name in names)


def learn() -> None:
    """Which tests run which function, and how long each takes. What fails there unchanged, since it
    looks at the code's own lines or names, is told and left out."""
    if load_stats():
        return

    def run() -> int:
        set_mutant_under_test("stats")
        del os.environ["MUTANT_UNDER_TEST"]  # not of processes that tests start
        runner = PytestRunner()
        runner._pytest_add_cli_args = [
            *config().pytest_add_cli_args,
            "--maxfail=0",
            "--cache-clear",
        ]
        code = runner.run_stats(tests=[])
        save_stats()
        return code

    if run_in_fork(run) > 1:
        raise SystemExit("The tests cannot be run: see above.")
    load_stats()
    found = TREE / ".pytest_cache/v/cache/lastfailed"
    failed = set(json.loads(found.read_text())) if found.exists() else set()
    for tests in state().tests_by_mangled_function_name.values():
        tests -= failed
    save_stats()
    print(f"left out: {', '.join(sorted(failed)) or 'none'}", flush=True)


def attempt(name: str, tests: list[str], seconds: float) -> int:
    """The process that tries a mutant, begun. Ends by itself: of CPU time and by the clock, for
    some wait for good."""
    child = os.fork()
    if child:
        return child
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1), os.dup2(quiet, 2)
    os.setpgid(0, 0)
    limit = int(time.process_time() + 5 * seconds + 20)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))

    def end(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.killpg(0, signal.SIGTERM)  # .. with processes that a test started
        os._exit(36)

    signal.signal(signal.SIGALRM, end)
    signal.alarm(int(20 * seconds + 120))
    set_mutant_under_test(name)
    code = UNRUN
    try:
        code = PytestRunner().run_tests(mutant_name=name, tests=tests)
    finally:
        os._exit(code)


def outcome(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    if code == UNRUN:
        raise SystemExit("pytest does not find a test that it ran before: make clean")
    if code in (0, 5):
        return "not covered" if code else "survived"  # 5: its tests are all left out
    return "timed out" if code in (36, -signal.SIGXCPU, -signal.SIGKILL) else "killed"


def try_all(names: list[str], workers: int) -> Iterator[dict[str, object]]:
    """What came of each, as it comes."""
    running: dict[int, tuple[str, int, float]] = {}
    cost, left = state().duration_by_test, list(reversed(names))
    while left or running:
        while left and len(running) < workers:
            name = left.pop()
            of = state().tests_by_mangled_function_name
            tests = sorted(of.get(mangled_name_from_mutant_name(name), ()), key=cost.__getitem__)
            if not tests:
                yield {"mutant": name, "outcome": "not covered"}
                continue
            spent = list(itertools.accumulate(cost[test] for test in tests))
            tests = tests[: 1 + bisect.bisect(spent, MOST)]
            child = attempt(name, tests, spent[len(tests) - 1])
            running[child] = name, len(tests), time.monotonic()
        if running:
            child, status = os.wait()
            name, number, begun = running.pop(child)
            took = round(time.monotonic() - begun, 1)
            yield {"mutant": name, "outcome": outcome(status), "tests": number, "seconds": took}


def table(found: list[dict[str, str]], every: list[str]) -> str:
    """Room by room: how many of each outcome, and the share that is noticed, of all drawn there,
    with its interval (95 %, Clopper and Pearson 1934)."""
    lines = [f"{'':28}{'mutants':>8}" + "".join(f"{one:>13}" for one in OUTCOMES) + "    noticed"]
    of = {name: ".".join(name.split(".")[1:3]) for name in every}
    rooms: dict[str, list[str]] = {"all": [one["outcome"] for one in found]}
    for one in found:
        rooms.setdefault(of[one["mutant"]].partition(".")[0], []).append(one["outcome"])
        rooms.setdefault(of[one["mutant"]], []).append(one["outcome"])
    sizes = Counter(of.values()) + Counter(room.partition(".")[0] for room in of.values())
    sizes["all"] = len(every)
    for room, outcomes in sorted(rooms.items()):
        counts = Counter(outcomes)
        noticed = counts["killed"] + counts["timed out"]
        low, high = binomtest(noticed, len(outcomes)).proportion_ci(0.95, method="exact")
        share = f"{noticed / len(outcomes):.2f} ({low:.2f} to {high:.2f})"
        figures = "".join(f"{counts[one]:>13}" for one in OUTCOMES)
        lines.append(f"{room:28}{sizes[room]:>8}{figures}    {share}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--sample", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    every = generate()
    setup_source_paths()
    before = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = f"{TREE.absolute()}:{before}"  # of processes that tests start
    learn()
    order = random.Random(given.seed).sample(every, len(every))
    drawn = order[: given.sample]
    print(f"{len(drawn)} of {len(every)} mutants, seed {given.seed}", flush=True)
    known = (
        [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []
    )
    done = {one["mutant"]: one for one in known}
    set_mutant_under_test("")
    with contextlib.redirect_stdout(io.StringIO()):  # .. a line a file, again
        PytestRunner().warm_up()
    left = [name for name in drawn if name not in done]
    with RESULTS.open("a") as file:
        for one in try_all(left, given.workers):
            file.write(json.dumps(one) + "\n")
            file.flush()
            done[str(one["mutant"])] = one
            if one["outcome"] not in ("killed", "timed out"):
                print(one["outcome"], one["mutant"], flush=True)
    print(table([done[name] for name in drawn], every))
    return 0


if __name__ == "__main__":
    sys.exit(main())
