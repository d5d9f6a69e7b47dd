"""Apps of Flower: a job from its file to its release, and what leaves a node; once on Flower itself
where it is installed, else on one that holds what it is given."""

from __future__ import annotations

import importlib
import itertools
import os
import re
import signal
import socket
import subprocess
import sys
import time
import tomllib
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from types import ModuleType, SimpleNamespace

import pandas as pd
import pytest

from fedsynth.errors import ConfigError, MachineError
from fedsynth.federation.runtimes.hub import Hub
from fedsynth.jobs.config import load_config
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.privacy.verify.verification import verify
from fedsynth.yaml_files import write_yaml
from tests.small_jobs import SCHEMA, table

NODES = {11: "north", 12: "south"}
GUIDE = Path(__file__).parents[1] / "docs" / "deploying.md"
CANARY = "patient Zeppelin-4711"
JOB = {
    "schema": "schema.yaml",
    "privacy": {"epsilon": 5.0, "delta": 1e-4, "trust": "central"},
    "method": "aim",
    "settings": {"selection": "sums", "messages": 1, "iterations": 5},
    "federation": {"runtime": "stream", "owners": list(NODES.values())},
    "sample": {"rows": 20},
}


class Record(dict):
    pass


class Message:
    """As Flower's, of what these apps use."""

    def __init__(self, content, dst_node_id=None, message_type=None, *, reply_to=None):
        self.content, self.to = content, dst_node_id
        answered = reply_to and reply_to.name
        self.name, self.metadata = None, SimpleNamespace(reply_to_message_id=answered)

    def has_error(self) -> bool:
        return self.content is None


class App:
    """An app, whichever half."""

    def main(self):
        return lambda function: setattr(self, "run", function)

    query = main


@pytest.fixture
def flower(monkeypatch):
    """The module, on such a Flower."""
    parts = {
        "app": {"ConfigRecord": Record, "Context": object, "Message": Message,
                "MessageType": SimpleNamespace(QUERY="query"), "RecordDict": Record},
        "clientapp": {"ClientApp": App},
        "serverapp": {"Grid": object, "ServerApp": App},
    }  # fmt: skip
    monkeypatch.setitem(sys.modules, "flwr", ModuleType("flwr"))
    for name, held in parts.items():
        module = ModuleType(f"flwr.{name}")
        vars(module).update(held)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.delitem(sys.modules, "fedsynth.flower", raising=False)
    made = importlib.import_module("fedsynth.flower")
    monkeypatch.setattr("fedsynth.federation.runtimes.messages._PAUSE", 0.001)
    yield made
    sys.modules.pop("fedsynth.flower", None)


class Grid:
    """Has every message answered by a node's app."""

    def __init__(self, module, folder: Path, *, insecure: bool = False) -> None:
        self.insecure, self.sent = insecure, 0
        self.module, self.folder, self.names = module, folder, itertools.count()
        self.replies: list[Message] = []

    def get_node_ids(self):
        return list(NODES)

    def push_messages(self, messages):
        names = []
        for message in messages:
            message.name = str(next(self.names))
            self.sent += 1
            names.append(message.name)
            site = str(self.folder / f"{NODES[message.to]}.yaml")
            told = SimpleNamespace(node_config={"site": site, "insecure": self.insecure})
            if self.insecure:
                Thread(target=self._run, args=(message, told), daemon=True).start()
            else:
                self._run(message, told)
        return names

    def _run(self, message, told) -> None:
        reply = self.module.client_app.run(message, told)
        self.replies.append(reply)

    def pull_messages(self, names):
        came, self.replies = self.replies, []
        return came


@pytest.fixture
def folder(tmp_path) -> Path:
    write_files(tmp_path)
    return tmp_path


def write_files(folder: Path) -> None:
    write_yaml(SCHEMA, folder / "schema.yaml")
    write_yaml(JOB, folder / "job.yaml")
    for seed, name in enumerate(NODES.values()):
        table(40, seed).to_csv(folder / f"{name}.csv", index=False)
        site = {
            "name": name,
            "data": {"path": f"{name}.csv"},
            "schema": "schema.yaml",
            "account": {"path": f"accounts/{name}.jsonl", "epsilon": 8.0, "delta": 1e-3},
            "rules": {"trust": "central", "job_epsilon": 5.0, "job_delta": 1e-4,
                      "methods": ["aim"], "cohort": 2},
        }  # fmt: skip
        write_yaml(site, folder / f"{name}.yaml")


