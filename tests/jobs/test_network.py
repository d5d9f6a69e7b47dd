"""Jobs over a network, and site files: what is whose, and what is refused before anything."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from fedsynth.cli.network import logged
from fedsynth.errors import ConfigError
from fedsynth.federation.keys import fingerprint, load_keys, make_request, make_trial
from fedsynth.federation.runtimes.stream import Streams
from fedsynth.jobs.config import Config, load_config
from fedsynth.jobs.data import count_clients, read_schema
from fedsynth.jobs.joining import JOBS, load_site, open_site
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.agreement import agreement_of
from fedsynth.privacy.trail.job import Event, Job, Planned
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.privacy.trail.signatures import make_key, read_keys, read_secret
from fedsynth.yaml_files import write_yaml
from tests.small_jobs import SCHEMA, table, write_job

JOB = {
    "schema": "schema.yaml",
    "privacy": {"epsilon": 1.0, "trust": "central"},
    "method": "aim",
    "federation": {"runtime": "stream", "owners": ["north", "south", "west"]},
}
SITE = {
    "name": "north",
    "server": "localhost:8443",
    "data": {"path": "north.csv"},
    "schema": "schema.yaml",
    "account": {"path": "accounts/north.jsonl", "epsilon": 3.0},
    "rules": {"trust": "central", "job_epsilon": 1.0, "methods": ["aim"]},
}

SECURE = {
    "trust": "distributed",
    "job_epsilon": 1.0,
    "peers": {"south": "0" * 64, "west": "1" * 64},
}


@pytest.fixture
def folder(tmp_path) -> Path:
    write_yaml(SCHEMA, tmp_path / "schema.yaml")
    table(40).to_csv(tmp_path / "north.csv", index=False)
    write_yaml(JOB, tmp_path / "job.yaml")
    write_yaml(SITE, tmp_path / "site.yaml")
    return tmp_path


def with_(content: dict, key: str, value: object) -> dict:
    head, _, rest = key.partition(".")
    inner = value if not rest else with_(content.get(head) or {}, rest, value)
    return {**content, head: inner}


def test_a_job_over_a_network_is_saved_and_read_back_as_it_is(folder):
    job, base = load_config(folder / "job.yaml")
    job.save(folder / "again.yaml")
    assert load_config(folder / "again.yaml")[0] == job
    assert Config(**job.to_dict()) == job
    assert not {"data", "sites", "holdout", "outside"} & job.to_dict().keys()
    assert count_clients(job, read_schema(job, base)) == 3
    assert job.federation.patience == 600


def test_a_job_is_resumed_with_the_same_owners_in_the_same_order(folder):
    def agreed(*owners: str) -> object:
        changes = [f"federation.owners=[{', '.join(owners)}]"]
        return agreement_of(load_config(folder / "job.yaml", changes)[0].to_dict())

    assert agreed("north", "south") == agreed("north", "south") != agreed("south", "north")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("data.path=a.csv", "leave `data` away, which is the owners' own"),
        ("sites={clients: 3, scheme: uniform}", "leave `sites` away"),
        ("holdout=0.2", "leave `holdout` away"),
        ("outside=allow", "leave `outside` away"),
        ("federation.owners=[]", "`owners` must be a list of names"),
        ("federation.owners=[a, a]", "names one twice"),
        ("federation.owners=null", "needs `owners`"),
        ("federation.runtime=carrier", "`runtime` must be stream, or left away"),
        ("federation.ledgers={folder: a, epsilon: 1}", "each keeps its own account"),
    ],
)
def test_what_is_not_the_servers_in_a_job_is_refused_in_words(change, message, folder):
    with pytest.raises(ConfigError, match=r"job\.yaml") as caught:
        load_config(folder / "job.yaml", [change])
    assert message in str(caught.value)


def test_owners_of_a_network_are_of_none_in_one_process(tmp_path):
    with pytest.raises(ConfigError, match="`owners` goes with `runtime: stream`"):
        load_config(write_job(tmp_path), ["federation.owners=[a, b]"])


def test_run_and_plan_say_who_has_the_rows(folder, call):
    code, _, err = call("run", folder / "job.yaml", "--out", folder / "out")
    assert code == 2 and "`fedsynth serve` runs it" in err
    assert not (folder / "out").exists()
    code, out, _ = call("plan", folder / "job.yaml")
    assert code == 0 and "3 clients" in out


@pytest.mark.parametrize(
    ("changes", "options", "code", "message"),
    [
        ({"privacy.trust": "distributed"}, ["--insecure"], 4, "sums that nobody can open"),
        ({}, [], 2, "say --keys DIR"),
        ({}, ["--keys", "none"], 2, "cannot be read"),
        ({"federation.listen": "0.0.0.0:0"}, ["--insecure"], 2, "without encryption"),
        ({"federation.listen": "here"}, ["--insecure"], 2, "is no HOST:PORT"),
    ],
)
def test_serve_refuses_before_it_waits_for_anybody(changes, options, code, message, folder, call):
    job = JOB
    for key, value in changes.items():
        job = with_(job, key, value)
    write_yaml(job, folder / "job.yaml")
    got, _, err = call("serve", folder / "job.yaml", "--out", folder / "out", *options)
    assert got == code and message in err
    assert not (folder / "out").exists()


def test_serve_is_for_owners_elsewhere(folder, call):
    write_yaml({**SITE, "name": "x"}, folder / "site.yaml")
    code, _, err = call("serve", "demo", "--out", folder / "out", "--insecure")
    assert code == 2 and "`fedsynth run` runs it" in err
    code, _, err = call("serve", "--insecure")
    assert code == 2 and "say which job to serve" in err


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("name", "a/b", "no owner's name"),
        ("data", {"builtin": "rand"}, "`data` needs `path`"),
        ("data", {}, "`data` needs `path`"),
        ("account", {"epsilon": 1.0}, "`path` is needed"),
        ("account.epsilon", 0, "`epsilon` must be a number above 0"),
        ("rules.trust", "nobody", "trust must be one of"),
        ("rules.methods", ["aimm"], "did you mean 'aim'?"),
        ("rules.job_epsilon", "inf", "no account of finite epsilon carries it"),
        ("rules.limits", {"message": 65}, "`message` must be MiB, from 1 to 64"),
        ("rules.peer", {}, "unknown key 'peer'"),
        ("rules.peers", {}, "`peers` needs `peers` that are named"),
        ("rules.peers", {"north": "0" * 64}, "leave 'north' out of them"),
        ("rules.threshold", 2, "`threshold` needs `peers`"),
        ("rules", {**SECURE, "threshold": 1}, "is not from 2 to 3"),
        ("rules", {**SECURE, "peers": {"south": "0" * 64, "west": "0" * 64}}, "same key as south"),
        ("rules", {**SECURE, "peers": {"south": "nowhere.pub"}}, "nowhere.pub"),
        ("identity", "nowhere.key", "nowhere.key"),
        ("holdout", 1.0, "`holdout` must be a share from 0 to below 1"),
        ("schema", "nowhere.yaml", "nowhere.yaml"),
    ],
)
def test_a_wrong_site_file_says_where_and_what(key, value, message, folder, call):
    content = with_(SITE, key, float("inf") if value == "inf" else value)
    write_yaml({k: v for k, v in content.items() if v is not None}, folder / "site.yaml")
    code, _, err = call("join", folder / "site.yaml", "--insecure", "--check")
    assert code in (2, 3) and message in err
    assert not (folder / "accounts").exists()


def test_a_check_reads_everything_and_asks_nobody(folder, call):
    code, _, err = call("join", folder / "site.yaml", "--insecure", "--check")
    assert code == 0 and "nobody was asked" in err and "NOT ENCRYPTED" in err
    code, _, err = call("join", folder / "site.yaml", "--check")
    assert code == 2 and "`keys` is needed" in err
    make_trial(folder / "keys", ["south"])
    write_yaml({**SITE, "keys": "keys/south"}, folder / "site.yaml")
    code, _, err = call("join", folder / "site.yaml", "--check")
    assert code == 2 and "the certificate in `keys` is of 'south'" in err


def test_a_check_says_what_is_joined_and_whether_the_server_lets_it(folder, call):
    code, _, err = call("join", folder / "site.yaml", "--insecure", "--check")
    told = "jobs of aim; that protect a record under trust central or a stricter one, at epsilon 1"
    assert code == 0 and told in err
    for owners, words in (["north"], "may join, if it runs"), (["south"], "not on the roster"):
        with Streams(owners, "localhost:0", None) as streams:
            write_yaml({**SITE, "server": streams.address}, folder / "site.yaml")
            code, _, err = call("join", folder / "site.yaml", "--insecure", "--check", "--dial")
            assert code == 0 and words in err and streams.hub.present == ()
    code, _, err = call("join", folder / "site.yaml", "--insecure", "--check", "--dial")
    assert code == 0 and "cannot be reached" in err
    assert call("join", folder / "site.yaml", "--insecure", "--dial")[0] == 2


def test_a_site_without_a_server_dials_nobody(folder, call):
    write_yaml({key: value for key, value in SITE.items() if key != "server"}, folder / "s.yaml")
    code, _, err = call("join", folder / "s.yaml", "--check")
    assert code == 0 and "no `server`: it dials nobody" in err
    code, _, err = call("join", folder / "s.yaml", "--insecure")
    assert code == 2 and "`server` is needed" in err


def test_a_check_says_what_is_missing_for_distributed_trust_and_peers_are_read(folder, call):
    _, _, err = call("join", folder / "site.yaml", "--insecure", "--check")
    assert "for want of `identity`" in err and "and `rules: peers`" in err
    make_key(folder / "north")
    _, public = make_key(folder / "south")
    (key,) = read_keys(public)
    rules = {**SECURE, "peers": {"south": "south.pub", "west": "1" * 64}, "threshold": 3}
    write_yaml({**SITE, "identity": "north.key", "rules": rules}, folder / "site.yaml")
    code, _, err = call("join", folder / "site.yaml", "--insecure", "--check")
    assert code == 0 and "for want of" not in err
    file = load_site(folder / "site.yaml")
    with open_site(file, folder, lambda _: None) as site:
        assert site._rules.peers == {"south": bytes.fromhex(key), "west": b"\x11" * 32}
        assert (site._rules.threshold, site._rules.curious) == (3, None)
        assert site._identity == read_secret(folder / "north.key")
    own = {**rules, "peers": {**rules["peers"], "south": "north.pub"}}
    write_yaml({**SITE, "identity": "north.key", "rules": own}, folder / "site.yaml")
    code, _, err = call("join", folder / "site.yaml", "--insecure", "--check")
    assert code == 2 and "south has the same key as this site" in err


def test_what_is_held_out_is_the_same_at_every_start(folder):
    write_yaml({**SITE, "holdout": 0.25}, folder / "site.yaml")
    seen = []
    for _ in range(2):
        file = load_site(folder / "site.yaml")
        with open_site(file, folder, lambda _: None) as site:
            seen.append((site._client.records, site._rows))
    assert seen[0] == seen[1] and seen[0][0] == 30
    assert not (folder / f"accounts/north.jsonl{JOBS}").exists()


def test_keys_are_their_users_alone_and_are_not_written_over(tmp_path, call):
    made = make_trial(tmp_path / "keys", ["north"])
    assert [path.name for path in made] == ["server", "north"]
    assert load_keys(made[1]).name == "north" and load_keys(made[0]).name == "localhost"
    for path in made:
        assert (path / "key.pem").stat().st_mode & 0o077 == 0
    assert not list(tmp_path.rglob("ca.key"))
    code, _, err = call("keys", "trial", "north", "-o", tmp_path / "keys")
    assert code == 2 and "exists already" in err
    code, _, err = call("keys", "site", "north", "-o", made[1])
    assert code == 2 and "exists already" in err
    (made[1] / "key.pem").write_bytes((made[0] / "key.pem").read_bytes())
    with pytest.raises(ConfigError, match="do not belong together"):
        load_keys(made[1])


@pytest.mark.parametrize("names", [["a", "a"], ["server"], ["a/b"], [""], [".a"], ["x" * 65]])
def test_a_name_that_is_none_gets_no_keys(names, tmp_path, call):
    assert call("keys", "trial", *names, "-o", tmp_path / "keys")[0] == 2
    assert not (tmp_path / "keys").exists()


def test_a_fingerprint_is_that_of_the_key_in_request_and_certificate(tmp_path, call):
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization

    request = make_request(tmp_path / "north", "north")
    made = x509.load_pem_x509_csr(request.read_bytes())
    der = made.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    digest = hashes.Hash(hashes.SHA256())
    digest.update(der)
    code, out, _ = call("keys", "fingerprint", request)
    assert code == 0
    assert out.strip().replace(" ", "") == f"northSHA256{digest.finalize().hex()}"
    assert fingerprint(request) == out.strip()
    (tmp_path / "none").write_text("-----BEGIN CERTIFICATE REQUEST-----")
    assert call("keys", "fingerprint", tmp_path / "none")[0] == 2


def test_the_status_of_a_job_is_its_ledgers_and_its_logs(tmp_path, call):
    terms = Terms(unit="record", trust="central", clip=1.0, noise_multiplier=20.0)
    plan = (Planned("first", terms, 1), Planned("then", terms, 3))
    budget = Budget(1.0, delta=1e-5, trust="central")
    code, _, err = call("status", tmp_path)
    assert code == 2 and "holds no job" in err
    (tmp_path / "config.yaml").write_text("")
    code, out, _ = call("status", tmp_path)
    assert code == 0 and out == "not finished; nobody was asked yet\n"
    ledger = Ledger.create(Job(budget=budget, plan=plan), tmp_path / "ledger.jsonl")
    # The plan says what a question is for, its event which task answers it.
    for number in range(3):
        ledger.charge(Event("marginals", number, terms))
    log = tmp_path / "log.jsonl"
    log.write_text(
        '{"event": "joined", "owner": "north"}\n{"event": "joined", "owner": "west"}\n'
        '{"event": "left", "owner": "west"}\n{"event": "round", "took": 0.5, "bytes": 2000}\n'
    )
    code, out, _ = call("status", tmp_path, "--log", log, "--json")
    told = json.loads(out)
    assert code == 0 and not told["finished"]
    assert told["asked"] == {"first": 1, "then": 2} and told["planned"] == {"first": 1, "then": 3}
    assert told["epsilon"] == pytest.approx(ledger.spent().epsilon) and told["of"] == 1
    assert told["owners"] == {"north": True, "west": False}
    assert (told["seconds"], told["bytes"]) == (0.5, 2000)
    code, out, _ = call("status", tmp_path, "--log", log)
    assert code == 0 and "west: away" in out and "not finished" in out
    log.write_text("no log")
    assert call("status", tmp_path, "--log", log)[0] == 2
    ledger.close()


def test_a_server_that_nobody_joins_ends_with_5_and_can_be_resumed(folder, call):
    job = with_(JOB, "federation", {**JOB["federation"], "listen": "localhost:0", "deadline": 0.1})
    write_yaml(job, folder / "job.yaml")
    out = folder / "out"
    for more in (("job.yaml", "--out", out), ("--resume", out)):
        arguments = [folder / one if one == "job.yaml" else one for one in more]
        code, _, err = call("serve", *arguments, "--insecure", "--quiet")
        assert code == 5 and "north, south, west: did not join within 0.1 s" in err
        assert "NOT ENCRYPTED" in err
    assert Ledger.read(out / "ledger.jsonl").events == ()
    assert Ledger.read(out / "ledger.jsonl").job.insecure
    # It promised nothing, and does not become one that does.
    make_trial(folder / "keys", ["north"])
    code, _, err = call("serve", "--resume", out, "--keys", folder / "keys" / "server", "--quiet")
    assert code == 2 and "another encryption" in err
    code, _, err = call("run", "--resume", out)
    assert code == 2 and "`fedsynth serve` runs it" in err


def test_what_a_server_warns_of_is_printed(capsys):
    with logged(None):
        logging.getLogger("fedsynth.hub").warning("node %d was sent away: %s", 7, "its app failed")
    assert "node 7 was sent away: its app failed" in capsys.readouterr().err
