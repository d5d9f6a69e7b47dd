"""The table of columns: scores to sort and search, a chart of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fedsynth.evaluation.report.charts.drawing import legend
from fedsynth.evaluation.report.charts.histograms import (
    category_rows,
    combs,
    distribution,
    dots,
    furthest,
    strip,
)
from fedsynth.evaluation.report.content import Content, others
from fedsynth.evaluation.report.layout import Part, lede, pairs_of, part, region
from fedsynth.evaluation.report.wording import DASH, amount, known, percent, score
from fedsynth.markup import Html, apart, join, name, tag, text

_SHORT = 0.05


@dataclass(frozen=True)
class _Figure:
    """A figure of each column: its heading (short: phones show three side by side), what it means,
    how a column's entry shows it, and the number that the table is sorted by."""

    title: str
    hint: str
    shown: Callable[[Content], object]
    value: Callable[[Content], object]


def columns(content: Content, fidelity: Content) -> Part:
    """Every column's scores and distributions."""
    entries = fidelity["columns"]
    body = [
        lede(
            "Does each column, on its own, look like the real one? Score 1 is identical. “Real” is "
            f"the same score with {others(content)} in place of the synthetic ones: the best to "
            "expect; scores that fall short of it by more than 0.05 are bold. Small charts are "
            "filled where the two differ: in the colour of synthetic rows what these have too much "
            "of, in that of real ones what they lack."
        ),
        _worst(entries),
        tag("div", _search(len(entries)), legend("synthetic", "real", lines=True), class_="tools"),
        _table(entries, others(content)),
        tag("details", tag("summary", "What the columns mean"), _meanings(content), class_="block"),
    ]
    return part("columns", "Columns", *body, link="Columns")


def _meanings(content: Content) -> Html:
    pairs = [(figure.title, _hint(figure, others(content))) for figure in _FIGURES]
    cells = (tag("div", tag("dt", title), tag("dd", f"{hint}.")) for title, hint in pairs)
    return tag("dl", *cells, class_="terms")


def _hint(figure: _Figure, rows: str) -> str:
    return figure.hint.replace("{others}", rows)


def _worst(entries: list[Content]) -> Html | None:
    ranked = [entry for entry in entries if known(entry.get("score"))]
    ranked.sort(key=lambda entry: entry["score"])
    if not ranked:
        return None
    parts: list[object] = ["Furthest from real: "]
    for place, entry in enumerate(ranked[:3]):
        real = f" (real {score(entry['real'])})" if known(entry.get("real")) else ""
        parts += ["; " if place else "", name(entry["name"], 40), f" {score(entry['score'])}{real}"]
    return tag("p", *parts, ".")


def _search(total: int) -> Html:
    """Shown by the page's script, without which it would do nothing."""
    label = tag("label", "Search columns", for_="search")
    box = tag("input", type="search", id="search", autocomplete="off", spellcheck="false")
    said = tag("output", f"{total} columns", for_="search", id="found")
    button = tag("button", "Open all charts", type="button", id="unfold")
    return tag("div", label, box, said, button, class_="search", hidden=True, id="finder")


def _table(entries: list[Content], in_place: str) -> Html:
    caption = "Columns: scores and distributions, synthetic against real"
    head = [_heading(title, "text") for title in ("Column", "Kind")]
    head += [_heading(figure.title, "num", _hint(figure, in_place)) for figure in _FIGURES]
    head.append(tag("th", "Distribution", scope="col", class_="chart-head"))
    inner = [tag("caption", caption, class_="unseen"), tag("thead", tag("tr", *head))]
    rows = [_column(index, entry) for index, entry in enumerate(entries)]
    return region(caption, tag("table", *inner, *rows, class_="columns", id="column-table"))


def _heading(title: str, kind: str, hint: str | None = None) -> Html:
    return tag("th", tag("span", title, title=hint), scope="col", class_=kind, data_sort=kind)


