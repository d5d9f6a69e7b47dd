"""Report and certificate in a browser; screenshots go to tests/artefacts/, if somebody made it."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import tests.evaluation.report.report_contents as contents
from fedsynth.evaluation.report import save
from fedsynth.privacy.trail.certificate import PAGE
from fedsynth.privacy.trail.page import page_of

sync_api = pytest.importorskip(
    "playwright.sync_api", reason="no playwright: pip install playwright axe-playwright-python"
)

ARTEFACTS = Path(__file__).parents[2] / "artefacts"
FEW = {
    "few": lambda: contents.table(contents.FEW),
    "images": contents.images,
    "minimal": contents.minimal,
}
"""What a table's page has for each column, it has for a few."""

MAKERS = {**FEW, "table": contents.table, "long names": contents.long_names}
WHOLE = ["table", "images", "minimal"]
FONTS = {"DejaVu": "DejaVu Sans", "Liberation": "Liberation Sans", "none": None}
"""Sets of fonts that a reader may have, by the family that is then the page's."""

DESKS = (1100, 1200, 1440)
"""The least without and with the table of contents beside the text, and a usual one: where it is
wider, tables have more room."""

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
ARGUMENTS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
CONTRAST = "color-contrast"
RULES = {
    "light": {
        "type": "tag",
        "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "cat.name-role-value"],
    },
    "dark": {"type": "rule", "values": [CONTRAST]},
}
"""Of the rules only the one on contrast can tell the themes apart."""

FOLLOWS = """scheme => (scheme === 'light')
  === (getComputedStyle(document.body).backgroundColor === 'rgb(255, 255, 255)')"""

ONE_OF_A_KIND = """() => {
  const all = new Set();
  const kind = e => `${e.tagName}.${e.className}[${e.getAttributeNames()}]`
    + `(${[...new Set([...e.children].map(kind))]})`;
  for (const each of document.querySelectorAll('tbody, tr, li, svg')) {
    const one = each.parentElement.closest('[id]')?.id + kind(each);
    if (all.has(one)) each.remove();
    all.add(one);
  }
}"""
"""Takes away what looks like something before it: the same elements, classes and attributes in the
same part. The rule on contrast takes milliseconds for each element."""

RELEASE = Path(__file__).parents[2] / "privacy" / "verify" / "format-2"
PHONE, DESK = {"width": 360, "height": 740}, {"width": 1280, "height": 900}
PATIENCE = 300_000
"""Milliseconds: half a minute, as is the default, may be too little on a busy machine."""


def _launch(playwright: Any, **options: Any) -> Any:
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None and not Path(playwright.chromium.executable_path).exists():
        pytest.skip("no browser: apt-get install chromium, or playwright install chromium")
    options = {"executable_path": found, "args": ARGUMENTS, "timeout": PATIENCE, **options}
    return playwright.chromium.launch(**options)


@pytest.fixture(scope="module")
def playwright() -> Iterator[Any]:
    with sync_api.sync_playwright() as started:
        yield started


@pytest.fixture(scope="module")
def browser(playwright: Any) -> Iterator[Any]:
    launched = _launch(playwright)
    yield launched
    launched.close()


@pytest.fixture(scope="module", params=FONTS)
def lettered(request: Any, playwright: Any, tmp_path_factory: Any) -> Iterator[tuple[Any, str]]:
    """A page of a browser that knows one set of fonts alone, and the name of their family."""
    family, folder = FONTS[request.param], tmp_path_factory.mktemp("fonts")
    lists = ""
    if family is not None:
        if shutil.which("fc-list") is None:
            pytest.skip("no fc-list to find fonts by: apt-get install fontconfig")
        files = subprocess.run(["fc-list", family, "file"], capture_output=True, text=True).stdout
        if not files:
            pytest.skip(f"no {family}: apt-get install fonts-{request.param.lower()}")
        home = Path(files.splitlines()[0].rstrip(": ")).parent
        alias = f"<family>sans-serif</family><prefer><family>{family}</family></prefer>"
        lists = f"<dir>{home}</dir><alias>{alias}</alias>"
    config = folder / "fonts.conf"
    config.write_text(
        '<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">'
        f"<fontconfig>{lists}<cachedir>{folder / 'cache'}</cachedir></fontconfig>"
    )
    launched = _launch(playwright, env={**os.environ, "FONTCONFIG_FILE": str(config)})
    page = launched.new_page()
    page.set_default_timeout(PATIENCE)
    yield page, family
    launched.close()


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {
        name: save(make(), tmp_path_factory.mktemp("report") / name)[0]
        for name, make in MAKERS.items()
    }


