from __future__ import annotations

import itertools
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsynth.evaluation.report.charts.bars import bars, belief, headline, whiskers
from fedsynth.evaluation.report.charts.curves import Curve, apart_by, roc, scatter
from fedsynth.evaluation.report.charts.drawing import Scale, mark, round_values, spread
from fedsynth.evaluation.report.charts.heatmap import choose_columns, heatmap, shade, worst_pairs
from fedsynth.evaluation.report.charts.histograms import (
    category_rows,
    combs,
    distribution,
    dots,
    furthest,
    strip,
)
from fedsynth.markup import Html, join, name, tag, text
from tests.evaluation.report.report_reading import Element, read

HISTOGRAM = {"labels": ["a", "b", "c"], "real": [0.5, 0.25, 0.25], "synthetic": [1.0, 0.0, None]}


def _d(chart: Html, class_: str) -> str:
    return next(
        e for e in read(chart).all("path") if e.attributes.get("class") == class_
    ).attributes["d"]


def _texts(chart: Html) -> dict[str, Element]:
    return {e.own: e for e in read(chart).all("text")}


def test_a_scale_is_a_line_through_its_ends_and_stops_there():
    scale = Scale(0, 10, 100, 300)
    assert [scale(v) for v in (0, 2.5, 10, -1, 11)] == [100, 150, 300, 100, 300]
    assert Scale(0, 1, 200, 10)(0.25) == 152.5
    assert Scale(1, 1, 0, 8)(1) == 4


def test_a_logarithmic_scale_spaces_decades_evenly():
    scale = Scale(1e-4, 1, 0, 400, log=True)
    assert [scale(v) for v in (1e-4, 1e-3, 1e-1, 1)] == pytest.approx([0, 100, 300, 400])
    assert scale(1e-9) == 0
    assert scale.ticks() == pytest.approx([1e-4, 1e-3, 1e-2, 1e-1, 1])


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 1, [0, 0.5, 1]),
        (0, 0.214, [0, 0.1, 0.2]),
        (-1, 1, [-1, -0.5, 0, 0.5, 1]),
        (3, 3, [3]),
    ],
)
def test_ticks_are_round_values(low, high, expected):
    assert round_values(low, high, 4 if low < 0 else 3) == pytest.approx(expected)


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_ticks_lie_within_the_scale_and_are_few(low, width):
    values = round_values(low, low + width)
    assert len(values) <= 6
    assert all(low - width * 1e-6 <= value <= low + width * (1 + 1e-6) for value in values)


def test_the_spread_of_nothing_is_the_unit_and_of_one_value_is_around_it():
    assert spread([None, math.nan]) == (0, 1)
    assert spread([0, 1, None], 0.1) == pytest.approx((-0.1, 1.1))
    low, high = spread([5.0])
    assert low < 5 < high


def test_the_four_marks_have_four_shapes():
    shapes = {
        (e.tag, re.sub(r"[\d.-]+", "", e.attributes.get("d", "")))
        for kind in ("synthetic", "real", "trivial", "augmented")
        for e in read(mark(kind, 10, 10)).children
    }
    assert len(shapes) == 4


def test_a_headline_puts_each_figure_at_its_place():
    entry = {"name": "AUROC", "value": 0.75, "real": 1, "trivial": 0.5, "better": "higher"}
    chart = headline(entry | {"low": 0.5, "high": 1})
    assert read(chart).all("circle")[0].attributes["cx"] == "120"
    assert _d(chart, "mark real").startswith("M232 ")
    assert _d(chart, "mark trivial").startswith("M4.6 ")
    texts = _texts(chart)
    assert texts["real 1"].attributes["class"] == "end"
    assert "trivial 0.500" in texts and "1" in texts and "0.5" not in texts


