"""The section on images."""

from __future__ import annotations

import base64

from fedsynth.evaluation.report.charts.bars import axis, bars
from fedsynth.evaluation.report.charts.drawing import Scale, legend
from fedsynth.evaluation.report.charts.histograms import dots
from fedsynth.evaluation.report.content import Content, reason
from fedsynth.evaluation.report.layout import (
    Part,
    Section,
    absent,
    figure,
    lede,
    part,
    section,
    several,
    table,
)
from fedsynth.evaluation.report.wording import known, score
from fedsynth.markup import Html, join, tag


def images_section(content: Content) -> Section | None:
    """Samples side by side, and a student network trained on them; None without images."""
    images = content.get("images")
    if not images:
        return None
    body = [_grids(content, images), _student(content, images), _classes(content, images)]
    return section("images", "Images", "Images", *body, _pixels(images))


def _grids(content: Content, images: Content) -> Part | Html:
    grid, shown = images.get("grid") or {}, []
    for key, title in (("synthetic", "Synthetic images"), ("real", "Real images")):
        if grid.get(key):
            alt = f"A grid of {key} images, each row one class where classes are known"
            wide = _width(str(grid[key]))
            picture = tag("img", src=grid[key], alt=alt, class_="picture", width=wide)
            shown.append(figure(picture, title))
    if not shown:
        return absent("Sample of images", reason(content, "images"))
    without = None
    if not grid.get("real"):
        without = absent("Real images", "They are private, or were not given to be shown.")
    return part("samples", "Samples", several(shown), without)


def _width(picture: str) -> int | None:
    """So many pixels of the screen as make each of a PNG's a square of the same size, of two at
    least; None of another kind of picture."""
    head = base64.b64decode(picture.partition(",")[2][:32] + "==")
    wide = int.from_bytes(head[16:20], "big") if head.startswith(b"\x89PNG") else 0
    return wide * max(2, 460 // wide) if wide else None


def _student(content: Content, images: Content) -> Part | Html:
    student = images.get("student")
    if not student:
        return absent("Student network", reason(content, "student"))
    scale, rows = Scale(0, 1, 6, 220), []
    for kind, key, title in (
        ("synthetic", "synthetic", "Trained on synthetic images"),
        ("real", "real", "Trained on real images"),
        ("trivial", "majority", "Always the commonest class"),
    ):
        value = student.get(key)
        chart = bars([(kind, value)], scale, 0, f"{title}: accuracy {score(value)}")
        rows.append([title, chart, score(value)])
    words = "A small network is trained and then tested on real images that it never saw."
    head = ["Student network", axis(scale), "Accuracy"]
    shown = table("Accuracy of the student network", head, rows, texts=(1,))
    title = "What a network learns from them"
    return part("student", title, lede(words), shown, link="Student network")


def _classes(content: Content, images: Content) -> Part | Html:
    classes = images.get("classes")
    if not classes:
        return absent("Class by class", reason(content, "student"))
    rows = [(str(each.get("name")), each.get("real"), each.get("synthetic")) for each in classes]
    gaps = [(r - s, title) for title, r, s in rows if known(r) and known(s)]
    worst = f"; the largest loss is at {max(gaps)[1]}" if gaps else ""
    label = "Share of each class's real images recognised after training on synthetic images, "
    label += f"against training on real ones{worst}"
    keys = legend("synthetic", "real", synthetic="trained on synthetic", real="trained on real")
    chart = figure(join([keys, dots(rows, label, shares=False, end=1.0)]))
    words = "The share of each class's real images that the network recognises (recall)."
    return part("classes", "Class by class", lede(words), chart, link="Classes")


def _pixels(images: Content) -> Part | None:
    pixels = images.get("pixels")
    if not pixels:
        return None
    words = (
        f"Mean absolute difference of pixel means: {score(pixels.get('mean_error'))}; of pixel "
        f"standard deviations: {score(pixels.get('deviation_error'))} (0 is identical)."
    )
    return part("pixels", "Pixels", tag("p", words))