@dataclass
class Opened:
    """A page with all that it said on the console, and all that it asked the network for."""

    page: Any
    said: list[str]
    asked: list[str]


@pytest.fixture(scope="module")
def page_of_browser(browser: Any) -> Any:
    """The browser's page, where a test needs none of its own: each starts processes of its own,
    which take longer than what is asked of them."""

    @functools.cache
    def known(options: str) -> Any:
        context = browser.new_context(**json.loads(options))
        context.set_default_timeout(PATIENCE)
        return context.new_page()

    return lambda **options: known(json.dumps(options))


@pytest.fixture
def opened(page_of_browser: Any, saved: dict[str, Path]) -> Iterator[Any]:
    """Opens a report, or another file, anew: on a desk by day, if nothing else is said."""
    listening = []

    def open_(name: str | Path, viewport: Any = DESK, scheme: Any = "light", **own: Any) -> Opened:
        one = Opened(page_of_browser(**own), [], [])
        listeners = {
            "console": lambda message: one.said.append(message.text),
            "pageerror": lambda error: one.said.append(str(error)),
            "request": lambda request: one.asked.append(request.url),
        }
        for event, listener in listeners.items():
            one.page.on(event, listener)
            listening.append((one.page, event, listener))
        one.page.set_viewport_size(viewport)
        one.page.emulate_media(media="screen", color_scheme=scheme)
        one.page.goto(saved.get(name, name).as_uri())
        return one

    yield open_
    for page, event, listener in listening:
        page.remove_listener(event, listener)


def shoot(page: Any, name: str) -> None:
    if ARTEFACTS.is_dir():
        page.screenshot(path=ARTEFACTS / f"report-{name}.png", full_page=True)


@pytest.mark.parametrize("name", WHOLE)
def test_a_page_is_quiet_and_asks_nobody(opened, saved, name):
    one = opened(name)
    shoot(one.page, f"{name}-light")
    assert one.said == []
    assert [url for url in one.asked if not url.startswith("data:")] == [saved[name].as_uri()]


@pytest.fixture
def violations() -> Any:
    """What axe finds on a page by day, and of contrast by night."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="pip install axe-playwright-python"
    )

    def find(page: Any, **options: Any) -> list[tuple[str, str]]:
        ran = axe.Axe().run(page, options={"resultTypes": ["violations"], **options})
        found = ran.response["violations"]
        return [(each["id"], each["nodes"][0]["html"][:200]) for each in found]

    def in_both(page: Any) -> list[tuple[str, str]]:
        found = find(page, runOnly=RULES["light"], rules={CONTRAST: {"enabled": False}})
        page.evaluate(ONE_OF_A_KIND)
        for scheme in RULES:
            page.emulate_media(color_scheme=scheme)
            # It follows when it is drawn the next time.
            page.wait_for_function(FOLLOWS, arg=scheme)
            found += find(page, runOnly=RULES["dark"])
        return found

    return in_both


@pytest.mark.parametrize("name", FEW)
def test_axe_finds_nothing(opened, violations, name):
    page = opened(name, scheme="dark").page
    shoot(page, f"{name}-dark")
    page.emulate_media(color_scheme="light")
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    assert violations(page) == []


def test_a_certificates_page_fits_a_phone_and_axe_finds_nothing(opened, violations, tmp_path):
    file = tmp_path / PAGE
    file.write_text(page_of(RELEASE), encoding="utf-8")
    one = opened(file, viewport=PHONE)
    assert one.page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    shoot(one.page, "certificate-light")
    one.page.set_viewport_size(DESK)
    assert violations(one.page) == [] == one.said


def _paper(page: Any) -> str:
    colour: str = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return colour


def _tab_to(page: Any, wanted: str) -> None:
    """Press the tab key until an element has the focus."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("w => document.activeElement.matches(w)", wanted):
            return
    raise AssertionError(f"the tab key never comes to {wanted}")


def _columns(page: Any) -> list[str]:
    names: list[str] = page.evaluate(
        "[...document.querySelectorAll('#column-table tbody')].filter(b => b.checkVisibility())"
        ".map(b => b.querySelector('th').textContent)"
    )
    return names


