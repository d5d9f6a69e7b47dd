"""What carries a job where both can: its plan says, or its file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fedsynth.cli import app as cli
from fedsynth.errors import ConfigError
from fedsynth.jobs.carriers import choose_carrier
from fedsynth.jobs.config import Config, load_config
from fedsynth.jobs.serving import by_streams


def job(method: str, trust: str = "central", **federation: object) -> Config:
    owners = {"runtime": "stream", "owners": ["north", "south", "west"], **federation}
    return Config(
        schema="health",
        privacy={"epsilon": 1.0, "trust": trust},
        method=method,
        federation=owners,
    )


@pytest.mark.parametrize(
    ("method", "trust", "carrier", "why"),
    [
        ("aim", "central", "messages", "6 questions"),
        ("aim", "distributed", "messages", "6 questions in 8 messages"),
        ("privbayes", "central", "messages", "3 questions"),
        ("auto", "local", "messages", "6 questions"),
        ("fedinfer", "central", "messages", "1 question"),
        ("fedvae", "central", "stream", "questions"),
        ("federated-classifier", "central", "stream", "questions"),
        ("pate-gan", "central", "stream", "has owners remember models"),
    ],
)
def test_few_questions_go_by_messages_and_many_by_stream(method, trust, carrier, why, tmp_path):
    more = {"secure": True} if trust == "distributed" else {}
    chosen, because = choose_carrier(job(method, trust, carrier="auto", **more), tmp_path)
    assert chosen == carrier and why in because
    assert choose_carrier(job(method, trust, **more), tmp_path) == (chosen, because)


def test_a_job_may_say_what_carries_it(tmp_path):
    assert choose_carrier(job("aim", carrier="stream"), tmp_path)[0] == "stream"
    assert choose_carrier(job("fedvae", carrier="messages"), tmp_path)[0] == "messages"
    with pytest.raises(ConfigError, match=r"carrier: pate-gan has owners remember .* say stream"):
        choose_carrier(job("pate-gan", carrier="messages"), tmp_path)


def test_what_cannot_carry_a_job_is_said_before_anybody_is_asked(tmp_path):
    carry = by_streams(None)
    with (
        pytest.raises(ConfigError, match="carrier: messages are Flower's"),
        carry(job("aim", carrier="messages", listen="127.0.0.1:0"), tmp_path),
    ):
        pass
    with pytest.raises(ConfigError, match="`carrier` goes with `runtime: stream`"):
        Config(
            data={"builtin": "health"},
            sites={"column": "site"},
            privacy="none",
            federation={"carrier": "messages"},
        )
    with pytest.raises(ConfigError, match="carrier"):
        job("aim", carrier="pigeons")


def test_a_job_is_written_with_what_carried_it(tmp_path):
    job("aim").carried_by("messages").save(path := Path(tmp_path / "job.yaml"))
    assert load_config(path)[0].federation.carrier == "messages"
    job("aim").save(path)
    assert "carrier" not in path.read_text()


def test_a_plan_says_what_carries_it_on_flower(tmp_path, capsys):
    job("aim").save(path := tmp_path / "job.yaml")
    assert cli.run(["plan", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["carrier"] == "messages"
    assert cli.run(["plan", str(path), "--set", "federation.carrier=messages"]) == 0
    told = "On Flower it goes by messages (the job says so, of 6 questions)"
    assert told in capsys.readouterr().out
