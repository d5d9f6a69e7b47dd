"""The site that `make docs` built: whole, without a network, and readable by everybody."""

from __future__ import annotations

import os
from html import unescape
from pathlib import Path

import pytest

import fedsynth as fs
from fedsynth.cli.methods import settings_of
from fedsynth.registry import ENTRIES, SETTINGS
from tests.evaluation.report.test_browser import RULES, _launch

BUILT = os.environ.get("FEDSYNTH_SITE")
pytestmark = pytest.mark.skipif(
    BUILT is None, reason="`make docs` builds it, and sets FEDSYNTH_SITE"
)
SITE = Path(BUILT or ".").resolve()
LOOKED_AT = ["index", "notebooks/tuning", "reference/settings", "studies"]


def _text(name: str) -> str:
    return unescape((SITE / name).read_text("utf-8"))


def test_every_public_name_is_in_the_reference():
    text = _text("reference/python.html")
    assert [name for name in fs.__all__ if f'id="fedsynth.{name}"' not in text] == []


def test_every_setting_of_every_method_is_in_the_reference():
    text = _text("reference/settings.html")
    for name in ENTRIES:
        part = text.split(f'<h2 id="{name}">')[1].split("<h2")[0]
        assert [
            one.name
            for one in settings_of(SETTINGS[name])
            if f"<code>{one.name}</code>" not in part
        ] == []


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    with sync_api.sync_playwright() as started:
        launched = _launch(started)
        yield launched
        launched.close()


@pytest.mark.parametrize("scheme", RULES)
@pytest.mark.parametrize("name", LOOKED_AT)
def test_a_page_loads_nothing_from_a_network_fits_a_phone_and_axe_finds_nothing(
    browser, name, scheme
):
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="pip install axe-playwright-python"
    )
    page = browser.new_page(viewport={"width": 390, "height": 800}, color_scheme=scheme)
    asked, said = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.goto((SITE / f"{name}.html").as_uri())
    assert [url for url in asked if url.startswith("http")] == [] == said
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    options = {"runOnly": RULES[scheme], "resultTypes": ["violations"]}
    found = axe.Axe().run(page, options=options).response["violations"]
    assert [(each["id"], each["nodes"][0]["html"][:200]) for each in found] == []
    page.close()


@pytest.mark.parametrize("name", ["index", "notebooks/three-hospitals"])
def test_code_and_short_words_are_read_on_a_desk_without_scrolling(browser, name):
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto((SITE / f"{name}.html").as_uri())
    wide = "all => all.filter(one => one.scrollWidth > one.clientWidth + 1).length"
    assert page.eval_on_selector_all("pre, pre > code, .highlight-ipynb", wide) == 0
    tall = "all => all.filter(one => one.innerText == 'ok').map(one => one.clientHeight)"
    assert min(page.eval_on_selector_all("td", tall), default=0) < 45
    page.close()


def test_a_search_finds_pages_that_were_opened_from_a_disk(browser):
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto((SITE / "index.html").as_uri())
    page.click(".md-search__input")
    page.type(".md-search__input", "cohort")
    page.wait_for_selector(".md-search-result__link", timeout=60_000)
    links = [
        link.get_attribute("href") for link in page.query_selector_all("a.md-search-result__link")
    ]
    assert any("deploying.html" in link for link in links)
    page.close()
