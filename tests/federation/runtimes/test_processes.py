"""A server and three sites as processes, killed while they are at work: nothing is lost or paid
twice."""

from __future__ import annotations

import json
import re
import runpy
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import yaml

from fedsynth.federation.keys import make_trial
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.privacy.trail.signatures import make_key
from fedsynth.privacy.verify.verification import verify
from fedsynth.yaml_files import write_yaml
from tests.federation.runtimes.processes import Command, Way
from tests.small_jobs import SCHEMA, SETTINGS, table

NAMES = ("north", "south", "west")
CANARY = "Zeppelin-4711"


def write_files(folder: Path, port: int) -> None:
    make_trial(folder / "keys", NAMES)
    columns = [*SCHEMA["columns"], {"kind": "identifier", "name": "note"}]
    write_yaml({**SCHEMA, "columns": columns}, folder / "schema.yaml")
    for name in NAMES:
        make_key(folder / name)
    for seed, name in enumerate(NAMES):
        table(120, seed).assign(note=CANARY).to_csv(folder / f"{name}.csv", index=False)
        site = {
            "name": name,
            "server": f"localhost:{port}",
            "keys": f"keys/{name}",
            "data": {"path": f"{name}.csv"},
            "schema": "schema.yaml",
            "holdout": 0.2,
            "account": {"path": f"accounts/{name}.jsonl", "epsilon": 8.0},
            "identity": f"{name}.key",
            "rules": {
                "trust": "distributed",
                "job_epsilon": 5.0,
                "methods": ["fedvae"],
                "cohort": 3,
                "peers": {other: f"{other}.pub" for other in NAMES if other != name},
            },
        }
        write_yaml(site, folder / f"{name}.yaml")
    job = {
        "schema": "schema.yaml",
        "privacy": {"epsilon": 5.0, "trust": "distributed"},
        "method": "fedvae",
        "settings": {**SETTINGS, "rounds": 16, "rate": 1.0},
        "federation": {
            "runtime": "stream",
            "owners": list(NAMES),
            "listen": "localhost:0",
            "secure": True,
        },
        "sample": {"rows": 50},
    }
    write_yaml(job, folder / "job.yaml")


def test_what_the_compose_file_runs_works_as_processes(tmp_path, monkeypatch):
    """Its very commands, each in the folder that its container sees as its own."""
    deploy = Path(__file__).parents[3] / "deploy"
    services = yaml.safe_load((deploy / "compose.yaml").read_text())["services"]
    way = Way()
    with ExitStack() as closing:
        closing.callback(way.close)
        prepare = services.pop("prepare")["entrypoint"]
        assert prepare[:3] == ["python", "/prepare.py", "/trial"]
        assert prepare[3:] == ["--server", "server:8443", "--listen", "0.0.0.0:8443"]
        runpy.run_path(str(deploy / "prepare.py"))["prepare"](
            tmp_path, f"localhost:{way.port}", "localhost:0"
        )
        # The same with fewer rows, and a model that is trained in no time.
        job = yaml.safe_load((tmp_path / "server/job.yaml").read_text())
        job |= {"method": "fedvae", "settings": {**SETTINGS, "rate": 1.0}}
        write_yaml(job, tmp_path / "server/job.yaml")
        for name in NAMES:
            rows = tmp_path / name / "rows.csv"
            rows.write_text("".join(rows.read_text().splitlines(keepends=True)[:120]))
        started = {}
        for name, service in services.items():
            assert service["volumes"] == [f"./trial/{name}:/machine"]
            assert ("ports" in service) == (name == "server")
            monkeypatch.chdir(tmp_path / name)
            started[name] = Command(tmp_path / f"{name}.out", *service["command"])
            closing.callback(started[name].kill)
            if name == "server":
                started[name].until(lambda: "listening at" in started["server"].said)
                port = re.findall(r"listening at localhost:(\d+)", started["server"].said)[-1]
                way.lead_to(int(port))
        assert {name: one.end() for name, one in started.items()} == dict.fromkeys(services, 0)
    told = Command(tmp_path / "verify.out", "verify", tmp_path / "server/release")
    assert told.end() == 0, told.said
    for name in NAMES:
        lines = [json.loads(line) for line in (tmp_path / name / "site.jsonl").open()]
        rounds = [line["round"] for line in lines if line["event"] == "ask"]
        assert rounds == charged(tmp_path / name / "account.jsonl") != []
        assert all(line["owner"] == name and line["bytes"] > 0 for line in lines)


def charged(path: Path) -> list[int]:
    """Rounds in a ledger that somebody may be writing."""
    whole = [line for line in path.read_text().split("\n")[:-1] if '"kind":"event"' in line]
    return [json.loads(line)["round"] for line in whole]


def test_a_killed_site_and_a_killed_server_come_back_and_the_job_ends_as_it_was_planned(tmp_path):
    with ExitStack() as closing:
        way, out = Way(), tmp_path / "out"
        closing.callback(way.close)
        write_files(tmp_path, way.port)
        serve = ("--keys", tmp_path / "keys" / "server", "--log", tmp_path / "log.jsonl")

        def start(name: str, *arguments: object) -> Command:
            command = Command(tmp_path / f"{name}.out", *arguments)
            closing.callback(command.kill)
            return command

        def started(*arguments: object) -> Command:
            server, before = start("server", *arguments), 0
            server.until(lambda: len(re.findall(r"listening at", server.said)) > before)
            way.lead_to(int(re.findall(r"listening at localhost:(\d+)", server.said)[-1]))
            return server

        def asked(rounds: int) -> bool:
            ledger = out / "ledger.jsonl"
            return ledger.exists() and len(charged(ledger)) >= rounds

        server = started("serve", tmp_path / "job.yaml", "--out", out, *serve)
        sites = {name: start(name, "join", tmp_path / f"{name}.yaml") for name in NAMES}
        server.until(lambda: asked(3), *sites.values())
        sites["south"].kill()
        sites["south"] = start("south", "join", tmp_path / "south.yaml")
        rounds = len(charged(out / "ledger.jsonl"))
        server.until(lambda: asked(rounds + 2), *sites.values())
        way.lead_to(None)
        server.kill()
        (tmp_path / "server.out").unlink()
        server = started("serve", "--resume", out, *serve)
        assert server.end() == 0, server.said
        assert {name: site.end() for name, site in sites.items()} == dict.fromkeys(NAMES, 0)

    assert [one.name for one in verify(out) if not one.passed] == []
    ledger = Ledger.read(out / "ledger.jsonl")
    assert ledger.job.secure == "apart"
    words = json.loads((out / "certificate.json").read_text())["guarantee"]["trust_in_words"]
    assert "secure aggregation, between owners on their own machines" in words
    asked_of_all = [event.round for event in ledger.events]
    assert asked_of_all == list(range(sum(planned.count for planned in ledger.job.plan)))
    for name in NAMES:
        # Paid for once, whoever was killed when; and kept by nobody now.
        assert Counter(charged(tmp_path / f"accounts/{name}.jsonl")) == Counter(asked_of_all)
    assert sorted(path.name for path in (tmp_path / "accounts").iterdir()) == [
        f"{name}.jsonl" for name in NAMES
    ]
    # Nothing of a row is in what the server has, nor in what anybody printed.
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".csv"]
    written.append(out / "rows.csv")
    assert [path for path in written if CANARY.encode() in path.read_bytes()] == []
    events = [json.loads(line)["event"] for line in (tmp_path / "log.jsonl").open()]
    assert Counter(events)["joined"] >= 7 and "bad" not in events
