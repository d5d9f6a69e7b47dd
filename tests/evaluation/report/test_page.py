from __future__ import annotations

import base64
import copy
import functools
import hashlib
import itertools
import json
import math
import re
import time
from pathlib import Path
from typing import Any

import pytest

import tests.evaluation.report.report_contents as contents
from fedsynth.errors import ConfigError, MachineError
from fedsynth.evaluation.report import page, save
from fedsynth.evaluation.report.sections.summary import belief_after
from fedsynth.evaluation.report.wording import amount, capital, one_in, percent, score, seconds
from tests.evaluation.report.report_reading import Element, read

MAKERS = {"table": contents.table, "images": contents.images, "minimal": contents.minimal}
PAGES = {name: page(make()) for name, make in MAKERS.items()}
NASTY = {
    "script": "<script>alert(1)</script>",
    "quotes": "\" onload='alert(1)' x=\"",
    "entity": "&lt;b&gt; &amp; &#0;",
    "right to left": "\u05d0\u05d1\u05d2 \u202eabc",
    "long": "x" * 200,
    "controls": "a\x00b\x1fc\ud800d",
    "end of style": "</style></svg></title>",
}


@functools.cache
def shown(name: str) -> Element:
    """What is on one of the pages; nobody changes it."""
    return read(PAGES[name])


@pytest.fixture(params=PAGES, scope="module")
def root(request: pytest.FixtureRequest) -> Element:
    return shown(request.param)


def test_addresses_are_unique_and_every_link_within_the_page_leads_somewhere(root):
    ids = [e.attributes["id"] for e in root.everything() if "id" in e.attributes]
    assert len(set(ids)) == len(ids)
    links = [e.attributes["href"] for e in root.all("a")]
    assert links
    assert all(link.startswith("#") and link[1:] in ids for link in links)
    for element in root.everything():
        for key in ("aria-labelledby", "for"):
            assert set((element.attributes.get(key) or "").split()) <= set(ids)


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_loaded_from_anywhere(name):
    text = PAGES[name]
    assert not re.search(r"https?:|//[a-z]|@import|url\(", text)
    root = read(text)
    assert not root.all("link") and not root.all("iframe") and not root.all("object")
    for element in root.everything():
        assert "style" not in element.attributes
        assert not [key for key in element.attributes if key.startswith("on")]
        source = element.attributes.get("src")
        assert source is None or source.startswith("data:image/png;base64,")


def test_the_policy_allows_the_page_s_own_styles_and_script_and_nothing_else(root):
    policy = next(
        e.attributes["content"]
        for e in root.all("meta")
        if e.attributes.get("http-equiv") == "Content-Security-Policy"
    )
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"
    for kind, tag in (("style-src", "style"), ("script-src", "script")):
        hashes = {
            "'sha256-" + base64.b64encode(hashlib.sha256(e.own.encode()).digest()).decode()
            + "'"
            for e in root.all(tag)
        }  # fmt: skip
        assert set(rules[kind].split()) == hashes
    assert len(root.all("script")) == 1


