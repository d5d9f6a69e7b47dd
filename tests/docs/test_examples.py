"""What the documentation shows as code runs: tutorials on few rows; commands everywhere parse."""

from __future__ import annotations

import click
import pandas as pd
import pytest

from fedsynth.cli import app as cli
from fedsynth.data import datasets
from tests.docs.examples import ROOT, pages, read_page

TUTORIALS = [*pages("docs/tutorials/*.md")]
WRITTEN = [*pages("*.md", "docs/*.md", "docs/tutorials/*.md"), ROOT / "evaluation/README.md"]
ROWS = 300


@pytest.fixture
def few_rows(monkeypatch):
    """Of the tables that come along, for what is fitted at length elsewhere."""
    load = datasets.load_builtin

    def load_few(name):
        whole = load(name)
        return whole[:ROWS] if isinstance(whole, pd.DataFrame) else whole

    monkeypatch.setattr(datasets, "load_builtin", load_few)


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_tutorial_runs_from_beginning_to_end(page, few_rows, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    ran = 0
    for block in read_page(page):
        if block.why:
            continue
        if block.title:
            (tmp_path / block.title).write_text(block.text, encoding="utf-8")
        elif block.kind == "python":
            exec(compile(block.text, str(page), "exec"), names)
            ran += 1
        for command in block.commands:
            assert cli.run(command) == 0, command
            ran += 1
    assert ran


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_command_that_is_told_is_one(page):
    """Its name, its options and the values of these, as the command line reads them."""
    for block in read_page(page):
        for given in block.commands:
            _parse(given)


def _parse(given: list[str]) -> None:
    command, name, rest = cli._command(), "fedsynth", list(given)
    try:
        while isinstance(command, click.Group):
            context = click.Context(command, info_name=name)
            _, command, rest = command.resolve_command(context, rest)
            assert command is not None
        command.make_context(name, rest)
    except click.exceptions.Exit:
        pass
    except click.UsageError as error:
        pytest.fail(f"fedsynth {' '.join(given)}: {error.format_message()}")
