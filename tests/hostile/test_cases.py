"""The hostile table and the environment table: each input ends in its exit code, and in words."""

from __future__ import annotations

import shutil

import pytest

from tests.hostile import cases


@pytest.fixture(scope="module")
def ready(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ready")
    cases.prepare(folder)
    return folder


@pytest.fixture
def folder(ready, tmp_path):
    return shutil.copytree(ready, tmp_path / "case")


@pytest.mark.parametrize("name", cases.HOSTILE)
def test_a_hostile_file_is_refused_in_words(name, folder):
    code, said = cases.run_hostile(name, folder)
    assert (code, said[:7]) == (cases.HOSTILE[name][1], "Error: "), said
    assert "internal error" not in said


@pytest.mark.parametrize("name", cases.ENVIRONMENT)
def test_what_the_machine_refuses_is_told_as_such(name, folder):
    code, said = cases.run_environment(name, folder)
    assert (code, said[:7]) == (7, "Error: "), said
    assert "fault of fedsynth" not in said and "(None)" not in said
    # Nothing half written stands where a whole file is looked for.
    assert not list(folder.rglob("certificate.json.new"))


def test_a_job_that_the_machine_ended_goes_on(folder):
    code, _ = cases.run_environment("run: too little memory", folder)
    assert code == 7
    code, said = cases.call(["run", "--resume", folder / "little", "--quiet"])
    assert code == 0, said
    assert (folder / "little" / "certificate.json").exists()
