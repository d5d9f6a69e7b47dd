from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsynth.evaluation.report.charts.radar import Axis, Method, picture, radar
from fedsynth.evaluation.report.wording import count, score
from fedsynth.markup import Html
from tests.evaluation.report.report_reading import read

AXES = [
    Axis("epsilon", 2, 0),
    Axis("accuracy", 0.1, 1, score),
    Axis("parameters", 400_000, 0, count, count),
    Axis("seconds", 1000, 0, count, count),
]
GAN, VAE = Method("GAN", [1.38, 0.53, 350_123, 420]), Method("VAE", [0.23, 0.75, 185_361, 600])
# As drawn: middle, and distances of an axis' ends from it.
X, Y, HUB, RIM = 240.0, 196.0, 24.0, 124.0


def _corners(chart: Html, kind: str) -> list[tuple[float, ...]]:
    """Ends of the lines of one method, in order."""
    found = read(chart).all("g")[kind == "real"].classed("line")
    return [tuple(map(float, re.findall(r"[\d.]+", e.attributes["d"] or ""))) for e in found]


def _radii(chart: Html, kind: str) -> list[float]:
    """Distance from the middle of the corner on each axis, by Pythagoras."""
    return [((x - X) ** 2 + (y - Y) ** 2) ** 0.5 for x, y, *_ in _corners(chart, kind)]


def test_the_best_lies_on_the_rim_and_the_worst_at_the_hub():
    best, worst = Method("best", [0, 1, 0, 0]), Method("worst", [2, 0.1, 400_000, 1000])
    chart = radar(AXES, [best, worst], "label")
    assert _corners(chart, "synthetic")[0] == pytest.approx((X, Y - RIM, X + RIM, Y))
    assert _corners(chart, "synthetic")[2] == pytest.approx((X, Y + RIM, X - RIM, Y))
    assert _radii(chart, "real") == pytest.approx([HUB] * 4, abs=0.1)


def test_figures_lie_in_proportion_between_the_ends():
    chart = radar(AXES, [Method("GAN", [1, 0.55, 100_000, 900])], "label")
    middle, span = (HUB + RIM) / 2, RIM - HUB
    expected = [middle, middle, HUB + 0.75 * span, HUB + 0.1 * span]
    assert _radii(chart, "synthetic") == pytest.approx(expected, abs=0.1)


@given(st.lists(st.floats(0, 2), min_size=2, max_size=2))
def test_outwards_is_better_on_either_kind_of_axis(pair):
    least, most = sorted(pair)
    for axis, better in ((Axis("cost", 2, 0), least), (Axis("gain", 0, 2), most)):
        scale = axis.scale
        assert scale(better) == max(scale(least), scale(most))
        assert HUB <= scale(better) <= RIM


def test_figures_beyond_the_ends_stay_inside():
    chart = radar(AXES, [Method("GAN", [50, 0, -1, 1e9])], "label")
    assert _radii(chart, "synthetic") == pytest.approx([HUB, HUB, RIM, HUB], abs=0.1)


def test_a_missing_figure_breaks_the_line_and_reads_as_a_dash():
    chart = radar(AXES, [Method("GAN", [float("inf"), 0.5, None, 420]), VAE], "label")
    assert not _corners(chart, "synthetic") and len(_corners(chart, "real")) == 4
    assert [e.own for e in read(chart).all("text")].count("\u2013") == 2
    three = radar(AXES, [Method("GAN", [None, 0.5, 1000, 420])], "label")
    assert len(_corners(three, "synthetic")) == 2


def test_every_figure_is_written_beside_the_mark_of_its_method():
    page = read(radar(AXES, [GAN, VAE], "label", note="outwards is better"))
    written = [e.own for e in page.all("text")]
    for said in ("1.38", "0.23", "0.530", "0.750", "350,123", "185,361", "420", "600"):
        assert said in written
    assert {"GAN", "VAE", "outwards is better", *(axis.name for axis in AXES)} <= set(written)
    # On the chart, at four axes' ends and in the legend.
    for kind in ("synthetic", "real"):
        marks = [e for e in page.classed("mark") if e.attributes["class"] == f"mark {kind}"]
        assert len(marks) == 4 + 4 + 1


def test_ticks_carry_real_values():
    written = [e.own for e in read(radar(AXES, [GAN], "label")).classed("small")]
    assert written == ["0", "1", "2", "0.5", "1", "0", "200,000", "400,000", "0", "500", "1,000"]


@pytest.mark.parametrize("sides", [3, 5, 9])
def test_axes_start_at_the_top_and_share_the_circle(sides):
    axes = [Axis(f"axis {index}", 0, 1) for index in range(sides)]
    corners = _corners(radar(axes, [Method("GAN", [1] * sides)], "label"), "synthetic")
    assert corners[0][:2] == pytest.approx((X, Y - RIM))
    lengths = [((c - a) ** 2 + (d - b) ** 2) ** 0.5 for a, b, c, d in corners]
    assert lengths == pytest.approx([lengths[0]] * sides, abs=0.2)


@pytest.mark.parametrize(
    ("axes", "methods"),
    [(AXES[:2], [Method("GAN", [1, 1])]), (AXES, []), (AXES, [GAN] * 3), (AXES[:3], [GAN])],
)
def test_what_cannot_be_drawn_is_refused(axes, methods):
    with pytest.raises(ValueError, match=r"ax[ei]s"):
        radar(axes, methods, "label")


def test_a_picture_is_an_svg_file_with_its_own_colours():
    odd = Method('<b> & "quoted"', [1, 0.5, 2, 3])
    root = ElementTree.fromstring(picture(radar(AXES, [odd], "a < b", note="n & m")))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    style = root.find("{*}style")
    assert style is not None and style.text is not None
    for name in set(re.findall(r"var\((--[\w-]+)\)", style.text)):
        assert f"{name}:" in style.text
    assert ".mark.synthetic" in style.text and "svg .line " in style.text
    assert "body" not in style.text
    assert odd.name in [e.text for e in root.iterfind(".//{*}text")]