def test_the_keyboard_skips_to_the_report_first(opened):
    page = opened("minimal").page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the report"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_columns_are_sorted_by_keyboard_with_gaps_last(opened):
    page = opened("few").page
    entries = contents.table(contents.FEW)["fidelity"]["columns"]
    assert _columns(page) == contents.FEW
    _tab_to(page, "#column-table th:nth-child(3) button")
    page.keyboard.press("Enter")
    by_score = sorted(entries, key=lambda entry: entry["score"])
    assert _columns(page) == [entry["name"] for entry in by_score]
    head = page.locator("#column-table th").nth(2)
    assert head.get_attribute("aria-sort") == "ascending"
    page.keyboard.press("Space")
    assert _columns(page) == [entry["name"] for entry in reversed(by_score)]
    assert head.get_attribute("aria-sort") == "descending"
    _tab_to(page, "#column-table th:nth-child(5) button")
    assert head.get_attribute("aria-sort") == "descending"
    for down in (False, True):
        page.keyboard.press("Enter")
        known = [entry for entry in entries if entry["wasserstein"] is not None]
        known.sort(key=lambda entry: entry["wasserstein"], reverse=down)
        gaps = [entry["name"] for entry in entries if entry["wasserstein"] is None]
        assert _columns(page) == [entry["name"] for entry in known] + gaps
    assert head.get_attribute("aria-sort") == "none"


def test_columns_are_found_by_keyboard_and_their_charts_opened(opened):
    page = opened("few").page
    _tab_to(page, "#search")
    page.keyboard.type("IN")
    assert _columns(page) == ["capital-gain", "income"]
    assert page.locator("#found").text_content() == "2 of 4 columns"
    chart = page.locator("#column-table tbody:not([hidden]) .large svg.chart").first
    assert not chart.is_visible()
    _tab_to(page, "#column-table tbody:not([hidden]) summary")
    page.keyboard.press("Enter")
    assert chart.is_visible()
    page.locator("#search").fill("no such column")
    assert _columns(page) == []
    page.locator("#search").fill("")
    assert _columns(page) == contents.FEW


def test_all_charts_open_and_close_together(opened):
    page = opened("few").page
    charts = page.locator("#column-table .large")
    page.locator("#unfold").click()
    assert all(charts.nth(place).is_visible() for place in range(charts.count()))
    page.locator("#unfold").click()
    assert not any(charts.nth(place).is_visible() for place in range(charts.count()))


