"""Epsilon for each adversary of the shipped jobs, with shares of noise for all owners and for all
but one; from plans alone, without data.

    python evaluation/studies/adversaries.py [JOB ...]
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

from fedsynth.jobs.config import AUTO, load_config
from fedsynth.jobs.data import read_schema
from fedsynth.registry import choose, synthesizer

HOME = Path(__file__).resolve().parents[2]
OUT = HOME / "evaluation/results/adversaries.jsonl"
JOBS = ("demo", "adult", "mnist-writers", "digits")


def rows(name: str, curious: int) -> list[dict]:
    config, base = load_config(HOME / f"configs/{name}.yaml", [])
    schema = read_schema(config, base)
    budget = replace(config.privacy.budget, curious=curious)
    method = config.method
    if method == AUTO:
        method = choose(schema, budget).method
    clients = len(config.sites.declared or ()) or config.sites.clients
    plan = synthesizer(method, schema, config.settings, None).plan(
        budget, clients, config.federation.survivors
    )
    return [
        {
            "job": name,
            "method": method,
            "clients": clients,
            "trust": budget.trust,
            "curious": curious,
            "for": one.who,
            "epsilon": str(round(one.epsilon, 4)),
            "promised": one.promised,
        }
        for one in plan.adversaries()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("jobs", nargs="*", default=JOBS)
    OUT.unlink(missing_ok=True)
    for name in parser.parse_args().jobs:
        for curious in (0, 1):
            found = rows(name, curious)
            with OUT.open("a") as file:
                file.writelines(json.dumps(row) + "\n" for row in found)
            for row in found:
                print(*row.values(), sep="  ", flush=True)


if __name__ == "__main__":
    main()
