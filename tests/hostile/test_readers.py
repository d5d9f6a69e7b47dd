"""Whatever stands in a file, its reader reads it or says in words what is wrong: no other error."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fedsynth as fs
from fedsynth.cli import app as cli
from fedsynth.cli.queries import parse_conditions
from fedsynth.data.tables import read_table
from fedsynth.errors import FedsynthError
from fedsynth.jobs.config import load_config
from fedsynth.jobs.data import prepare
from fedsynth.privacy.trail import chain
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.schema import Schema, load_schema
from fedsynth.schema.checking import check
from tests.hostile.strategies import documents, edited, mangled
from tests.small_jobs import SCHEMA, table, write_job

MOST = settings().max_examples
FEW = settings(
    max_examples=MOST if MOST > 100 else min(MOST, 15), suppress_health_check=list(HealthCheck)
)
"""Of what is slow, unless many are asked for."""

WIDE = {
    **SCHEMA,
    "missing_values": ["?"],
    "constraints": [
        {"never": {"age": {"from": 60, "to": 63}, "income": "low"}},
        {"ordered": ["age", "size"]},
    ],
    "columns": [
        *SCHEMA["columns"],
        {"kind": "continuous", "name": "size", "lower": 0.0, "upper": 9.5, "decimals": 2},
        {
            "kind": "datetime", "name": "when", "lower": "2000-01-01", "upper": "2001-01-01",
            "format": "%Y-%m-%d", "resolution": "day",
        },
        {"kind": "boolean", "name": "ok"},
        {"kind": "identifier", "name": "id", "prefix": "p"},
    ],
}  # fmt: skip
JOB = {
    "data": {"path": "table.csv", "source": "x"},
    "schema": "people.yaml",
    "holdout": 0.2,
    "sites": {"clients": 3, "scheme": "dirichlet", "beta": 0.5},
    "privacy": {"epsilon": 5.0, "delta": 1e-4, "unit": "record", "trust": "distributed"},
    "method": "aim",
    "settings": {"bins": 8, "marginals": 5},
    "federation": {"survivors": 0.8, "ledgers": {"folder": "acc", "epsilon": 9.0}},
    "sample": {"rows": 10, "format": "csv", "where": {"income": "low"}, "proportions": {"low": 1}},
    "seed": 0,
}
CONDITIONS = (
    *("1..2", "a..b", "..", "..5", "5..", "1..2..3", "[low,high]", "[", "[a: 1]", "{from: 1}"),
    *("30..-1", "1e400..2", "nan..nan", "2020-01-01..", "[null]", "[[1]]", "[!!int q]", "\0"),
    *("[" * 3000, "9" * 5000 + "..1", "[" + "9" * 5000 + "]", "x" * 5000, "-9..9", "low", "true"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    write_job(folder, table(60), method="mst", settings=None)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        code = cli.run(["run", str(folder / "job.yaml"), "--out", str(folder / "r"), "--quiet"])
    assert code == 0
    return folder


def read(make):
    """Calls it; whatever is wrong must be told."""
    with contextlib.suppress(FedsynthError):
        make()


def encoded(text: str) -> bytes:
    return text.encode("utf-8", errors="surrogatepass")


@given(text=documents(WIDE))
def test_a_schema(folder, text):
    (folder / "s.yaml").write_bytes(encoded(text))

    def use():
        schema = load_schema(folder / "s.yaml")
        schema.save(folder / "again.yaml", comments=False)
        assert load_schema(folder / "again.yaml") == schema
        if isinstance(schema, Schema):
            check(read_table(folder / "table.csv", schema), schema)

    read(use)


@given(text=documents(JOB))
def test_a_job_file(folder, text):
    (folder / "j.yaml").write_bytes(encoded(text))

    def use():
        config, base = load_config(folder / "j.yaml")
        config.map_paths(str).to_dict()
        prepare(config, base)

    read(use)


@given(
    key=st.sampled_from(
        ["privacy.epsilon", "settings", "sites", "data.path", "sample.where", "holdout", "method",
         "privacy", "schema", "sites.clients", "federation.ledgers", "settings.bins", "public"]
    ),
    value=mangled("{a: 1}"),
)  # fmt: skip
def test_a_change_on_the_command_line(folder, key, value):
    (folder / "k.yaml").write_text(json.dumps(JOB))
    read(lambda: load_config(folder / "k.yaml", [f"{key}={value}"]))


@FEW
@given(
    column=st.sampled_from(["age", "income", "colour", "zz", ""]),
    value=st.sampled_from(CONDITIONS) | mangled("[1..2]"),
)
def test_a_condition(folder, column, value):
    synth = fs.load(folder / "r")
    read(lambda: synth.sample(3, where=parse_conditions([f"{column}={value}"]), seed=1))
    read(lambda: synth.marginal(["age"], parse_conditions([f"{column}={value}"])))


@FEW
@given(text=mangled(table(20).to_csv(index=False)))
def test_a_table(folder, text):
    (folder / "m.csv").write_bytes(encoded(text))

    def use():
        schema = load_schema(folder / "people.yaml")
        check(read_table(folder / "m.csv", schema), schema)

    def draft():
        schema = fs.draft(read_table(folder / "m.csv")).schema
        schema.save(folder / "drafted.yaml", comments=False)
        check(read_table(folder / "m.csv", load_schema(folder / "drafted.yaml")), schema)

    read(use)
    read(draft)


def copy_of(folder: Path) -> Path:
    copy = folder / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder / "r", copy)
    return copy


@FEW
@given(data=st.data())
@pytest.mark.parametrize("name", ["certificate.json", "signatures.json"])
def test_a_certificate(folder, name, data):
    copy = copy_of(folder)
    plain = json.loads((copy / "certificate.json").read_text())
    if name == "signatures.json":
        plain = [{"name": "north", "key": "0" * 64, "signature": "0" * 128}]
    text = data.draw(edited(plain).map(json.dumps) | mangled(json.dumps(plain)))
    (copy / name).write_bytes(encoded(text))
    read(lambda: repr(fs.verify(copy)))
    read(lambda: fs.load(copy).sample(2, seed=0))


@FEW
@given(data=st.data())
def test_a_ledger(folder, data):
    copy = copy_of(folder)
    lines = [json.loads(line) for line in (copy / "ledger.jsonl").read_text().splitlines()]
    at = data.draw(st.integers(0, len(lines) - 1))
    lines[at] = data.draw(edited(lines[at]))
    read(lambda: _rechain(lines, copy / "ledger.jsonl"))
    read(lambda: Ledger.read(copy / "ledger.jsonl"))
    read(lambda: repr(fs.verify(copy)))
    with contextlib.suppress(FedsynthError):
        Ledger.open(copy / "ledger.jsonl").close()


def _rechain(lines, path):
    """As somebody would who can write all of a ledger."""
    previous, body = chain.START, b""
    for number, line in enumerate(lines):
        line = {**line, "line": number, "previous": previous} if isinstance(line, dict) else {}
        try:
            line["hash"] = previous = chain.digest(line)
            body += chain.canonical(line) + b"\n"
        except (ValueError, TypeError):
            return
    path.write_bytes(body)


@FEW
@given(data=st.data())
def test_a_model(folder, data):
    copy = copy_of(folder)
    plain = json.loads((copy / "model.json").read_text())
    (copy / "model.json").write_text(json.dumps(data.draw(edited(plain))))
    weights = bytearray((copy / "model.safetensors").read_bytes())
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, min(400, len(weights) - 1)))
        weights[at] = data.draw(st.integers(0, 255))
    (copy / "model.safetensors").write_bytes(weights)

    def use():
        synth = fs.MST.load(copy) if not (copy / "certificate.json").unlink() else None
        synth.sample(2, seed=0)
        synth.marginal(["age"])

    read(use)
