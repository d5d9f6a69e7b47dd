"""Studies and benchmarks: what there is, and one of them run with what it cost kept.

    python -m evaluation                          # all, a line each, and when each was run last
    python -m evaluation NAME [ARGUMENT ...]      # one, with its own arguments
    python -m evaluation NAME --quick             # its smallest form; results/ stays as it is
    python -m evaluation --quick                  # all that have such a form and their tables
    python -m evaluation NAME --help              # what it measures, and its arguments

Every whole run adds a line to `results/runs.jsonl`: arguments, date, versions, CPU seconds (those
of its processes, as the system counts them), and which lines of which results it added; lines that
another run adds meanwhile count, too.
"""

from __future__ import annotations

import ast
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

HOME = Path(__file__).resolve().parent
RUNS = HOME / "results/runs.jsonl"
LIBRARIES = ("numpy", "pandas", "scikit-learn", "torch")
# Beside the project, where the studies look too: a copy of them lies elsewhere.
PLACES = {"FEDSYNTH_DATA": str(HOME.parents[1] / "shared/data"), "OMP_WAIT_POLICY": "PASSIVE"}

# The smallest form of each that says something. What is not here has none: it needs hours, a tool
# in an environment of its own, or tables that an export brings.
QUICK = {
    "studies/adult": "--seeds 1",
    "studies/adversaries": "",
    "studies/aggregations": "--cuts uniform --functions fedavg scaffold-2 --seeds 1 --rounds 2",
    "studies/coherence": "--seeds 1 --methods aim fedvae --unscored",
    "studies/coming_and_going": "--units record --cases everybody gone --seeds 1",
    "studies/federated_vae": "--likelihoods gaussian --schemes sep/central --cuts uniform "
    "--noises .2 --rounds 2",
    "studies/federated_classifier": "--data adult --epsilons 1 --seeds 1 --rows 4000",
    "studies/fedinfer": "--trials 1",
    "studies/frontier": "--tables randhie --methods aim columns --epsilons 1",
    "studies/leaks": "--records 100 --reservoirs 0 --rounds 500",
    "studies/marginals": "--table peers --seeds 1",
    "studies/mean_embedding": "--what epilepsy --epsilon 1 --seeds 1",
    "studies/odd_tables": "codes",
    "studies/person_units": "--tables randhie --epsilons 1 --seeds 1 --only record",
    "studies/persons": "--seeds 1 --attacks 1",
    "studies/personal": "--data adult --seeds 1",
    "studies/pate": "--only adult-records --epsilons 1 --seeds 1",
    "studies/planning": "--data bank_marketing --seeds 1",
    "studies/private_fusion": "noise --seeds 1",
    "studies/private_selection": "--seeds 1",
    "studies/stable_noise": "--only thesis",
    "studies/transcript_audit": "--only releases --seconds 1",
    "bench/adversarial": "--repeats 1",
    "bench/integers": "--draws 100000 --repeats 1",
    "bench/record_level": "--records 256 --repeats 1",
    "bench/secure_sums": "--rounds 1",
    "bench/stacked_clients": "--repeats 1",
    "bench/sum_memory": "",
}


@dataclass(frozen=True)
class Script:
    """A study or a benchmark, by what its own file says."""

    name: str
    path: Path

    @property
    def words(self) -> str:
        """Its docstring."""
        return ast.get_docstring(ast.parse(self.path.read_text(encoding="utf-8"))) or ""

    @property
    def title(self) -> str:
        """The first sentence, which may be more than a line."""
        return " ".join(self.words.partition("\n\n")[0].split())

    @property
    def needs(self) -> list[str]:
        """The variables that name folders of tables it reads."""
        text = self.path.read_text(encoding="utf-8")
        return [name for name in ("FEDSYNTH_DATA", "FEDSYNTH_TABLES") if name in text]

    @property
    def has_tables(self) -> bool:
        """Whether the folder of the data sets is there, or it needs none."""
        folder = os.environ.get("FEDSYNTH_DATA", PLACES["FEDSYNTH_DATA"])
        return "FEDSYNTH_DATA" not in self.needs or Path(folder).is_dir()