def test_a_headline_leaves_out_what_is_not_known():
    entry = {"name": "x", "value": None, "real": 0.5, "trivial": None, "better": "lower"}
    chart = headline(entry | {"low": 0, "high": 1})
    assert not read(chart).all("circle") and "mark trivial" not in chart
    assert set(_texts(chart)) == {"0", "1", "real 0.500"}
    assert "synthetic \u2013" in read(chart).all("svg")[0].attributes["aria-label"]


def test_small_distributions_step_at_the_bins_edges():
    chart = strip(HISTOGRAM, "label")
    # Three bins of 110 / 3 pixels from 1; the highest share, 1, reaches 2 and 0 lies at 33.
    assert _d(chart, "line real") == "M1 33V17.5H37.7V25.2H74.3V25.2H111V33"
    assert _d(chart, "area synthetic") == "M1 33V2H37.7V33H74.3V33H111V33z"


def test_small_distributions_are_filled_where_the_two_differ():
    chart = strip(HISTOGRAM, "label")
    # Of the shares .5, .25 and .25 against 1, 0 and one not known.
    assert _d(chart, "over") == "M1 17.5V2H37.7V17.5z"
    assert _d(chart, "under") == "M37.7 25.2V33H74.3V25.2z"
    alike = {**HISTOGRAM, "synthetic": HISTOGRAM["real"]}
    assert "over" not in strip(alike, "label") and "under" not in strip(alike, "label")


def test_large_distributions_have_a_bar_to_hover_for_each_bin():
    chart = distribution(HISTOGRAM, "label")
    # 44 to 356 across, the share 1 at 10 and 0 at 176.
    assert _d(chart, "line real") == "M44 176V93H148V134.5H252V134.5H356V176"
    hovers = [e for e in read(chart).all("rect") if e.attributes["class"] == "hover"]
    assert [(e.attributes["x"], e.attributes["width"]) for e in hovers] == [
        ("44", "104"),
        ("148", "104"),
        ("252", "104"),
    ]
    assert hovers[2].text == "c: real 25.0\u202f%, synthetic \u2013"
    assert {"a", "c", "0\u202f%", "50\u202f%", "100\u202f%"} <= set(_texts(chart))


def test_three_long_labels_are_not_drawn_over_one_another():
    long = {"labels": [f"{i} thousand to {i + 1} thousand" for i in range(9)]}
    chart = distribution(long | {"real": [0.1] * 9, "synthetic": [0.1] * 9}, "label")
    assert sum("thousand" in each for each in _texts(chart)) == 2


def test_categories_are_joined_dots_from_the_commonest_on():
    rows = category_rows(HISTOGRAM | {"real": [0.25, 0.5, 0.25]})
    assert [row[0] for row in rows] == ["b", "a", "c"]
    chart = dots(rows, "label")
    # 0 at 126 and the highest, 1, at 264; rows 22 pixels apart from 18.
    assert [(e.attributes["cx"], e.attributes["cy"]) for e in read(chart).all("circle")] == [
        ("126", "18"),
        ("264", "40"),
    ]
    assert _d(chart, "gap") == "M195 18L126 18"
    assert "25.0\u202f% | \u2013" in _texts(chart)


def test_many_categories_end_in_the_sum_of_the_others():
    rows = [(f"v{i}", 0.02, 0.01) for i in range(50)]
    texts = _texts(dots(rows, "label"))
    assert "v23" in texts and "v24" not in texts
    assert "26 others" in texts and "52.0\u202f% | 26.0\u202f%" in texts
    assert "26 others" not in _texts(dots(rows, "label", shares=False))


def test_small_bars_of_categories_have_a_line_for_the_real_share():
    chart = combs([("a", 1.0, 0.5), ("b", None, 0.25)], "label")
    # Two bars of 20 pixels from 1; the share 1 at 3 and 0 at 33.
    areas = [e.attributes["d"] for e in read(chart).all("path") if "area" in e.attributes["class"]]
    assert areas == ["M1 33V18H16V33z", "M21 33V25.5H36V33z"]
    assert _d(chart, "line real") == "M0.5 3L16.5 3"


