"""The section on how close the synthetic rows are to real ones."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from fedsynth.evaluation.report.charts.bars import axis, bars, whiskers
from fedsynth.evaluation.report.charts.drawing import Scale, legend
from fedsynth.evaluation.report.charts.heatmap import (
    MOST,
    choose_columns,
    heatmap,
    scale_of_shades,
    worst_pairs,
)
from fedsynth.evaluation.report.content import Content, others, reason
from fedsynth.evaluation.report.layout import (
    Part,
    Section,
    absent,
    figure,
    lede,
    part,
    region,
    section,
    table,
    within,
)
from fedsynth.evaluation.report.sections.coherence import coherence
from fedsynth.evaluation.report.sections.columns import columns
from fedsynth.evaluation.report.wording import DASH, TIMES, capital, count, interval, known, score
from fedsynth.markup import Html, apart, join, name, tag

_PARTS = (
    ("columns", "Columns", columns),
    ("pairs", "Pairs of columns", lambda content, fidelity: _pairs(content, fidelity)),
    ("marginals", "Marginals", lambda content, fidelity: _marginals(content, fidelity)),
    ("coherence", "Rows that make sense", coherence),
    ("detection", "Telling synthetic from real", lambda content, fidelity: _detection(fidelity)),
    ("quality", "SDMetrics scores", lambda content, fidelity: _quality(content, fidelity)),
)


def fidelity_section(content: Content) -> Section:
    """Columns, pairs, marginals, coherence, detection and the scores that other tools quote."""
    fidelity = content.get("fidelity")
    title = "Fidelity: do the rows look real?"
    if not fidelity:
        return section(
            "fidelity", "Fidelity", title, absent("Fidelity", reason(content, "fidelity"))
        )
    shown = [
        draw(content, fidelity) if fidelity.get(key) else absent(head, reason(content, key))
        for key, head, draw in _PARTS
    ]
    return section("fidelity", "Fidelity", title, *shown)


def _pairs(content: Content, fidelity: Content) -> Part | Html:
    pairs = fidelity["pairs"]
    names, reference = pairs["names"], pairs.get("reference")
    worst = worst_pairs(pairs["distance"], 20)
    if not worst:
        return absent("Pairs of columns", "No pair could be scored.")
    body: list[Html | None] = [
        lede(
            "Are relations between two columns kept? Each cell is the total variation distance of "
            "a pair: 0 is identical, 1 shares nothing. The diagonal is the column itself. ",
            f"Above the diagonal stand {others(content)} in place of the synthetic ones: what "
            "chance alone does. Compare a cell with its mirror image."
            if reference
            else "Real rows for comparison were not scored.",
        )
    ]
    if len(names) > MOST:
        words = f"Of {count(len(names))} columns, the map shows the {MOST} of the worst pairs."
        body.append(tag("p", words, class_="absent"))
    label = f"Map of the distances of all pairs of {min(len(names), MOST)} columns. "
    label += _say(worst, names)
    chart = join([scale_of_shades(), heatmap(pairs, label)])
    body.append(region("Map of pairs", figure(chart, class_="map")))
    body.append(_opened(pairs))
    body.append(_correlations(pairs))
    body.append(_worst_table(worst, names, reference))
    return part("pairs", "Pairs of columns", *body, link="Pairs")


def _opened(pairs: Content) -> Html | None:
    """Where the page's script draws the pair that a reader picks, real rows beside synthetic ones;
    None where no pair's table is known."""
    joint = pairs.get("joint") or {}
    if not joint.get("places"):
        return None
    distance = pairs["distance"]
    held = {
        "names": pairs["names"],
        "drawn": choose_columns(distance),
        "distance": [score(distance[i][j]) for i, j in joint["places"]],
        **joint,
    }
    choices = [
        tag("select", id=key, aria_label=title)
        for key, title in (("pair-one", "First column"), ("pair-two", "Second column"))
    ]
    said = tag("output", id="pair-said", for_="pair-one pair-two")
    words = "A pair as a chart, by a click on the map or here:"
    if len(joint["places"]) < math.comb(len(pairs["names"]), 2):
        words = f"The {count(len(joint['places']))} pairs furthest off, as charts; {words[2:]}"
    return tag(
        "div",
        tag("p", words, " ", join(choices, " and "), class_="search"),
        region("Chart of a pair", tag("div", id="pair-chart")),
        tag("p", said),
        tag("template", json.dumps(held, separators=(",", ":")), id="pair-data"),
        id="pair",
        hidden=True,
    )


def _say(worst: Sequence[tuple[int, int, float]], names: Sequence[object]) -> str:
    i, j, value = worst[0]
    return f"The largest is {score(value)}, of {apart(names[i])} and {apart(names[j])}."


def _correlations(pairs: Content) -> Html:
    words = (
        f"Similarity of correlations of numbers: {score(pairs.get('correlation'))}; of contingency "
        f"tables of categories: {score(pairs.get('contingency'))} (1 is identical; {DASH} where "
        "no such pair is)."
    )
    return tag("p", words)


def _worst_table(
    worst: Sequence[tuple[int, int, float]],
    names: Sequence[object],
    reference: Sequence[Sequence[float | None]] | None,
) -> Html:
    rows = []
    for i, j, value in worst:
        both = join([name(names[i], 30), TIMES, name(names[j], 30)])
        real = reference[i][j] if reference else None
        excess = score(value - real) if known(real) else DASH
        rows.append([both, score(value), score(real), excess])
    caption = f"The {len(worst)} pairs furthest from real"
    head = ["Pair", "Distance", "Real rows", "Excess"]
    return tag(
        "details",
        tag("summary", caption),
        table(caption, head, rows),
        class_="block",
    )


