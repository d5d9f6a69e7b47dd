"""Plots of plans: well-formed, escaped, within their frame."""

from __future__ import annotations

import math
import re
import struct
import sys
from xml.etree import ElementTree

import pytest

from fedsynth.errors import ConfigError, FedsynthError
from fedsynth.planning.drawing import draw_lines, save_plot

AXES = {"across": "epsilon", "up": "error", "label": "errors"}


@pytest.mark.parametrize("log", [True, False])
def test_a_plot_is_xml_that_names_its_lines_and_stays_in_its_frame(log):
    lines = {"<a & b>": [(0.1, 0.9), (10.0, 0.01)], "c": [(1.0, 0.5), (2.0, math.inf)]}
    drawn = draw_lines(lines, **AXES, log=log, at=1.0)
    root = ElementTree.fromstring(drawn)
    texts = [element.text for element in root.iter() if element.tag.endswith("text")]
    assert "<a & b>" in texts and "epsilon" in texts
    width, height = (float(root.attrib[name]) for name in ("width", "height"))
    for d in re.findall(r' d="([^"]*)"', drawn):
        for x, y in re.findall(r"(-?[\d.]+) (-?[\d.]+)", d):
            assert 0 <= float(x) <= width and 0 <= float(y) <= height


@pytest.mark.parametrize("jobs", [1, 2, 7])
@pytest.mark.parametrize("most", [0.03, 0.4, 1.0, 1.4, 30.0])
def test_linear_axes_have_ticks_enough_whatever_is_drawn(jobs, most):
    """On the first whole numbers alone, each spelled as it stands: three heights at the least."""
    points = [(float(job), most * job / jobs) for job in range(jobs + 1)]
    root = ElementTree.fromstring(draw_lines({"a": points}, **AXES, log=False))
    texts = [one for one in root.iter() if one.get("class", "").endswith("quiet")]
    across, up = (
        {float(one.text): float(one.get(place)) for one in texts if one.get("class") == kind}
        for place, kind in (("x", "mid quiet"), ("y", "end quiet"))
    )
    assert len(across) >= 2 and all(value.is_integer() for value in across)
    assert len(up) >= 3 and max(up) <= most
    top = max(up)
    for value, height in up.items():
        assert height == pytest.approx(up[0] + value / top * (up[top] - up[0]), abs=0.2)


def test_nothing_finite_is_nothing_to_plot():
    with pytest.raises(ConfigError, match="nothing to plot"):
        draw_lines({"a": [(1.0, math.inf)]}, **AXES)


def test_a_plot_is_a_new_svg_file(tmp_path):
    drawn = draw_lines({"a": [(1.0, 1.0), (2.0, 3.0)]}, **AXES)
    save_plot(drawn, tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text() == drawn
    for name, said in (("a.svg", "exists already"), ("a.gif", r"\.svg"), ("no/a.svg", "written")):
        with pytest.raises(FedsynthError, match=said):
            save_plot(drawn, tmp_path / name)


def test_a_png_is_drawn_or_refused_in_words(tmp_path, monkeypatch):
    drawn = draw_lines({"a": [(1.0, 1.0), (2.0, 3.0)]}, **AXES)
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(ConfigError, match=r"fedsynth\[png\].*\.svg takes nothing"):
        save_plot(drawn, tmp_path / "a.png")
    assert not list(tmp_path.iterdir())
    monkeypatch.undo()
    pytest.importorskip("resvg_py", reason="a .png takes resvg-py")
    save_plot(drawn, tmp_path / "a.png")
    header = (tmp_path / "a.png").read_bytes()[:24]
    assert header[:8] == b"\x89PNG\r\n\x1a\n"
    # Twice 660 by 330.
    assert struct.unpack(">II", header[16:]) == (1320, 660)
