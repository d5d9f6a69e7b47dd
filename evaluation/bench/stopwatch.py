"""From `pip install` to synthetic rows of one's own table: commands, lines, seconds, megabytes.

    python evaluation/bench/stopwatch.py --out FOLDER [--first PACKAGE ..] [TOOL ...]

For fedsynth and, beside it, SDV and the Synthetic Data SDK (mostlyai) in its local mode: a fresh
virtual environment each, what pip says to install, and the shortest code that reads a table and
writes 1,000 synthetic rows, each in a process of its own, with one thread. Environments stay in
FOLDER and are used again; processor seconds are of what a tool waits for (mostlyai trains in a
process that it leaves alone); a tool that cannot be installed or fails is told with its last line.
Peers do not promise what fedsynth does: what each bounds stands beside it. `--first` is installed
before each tool, the same for all (such as `torch==2.13.0` of an index with builds for processors);
`--without` is taken out of environments again, where a machine has no build that fits.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from fedsynth.data.datasets import builtin_schema, load_builtin
from fedsynth.evaluation.measures.marginals import marginal_error

HERE = Path(__file__).resolve().parents[2]
READ = 'import pandas as pd\ntable = pd.read_csv("own.csv")\n'
WRITE = 'rows.to_csv("{name}.csv", index=False)\n'


@dataclass(frozen=True)
class Tool:
    """One way to rows. code: between reading a table and writing the rows."""

    package: str
    bounds: str
    code: str


FEDSYNTH = """\
import fedsynth as fs
schema = fs.draft(table).schema
rows = fs.AIM(schema).fit(table, epsilon=1, trust="central").sample(1_000)
"""
SDV = """\
from sdv.metadata import Metadata
from sdv.single_table import {0}
metadata = Metadata.detect_from_dataframes({{"own": table}})
synthesizer = {0}(metadata)
synthesizer.fit({{"own": table}})
rows = synthesizer.sample(num_rows=1_000)["own"]
"""
MOSTLY = """\
from mostlyai.sdk import MostlyAI
mostly = MostlyAI(local=True)
generator = mostly.train({0})
rows = mostly.probe(generator, size=1_000)
"""
PRIVATELY = (
    'config={"tables": [{"name": "own", "data": table, "tabular_model_configuration": '
    '{"differential_privacy": {"max_epsilon": 1, "delta": 1e-5}}}]}'
)
NOTHING = "nothing"
TOOLS = {
    "fedsynth": Tool(str(HERE), "epsilon 1 of a row, but for the drafted schema", FEDSYNTH),
    "sdv": Tool("sdv>=2", NOTHING, SDV.format("GaussianCopulaSynthesizer")),
    "sdv-ctgan": Tool("sdv>=2", NOTHING, SDV.format("CTGANSynthesizer")),
    "mostlyai": Tool("mostlyai[local]", NOTHING, MOSTLY.format("data=table")),
    "mostlyai-dp": Tool(
        "mostlyai[local]", "epsilon 1 of training, 1 of values", MOSTLY.format(PRIVATELY)
    ),
}


def timed(command: list[str], folder: Path) -> tuple[float, float, float, str]:
    """Seconds, CPU seconds and peak MiB of a command and its children, and the last line of what
    it says; SystemExit where it fails."""
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    begun = time.perf_counter()
    # A process that waits for it alone, so that its children's usage is its own.
    script = (
        "import json,resource,subprocess,sys\n"
        "done=subprocess.run(sys.argv[1:],capture_output=True,text=True)\n"
        "used=resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "said=(done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]\n"
        "print(json.dumps([done.returncode,used.ru_utime+used.ru_stime,used.ru_maxrss,said]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *command],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env={
            **clean,
            "OMP_NUM_THREADS": "1",
            "PYTHONWARNINGS": "ignore",
            "PIP_NO_CACHE_DIR": "1",  # as on a machine that never installed it
        },
    )
    code, spent, peak, said = json.loads(done.stdout)
    if code:
        raise SystemExit(f"{' '.join(command)[:60]} ..: exit code {code}, {' '.join(said)}")
    return time.perf_counter() - begun, spent, peak / 1024, " ".join(said)


def pairs_apart(rows: Path, own: pd.DataFrame) -> float:
    """Mean total variation of pairs of columns, between the rows and the table they came from."""
    return marginal_error(own, pd.read_csv(rows), builtin_schema("health"), 2).mean


def install(tool: Tool, folder: Path, first: list[str], without: list[str]) -> dict[str, float]:
    """Make a tool's environment, unless it stands there."""
    told = folder / "installed.json"
    if told.exists():
        return json.loads(told.read_text())
    pip = [str(folder / "bin/python"), "-m", "pip"]
    timed([sys.executable, "-m", "venv", str(folder)], folder.parent)
    wanted = [[*pip, "install", "--quiet", one] for one in (*first, tool.package)]
    took = [timed(one, folder)[:2] for one in wanted]
    seconds, spent = (sum(part) for part in zip(*took, strict=True))
    if without:
        timed([*pip, "uninstall", "--quiet", "--yes", *without], folder)
    (library,) = folder.glob("lib/python*/site-packages")
    files = (file.lstat() for file in library.rglob("*") if not file.is_symlink())
    size = sum(file.st_blocks for file in files) * 512 / 2**20
    packages = len([*library.glob("*.dist-info")])
    found = {"install_s": seconds, "install_cpu_s": spent, "size_MiB": size, "packages": packages}
    told.write_text(json.dumps(found))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tools", nargs="*", metavar="TOOL", help=", ".join(TOOLS))
    parser.add_argument("--out", type=Path, required=True, help="environments, table and rows")
    parser.add_argument(
        "--first", action="append", default=[], metavar="PACKAGE", help="installed before each tool"
    )
    parser.add_argument(
        "--without", action="append", default=[], metavar="PACKAGE", help="taken out again"
    )
    given = parser.parse_args()
    if unknown := set(given.tools) - set(TOOLS):
        parser.error(f"no such tool: {', '.join(unknown)}; there are {', '.join(TOOLS)}")
    out = given.out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    load_builtin("health").drop(columns="site").to_csv(out / "own.csv", index=False)
    own = pd.read_csv(out / "own.csv")
    own.sample(1_000, random_state=0).to_csv(out / "real.csv", index=False)
    print(json.dumps({"tool": "real rows", "pairs_apart": pairs_apart(out / "real.csv", own)}))
    for name in given.tools or TOOLS:
        tool = TOOLS[name]
        code = READ + tool.code + WRITE.format(name=name)
        place = out / name.partition("-")[0]
        try:
            found = install(tool, place, given.first, given.without)
            wall, spent, peak, _ = timed([str(place / "bin/python"), "-c", code], out)
        except SystemExit as failed:
            print(json.dumps({"tool": name, "failed": str(failed)}), flush=True)
            continue
        found |= {"run_s": wall, "run_cpu_s": spent, "peak_MiB": peak}
        told = {key: round(value, 1) for key, value in found.items()}
        told["pairs_apart"] = round(pairs_apart(out / f"{name}.csv", own), 3)
        lines = len(code.splitlines())
        print(json.dumps({"tool": name, "lines": lines, "bounds": tool.bounds, **told}), flush=True)


if __name__ == "__main__":
    main()
