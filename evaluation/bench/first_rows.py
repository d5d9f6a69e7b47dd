"""Lines and CPU seconds from a DataFrame to synthetic rows, beside SDV.

    python evaluation/bench/first_rows.py

Each piece of code runs in a process of its own, three times, importing included; the table is read
before. SDV 2 (pip install fedsynth[sdv]) has neither privacy nor federation: it is the peer for
ease of use, not for what the rows cost.
"""

from __future__ import annotations

import resource
import subprocess
import sys

READ = "from fedsynth.data.datasets import load_builtin; table = load_builtin('randhie')\n"
CODES = {
    "fedsynth, MST": """\
import fedsynth as fs
schema = fs.draft(table).schema
rows = fs.MST(schema).fit(table, epsilon=1, trust="central").sample(1_000)
""",
    "fedsynth, AIM": """\
import fedsynth as fs
schema = fs.draft(table).schema
rows = fs.AIM(schema).fit(table, epsilon=1, trust="central").sample(1_000)
""",
    "fedsynth, AIM, five owners": """\
import fedsynth as fs
schema = fs.draft(table).schema
owners = fs.partition(table, 5, "uniform", schema=schema)
rows = fs.AIM(schema).fit(owners, epsilon=1).sample(1_000)
""",
    "SDV, GaussianCopula": """\
from sdv.metadata import Metadata
from sdv.single_table import GaussianCopulaSynthesizer
metadata = Metadata.detect_from_dataframes({"table": table})
synthesizer = GaussianCopulaSynthesizer(metadata)
synthesizer.fit({"table": table})
rows = synthesizer.sample(num_rows=1_000)
""",
}


def seconds(code: str) -> float | None:
    """CPU seconds of a process that runs it, without reading the table; None where it fails."""

    def spent(source: str) -> float | None:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-W", "ignore", "-c", source]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            return None
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    whole, reading = spent(READ + code), spent(READ)
    return None if whole is None or reading is None else whole - reading


def main() -> None:
    for name, code in CODES.items():
        found = [seconds(code) for _ in range(3)]
        times = [one for one in found if one is not None]
        took = f"{min(times):.1f} to {max(times):.1f} CPU s" if times else "failed"
        print(f"{name}: {len(code.splitlines())} lines, {took}", flush=True)


if __name__ == "__main__":
    main()
