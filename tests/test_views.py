"""What a person sees: every text whole, escaped, and on lines that fit."""

from __future__ import annotations

import io
import sys
import unicodedata
from dataclasses import dataclass
from html.parser import HTMLParser

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fedsynth.views import Grid, Outlined, Said, Shown, View, clean, listed, wrap

TEXTS = st.text(st.characters(exclude_categories=[]), max_size=40)
CELLS = st.text("ab <&\"'>x-1.", min_size=1, max_size=30)


class Reader(HTMLParser):
    """The tags and the texts of a page."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.texts.append(data)


@given(title=TEXTS, said=TEXTS, cell=TEXTS)
def test_no_text_is_markup(title, said, cell):
    view = View(title, [Said(said, "caution"), Grid(("head",), [(cell or "x",)])])
    read = Reader(view.html())
    assert set(read.tags) - {"code"} == {"div", "style", "p", "strong", "table", "tr", "th", "td"}
    shown = "".join(read.texts).replace("`", "")
    assert all(clean(text).replace("`", "") in shown for text in (title, said, cell))


@given(TEXTS)
def test_no_text_rules_a_terminal(text):
    shown = View(text, [Said(text), Grid((text,), [(text or "x",)])]).text(60)
    for letter in shown.replace("\n", ""):
        assert unicodedata.category(letter)[0] not in "C", "control, format, surrogate, unassigned"


@given(st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=3), st.integers(40, 120))
def test_no_cell_is_cut_and_no_line_too_long(rows, width):
    lines = View("t", [Grid(("one", "two", "three"), rows, figures=(1,))]).text(width).splitlines()
    assert max(map(len, lines)) <= width
    shown = sorted("".join("".join(lines[1:]).split()))
    told = "".join(cell for row in rows for cell in row)
    heads = zip(("one", "two", "three"), zip(*rows, strict=True), strict=True)
    told += "".join(head for head, cells in heads if any(cells))
    assert shown == sorted("".join(told.split()))


def test_commands_in_backticks_are_set_apart_and_names_with_one_are_left_as_they_are():
    shown = Grid((), [("run `fedsynth verify <R>`", "a`b`c")]).html()
    assert "run <code>fedsynth verify &lt;R&gt;</code>" in shown and ">a`b`c<" in shown
    assert "<code>x</code>" in Said("`x`").html() and "<code" not in Said("``x`` and `y").html()


def test_rows_that_are_not_shown_are_counted():
    view = View("t", [Grid(("n",), [(str(n),) for n in range(1000)])])
    assert "59\n" in view.text() and "\n60" not in view.text()
    assert ".. and 940 more" in view.text() and ".. and 940 more" in view.html()


def test_a_column_without_a_text_is_left_out():
    view = View("t", [Grid(("name", "missing"), [("age", ""), ("sex", "")])])
    assert "missing" not in view.text() and "missing" not in view.html()


def test_a_corner_without_a_title_is_no_heading():
    shown = View("t", [Grid(("", "real"), [("age", "1")])]).html()
    assert "<th></th>" not in shown and "<td></td><th>real</th>" in shown


def test_what_warns_stands_out_without_colours():
    shown = View("t", [Said("plain"), Said("beware", "caution"), Said("broken", "void")]).text()
    assert shown == "t\nplain\n! beware\n! broken"


def test_values_beside_each_other_stop_where_they_are_long():
    assert listed("abc") == "a, b, c"
    assert listed(range(10**5), 9) == "0, 1, 2, and 99,997 more"
    assert listed(["x" * 50, "y"], 10) == "xxxxxxxx.., and 1 more"
    assert listed(["a\x1b[31m"]) == "a\\x1b[31m"


class Broken(Shown):
    def _view(self):
        raise ValueError("inside")


def test_an_object_that_is_broken_can_be_looked_at():
    assert "Broken object at" in repr(Broken()) and Broken()._repr_html_() is None


@dataclass(repr=False)
class Learned(Outlined):
    total: float
    weights: object
    names: tuple[str, ...]
    model: object = None


def test_what_was_learned_is_outlined_without_its_numbers():
    shown = repr(Learned(3.5, np.zeros((2, 3)), ("a", "b"), Said("x")))
    assert shown == "<Learned: total 3.5, weights float64 [2, 3], names 2 of a tuple, model Said>"


def test_a_terminals_sentences_break_between_words_and_never_within_a_path(monkeypatch):
    told = "Error: no such file; name /a/path/that-is-longer-than-the-line/of-a-terminal.csv by it"
    monkeypatch.setenv("COLUMNS", "30")
    assert wrap(told) == told
    screen = io.StringIO()
    screen.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", screen)
    lines = wrap(told).split("\n")
    assert " ".join(lines) == told and len(lines) > 1
    assert all(len(line) <= 30 or " " not in line for line in lines)
