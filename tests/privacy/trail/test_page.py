"""The page says what the certificate says, to the letter, and answers a privacy officer alone."""

from __future__ import annotations

import json
import math
import re
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from fedsynth.errors import PrivacyError
from fedsynth.plain import round_up
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.sampling import Everyone, FixedSize
from fedsynth.privacy.selecting import Selecting
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.certificate import CONFIG, PAGE
from fedsynth.privacy.trail.job import Closing, Event, Job
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.privacy.trail.page import most_right, page_of, write_page
from fedsynth.privacy.trail.sealing import seal
from fedsynth.privacy.trail.signatures import make_key, sign
from fedsynth.privacy.trials import Trials
from fedsynth.privacy.verify.verification import verify
from fedsynth.yaml_files import write_yaml

ROOT = Path(__file__).parents[3]
SITES = {"sites": {"paths": {"north": "n.csv", "<b>": "s.csv", "east": "e.csv"}}}


def release(folder, config=None, *, multiplier=20.0, sampling=None, **job):
    """A sealed folder, of a ledger that nobody was asked for."""
    folder.mkdir()
    budget = job.pop("budget", Budget(epsilon=9.0, delta=1e-5, curious=1))
    ledger = Ledger.create(Job(budget=budget, **{"method": "mst", "clients": 3, **job}))
    terms = Terms(
        unit=budget.unit,
        trust=budget.trust,
        clip=1.0,
        noise_multiplier=multiplier,
        sampling=sampling or Everyone(),
        survivors=3 if budget.trust == "distributed" else 1,
        curious=1 if budget.trust == "distributed" else 0,
    )
    ledger.charge(Event("histogram", 0, terms, ledger.job.job))
    (folder / "rows.csv").write_text("a\n1\n")
    if config is not None:
        write_yaml(config, folder / CONFIG)
    seal(folder, ledger, ["rows.csv", *([CONFIG] if config is not None else [])])
    return folder


def text_of(folder):
    return re.sub("<[^>]*>", " ", re.sub("(?s)<style>.*?</style>", "", page_of(folder)))


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.1])
def test_nobody_is_right_more_often_than_the_best_of_all_tests(epsilon, delta):
    """Over the region of error rates that (epsilon, delta) leaves open."""
    first = np.linspace(0, 1, 200_001)
    second = np.maximum.reduce(
        [
            np.zeros_like(first),
            1 - delta - math.exp(epsilon) * first,
            math.exp(-epsilon) * (1 - delta - first),
        ]
    )
    best = (1 - (first + second) / 2).max()
    assert most_right(epsilon, delta) == pytest.approx(best, abs=1e-5)
    assert most_right(epsilon, delta) >= best - 1e-12


def test_it_is_derived_from_the_release_and_rewritten_alike(tmp_path):
    folder = release(tmp_path / "r", SITES)
    written = (folder / PAGE).read_text()
    assert written == page_of(folder)
    assert "fedsynth certificate RELEASE" in written.split("<footer>")[1]
    moved = folder.rename(tmp_path / "elsewhere")
    assert write_page(moved).read_text() == written


def test_a_changed_page_fails_its_release_and_one_of_another_version_is_not_believed(tmp_path):
    folder = release(tmp_path / "r")

    def check():
        return {one.name: one for one in verify(folder)}[PAGE]

    assert check().passed
    written = (folder / PAGE).read_text()
    (folder / PAGE).write_text(written.replace("73.2", "50.2").replace("record", "person"))
    assert not check().passed
    (folder / PAGE).write_text(re.sub(r'content="fedsynth [^"]*"', 'content="fedsynth 9"', written))
    assert not check().passed and "cannot be compared: of 9" in check().found
    write_page(folder)
    assert check().passed
    (folder / PAGE).unlink()
    assert PAGE not in {one.name for one in verify(folder)}


def test_every_section_that_is_said_to_answer_a_privacy_officer_is_on_it(tmp_path):
    told = (ROOT / "docs/certificate.md").read_text(encoding="utf-8").split("Ten questions")[1]
    questions = [line for line in told.split("\n\n")[1].splitlines() if line.endswith("|")][2:]
    assert len(questions) == 10
    written = page_of(release(tmp_path / "r", SITES))
    for question in questions:
        places = re.findall(r"`#([\w-]+)`", question)
        assert places and all(f'id="{place}"' in written for place in places), question


def test_every_adversary_stands_on_it_with_what_the_certificate_says(tmp_path):
    """How sure it can be is worked out anew."""
    folder = release(tmp_path / "r")
    content = json.loads((folder / "certificate.json").read_text())
    table = re.search('(?s)id="against".*?<table.*?</table>', page_of(folder))[0]
    rows = [re.sub("<[^>]*>", "|", row).strip("|") for row in table.split("<tr>")[2:]]
    assert len(rows) == len(content["adversaries"]) > 2
    for row, one in zip(rows, content["adversaries"], strict=True):
        who, knows, epsilon, sure, promised = re.split(r"\s*\|+\s*", row)
        assert (who, knows) == (one["who"], one["knows"])
        assert epsilon == round_up(one["epsilon"], 4)
        grown = math.exp(one["epsilon"])
        exact = 100 * (grown + 1e-5) / (1 + grown)
        # A bound: never below what it bounds, and told to a tenth.
        assert -1e-9 <= float(sure.removesuffix(" %")) - exact <= 0.1
        assert promised == ("yes" if one["promised"] else "no")


