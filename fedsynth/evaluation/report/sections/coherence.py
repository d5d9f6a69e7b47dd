"""The part on rows that make sense: combinations of two values that real rows hardly show."""

from __future__ import annotations

from fedsynth.evaluation.report.charts.bars import axis, bars
from fedsynth.evaluation.report.charts.drawing import Scale, legend
from fedsynth.evaluation.report.content import Content, others
from fedsynth.evaluation.report.layout import Part, lede, part, table
from fedsynth.evaluation.report.wording import DASH, count, known, percent
from fedsynth.markup import Html, join, name, tag

_KINDS = ("synthetic", "real", "trivial")


def coherence(content: Content, fidelity: Content) -> Part:
    """How many rows hold such a combination, and which pairs of columns most do."""
    found = fidelity["coherence"]
    words = (
        "Do the values of a row go together? Counted are rows with two values that real rows "
        "hardly show together: a column that nearly always follows from another and here does "
        "not, or a combination at most a tenth as common as its values on their own would make "
        f"it. They were sought among {others(content)}; “Real” is the share among the real rows "
        "that all is measured against: the least to expect."
    )
    pairs, tried = count(found.get("pairs")), count(found.get("tried"))
    said = f"{pairs} of {tried} pairs of columns have such combinations."
    if not found.get("pairs"):
        said += " Of few rows none can be told: a cell needs 69 that should be in it."
    if known(found.get("declared")):
        said += f" {percent(found['declared'])} of the rows break a constraint of the schema."
    body = [lede(words), legend(*_KINDS, trivial="independent columns"), _table(found)]
    return part("coherence", "Rows that make sense", *body, tag("p", said), link="Sense")


def _table(found: Content) -> Html:
    scale = Scale(0, 1, 6, 200)
    lines: list[tuple[object, Content]] = [("Any pair", found)]
    lines += [(_pair(entry), entry) for entry in found.get("worst") or []]
    rows = []
    for title, entry in lines:
        shares = [(kind, entry.get(kind)) for kind in _KINDS]
        told = ", ".join(f"{kind} {percent(share)}" for kind, share in shares)
        chart = bars(shares, scale, 0, f"Shares of rows: {told}")
        rows.append([title, chart, *(percent(share) for _, share in shares), _example(entry)])
    head = ["Columns", axis(scale), "Synthetic", "Real", "Trivial", "Most often"]
    return table("Rows with values that hardly go together", head, rows, texts=(1, 5))


def _pair(entry: Content) -> Html:
    first, second = entry["columns"]
    settled = entry.get("settled") or []
    if len(settled) == 1:
        first, second = (first, second) if settled[0] == second else (second, first)
    between = ", which settles " if len(settled) == 1 else " and "
    after = ", each settling the other" if len(settled) == 2 else None
    return join([name(first, 30), between, name(second, 30), after])


def _example(entry: Content) -> Html | str:
    example = entry.get("example")
    if not example:
        return DASH
    both = join([name(value, 30) for value in example], " with ")
    return join([both, f", {percent(entry.get('share'))}"])