def test_the_largest_gap_is_named():
    assert furthest(HISTOGRAM) == (
        "they differ most at \u2068a\u2069: real 50.0\u202f%, synthetic 100\u202f%"
    )
    assert furthest({"labels": [], "real": [], "synthetic": []}) == "no shares are known"


def test_bars_reach_from_the_trivial_baseline_to_either_side():
    scale = Scale(0, 1, 0, 100)
    chart = bars([("synthetic", 0.9), ("real", None), ("trivial", 0.3)], scale, 0.5, "label")
    boxes = [e.attributes for e in read(chart).all("rect")]
    assert [(b["x"], b["width"], b["y"], b["class"]) for b in boxes] == [
        ("50", "40", "4.5", "bar synthetic"),
        ("30", "20", "24.5", "bar trivial"),
    ]


def test_whiskers_show_the_interval_and_the_value_of_nothing_found():
    chart = whiskers(0.6, 0.55, 0.7, Scale(0, 1, 0, 100), 0.5, "label", real=0.5)
    assert read(chart).all("circle")[0].attributes["cx"] == "60"
    assert _d(chart, "whisker") == "M55 12L70 12"
    assert _d(chart, "null") == "M50 2L50 22"
    bare = whiskers(None, None, None, Scale(0, 1, 0, 100), None, "label")
    assert len(read(bare).all("path")) == 1 and not read(bare).all("circle")


def test_belief_moves_from_before_to_after():
    chart = belief(0.5, 0.75, "at most 75 %", "label")
    assert _d(chart, "reach") == "M120 26L176 26"


def test_a_roc_curve_runs_through_its_rates():
    chart = roc([Curve("attack", "attack0", [0, 0.5, 1], [0, 0.75, 1])], "label")
    # 54 to 322 across, 262 up to 10.
    assert _d(chart, "line attack0") == "M54 262L188 73L322 10"
    assert _d(chart, "line guess") == "M54 262L322 10"
    assert read(chart).all("g")[0].all("title")[0].text == "attack"


def test_a_logarithmic_roc_curve_starts_at_its_floor():
    fpr, tpr = [0, 1e-3, 0.1, 1], [0.01, 0.01, 0.1, 1]
    chart = roc([Curve("attack", "attack0", fpr, tpr)], "label", floor=1e-4)
    # Decades are 67 pixels wide and 63 high; at fpr 0 a hundredth of the members is found.
    assert _d(chart, "line attack0") == "M54 136L121 136L255 73L322 10"
    silent = roc([Curve("attack", "attack0", [0, 1], [0, 1])], "label", floor=1e-4)
    assert "line attack0" not in silent


def test_a_scatter_uses_one_range_for_both_axes_and_ties_names_to_points():
    group = {"names": ["low", "high", "none"], "real": [0, 1, 1], "synthetic": [0.5, 1, None]}
    chart = scatter(group, "label")
    points = read(chart).all("circle")
    low, high = spread([0, 0.5, 1, 1])
    x, y = Scale(low, high, 54, 252), Scale(low, high, 262, 10)
    across, up = ([float(p.attributes[key]) for p in points] for key in ("cx", "cy"))
    assert across == pytest.approx([x(0), x(1)], abs=0.06)
    assert up == pytest.approx([y(0.5), y(1)], abs=0.06)
    assert points[0].text == "low: real 0, synthetic 0.500"
    assert _d(chart, "line guess") == "M54 262L252 10"
    names = [e for e in read(chart).all("text") if e.all("title")]
    assert len(names) == 2


def test_too_many_points_are_not_named():
    values = [i / 20 for i in range(17)]
    group = {"names": [f"m{i}" for i in range(17)], "real": values, "synthetic": values}
    chart = scatter(group, "label")
    assert len(read(chart).all("circle")) == 17
    assert not [e for e in read(chart).all("text") if e.all("title")]


