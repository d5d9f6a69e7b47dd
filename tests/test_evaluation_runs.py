"""`python -m evaluation`: it lists what can be run, runs one, and keeps what the run was."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from evaluation import __main__ as runner

HOME = Path(__file__).parents[1] / "evaluation"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with one study, which writes as many rows as it is told."""
    (tmp_path / "configs").mkdir()
    home = tmp_path / "evaluation"
    for name in ("studies", "bench", "results"):
        (home / name).mkdir(parents=True)
    (home / "studies/counting.py").write_text(
        '"""Counts to a number.\n\nNothing more."""\nimport sys\nfrom pathlib import Path\n'
        "if __name__ == '__main__':\n"
        "    lines = Path(__file__).parents[1] / 'results/counting.jsonl'\n"
        "    with lines.open('a') as file:\n"
        "        file.write('{}\\n' * int(sys.argv[1]))\n"
        "    sys.exit(int(sys.argv[1]) > 5)\n"
    )
    monkeypatch.setattr(runner, "HOME", home)
    monkeypatch.setattr(runner, "RUNS", home / "results/runs.jsonl")
    monkeypatch.setattr(runner, "QUICK", {"studies/counting": "1"})
    return home


def test_a_run_keeps_its_arguments_its_cost_and_which_lines_it_added(folder):
    assert runner.main(["counting", "3"]) == 0
    assert runner.main(["studies/counting", "2"]) == 0
    first, second = map(json.loads, (folder / "results/runs.jsonl").read_text().splitlines())
    assert first["arguments"] == ["3"]
    assert first["results"] == {"counting.jsonl": [1, 3]}
    assert second["results"]["counting.jsonl"] == [4, 5]
    assert 0 < first["cpu_seconds"] < 60
    assert first["date"] <= second["date"]


def test_a_quick_run_leaves_the_results_as_they_are(folder):
    assert runner.main(["counting", "--quick"]) == 0
    assert not any((folder / "results").iterdir())


def test_a_run_that_fails_says_so_and_is_not_the_last_that_is_shown(folder, capsys):
    runner.main(["counting", "1"])
    assert runner.main(["counting", "6"]) == 1
    assert runner.last_runs()["studies/counting"]["arguments"] == ["1"]
    runner.main([])
    assert "last run" in capsys.readouterr().out


def test_all_quick_forms_run_one_after_another_and_who_fails_is_named(folder, monkeypatch, capsys):
    assert runner.main(["--quick"]) == 0
    assert "failed: none" in capsys.readouterr().err
    monkeypatch.setitem(runner.QUICK, "studies/counting", "6")
    assert runner.main(["--quick"]) == 1
    assert "failed: studies/counting" in capsys.readouterr().err


def test_a_quick_form_whose_tables_are_elsewhere_is_left_out_and_named(folder, monkeypatch, capsys):
    with (folder / "studies/counting.py").open("a") as file:
        file.write("# FEDSYNTH_DATA\n")
    monkeypatch.setitem(runner.QUICK, "studies/counting", "6")
    monkeypatch.setenv("FEDSYNTH_DATA", str(folder / "nowhere"))
    assert runner.main(["--quick"]) == 0
    assert "left out, for FEDSYNTH_DATA is not there: studies/counting" in capsys.readouterr().err
    monkeypatch.setenv("FEDSYNTH_DATA", str(folder))
    assert runner.main(["--quick"]) == 1


def test_an_unknown_name_ends_with_a_sentence(folder):
    with pytest.raises(SystemExit, match="nothing of that name"):
        runner.main(["countng"])


def test_whatever_has_a_quick_form_is_there_and_takes_these_arguments():
    known = runner.scripts()
    for name, arguments in runner.QUICK.items():
        text = known[name].path.read_text(encoding="utf-8")
        for option in re.findall(r"--[\w-]+", arguments):
            assert f'"{option}"' in text, (name, option)
    assert all(script.title for script in known.values())