def _marginals(content: Content, fidelity: Content) -> Part:
    entries = fidelity["marginals"]
    high = max(
        [e[k] for e in entries for k in ("mean", "real", "trivial") if known(e.get(k))] or [1]
    )
    scale = Scale(0, high or 1, 6, 200)
    kinds = (("synthetic", "mean"), ("real", "real"), ("trivial", "trivial"))
    rows = []
    for entry in entries:
        values = [(kind, entry.get(key)) for kind, key in kinds]
        said = ", ".join(f"{kind} {score(value)}" for kind, value in values)
        label = f"Mean distance of {entry.get('order')}-way marginals: {said}"
        order = f"{entry.get('order')} column" + ("s" if entry.get("order") != 1 else "")
        rows.append(
            [
                order,
                bars(values, scale, 0, label),
                *(score(value) for _, value in values),
                score(entry.get("worst")),
                _set(entry.get("worst_columns") or []),
                count(entry.get("sets")),
            ]
        )
    head = ["Taken together", axis(scale), "Synthetic", "Real", "Trivial", "Worst", "Of", "Sets"]
    words = (
        "Do tables of one, two and three columns agree? Mean total variation distance, shorter "
        f"is better. {capital(others(content))} show what chance does; the trivial baseline keeps "
        "each column and no relation between them, so it is nearly perfect for one column."
    )
    keys = legend("synthetic", "real", "trivial", trivial="independent columns")
    shown = table("Distances of marginals", head, rows, texts=(1, 6))
    return part("marginals", "Marginals", lede(words), keys, shown, link="Marginals")


def _set(names: Sequence[object]) -> Html:
    return join([name(each, 24) for each in names], TIMES) if names else Html(DASH)


def _detection(fidelity: Content) -> Part:
    scale, rows = Scale(0.4, 1, 6, 200), []
    for entry in fidelity["detection"]:
        value, low, high = entry.get("auroc"), entry.get("low"), entry.get("high")
        label = f"AUROC {score(value)}, interval {interval(low, high)}; real rows "
        label += f"{score(entry.get('real'))}; 0.5 is guessing"
        chart = whiskers(value, low, high, scale, 0.5, label, entry.get("real"))
        rows.append(
            [
                capital(str(entry.get("name"))),
                chart,
                within(value, low, high),
                score(entry.get("real")),
                score(entry.get("pmse"), 4),
                _ratio(entry),
            ]
        )
    head = ["Classifier", axis(scale, noted={0.5: "0.5", 1.0: "1"}), "AUROC"]
    head += ["Real", "pMSE", "Times expected"]
    words = (
        "Can a classifier tell synthetic rows from real ones? 0.5 is guessing: it cannot. 1 means "
        "that it always can. A strong classifier finds small faults, so values near 1 are common "
        "and do not by themselves make rows useless. The last column is pMSE over what it would "
        "be if the rows were real: 1 is ideal."
    )
    keys = legend("synthetic", "real")
    shown = table("Detection", head, rows, texts=(1,))
    title = "Telling synthetic from real"
    return part("detection", title, lede(words), keys, shown, link="Detection")


def _ratio(entry: Content) -> str:
    value = entry.get("pmse_ratio")
    return f"{value:,.1f}" if known(value) else DASH


def _quality(content: Content, fidelity: Content) -> Part:
    quality, scale = fidelity["quality"], Scale(0, 1, 6, 200)
    kinds = (("synthetic", "score"), ("real", "real"), ("trivial", "trivial"))
    values = [(kind, quality.get(key)) for kind, key in kinds]
    said = ", ".join(f"{kind} {score(value)}" for kind, value in values)
    row = ["Quality", bars(values, scale, 0, f"Quality score: {said}")]
    row += [score(value) for _, value in values]
    row += [score(quality.get("column_shapes")), score(quality.get("column_pair_trends"))]
    head = ["Score", axis(scale), "Synthetic", "Real", "Trivial", "Column shapes", "Pair trends"]
    trivial = score(quality.get("trivial"))
    caution = (
        f"Independent columns, which keep no relation whatever, score {trivial} here"
        if known(quality.get("trivial"))
        else "Independent columns, which keep no relation whatever, score high here too"
    )
    words = "The scores that other tools quote, from 0 to 1. "
    if known(quality.get("score")) and not known(quality.get("column_pair_trends")):
        words += "No pair of columns hangs together as SDMetrics asks: it is of single columns. "
    more = f"{caution}: read this figure only against that one."
    shown = table("SDMetrics quality score", head, [row], texts=(1,))
    keys = legend("synthetic", "real", "trivial", trivial="independent columns")
    body = [lede(words, tag("strong", more)), keys, shown, _diagnostic(content, fidelity)]
    return part("quality", "SDMetrics scores", *body, link="SDMetrics")


def _diagnostic(content: Content, fidelity: Content) -> Html:
    entry = fidelity.get("diagnostic")
    if not entry:
        return absent("SDMetrics diagnostic", reason(content, "quality"))
    words = (
        f"Diagnostic: {score(entry.get('score'))} (data validity "
        f"{score(entry.get('data_validity'))}, data structure "
        f"{score(entry.get('data_structure'))}). It checks ranges, categories and column types, "
        "and should be 1."
    )
    return tag("p", words)