@given(st.lists(st.floats(0, 100), max_size=12).map(sorted), st.floats(1, 15))
def test_places_keep_their_order_and_distance(wanted, least):
    places = apart_by(wanted, least, 0, 200)
    assert all(b - a >= least - 1e-9 for a, b in itertools.pairwise(places))
    assert all(-1e-9 <= place <= 200 + 1e-9 for place in places)
    free = all(b - a >= least for a, b in itertools.pairwise(wanted))
    assert not free or places == pytest.approx(wanted)


PAIRS = {
    "names": ["a", "b", "c"],
    "distance": [[0.005, 0.3, 0.05], [0.3, 0.6, None], [0.05, None, 0.0]],
    "reference": [[0.0, 0.012, 0.03], [0.012, 0.0, 0.0], [0.03, 0.0, 0.0]],
}


def test_worst_pairs_are_sorted_and_leave_out_gaps_and_the_diagonal():
    assert worst_pairs(PAIRS["distance"]) == [(0, 1, 0.3), (0, 2, 0.05)]
    assert worst_pairs(PAIRS["distance"], 1) == [(0, 1, 0.3)]


def test_of_many_columns_those_of_the_worst_pairs_are_drawn():
    distance = [[0.0] * 6 for _ in range(6)]
    distance[4][1] = distance[1][4] = 0.9
    distance[5][4] = distance[4][5] = 0.8
    assert choose_columns(distance, 3) == [1, 4, 5]
    assert choose_columns(distance, 6) == list(range(6))
    assert choose_columns([[None] * 4 for _ in range(4)], 2) == [0, 1]


def test_shades_change_at_their_breaks():
    values = [0, 0.0099, 0.01, 0.1, 0.4999, 0.5, 1]
    assert [shade(value) for value in values] == ["q0", "q0", "q1", "q5", "q7", "q8", "q8"]
    assert shade(None) == "qn"


def _cells(chart: Html) -> dict[tuple[float, float], Element]:
    cells = list(read(chart).all("rect"))
    xs = sorted({float(e.attributes["x"]) for e in cells})
    ys = sorted({float(e.attributes["y"]) for e in cells})
    return {
        (ys.index(float(e.attributes["y"])), xs.index(float(e.attributes["x"]))): e for e in cells
    }


def test_the_map_has_synthetic_rows_below_the_diagonal_and_real_ones_above():
    cells = _cells(heatmap(PAIRS, "label"))
    assert len(cells) == 9
    assert cells[1, 0].attributes["class"] == "cell q7"
    assert cells[1, 0].text == "\u2068b\u2069 \u00d7 \u2068a\u2069: 0.300 (synthetic rows)"
    assert cells[0, 1].attributes["class"] == "cell q1"
    assert cells[0, 1].text == "\u2068a\u2069 \u00d7 \u2068b\u2069: 0.012 (real rows)"
    assert cells[1, 1].text == "\u2068b\u2069: 0.600 (synthetic rows)"
    assert cells[2, 1].attributes["class"] == "cell qn" and "not computed" in cells[2, 1].text


def test_without_real_rows_the_map_has_one_half():
    chart = heatmap(PAIRS | {"reference": None}, "label")
    assert len(_cells(chart)) == 6
    assert "diagonal" not in chart and "real rows" not in chart


def test_markup_escapes_text_once_and_leaves_markup_alone():
    assert text('<a b="c">&') == "&lt;a b=&quot;c&quot;&gt;&amp;"
    assert tag("p", tag("b", "<"), "<", title='"') == '<p title="&quot;"><b>&lt;</b>&lt;</p>'
    assert tag("input", hidden=True, value=None, id=False) == "<input hidden>"
    assert join(["<", None, Html("<")], "|") == "&lt;|<"
    assert name("abcdef", 4) == '<bdi title="abcdef">abc\u2026</bdi>'
    assert text("a\x00\ud800") == "a\ufffd\ufffd"