def test_any_pair_is_opened_from_the_map_and_by_keyboard(opened):
    one = opened("few")
    page, names = one.page, contents.FEW
    said, chart = page.locator("#pair-said"), page.locator("#pair-chart svg")
    # Below the diagonal and above it the same pair: the fourth row's second column.
    for place in (3 * len(names) + 1, len(names) + 3):
        page.locator(".heatmap .cell").nth(place).click()
        assert page.locator("#pair-one").input_value() == str(place // len(names))
        assert f"{names[1]} (rows) and {names[3]} (columns)" in said.text_content()
        assert "real 50.0\u202f%, synthetic 47.0\u202f%" in said.text_content()
        assert chart.locator("rect").count() == 8
        assert "real rows beside synthetic" in chart.get_attribute("aria-label")
    _tab_to(page, "#pair-two")
    page.keyboard.type(names[2])
    assert f"{names[1]} (rows) and {names[2]} (columns)" in said.text_content()
    page.locator("#pair-two").select_option("1")
    assert chart.count() == 0 and said.text_content() == "Choose two columns."
    assert one.said == []


def test_the_choice_of_a_theme_lasts(opened):
    # The browser remembers it: in a context of its own no other test finds it.
    one = opened("minimal", scheme="dark", locale="de-DE")
    page, button = one.page, one.page.locator("#theme")
    dark = _paper(page)
    assert button.get_attribute("aria-pressed") == "true"
    # Whoever sees it is told, too.
    shown = "element => getComputedStyle(element).backgroundColor"
    assert button.evaluate(shown) != dark
    button.press("Enter")
    assert _paper(page) == "rgb(255, 255, 255)" != dark
    page.reload()
    assert _paper(page) == "rgb(255, 255, 255)"
    assert button.get_attribute("aria-pressed") == "false"
    button.press("Space")
    assert _paper(page) == dark
    assert one.said == []


@pytest.mark.parametrize("name", FEW)
def test_a_phone_scrolls_down_and_never_sideways(opened, name):
    page = opened(name, viewport=PHONE).page
    shoot(page, f"{name}-phone")
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    beyond = page.evaluate(
        "[...document.querySelectorAll('main *, footer *')].filter(e => !e.closest('.scroll')"
        " && !e.closest('.unseen') && e.getBoundingClientRect().right > 361).map(e => e.outerHTML)"
    )
    assert beyond == []


def test_frames_that_scroll_take_the_focus_and_others_do_not(opened):
    page = opened("table", viewport=PHONE).page
    frames = page.evaluate(
        "[...document.querySelectorAll('.scroll')].filter(f => f.checkVisibility())"
        ".map(f => [f.scrollWidth > f.clientWidth, f.tabIndex === 0])"
    )
    assert {tuple(frame) for frame in frames} == {(True, True), (False, False)}


def _family(page: Any) -> str:
    """The family of the font that the page's paragraphs are written in."""
    session = page.context.new_cdp_session(page)
    session.send("DOM.enable")
    session.send("CSS.enable")
    root = session.send("DOM.getDocument")["root"]["nodeId"]
    node = session.send("DOM.querySelector", {"nodeId": root, "selector": "p.verdict"})["nodeId"]
    fonts = session.send("CSS.getPlatformFontsForNode", {"nodeId": node})["fonts"]
    return str(max(fonts, key=lambda font: font["glyphCount"])["familyName"])


def _cut(page: Any, width: int) -> list[str]:
    """Labels of the frames that are too narrow for what they hold, all details open."""
    page.set_viewport_size({"width": width, "height": 900})
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    labels: list[str] = page.evaluate(
        "[...document.querySelectorAll('.scroll')].filter(f => f.scrollWidth > f.clientWidth)"
        ".map(f => f.getAttribute('aria-label'))"
    )
    return labels


@pytest.mark.parametrize("name", [*WHOLE, "long names"])
def test_no_table_is_cut_on_a_desk_or_a_phone_whatever_the_fonts(lettered, saved, name):
    """On a phone the map of pairs and a pair's own alone scroll sideways: their cells cannot be
    narrower."""
    page, family = lettered
    try:
        page.goto(saved[name].as_uri())
    except sync_api.Error as error:
        if family is None:
            pytest.skip(
                f"this browser shows no page without fonts: {error.message.split(chr(10))[0]}"
            )
        raise
    assert family is None or _family(page) == family
    assert {width: cut for width in DESKS if (cut := _cut(page, width))} == {}
    assert set(_cut(page, PHONE["width"])) <= {"Map of pairs", "Chart of a pair"}


@pytest.mark.parametrize("name", FEW)
def test_print_shows_what_was_unfolded_and_no_control(opened, name):
    page = opened(name, scheme="dark").page
    page.locator("#theme").focus()
    page.evaluate("document.querySelectorAll('details').forEach((e, i) => e.open = i % 2)")
    page.emulate_media(media="print")
    hidden, shown = (
        page.evaluate(
            f"[...document.querySelectorAll('{chosen}')]"
            f".filter(e => {sign}(e.checkVisibility({{contentVisibilityAuto: true}})"
            " && e.getBoundingClientRect().height)).map(e => e.outerHTML.slice(0, 200))"
        )
        for chosen, sign in (
            ("details[open] > *, details[open] svg, details[open] td, .strip", "!"),
            ("details:not([open]) > *:not(summary), details.block:not([open])", ""),
        )
    )
    assert hidden == shown == []
    assert _paper(page) == "rgb(255, 255, 255)"
    for control in ("#theme", "#search", "nav", ".skip"):
        assert not page.locator(control).is_visible()
    page.set_viewport_size({"width": 700, "height": 990})
    shoot(page, f"{name}-print")


def test_everything_is_there_without_scripts(opened):
    one = opened("few", java_script_enabled=False)
    page = one.page
    assert not page.locator("#theme").is_visible() and not page.locator("#search").is_visible()
    assert page.locator(".heatmap").is_visible() and page.locator(".headlines svg").count() == 4
    large = page.locator("#column-table .large").first
    assert not large.is_visible()
    page.locator("#column-table summary").first.click()
    assert large.is_visible()