def serve(flower, folder: Path, **told: object) -> Grid:
    paths = {"job": str(folder / "job.yaml"), "out": str(folder / "release")}
    run = {**paths, "nodes": "", "log": "", "keys": "", "resume": False, "insecure": False, **told}
    grid = Grid(flower, folder, insecure=run["insecure"] is True)
    flower.server_app.run(grid, SimpleNamespace(run_config=run))
    return grid


def charged(folder: Path) -> list[list[int]]:
    paths = [folder / "accounts" / f"{name}.jsonl" for name in NODES.values()]
    return [[event.round for event in Ledger.read(path).events] for path in paths]


def test_a_job_is_run_and_a_server_that_died_goes_on(flower, folder, monkeypatch, capsys):
    genuine, sums = Hub.sum, []

    def dying(self, *asked):
        sums.append(asked)
        if len(sums) == 2:
            raise KeyboardInterrupt
        return genuine(self, *asked)

    monkeypatch.setattr(Hub, "sum", dying)
    with pytest.raises(KeyboardInterrupt):
        serve(flower, folder, log=str(folder / "log.jsonl"))
    serve(flower, folder, resume=True, nodes="north=11 south=12")
    assert charged(folder) == [[0, 1, 2]] * 2
    assert not list((folder / "accounts").glob("*.jobs/*"))
    assert len(pd.read_csv(folder / "release" / "rows.csv")) == 20
    assert load_config(folder / "release" / "config.yaml")[0].federation.carrier == "messages"
    said = capsys.readouterr()
    assert "carrier: messages (3 questions)" in said.err and "north: joined" in said.err
    assert "messages: " in said.err and "Void" not in said.out
    assert '"event": "round"' in (folder / "log.jsonl").read_text()
    assert verify(folder / "release").passed


def test_a_job_of_many_questions_has_its_sites_dial(flower, folder, capsys):
    with socket.create_server(("127.0.0.1", 0)) as door:
        address = f"127.0.0.1:{door.getsockname()[1]}"
    federation = {**JOB["federation"], "carrier": "stream", "listen": address}
    write_yaml({**JOB, "federation": federation}, folder / "job.yaml")
    with pytest.raises(ConfigError, match=r"goes by stream \(the job says so, of 3 questions\)"):
        serve(flower, folder)
    for name in NODES.values():
        path = folder / f"{name}.yaml"
        path.write_text(f"server: {address}\n{path.read_text()}")
    grid = serve(flower, folder, insecure=True)
    # One message a site, which is answered when its job is finished.
    assert grid.sent == 2 and not grid.replies
    assert charged(folder) == [[0, 1, 2]] * 2
    assert "carrier: stream" in (said := capsys.readouterr().err)
    assert f"north is connected to {address}" in said and "south: joined" in said
    assert load_config(folder / "release" / "config.yaml")[0].federation.carrier == "stream"


def test_what_goes_wrong_at_a_node_is_told_there_and_leaves_it_in_no_word(flower, folder, capsys):
    (folder / "north.csv").write_text(f"age,colour,income\n{CANARY},red,low\n")
    grid = Grid(flower, folder)
    for site, parcel in (("north", []), ("nowhere", []), ("north", None)):
        message = Message({"fedsynth": Record(frames=parcel)}, 11)
        told = SimpleNamespace(node_config={"site": str(folder / f"{site}.yaml")})
        reply = flower.client_app.run(message, told)
        assert reply.content == {"fedsynth": {"frames": []}}
    said = capsys.readouterr().err
    assert "nowhere.yaml" in said and "sent what is no message" in said
    assert said.count("error: ") == 3
    assert grid.replies == []


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"jobs": 1}, "unknown key 'jobs'"),
        ({"job": "job.yaml"}, "`job` is to be an absolute path"),
        ({"out": ""}, "`out` is to be an absolute path"),
        ({"resume": "yes"}, "`resume` is to be true or false"),
        ({"nodes": "north:11"}, "'north:11' is no OWNER=NODE"),
        ({"nodes": "north=11 north=12"}, "'north=12' is no OWNER=NODE"),
        ({"nodes": "east=11"}, "nodes: east is not among the job's owners"),
    ],
)
def test_a_run_that_is_told_nonsense_asks_nobody(told, message, flower, folder):
    with pytest.raises(ConfigError, match=message):
        serve(flower, folder, **told)
    assert not (folder / "accounts").exists() and not (folder / "release").exists()


def test_without_flower_it_says_what_to_install(monkeypatch):
    for name in ("flwr", "flwr.app"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "fedsynth.flower", raising=False)
    with pytest.raises(MachineError, match=r"pip install 'fedsynth\[flower\]'"):
        importlib.import_module("fedsynth.flower")


