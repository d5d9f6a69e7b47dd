"""The first screen of a report in a shell and in a notebook, in the report's own words."""

from __future__ import annotations

from fedsynth.evaluation.report import brief
from fedsynth.evaluation.report.sections.summary import first_screen
from tests.evaluation.report.report_contents import FEW, images, table


def told(view: object) -> str:
    return " ".join(view.text(100).split())


def test_a_shell_is_told_verdict_figures_and_what_to_beware_of():
    content = table(FEW)
    shown = told(brief.view(content, []))
    assert content["summary"]["verdict"] in shown
    for one in content["summary"]["headlines"]:
        assert one["name"] in shown and f"{one['value']:.3f}" in shown
    for said in [*content["summary"]["beware"], *content["notes"]]:
        assert " ".join(said.rstrip(".").split()) in shown


def test_private_figures_say_that_they_are_private():
    content = table(FEW)
    for public in (False, True):
        content["disclosure"] = {"public": public, "text": "computed on some rows"}
        shown, html = told(brief.view(content, [])), brief.html(content, [])
        assert ("! Confidential. Computed on some rows." in shown) == (not public)
        assert ('<p class="caution">Confidential. Computed' in html) == (not public)
        assert "Computed on some rows." in shown and "Computed on some rows." in html


def test_a_notebook_has_the_cards_of_the_page():
    for content in (table(FEW), images()):
        html, page = brief.html(content, []), first_screen(content).body
        start = page.index('<ul class="headlines">')
        cards = page[start : page.index("</ul>", start)]
        assert cards in html and "<link" not in html and "src=" not in html


def test_rows_that_give_their_origin_away_stand_out():
    content = table(FEW)
    assert 'class="void"' not in brief.html(content, [])
    assert f'<p class="void">{content["summary"]["verdict"]}' in brief.html(content, ["one"])
    content["title"] = content["data"]["target"] = "<img src=x>\x1b[2J"
    html, shown = brief.html(content, []), brief.view(content, []).text()
    assert "<img" not in html and "\x1b" not in html + shown
