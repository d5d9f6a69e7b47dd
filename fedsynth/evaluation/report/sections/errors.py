"""The section on how far counts may be off, by what the release itself tells."""

from __future__ import annotations

from collections.abc import Sequence

from fedsynth.evaluation.report.content import Content
from fedsynth.evaluation.report.layout import Section, lede, section, table
from fedsynth.evaluation.report.wording import DASH, TIMES, count, known, percent
from fedsynth.markup import Html, join, name, tag

_USES = ("well", "roughly", "hardly", "not measured")
_MOST = 200
"""Tables listed; of more, the best."""


def errors_section(content: Content) -> Section | None:
    """What may be counted on the rows, and what not; None where the model does not tell."""
    entries = content.get("errors")
    if not entries:
        return None
    columns = [entry for entry in entries if len(entry["columns"]) == 1]
    pairs = sorted(
        (entry for entry in entries if len(entry["columns"]) > 1),
        key=lambda entry: entry["error"] / entry["records"] if known(entry["error"]) else 2.0**60,
    )
    words = (
        "How far is a count on the rows from the truth? Known from the noise, without a look at "
        "real rows. A cell is a value, or a bin of numbers; in 95 of 100 cells its share of all "
        "records is wrong by no more than stands after ±. Such counts may be used ",
        tag("strong", "well"),
        " where that is a tenth of a cell's mean share at most, ",
        tag("strong", "roughly"),
        " up to half of it, and ",
        tag("strong", "hardly"),
        " beyond: what a model learns from these relations is mostly noise.",
    )
    listed = [_table("Columns", columns, "Column")]
    if len(columns) > 20:
        listed = [_folded("Columns", columns, "Column")]
    return section(
        "errors",
        "Counts",
        "Counts: what may be relied on?",
        lede(*words),
        _said("Columns", columns),
        *listed,
        *([_said("Pairs", pairs), _folded("Pairs", pairs, "Pair")] if pairs else []),
    )


def _said(what: str, entries: Sequence[Content]) -> Html:
    """How many tables there are of each use, and which are best."""
    parts = [
        f"{count(number)} {use}"
        for use in _USES
        if (number := sum(entry["use"] == use for entry in entries))
    ]
    best = [_named(entry) for entry in entries if entry["use"] == "well"][:8]
    more: list[object] = [". Well: ", join(best, ", ")] if what == "Pairs" and best else []
    return tag("p", tag("strong", f"{what}: "), ", ".join(parts), *more, ".")


def _folded(what: str, entries: Sequence[Content], head: str) -> Html:
    shown = entries[:_MOST]
    title = f"All {count(len(entries))} {what.lower()}"
    if len(shown) < len(entries):
        title = f"The {_MOST} of {count(len(entries))} {what.lower()} that are known best"
    return tag("details", tag("summary", title), _table(title, shown, head), class_="block")


def _table(title: str, entries: Sequence[Content], head: str) -> Html:
    rows = [
        [
            _named(entry),
            count(entry["cells"]),
            percent(1 / entry["cells"]),
            *(_off(entry, key) for key in ("error", "worst")),
            entry["use"],
        ]
        for entry in entries
    ]
    heads = [head, "Cells", "Mean share", "± on average", "± at worst", "Use"]
    return table(f"{title}: errors of counts", heads, rows, texts=(5,))


def _named(entry: Content) -> Html:
    return join([name(each, 30) for each in entry["columns"]], TIMES)


def _off(entry: Content, key: str) -> str:
    value = entry[key]
    return percent(value / (entry["records"] * entry["cells"])) if known(value) else DASH
