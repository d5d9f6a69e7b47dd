"""Streams: how much of a job's time is the way between server and sites, and how many bytes.

    FEDSYNTH_DATA=.. OMP_NUM_THREADS=1 python evaluation/bench/stream.py [--method aim fedvae]
        [--trust central distributed]

Adult in three parts, each at a site that is a process of its own, over mutual TLS on this machine.
A round takes the server so long as it waits; what no site computes meanwhile is the way's: frames,
TLS, disks of accounts and answers apart from that. Sites on one machine share its cores, so the
slowest site of a round counts. Under distributed trust sums are secure ones, whose keys, masks and
steps are the way's, too. Seconds of a busy machine say little: `cpu` is what the way costs all four
processes together, in milliseconds of processor a round.
"""

from __future__ import annotations

import argparse
import itertools
import json
import logging
import multiprocessing
import os
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from fedsynth.data.tables import read_table
from fedsynth.federation.keys import load_keys, make_trial
from fedsynth.federation.runtimes.hub import Hub
from fedsynth.federation.runtimes.site import Site
from fedsynth.federation.runtimes.stream import Streams
from fedsynth.federation.simulation.partitions import partition
from fedsynth.jobs.config import load_config
from fedsynth.jobs.joining import join
from fedsynth.jobs.run import start
from fedsynth.privacy.trail.signatures import make_key
from fedsynth.schema import load_schema
from fedsynth.yaml_files import write_yaml

NAMES = ("north", "south", "west")
METHODS, TRUSTS = ("aim", "fedvae"), ("central", "distributed")
SCHEMA = Path(__file__).parents[2] / "configs" / "schemas" / "adult.yaml"


def site(path: Path, out: Path) -> None:
    """A site, with how long it takes for each answer in a file."""
    genuine, part, taken, cpu = Site._answer, Site._take_part, {}, [0.0, 0.0]
    secret = [0.0, 0.0]

    def timed(self, frame):
        cpu[0] = cpu[0] or time.process_time()
        secret[:] = 0.0, 0.0
        began, busy = time.perf_counter(), time.thread_time()
        reply = genuine(self, frame)
        taken[frame.plain["round"]] = time.perf_counter() - began - secret[0]
        cpu[1] += time.thread_time() - busy - secret[1]
        return reply

    def masked(self, *given):
        """Its part in a secure sum, which is the way's where it comes with the answer, too."""
        began, busy = time.perf_counter(), time.thread_time()
        found = part(self, *given)
        secret[0] += time.perf_counter() - began
        secret[1] += time.thread_time() - busy
        return found

    Site._answer, Site._take_part = timed, masked
    join(path, lambda _: None, lambda _: None)
    way = time.process_time() - sum(cpu)
    out.write_text(json.dumps({"taken": taken, "way": way}))


class Rounds(logging.Handler):
    """Seconds that the server waited for each round."""

    def __init__(self) -> None:
        super().__init__()
        self.took: dict[int, float] = {}

    def emit(self, record: logging.LogRecord) -> None:
        if isinstance(record.args, dict) and record.args["event"] == "round":
            self.took[record.args["round"]] = record.args["took"]


def measure(method: str, trust: str, data: Path, schema: Path) -> dict[str, object]:
    declared = load_schema(schema)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_trial(folder / "keys", NAMES)
        declared.save(folder / "schema.yaml")
        parts = partition(read_table(data, declared), len(NAMES), "uniform", schema=declared)
        job = {
            "schema": "schema.yaml",
            "privacy": {"epsilon": 1.0, "trust": trust},
            "method": method,
            "federation": {"runtime": "stream", "owners": list(NAMES), "deadline": 600},
        }
        if trust == "distributed":
            job["federation"]["secure"] = True
            for own in NAMES:
                make_key(folder / own)
        write_yaml(job, folder / "job.yaml")
        config, base = load_config(folder / "job.yaml")
        events, log = Rounds(), logging.getLogger("fedsynth.hub")
        log.addHandler(events)
        log.setLevel(logging.INFO)
        log.propagate = False
        asking, busy = Hub.sum, [0.0]

        def asked(hub, *given):
            began = time.process_time()
            found = asking(hub, *given)
            busy[0] += time.process_time() - began
            return found

        Hub.sum = asked
        keys = load_keys(folder / "keys" / "server")
        with Streams(NAMES, "localhost:0", keys) as streams:
            processes = []
            for own, rows in zip(NAMES, dict(parts).values(), strict=True):
                rows.to_csv(folder / f"{own}.csv", index=False)
                content = {
                    "name": own,
                    "server": streams.address,
                    "keys": f"keys/{own}",
                    "data": {"path": f"{own}.csv"},
                    "schema": "schema.yaml",
                    "account": {"path": f"accounts/{own}.jsonl", "epsilon": 3.0},
                    "rules": {"trust": trust, "job_epsilon": 1.0, "methods": [method]},
                }
                if trust == "distributed":
                    content["identity"] = f"{own}.key"
                    content["rules"]["peers"] = {n: f"{n}.pub" for n in NAMES if n != own}
                write_yaml(content, folder / f"{own}.yaml")
                files = folder / f"{own}.yaml", folder / f"{own}.json"
                processes.append(multiprocessing.Process(target=site, args=files))
                processes[-1].start()
            streams.hub.wait()
            began = time.perf_counter()
            start(config, base, folder / "out", lambda *_: None, lambda _: None, streams)
            whole = time.perf_counter() - began
            counts = dict(streams.hub.counts)
        for process in processes:
            process.join()
        slowest: dict[int, float] = defaultdict(float)
        for own in NAMES:
            told = json.loads((folder / f"{own}.json").read_text())
            busy[0] += told["way"]
            for number, seconds in told["taken"].items():
                slowest[int(number)] = max(slowest[int(number)], seconds)
        log.removeHandler(events)
        Hub.sum = asking
    way = sum(took - slowest[number] for number, took in events.took.items())
    rounds = len(events.took)
    return {
        "method": method,
        "trust": trust,
        "rounds": rounds,
        "seconds": round(whole, 2),
        "way": round(way, 3),
        "share": round(way / whole, 4),
        "milliseconds_a_round": round(1000 * way / rounds, 2),
        "cpu": round(1000 * busy[0] / rounds, 1),
        "bytes_a_round_and_site": round((counts["down"] + counts["up"]) / rounds / len(NAMES)),
        "bytes": counts["down"] + counts["up"],
        "load": round(os.getloadavg()[0], 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--method", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--trust", nargs="+", default=TRUSTS, choices=TRUSTS)
    given = parser.parse_args()
    root = Path(os.environ["FEDSYNTH_DATA"])
    for method, trust in itertools.product(given.method, given.trust):
        found = measure(method, trust, root / "adult" / "adult.csv.gz", SCHEMA)
        print(json.dumps(found))


if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    main()