def test_headings_are_in_order_and_begin_with_one_title(root):
    levels = [int(e.tag[1]) for e in root.everything() if re.fullmatch("h[1-6]", e.tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def test_every_chart_has_a_name_or_is_a_decoration_beside_text(root):
    charts = root.all("svg")
    assert charts
    for chart in charts:
        if chart.attributes.get("aria-hidden") == "true":
            assert chart.attributes["class"] in {"symbol", "whiskers"}
        else:
            assert chart.attributes["role"] == "img"
            assert len(chart.attributes["aria-label"]) > 10
    for picture in root.all("img"):
        assert picture.attributes["alt"]


def test_tables_name_their_columns_and_rows_and_scroll_by_keyboard(root):
    for table in root.all("table"):
        assert table.all("caption")[0].text
        assert all(e.attributes.get("scope") == "col" for e in table.all("thead")[0].all("th"))
        for body in table.all("tbody"):
            assert body.all("tr")[0].children[0].attributes.get("scope") == "row"
        frame = table.parent
        assert frame.attributes["tabindex"] == "0" and frame.attributes["aria-label"]


def test_no_figure_reads_nan_or_none(root):
    words = root.all("body")[0].text
    assert not re.search(r"\b(nan|None|inf|Infinity|undefined|\[\]|\{\})\b", words)
    for element in root.everything():
        for value in element.attributes.values():
            assert not re.search(r"\b(nan|None)\b", value or "")


@pytest.mark.parametrize("name", ["table", "images"])
def test_null_for_every_figure_still_makes_a_page(name):
    made = page(contents.without_figures(MAKERS[name]()))
    test_no_figure_reads_nan_or_none(read(made))
    assert "\u2013" in read(made).text


def test_the_first_screen_says_verdict_guarantee_and_figures():
    summary = next(e for e in shown("table").all("section") if e.attributes["id"] == "summary")
    content = contents.table()
    assert content["summary"]["verdict"] in summary.text
    assert content["certificate"]["sentence"] in summary.text
    assert "at most 73.2\u202f% sure of it (leaving aside delta, 1 in 100,000)." in summary.text
    for entry in content["summary"]["headlines"]:
        card = next(e for e in summary.all("li") if entry["name"] in e.text)
        assert f"{entry['value']:.3f}" in card.text
        label = card.all("svg")[0].attributes["aria-label"]
        assert f"synthetic {score(entry['value'])}, real {score(entry['real'])}" in label
        assert f"{entry['better']} is better" in label
    assert all(each in summary.text for each in content["summary"]["beware"])


def test_belief_follows_the_odds():
    assert belief_after(0) == 0.5
    assert math.isclose(belief_after(math.log(3)), 0.75)
    assert math.isclose(belief_after(1), math.e / (1 + math.e))
    assert belief_after(800) == 1.0


@pytest.mark.parametrize(
    ("epsilon", "said"),
    [
        (442.0, "can become practically certain of it"),
        (None, "sets no limit on what anybody can come to believe"),
        (5.0, "at most 99.4\u202f% sure of it"),
    ],
)
def test_a_large_epsilon_is_said_to_promise_little(epsilon, said):
    content = contents.table(contents.FEW)
    content["certificate"]["epsilon"] = epsilon
    text = read(page(content)).text
    assert said in text
    assert (": by itself, that is hardly a promise." in text) == (epsilon is not None)


VOID = "Void: the noise came from a known seed, so it can be subtracted. Nothing is guaranteed."


@pytest.mark.parametrize("epsilon", [None, 1.0])
def test_a_void_certificate_is_called_void_and_not_infinite(epsilon):
    content = contents.table(contents.FEW)
    content["certificate"] |= {"epsilon": epsilon, "sentence": VOID}
    root = read(page(content))
    promise = root.classed("promise")[0].text
    assert "It is void: it sets no limit on what anybody can come to believe" in promise
    assert not root.classed("promise")[0].all("svg")
    facts = root.all("section")[-3].classed("facts")[0]
    assert [each.text for each in facts.all("dd")[:3]] == ["void", "void", "nobody"]
    assert "finite" not in promise + facts.text


def test_an_infinite_epsilon_is_not_called_void():
    content = contents.table(contents.FEW)
    content["certificate"]["epsilon"] = None
    text = read(page(content)).text
    assert "It states no finite epsilon: it sets no limit on" in text
    assert "Epsilonnone finite" in text and "It is void" not in text


def test_the_promise_is_about_records_of_which_a_person_may_have_several():
    promise = shown("table").classed("promise")[0].text
    assert "(50 %) that a record was among the data" in promise
    assert "A record is not a person" in promise and "person's record" not in promise
    clients = shown("images").classed("promise")[0].text
    assert "that a client's records were among the data" in clients
    assert "A record is not a person" not in clients


def test_each_adversary_has_its_epsilon_and_none_where_nothing_is_guaranteed():
    content = contents.table(contents.FEW)
    whom = content["certificate"]["adversaries"]
    text = read(page(content)).text
    assert "Whom it holds off" in text and "no bound" in text
    assert content["certificate"]["head"] in text and "anybody signed it" in text
    assert all(one["who"] in text and one["knows"] in text for one in whom)
    content["certificate"]["sentence"] = "Void: known noise."
    assert "Whom it holds off" not in read(page(content)).text


def test_rows_without_a_certificate_have_no_guarantee():
    text = shown("minimal").text
    assert "There is no certificate with these rows: no limit is known" in text
    assert "Certificate: not in this report." in text


def _words(root: Element) -> str:
    """All that a page says, its labels and hints too."""
    said = [value or "" for e in root.everything() for value in e.attributes.values()]
    return " ".join([root.all("body")[0].text, *said])


@pytest.mark.parametrize(("name", "what"), [("table", "rows"), ("images", "images")])
def test_real_rows_are_called_unseen_as_the_user_says(name, what):
    rows = MAKERS[name]()["data"]["rows"]
    assert (
        f"measured against {rows['real']:,} real {what}, said to be unseen by the generator, "
        f"and the {rows['train']:,} it learned from"
    ) in _words(shown(name))


def test_without_training_rows_none_are_spoken_of_and_half_of_the_real_ones_judge():
    content = contents.table(contents.FEW)
    assert _words(read(page(content))).lower().count("real training rows") == 6
    content["data"]["rows"]["train"] = None
    root = read(page(content))
    words = _words(root)
    assert (
        "measured against one half of 9,769 real rows, the other half standing for other real rows"
    ) in words
    assert "real training" not in words.lower()
    assert words.lower().count("other real rows") == 6 + 1
    assert "unseen" not in root.classed("about")[0].text


def test_a_report_that_is_not_public_says_so_first():
    banner = shown("table").classed("banner")[0]
    assert banner.text.startswith("Confidential. Computed on real data: not covered by epsilon")
    assert not shown("minimal").classed("banner")
    content = contents.table(contents.FEW)
    del content["disclosure"]
    assert "Confidential." in read(page(content)).classed("banner")[0].text


def _without(*parts: str) -> Any:
    """A report in which some parts are null, or empty where they are lists."""
    content = contents.images() if parts[0].startswith("images") else contents.table(contents.FEW)
    for where in parts:
        *parents, last = where.split(".")
        inner = content
        for key in parents:
            inner = inner[key]
        inner[last] = [] if isinstance(inner[last], list) and parents else None
    return content


@pytest.mark.parametrize(
    "parts",
    [
        {
            "fidelity": ("Fidelity", "heatmap"),
            "utility": ("Utility", "scatter"),
            "privacy": ("Attacks", "attacks"),
        },
        {
            "fidelity.columns": ("Columns", "columns"),
            "fidelity.marginals": ("Marginals", None),
            "utility.curves": ("ROC curves", None),
            "privacy.membership": ("Membership inference", None),
            "certificate": ("Certificate", None),
        },
        {
            "fidelity.pairs": ("Pairs of columns", "heatmap"),
            "fidelity.detection": ("Telling synthetic from real", None),
            "utility.agreement": ("Rank agreement", "scatter"),
            "privacy.risks": ("Singling out, linkability, inference", None),
            "privacy.neighbours": ("Nearest neighbours", None),
            "clients": ("Scores at the clients", None),
        },
        {
            "fidelity.coherence": ("Rows that make sense", None),
            "fidelity.quality": ("SDMetrics scores", None),
            "privacy.attributes": ("Attribute inference", None),
            "errors": ("Errors of counts", None),
        },
        {
            "fidelity.diagnostic": ("SDMetrics diagnostic", None),
            "privacy.anonymity": ("k-anonymity and its kin", None),
        },
        {
            "images.grid": ("Sample of images", "picture"),
            "images.classes": ("Class by class", None),
        },
        {"images.student": ("Student network", None)},
    ],
    ids=" ".join,
)
def test_a_missing_part_is_said_to_be_absent_and_draws_nothing(parts):
    whole = PAGES["images" if "images" in " ".join(parts) else "table"].replace("</strong>", "")
    root = read(page(_without(*parts)))
    for title, gone in parts.values():
        said = f"{title}: not in this report."
        assert said in root.text and said not in whole
        assert not gone or not root.classed(gone)
    test_addresses_are_unique_and_every_link_within_the_page_leads_somewhere(root)
    test_headings_are_in_order_and_begin_with_one_title(root)


@pytest.mark.parametrize("where", ["images", "notes", "summary", "data", "seed", "privacy.skipped"])
def test_what_the_page_can_do_without_may_be_missing(where):
    content = _without(where)
    root = read(page(content))
    test_no_figure_reads_nan_or_none(root)
    assert root.all("h1")[0].text == content["title"]


def test_a_missing_part_quotes_the_reasons_recorded_under_its_key_and_no_others():
    content = _without("privacy.risks")
    content["utility"] = None
    content["reasons"] = {
        "risks": ["Linkability: needs 100 rows: there are 9"],
        "utility": ["the target has one class", "Nothing was measured."],
    }
    content["notes"] = ["The utility of a target of one class is not measured."]
    lines = {e.text for e in read(page(content)).classed("absent")}
    assert (
        "Singling out, linkability, inference: not in this report. "
        "Linkability: needs 100 rows: there are 9."
    ) in lines
    assert ("Utility: not in this report. The target has one class. Nothing was measured.") in lines


def test_a_quality_score_of_columns_alone_is_called_that():
    said = "No pair of columns hangs together"
    assert said not in PAGES["table"]
    content = _without("fidelity.quality.column_pair_trends")
    assert said in read(page(content)).text


def test_a_part_that_is_there_quotes_no_reasons():
    content = contents.table(contents.FEW)
    content["reasons"] = {"risks": ["never said"], "utility": ["never said"]}
    assert "never said" not in page(content)


@pytest.mark.parametrize("name", MAKERS)
def test_the_table_of_contents_is_that_of_the_sections_in_their_order(name):
    root = shown(name)
    links = [e.attributes["href"][1:] for e in root.all("nav")[0].all("a")]
    sections = [e.attributes["id"] for e in root.all("section")]
    assert [link for link in links if link in sections] == sections
    order = [e.attributes["id"] for e in root.everything() if e.attributes.get("id") in links]
    assert links == order and len(set(links)) == len(links)


def test_absence_of_a_target_explains_absence_of_utility():
    content = _without("utility")
    content["data"]["target"], content["notes"] = None, []
    assert "No target was named, so there is nothing to predict." in read(page(content)).text


@pytest.fixture(scope="module")
def plain() -> tuple[contents.Content, list[Element]]:
    """A report with a name in many places, and its elements."""
    content = json.loads(
        json.dumps(contents.table(contents.FEW))
        .replace("capital-gain", "NASTY")
        .replace("hospital-1", "NASTY")
        .replace("density ratio (DOMIAS)", "NASTY")
        .replace('"Private"', '"NASTY"')
        .replace('"income"', '"NASTY"')
    )
    return content, read(page(content)).everything()


@pytest.mark.parametrize("kind", NASTY)
def test_names_of_the_data_stay_text(kind, plain):
    nasty, (content, expected) = NASTY[kind], plain
    made = page(_replaced(content, nasty))
    hostile = read(made)
    found = hostile.everything()
    assert [e.tag for e in found] == [e.tag for e in expected]
    assert [sorted(e.attributes) for e in found if e.tag != "bdi"] == [
        sorted(e.attributes) for e in expected if e.tag != "bdi"
    ]
    made.encode("utf-8")
    if kind == "script":
        cell = next(e for e in hostile.all("th") if e.text == nasty)
        assert cell.all("bdi")[0].text == nasty


def _replaced(value: Any, nasty: str) -> Any:
    if isinstance(value, dict):
        return {key: _replaced(each, nasty) for key, each in value.items()}
    if isinstance(value, list):
        return [_replaced(each, nasty) for each in value]
    return value.replace("NASTY", nasty) if isinstance(value, str) else value


def test_a_long_name_is_cut_where_it_stands_and_whole_where_it_is_explained():
    content = contents.table(contents.FEW)
    content["fidelity"]["columns"][0]["name"] = "x" * 200
    root = read(page(content))
    cell = root.classed("columns")[-1].all("tbody")[0].all("th")[0]
    assert cell.text == "x" * 59 + "\u2026"
    assert cell.all("bdi")[0].attributes["title"] == "x" * 200
    assert "x" * 200 in {e.text for e in root.all("dd")}


def test_the_table_of_columns_holds_every_column_with_its_figures():
    content = contents.table()
    bodies = shown("table").classed("columns")[-1].all("tbody")
    assert [b.all("th")[0].text for b in bodies] == contents.NAMES
    for body, entry in zip(bodies, content["fidelity"]["columns"], strict=True):
        cells = {e.attributes.get("data-head"): e for e in body.all("td")}
        assert cells["Score"].text == score(entry["score"])
        assert math.isclose(
            float(cells["Score"].attributes["data-v"]), entry["score"], rel_tol=1e-5
        )
        assert cells["Coverage"].text == percent(entry["coverage"])
        assert len(body.all("details")) == 1 and len(body.all("svg")) >= 2
        short = entry["real"] - entry["score"] > 0.05
        assert bool(cells["Score"].all("strong")) == short == (entry["name"] == "capital-gain")


def test_leaks_come_first_and_are_marked_by_words_and_shape():
    tables = shown("table").classed("attacks")
    attacks = next(t for t in tables if "Singling out" in t.all("caption")[0].text)
    first, *others = attacks.all("tbody")
    assert "Inference of income" in first.text and "leak found" in first.text
    assert all("none found" in row.text and "leak found" not in row.text for row in others)
    assert "1 of 7 attacks found a leak." in shown("table").text


def test_errors_of_counts_are_shares_of_all_records_by_column_and_pair():
    root = shown("table")
    counts = next(e for e in root.all("section") if e.attributes["id"] == "errors")
    columns, pairs = counts.all("table")
    cells = [[cell.text for cell in row.all("td")] for row in columns.all("tr")[1:]]
    # Of 10,000 records, in 4 cells: errors of 0, 100 and 200 a cell, and twice that at worst.
    assert [cell.replace("\u202f", "") for cell in cells[1]] == [
        "4",
        "25.0%",
        "1.0%",
        "2.0%",
        "roughly",
    ]
    # Best first; what nobody measured last, without a figure.
    assert [row.all("td")[-1].text for row in pairs.all("tr")[1:]] == [
        "well",
        "hardly",
        "not measured",
    ]
    assert pairs.all("tr")[3].all("td")[2].text == "\u2013"
    assert "Pairs: 1 well, 1 hardly, 1 not measured. Well: " in counts.text


def test_rows_of_any_tool_are_not_said_to_lack_errors_of_counts():
    content = _without("errors")
    content["certificate"] = None
    assert "Errors of counts" not in page(content) and 'id="errors"' not in page(content)


def test_what_an_attack_s_figures_say_is_not_said_again_and_a_weak_signal_is_called_one():
    content = contents.table(contents.FEW)
    risks = content["privacy"]["risks"]
    found = next(risk for risk in risks if risk["caught"])
    quiet = [risk for risk in risks if not risk["caught"]]
    quiet[0] |= {"low": 0.01, "stronger": False}
    quiet[1] |= {"low": 0.0}
    content["privacy"]["attributes"] = []
    root = read(page(content))
    attacks = next(t for t in root.classed("attacks") if "Linkability" in t.text)
    by_name = {body.all("th")[0].text: body.text for body in attacks.all("tbody")}
    assert found["sentence"] in attacks.text
    assert not any(risk["sentence"] in attacks.text for risk in quiet)
    assert "weak signal" in by_name[capital(quiet[0]["name"])]
    assert "Guessing at random did as well" in by_name[capital(quiet[0]["name"])]
    assert "none found" in by_name[capital(quiet[1]["name"])]


def test_attacks_say_what_they_presuppose():
    said = (
        "presuppose that both are drawn at random from the same people, not parted by time, "
        "place or person; otherwise leaks may be called or missed."
    )
    assert shown("table").text.count(said) == 1
    assert said not in shown("minimal").text


def test_the_family_of_k_anonymity_shows_where_another_library_differs():
    rows = {
        e.children[0].text: e.text for e in shown("table").all("tr") if e.children[0].tag == "th"
    }
    assert "pyCANON" not in rows["k: rows of the smallest class"]
    assert "none finitepyCANON: 1.43" in rows["Enhanced \u03b2-likeness"]


def test_clients_are_weighed_by_rows_and_may_bring_their_error():
    content = contents.table(contents.FEW)
    content["clients"] = [
        {"name": "a", "records": {"value": 300, "error": 4.2}, "accuracy": {"value": 0.9}},
        {"name": "b", "records": {"value": 100, "error": 0}, "accuracy": {"value": 0.5}},
        {"name": "c", "records": None, "accuracy": None, "notes": ["no answer"]},
    ]
    section = next(e for e in read(page(content)).all("section") if e.attributes["id"] == "clients")
    assert "A small client's distance is larger by chance alone" in section.classed("lede")[0].text
    rows = {row.children[0].text: [e.text for e in row.children[1:]] for row in section.all("tr")}
    assert rows["a"] == ["300 \u00b1 4.2", "0.900", "\u2013"]
    assert rows["c"] == ["\u2013", "\u2013", "no answer"]
    assert rows["Mean, weighted by rows"][:2] == ["400 in all", "0.800"]
    assert rows["Range"][:2] == ["100 to 300", "0.500 to 0.900"]


def test_seconds_have_two_significant_digits():
    shown = [seconds(value) for value in (0.04213, 2.349, 9.96, 48.27, 1234.5, None)]
    assert shown == ["0.042", "2.3", "10", "48", "1,234", "\u2013"]


def test_numbers_are_written_for_readers():
    assert [score(v) for v in (0.9063, 0, 1, 0.99991, 0.0001, -0.0123, None, math.nan)] == [
        "0.906", "0", "1", ">0.999", "<0.001", "\u22120.012", "\u2013", "\u2013",
    ]  # fmt: skip
    assert [percent(v) for v in (0, 0.0001, 0.1234, 0.9999, 1)] == [
        "0\u202f%", "<0.1\u202f%", "12.3\u202f%", ">99.9\u202f%", "100\u202f%",
    ]  # fmt: skip
    assert [amount(v) for v in (0, 38.581, 189664.1, 1e-7, True, "x")] == [
        "0", "38.58", "189,664", "1.000e\u221207", "\u2013", "\u2013",
    ]  # fmt: skip
    assert one_in(1e-5) == "1 in 100,000"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda c: c.update(format=2), "format 2"),
        (
            lambda c: c["fidelity"]["columns"][3].update(score=math.nan),
            r"columns\[3\].score is nan",
        ),
        (lambda c: c["certificate"].update(epsilon=math.inf), "certificate.epsilon is inf"),
        (lambda c: c.update(notes={1, 2}), "report.notes is a set"),
        (lambda c: c["fidelity"]["pairs"]["distance"][0].__setitem__(1, math.nan), r"\[0\]\[1\]"),
    ],
)
def test_content_that_is_no_report_is_refused_whole(change, said, tmp_path):
    content = contents.table()
    change(content)
    with pytest.raises(ConfigError, match=said):
        page(content)
    with pytest.raises(ConfigError, match=said):
        save(content, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("picture", ["https://example.org/x.png", "data:text/html;base64,AA==", ""])
def test_a_picture_that_is_not_embedded_is_refused(picture):
    content = contents.images()
    content["images"]["grid"]["real"] = picture
    with pytest.raises(ConfigError, match=r"images\.grid\.real is no embedded picture"):
        page(content)


def test_page_and_figures_are_saved_side_by_side_and_replace_older_ones(tmp_path: Path):
    folder = tmp_path / "new" / "report"
    first = save(contents.minimal(), str(folder))
    assert first == (folder / "report.html", folder / "report.json")
    content = contents.table(contents.FEW)
    shown, figures = save(content, folder)
    assert shown.read_text(encoding="utf-8") == page(content)
    assert json.loads(figures.read_text(encoding="utf-8")) == content
    assert sorted(each.name for each in folder.iterdir()) == ["report.html", "report.json"]


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(MachineError, match=r"file: cannot be written"):
        save(contents.minimal(), tmp_path / "file")


def test_making_a_page_leaves_the_content_alone_and_gives_the_same_page_again():
    content = contents.table(contents.FEW)
    before = copy.deepcopy(content)
    assert page(content) == page(content)
    assert content == before


def test_fifteen_columns_stay_under_600_kb_and_500_under_6_mb():
    assert len(PAGES["table"].encode()) < 600_000
    content = contents.wide(500)
    started = time.process_time()
    made = page(content)
    assert time.process_time() - started < 10
    assert len(made.encode()) < 6_000_000
    assert "the map shows the 60 of the worst pairs" in made
    assert made.count('class="cell') < 60 * 60 + 20


STYLES = Path(__file__).parents[3] / "fedsynth" / "evaluation" / "report"


def _colours(name: str) -> dict[str, str]:
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", (STYLES / name).read_text()))


def _contrast(one: str, other: str) -> float:
    """WCAG 2.1's ratio of relative luminances."""
    lights = []
    for colour in (one, other):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        red, green, blue = (
            c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts
        )
        lights.append(0.2126 * red + 0.7152 * green + 0.0722 * blue)
    return (max(lights) + 0.05) / (min(lights) + 0.05)


@pytest.mark.parametrize("theme", ["page.css", "dark.css"])
def test_colours_stand_out_in_both_themes(theme):
    colours = _colours(theme)
    assert set(colours) == set(_colours("page.css"))
    for text in ("ink", "quiet", "link", "leak"):
        assert _contrast(colours[text], colours["paper"]) >= 4.5
        assert _contrast(colours[text], colours["panel"]) >= 4.5
    for mark in ("real", "synthetic", "trivial", "augmented", "attack2", "warn-edge", "focus"):
        assert _contrast(colours[mark], colours["paper"]) >= 3
    dark = theme == "dark.css"
    for level in range(9):
        inside = "in-high" if level >= (5 if dark else 6) else "in-low"
        assert _contrast(colours[f"q{level}"], colours[inside]) >= 4.5, level
    strength = [_contrast(colours[f"q{level}"], colours["paper"]) for level in range(9)]
    assert strength == sorted(strength)
