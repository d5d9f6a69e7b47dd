"""Plots of searches: well-formed, escaped, within their frame, every candidate in its place."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.tuning.drawing import Drawn, Setting, draw_search

SVG = "{http://www.w3.org/2000/svg}"


def drawn(scores, *, taken=0, default=0.5, near=None, chosen=()):
    return draw_search(Drawn("auroc", scores, taken, default, near, chosen), "<scores> & more")


def circles(plot):
    """Class, title and place of each trial's circle, the legend's left out."""
    found = []
    for circle in ElementTree.fromstring(plot).iter(f"{SVG}circle"):
        title = circle.find(f"{SVG}title")
        if title is not None:
            place = tuple(float(circle.attrib[name]) for name in ("cx", "cy"))
            found.append((circle.attrib["class"], title.text, place))
    return found


def test_higher_scores_stand_higher_and_later_trials_further_right():
    plot = drawn({2: 0.9, 0: 0.7, 1: 0.8}, taken=1)
    places = {title.split(":")[0]: place for _, title, place in circles(plot)}
    first, second, third = (places[f"trial {number}"] for number in range(3))
    assert first[0] < second[0] < third[0] and first[1] > second[1] > third[1]
    assert [kind for kind, title, _ in circles(plot)].count("taken") == 1
    # Trial 1 is drawn last, above the others.
    assert circles(plot)[-1][:2] == ("taken", "trial 1: 0.8000")


def test_the_best_so_far_never_falls():
    plot = drawn({0: 0.7, 1: 0.6, 2: 0.9, 3: 0.8})
    line, _ = re.findall(r'd="([^"]*)" class="best"', plot)  # The other is the legend's.
    heights = [float(y) for _, y in re.findall(r"([\d.]+) ([\d.]+)", line)]
    assert heights == sorted(heights, reverse=True) and len(set(heights)) == 2


def test_a_score_far_below_does_not_press_the_others_together_and_is_told():
    scores = {number: 0.90 + number / 1000 for number in range(9)} | {9: 0.1}
    plot = drawn(scores, default=0.9)
    assert "below the plot: 1" in plot
    kinds = {title: kind for kind, title, _ in circles(plot)}
    assert kinds["trial 9: 0.1000"] == "below"
    heights = [place[1] for _, title, place in circles(plot) if not title.startswith("trial 9")]
    assert max(heights) - min(heights) > 60


def test_what_is_marked_is_always_in_the_plot():
    scores = {number: 0.90 + number / 1e5 for number in range(9)} | {9: 0.898, 10: 0.5}
    plot = drawn(scores, taken=9, default=0.89, near=(0.88, 0.90008))
    kinds = {title: (kind, place[1]) for kind, title, place in circles(plot)}
    assert kinds["trial 9: 0.8980"][0] == "taken"
    assert kinds["trial 9: 0.8980"][1] < kinds["trial 10: 0.5000"][1] - 50
    (band,) = re.findall(r'height="([\d.]+)" class="near"', plot)[:1]
    assert float(band) > 100


def test_settings_have_a_panel_each_with_the_default_where_it_has_a_place():
    chosen = [
        Setting("rate", [0.01, 1.0, 0.1], (0.01, 1.0), 0.1, log=True),
        Setting("<kind>", ["a", "b", "a"], ["a", "b"], None),
    ]
    plot = drawn({0: 0.7, 1: 0.8, 2: 0.9}, chosen=chosen)
    texts = [one.text for one in ElementTree.fromstring(plot).iter(f"{SVG}text")]
    assert {"rate", "<kind>", "log", "0.01", "1", "a", "b"} <= set(texts)
    assert plot.count('class="default"') == 1 + 1 + 1  # history, legend, the first panel
    across = [place[0] for _, title, place in circles(plot) if title.startswith("trial")]
    one, two, three = across[4], across[5], across[3]
    # On a logarithmic axis a tenth lies in the middle; the one taken is drawn last.
    rate = {title: place[0] for _, title, place in circles(plot)[3:6]}
    low, high, middle = (rate[f"trial {n}: 0.{s}000"] for n, s in ((0, 7), (1, 8), (2, 9)))
    assert middle == pytest.approx((low + high) / 2, abs=0.2)
    assert len({one, two, three}) == 3


@settings(max_examples=25)
@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40),
    st.floats(-1e6, 1e6),
    st.booleans(),
)
def test_everything_stays_in_the_frame(scores, default, alike):
    near = (max(scores) - 0.002, max(scores)) if alike else None
    values = [float(place + 1) for place in range(len(scores))]
    chosen = [Setting("n", values, (1.0, 41.0), 41.0)]
    plot = drawn(dict(enumerate(scores)), default=default, near=near, chosen=chosen)
    root = ElementTree.fromstring(plot)
    width, height = (float(root.attrib[name]) for name in ("width", "height"))
    assert root.attrib["aria-label"] == "<scores> & more"
    places = [place for _, _, place in circles(plot)]
    for d in re.findall(r' d="([^"]*)"', plot):
        places += [(float(x), float(y)) for x, y in re.findall(r"(-?[\d.]+) (-?[\d.]+)", d)]
    assert all(0 <= x <= width and 0 <= y <= height for x, y in places)
    assert len(circles(plot)) == 2 * len(scores)
