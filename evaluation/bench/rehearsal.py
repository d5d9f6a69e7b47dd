"""How near `fedsynth plan --rehearse` comes: a job on invented rows, beside one on real rows.

    FEDSYNTH_DATA=../shared/data python evaluation/bench/rehearsal.py [--data NAME ..]

Ten owners, epsilon 1, distributed trust, each fit in a process of its own: seconds of processors
and the most memory, rehearsed over real. FedVAE trains for 20 rounds.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "studies"))

DATA = ("randhie", "adult", "bank_marketing", "credit_default")
METHODS = {"aim": {}, "mst": {}, "private-fusion": {}, "fedvae": {"rounds": 20}}
CLIENTS = 10


def measure(data, method, kind):
    """Processor seconds and peak bytes of one fit in this process."""
    from marginals import rows_of

    import fedsynth as fs
    from fedsynth.planning.rehearsal import rehearse

    table, schema = rows_of(data)
    budget = fs.Budget(epsilon=1.0, delta=1e-5)
    synth = fs.synthesizer(method, schema, METHODS[method])
    if kind == "rehearsed":
        found = rehearse(synth, budget, CLIENTS, len(table))
        return found.processor_seconds, found.memory
    owners = fs.partition(table, CLIENTS, "uniform", schema=schema, seed=0)
    began = time.process_time()
    synth.fit(owners, budget, insecure_noise_seed=0, outside="allow", progress=False)
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return time.process_time() - began, held * 1024.0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=DATA, default=DATA)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(*given.one)))
        return
    for data in given.data:
        for method in METHODS:
            found = {}
            for kind in ("real", "rehearsed"):
                command = [sys.executable, "-W", "ignore", __file__, "--one", data, method, kind]
                said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                found[kind] = json.loads(said)
            seconds, memory = (found["rehearsed"][k] / found["real"][k] for k in (0, 1))
            real = {"seconds": round(found["real"][0], 2), "mib": round(found["real"][1] / 2**20)}
            ratio = {"ratio_seconds": round(seconds, 2), "ratio_memory": round(memory, 2)}
            print(json.dumps({"data": data, "method": method, **real, **ratio}), flush=True)


if __name__ == "__main__":
    main()