def app_of_the_guide() -> str:
    """What the guide has for a Flower app."""
    (found,) = re.findall(r"```toml\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    return found


def test_the_guides_app_names_these_apps_and_says_all_that_may_be_told(flower):
    told = tomllib.loads(app_of_the_guide())["tool"]["flwr"]["app"]
    halves = [value.partition(":") for value in told["components"].values()]
    assert [(module, hasattr(flower, name)) for module, _, name in halves] == [
        ("fedsynth.flower", True)
    ] * 2
    # What an app does not name no run can set.
    assert set(told["config"]) == flower._RUN


class Processes:
    """Flower's own processes, on ports of this machine; they end with it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.started = folder, list[subprocess.Popen[bytes]]()
        (folder / "home").mkdir()
        quiet = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}
        tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        root = str(Path(__file__).resolve().parent.parent)
        self.environment = {**os.environ, **quiet, "FLWR_HOME": str(folder / "home"),
                            "PATH": tools, "PYTHONPATH": root}  # fmt: skip
        self.ports = []
        for _ in range(3):
            with socket.create_server(("127.0.0.1", 0)) as door:
                self.ports.append(door.getsockname()[1])

    def start(self, *command: str) -> None:
        out = (self.folder / f"{len(self.started)}.log").open("wb")
        more = {"env": self.environment, "cwd": self.folder}
        self.started.append(subprocess.Popen(command, stdout=out, stderr=out, **more))
        out.close()

    def run(self, *command: str) -> str:
        done = subprocess.run(command, capture_output=True, text=True, env=self.environment,
                              cwd=self.folder)  # fmt: skip
        return done.stdout + done.stderr

    def until(self, port: int) -> None:
        """Wait until somebody listens there, or the process that was to is gone."""
        while True:
            with socket.socket() as door:
                if door.connect_ex(("127.0.0.1", port)) == 0:
                    return
            assert self.started[-1].poll() is None, self.said()
            time.sleep(0.2)

    def said(self) -> str:
        return "\n".join(path.read_text() for path in sorted(self.folder.glob("*.log")))

    def end(self) -> None:
        """End these processes and what they started, some of it in sessions of its own."""
        listed = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True).stdout
        parents = [[int(number) for number in line.split()] for line in listed.splitlines()]
        ending = {process.pid for process in self.started}
        while more := {own for own, parent in parents if parent in ending} - ending:
            ending |= more
        for own in ending:
            with suppress(ProcessLookupError):
                os.kill(own, signal.SIGKILL)
        for process in self.started:
            process.wait()


@pytest.mark.skipif(find_spec("flwr") is None, reason="needs Flower: fedsynth[flower]")
def test_a_job_runs_on_a_superlink_and_two_supernodes(folder):
    """A process a message, each of which takes seconds to start."""
    flower = Processes(folder)
    link, *ports = flower.ports
    address = f"127.0.0.1:{link}"
    app = folder / "app"
    app.mkdir()
    (app / "pyproject.toml").write_text(app_of_the_guide())
    (app / "LICENSE").write_text("Apache-2.0")
    (folder / "home" / "config.toml").write_text(
        f'[superlink.here]\naddress = "{address}"\ninsecure = true\n'
    )
    job = {**JOB, "method": "fedinfer", "settings": None, "privacy": {**JOB["privacy"]}}
    write_yaml({key: value for key, value in job.items() if value}, folder / "job.yaml")
    for name in NODES.values():
        path = folder / f"{name}.yaml"
        path.write_text(path.read_text().replace("aim", "fedinfer"))
    try:
        flower.start("flower-superlink", "--insecure", "--host", "127.0.0.1", "--port", str(link),
                     "--disable-runtime-dependency-installation")  # fmt: skip
        flower.until(link)
        for name, port in zip(NODES.values(), ports, strict=True):
            site = f'site="{folder / name}.yaml" insecure=true'
            flower.start("flower-supernode", "--insecure", "--superlink", address,
                         "--port", str(port), "--node-config", site)  # fmt: skip
        told = f'job="{folder}/job.yaml" out="{folder}/release" insecure=true'
        said = flower.run("flwr", "run", str(app), "here", "--stream", "--run-config", told)
    finally:
        flower.end()
    assert "carrier: messages (1 question)" in said, said + flower.said()
    assert "messages: 8 sent, 0 of them failed" in said
    assert charged(folder) == [[0]] * 2
    assert len(pd.read_csv(folder / "release" / "rows.csv")) == 20
    assert load_config(folder / "release" / "config.yaml")[0].federation.carrier == "messages"
