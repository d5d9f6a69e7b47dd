"""The method that the documentation writes is one: it is added as told, and keeps the contract."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np

from fedsynth.federation.client import tasks
from fedsynth.registry import ENTRIES, Entry
from tests.federation.vectors import channel, clients, ledger, terms
from tests.methods.contract import check_synthesizer

TEXT = (Path(__file__).parents[2] / "docs" / "adding-a-method.md").read_text(encoding="utf-8")
SETTINGS, METHOD, SESSION, TASK = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
PLACE = "fedsynth.methods.independent"


def _load(name: str, source: str, monkeypatch) -> ModuleType:
    module = ModuleType(name)
    monkeypatch.setitem(sys.modules, name, module)
    exec(compile(source, f"docs/adding-a-method.md: {name}", "exec"), module.__dict__)
    return module


def test_the_documented_method_keeps_the_contract(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, PLACE, ModuleType(PLACE))
    _load(f"{PLACE}.settings", SETTINGS, monkeypatch)
    _load(f"{PLACE}.synthesizer", METHOD, monkeypatch)
    entry = Entry("independent", "Independent", f"{PLACE}.synthesizer", "columns one by one")
    monkeypatch.setitem(ENTRIES, "independent", entry)
    check_synthesizer("independent", tmp_path)


def test_the_documented_task_answers(monkeypatch):
    monkeypatch.setattr(tasks, "_TASKS", dict(tasks._TASKS))
    _load("documented_task", f"import numpy as np\n{TASK}", monkeypatch)
    owners = clients(2)
    for number, client in enumerate(owners):
        ages = np.linspace(0.1, 0.2 + number / 10, client.records)
        client.data = type("Conformed", (), {"columns": {"age": ages}})()
    total = sum(client.data.columns["age"].sum() for client in owners)
    free = terms(unit="record", noise_multiplier=0.0)
    released = channel(owners, ledger("record")).sum("mean", free, 1)
    np.testing.assert_allclose(released.value, [total], rtol=1e-5)


def test_what_the_session_is_said_to_offer_is_there():
    from fedsynth.federation.server.channel import Channel
    from fedsynth.queries.session import Session

    for name in re.findall(r"session\.(\w+)\(", SESSION):
        assert hasattr(Session, name), name
    for name in re.findall(r"channel\.(\w+)\(", TEXT):
        assert hasattr(Channel, name), name