def _column(index: int, entry: Content) -> Html:
    cells = [
        tag(
            "td",
            figure.shown(entry),
            class_="num",
            data_v=_sortable(figure.value(entry)),
            data_head=figure.title,
        )
        for figure in _FIGURES
    ]
    title = tag("th", name(entry["name"], 60), scope="row", class_="text")
    kind = tag("td", entry.get("kind") or DASH, class_="text", data_head="Kind")
    first = tag("tr", title, kind, *cells, tag("td", class_="slot"))
    more = tag("tr", tag("td", _chart(entry), colspan=str(len(_FIGURES) + 3)), class_="more")
    whole = str(entry["name"]).lower()
    return tag("tbody", first, more, data_name=whole, data_place=str(index))


def _score(entry: Content) -> Html:
    """The score, bold where it falls short of what real rows reach."""
    value, real = entry.get("score"), entry.get("real")
    far = known(value) and known(real) and real - value > _SHORT
    return tag("strong", score(value)) if far else text(score(value))


def _gaps(entry: Content) -> Html:
    missing = entry.get("missing") or {}
    return join([_plainly(missing.get(k), percent) for k in ("synthetic", "real")], " / ")


def _plainly(value: object, shown: Callable[[object], str]) -> Html:
    """A figure that is quiet where it is 0, so that the others stand out."""
    return tag("span", shown(value), class_="quiet") if value == 0 else text(shown(value))


_FIGURES = (
    _Figure(
        "Score",
        "Overlap with the real column: 1 is identical",
        _score,
        lambda entry: entry.get("score"),
    ),
    _Figure(
        "Real",
        "The score of {others}: what chance alone leaves",
        lambda entry: score(entry.get("real")),
        lambda entry: entry.get("real"),
    ),
    _Figure(
        "Distance",
        "Wasserstein distance, as a share of the real 5 to 95 % range",
        lambda entry: score(entry.get("wasserstein")),
        lambda entry: entry.get("wasserstein"),
    ),
    _Figure(
        "Missing",
        "Share of missing cells, synthetic / real; sorted by the former",
        _gaps,
        lambda entry: (entry.get("missing") or {}).get("synthetic"),
    ),
    _Figure(
        "Outside",
        "Share of synthetic cells outside the schema",
        lambda entry: _plainly(entry.get("outside"), percent),
        lambda entry: entry.get("outside"),
    ),
    _Figure(
        "Coverage",
        "Share of the real values or range that occurs",
        lambda entry: percent(entry.get("coverage")),
        lambda entry: entry.get("coverage"),
    ),
)


def _sortable(value: object) -> str:
    return f"{value:.6g}" if known(value) else ""


def _chart(entry: Content) -> Html:
    histogram = entry.get("histogram")
    if not histogram or not histogram.get("labels"):
        return tag("p", "no distribution", class_="none quiet")
    label = f"{apart(entry['name'])}, synthetic against real rows: {furthest(histogram)}"
    title = f"Distribution of {apart(entry['name'])}"
    if entry.get("kind") in {"number", "date"}:
        small, large = strip(histogram, title), distribution(histogram, label)
    else:
        rows = category_rows(histogram)
        small, large = combs(rows, title), dots(rows, label)
    keys = legend("synthetic", "real", lines=entry.get("kind") in {"number", "date"})
    inner = tag("div", tag("figure", keys, large), _facts(entry), class_="large")
    return tag("details", tag("summary", small), inner)


def _facts(entry: Content) -> Html:
    """What the row of the table leaves out."""
    facts: list[tuple[object, object]] = [("Column", name(entry["name"]))]
    for key, title in (("mean", "Mean"), ("deviation", "Standard deviation")):
        if both := entry.get(key):
            words = f"{amount(both.get('synthetic'))} (real {amount(both.get('real'))})"
            facts.append((title, words))
    missing = entry.get("missing") or {}
    words = f"{percent(missing.get('synthetic'))} (real {percent(missing.get('real'))})"
    facts.append(("Missing", words))
    words = f"{percent(entry.get('outside'))} (real {percent(entry.get('real_outside'))})"
    facts.append(("Cells outside the schema", words))
    facts.append(("Real values or range that occur", percent(entry.get("coverage"))))
    facts.append((f"{entry.get('metric') or 'Score'}", _against(entry)))
    return tag("div", pairs_of(facts))


def _against(entry: Content) -> Html:
    real = f" (real {score(entry['real'])})" if known(entry.get("real")) else ""
    return join([score(entry.get("score")), real])