def test_who_signed_stands_on_it_once_it_is_written_anew(tmp_path):
    folder, (private, _) = release(tmp_path / "r"), make_key(tmp_path / "north")
    assert "Nobody signed it" in text_of(folder)
    head = Ledger.read(folder / "ledger.jsonl").head
    sign(folder, head, private, "the north")
    assert "Signed by the north" in text_of(folder) and head in text_of(folder)
    sign(folder, head, make_key(tmp_path / "other")[0], "mallory")
    signed = (folder / "signatures.json").read_text()
    (folder / "signatures.json").write_text(signed.replace("mallory", "the server"))
    # A name is whoever's; a signature that does not hold is nobody's.
    forged = re.sub(r'"signature": "[0-9a-f]{4}', '"signature": "0000', signed)
    (folder / "signatures.json").write_text(forged)
    assert "Nobody signed it" in text_of(folder)


def test_it_loads_nothing_runs_nothing_and_escapes_names(tmp_path):
    page = page_of(release(tmp_path / "r", SITES))
    assert "3: north, &lt;b&gt;, east" in page
    assert not re.search(r"<script|<link|<img|\ssrc=|https?://|\sstyle=|<b>", page)


def test_every_answer_for_a_privacy_officer_has_its_place(tmp_path):
    told = (ROOT / "docs" / "certificate.md").read_text(encoding="utf-8")
    rows = [line for line in told.splitlines() if line.startswith("| ") and "?" in line]
    places = [re.findall(r"`#([\w-]+)`", row) for row in rows]
    page = page_of(release(tmp_path / "r", SITES))
    assert len(rows) == 10 and all(places)
    assert all(f'id="{place}"' in page for place in chain(*places))


@pytest.mark.parametrize(
    ("config", "job", "told"),
    [
        (SITES, {}, "one process held all rows"),
        (None, {}, "whether the owners were on machines of their own is not recorded"),
        ({"federation": {"runtime": "stream", "owners": ["a"]}}, {}, "over a network"),
        (SITES, {"secure": "simulated"}, "the whole protocol of secure aggregation"),
        (SITES, {}, "secure aggregation is assumed"),
        (SITES, {}, "Of a person with k rows"),
        (SITES, {"schema_provenance": "private-data"}, "drafted from private rows"),
        (SITES, {"owners_provenance": "private-data"}, "names were read off private rows"),
        (SITES, {}, "charged to no account"),
        ({"federation": {"ledgers": {"folder": "x", "epsilon": 3}}}, {}, "than epsilon 3 at"),
        ({"federation": {"ledgers": {"delta": 1e-5}}}, {}, "set no limit on what"),
        (SITES, {}, "whole numbers of a public grid"),
        ({"sites": ["not", "a section"], "federation": 7}, {}, "one process held all rows"),
    ],
)
def test_it_says_what_the_guarantee_rests_on_and_leaves_out(tmp_path, config, job, told):
    assert told in " ".join(text_of(release(tmp_path / "r", config, **job)).split())


def test_owners_that_are_units_and_samples_have_their_own_words(tmp_path):
    budget = Budget(epsilon=9.0, delta=1e-5, unit="client", trust="central", units=3)
    drawn = FixedSize(2, 3)
    shown = text_of(release(tmp_path / "r", budget=budget, sampling=drawn, participations=1))
    assert "a given owner was among the data rather than another" in shown
    assert "One person at several owners" in shown


def test_a_selection_tells_of_its_trials(tmp_path):
    budget = Budget(epsilon=90.0, delta=1e-5, trust="central")
    ledger = Ledger.create(Job(budget=budget, method="mst", clients=3))
    own = Terms(unit="record", trust="central", clip=1.0, noise_multiplier=20.0)
    trials = Trials(mean=4.0, kind="geometric")
    best = Selecting(unit="record", trust="central", trials=trials, parts=(((own, 2),),))
    ledger.charge(Event("selection", 0, best, ledger.job.job))
    (tmp_path / "rows.csv").write_text("a\n")
    seal(tmp_path, ledger, ["rows.csv"])
    shown = " ".join(text_of(tmp_path).split())
    assert "selection 1 the best of 4 trials, on average -" in shown
    assert "selection: of a trial 2 gaussian 20" in shown and "whole numbers" in shown


def test_a_void_certificate_promises_nothing(tmp_path):
    shown = page_of(release(tmp_path / "r", multiplier=0.0, budget=Budget(epsilon=math.inf)))
    assert "Void: at least one release carries no noise" in shown
    assert "No limit is known" in shown and "<svg" not in shown and "nobody" in shown


def test_a_release_has_its_day_and_a_ledger_no_other_kind_of_one(tmp_path):
    closing = Ledger.read(release(tmp_path / "r") / "ledger.jsonl").closing
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", closing.date) and closing.date in text_of(
        tmp_path / "r"
    )
    plain = Closing({"rows.csv": "a"}).to_dict()
    assert "date" not in plain and Closing.from_dict(plain).date == ""
    for day in ("yesterday", "2026-1-1", 7, None):
        with pytest.raises(PrivacyError):
            Closing.from_dict({**plain, "date": day})
