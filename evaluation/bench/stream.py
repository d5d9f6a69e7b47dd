"""Streams: how much of a job's time is the way between server and sites, and how many bytes.

    FEDSYNTH_DATA=.. OMP_NUM_THREADS=1 python evaluation/bench/stream.py [--method aim fedvae]
        [--trust central distributed]

Adult in three parts, each at a site that is a process of its own, over mutual TLS on this machine.
A round takes the server so long as it waits; what no site computes meanwhile is the way's: frames,
TLS, disks of accounts and answers apart from that. Sites on one machine share its cores, so the
slowest site of a round counts. Under distributed trust sums are secure ones, whose keys, masks and
steps are the way's, too.
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
    genuine, taken = Site._answer, {}

    def timed(self, frame):
        began = time.perf_counter()
        reply = genuine(self, frame)
        taken[frame.plain["round"]] = time.perf_counter() - began
        return reply

    Site._answer = timed
    join(path, lambda _: None, lambda _: None)
    out.write_text(json.dumps(taken))


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
            for number, seconds in json.loads((folder / f"{own}.json").read_text()).items():
                slowest[int(number)] = max(slowest[int(number)], seconds)
        log.removeHandler(events)
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