def scripts() -> dict[str, Script]:
    """All that can be run, by name: `studies/adult`. What others import alone is left out."""
    found = {}
    for path in sorted([*HOME.glob("studies/*.py"), *HOME.glob("bench/*.py")]):
        script = Script(f"{path.parent.name}/{path.stem}", path)
        if "__main__" in path.read_text(encoding="utf-8") and not path.stem.startswith("peers_"):
            found[script.name] = script
    return found


def find(name: str) -> Script:
    """The script of that name, with or without its folder; exits where there is none, or two."""
    known = scripts()
    wanted = [one for one in known if name in (one, one.partition("/")[2], f"{one}.py")]
    if len(wanted) != 1:
        which = f": {' or '.join(wanted)}" if wanted else " of that name: python -m evaluation"
        raise SystemExit(f"{name}: {'more than one' if wanted else 'nothing'}{which}")
    return known[wanted[0]]


def last_runs() -> dict[str, dict]:
    """The last whole run of each that ended well, by name."""
    lines = RUNS.read_text(encoding="utf-8").splitlines() if RUNS.exists() else []
    return {run["name"]: run for run in map(json.loads, lines) if run["exit"] == 0}


def lengths(results: Path) -> dict[str, int]:
    """How many lines each file of results has."""
    return {path.name: path.read_bytes().count(b"\n") for path in sorted(results.glob("*.jsonl"))}


def show() -> None:
    """All scripts on the terminal."""
    runs, width = last_runs(), shutil.get_terminal_size().columns
    for name, script in scripts().items():
        facts = [*script.needs, *(["--quick"] if name in QUICK else [])]
        if name in runs:
            run = runs[name]
            facts.append(f"last run {run['date'][:10]}, {run['cpu_seconds']:,.0f} CPU s")
        print(f"{name:32} {script.title}"[:width])
        print(f"{'':32} {', '.join(facts)}"[:width].rstrip())


def run(script: Script, arguments: list[str], home: Path | None = None) -> dict:
    """Run it in a process of its own.

    Args:
        home: the folder `evaluation` whose results it adds to; by default this one.

    Returns:
        What there is to know of the run, as `results/runs.jsonl` has it.
    """
    home = home or HOME
    before, spent = lengths(home / "results"), resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, home / script.path.relative_to(HOME), *arguments],
        env={**PLACES, **os.environ},
        check=False,
    )
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    after = lengths(home / "results")
    return {
        "name": script.name,
        "arguments": arguments,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "exit": done.returncode,
        "cpu_seconds": round(used.ru_utime + used.ru_stime - spent.ru_utime - spent.ru_stime, 2),
        "seconds": round(time.monotonic() - began, 1),
        "fedsynth": version("fedsynth"),
        "python": platform.python_version(),
        "libraries": {name: version(name) for name in LIBRARIES},
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
        "results": {
            name: [before.get(name, 0) + 1, count]
            for name, count in after.items()
            if count > before.get(name, 0)
        },
    }


def run_quick(script: Script) -> dict:
    """Run its smallest form in a copy of this folder: no result of a whole run is touched."""
    if script.name not in QUICK:
        raise SystemExit(
            f"{script.name}: has no --quick; see python -m evaluation {script.name} -h"
        )
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "evaluation"
        shutil.copytree(HOME, home, ignore=shutil.ignore_patterns("results", "__pycache__"))
        (home / "results").mkdir()
        shutil.copytree(HOME.parent / "configs", Path(folder) / "configs")
        return run(script, QUICK[script.name].split(), home)


def main(arguments: list[str]) -> int:
    if not arguments:
        show()
        return 0
    if arguments[0] in ("-h", "--help"):
        print(__doc__)
        return 0
    if arguments == ["--quick"]:
        left = [name for name in QUICK if not find(name).has_tables]
        failed = [name for name in QUICK if name not in left and main([name, "--quick"])]
        if left:
            print(f"left out, for FEDSYNTH_DATA is not there: {', '.join(left)}", file=sys.stderr)
        print(f"failed: {', '.join(failed) or 'none'}", file=sys.stderr)
        return int(bool(failed))
    script, given = find(arguments[0]), arguments[1:]
    if given in (["-h"], ["--help"]):
        print(script.words)
        return 0
    if given == ["--quick"]:
        told = run_quick(script)
    else:
        told = run(script, given)
        with RUNS.open("a", encoding="utf-8") as file:
            file.write(json.dumps(told) + "\n")
    print(json.dumps(told), file=sys.stderr)
    return told["exit"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
