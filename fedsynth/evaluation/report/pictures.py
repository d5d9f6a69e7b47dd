"""The sections on images and on clients."""

from __future__ import annotations

from fedsynth.evaluation.report.charts import axis, bars, dots
from fedsynth.evaluation.report.drawing import Scale, legend
from fedsynth.evaluation.report.layout import (
    Content,
    absent,
    figure,
    lede,
    part,
    reason,
    section,
    several,
    table,
)
from fedsynth.evaluation.report.diagnostics import plain
from fedsynth.evaluation.report.markup import Html, join, name, tag
from fedsynth.evaluation.report.wording import DASH, amount, capital, count, known, score


def images_section(content: Content) -> Html | None:
    """Samples side by side, and a student network trained on them; None without images."""
    images = content.get("images")
    if not images:
        return None
    body = [_grids(content, images), _student(content, images), _classes(content, images)]
    return section("images", "Images", *body, _pixels(images))


def _grids(content: Content, images: Content) -> Html:
    grid, shown = images.get("grid") or {}, []
    for key, title in (("synthetic", "Synthetic images"), ("real", "Real images")):
        if grid.get(key):
            alt = f"A grid of {key} images, each row one class where classes are known"
            picture = tag("img", src=grid[key], alt=alt, class_="grid")
            shown.append(figure(picture, title))
    if not shown:
        return absent("Sample of images", reason(content, "images"))
    without = None
    if not grid.get("real"):
        without = absent("Real images", "They are private, or were not given to be shown.")
    return part("samples", "Samples", several(shown), without)


def _student(content: Content, images: Content) -> Html:
    student = images.get("student")
    if not student:
        return absent("Student network", reason(content, "images"))
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
    return part("student", "What a network learns from them", lede(words), shown)


def _classes(content: Content, images: Content) -> Html:
    classes = images.get("classes")
    if not classes:
        return absent("Class by class", reason(content, "images"))
    rows = [(str(each.get("name")), each.get("real"), each.get("synthetic")) for each in classes]
    gaps = [(r - s, title) for title, r, s in rows if known(r) and known(s)]
    worst = f"; the largest loss is at {max(gaps)[1]}" if gaps else ""
    label = f"Share of each class's real images recognised, synthetic against real training{worst}"
    keys = legend("synthetic", "real", synthetic="trained on synthetic", real="trained on real")
    chart = figure(join([keys, dots(rows, label, shares=False, end=1.0)]), class_="narrow")
    words = "The share of each class's real images that the network recognises (recall)."
    return part("classes", "Class by class", lede(words), chart)


def _pixels(images: Content) -> Html | None:
    pixels = images.get("pixels")
    if not pixels:
        return None
    words = (
        f"Mean absolute difference of pixel means: {score(pixels.get('mean_error'))}; of pixel "
        f"standard deviations: {score(pixels.get('deviation_error'))} (0 is identical)."
    )
    return part("pixels", "Pixels", tag("p", words))


def clients_section(content: Content) -> Html | None:
    """Scores that every client computed on its own rows; None where there are none."""
    clients = content.get("clients")
    if not clients:
        return None
    keys = [k for k in dict.fromkeys(k for each in clients for k in each) if k != "name"]
    rows = [[name(each.get("name"), 40), *(_cell(k, each.get(k)) for k in keys)] for each in clients]
    rows += _spread(clients, keys)
    words = (
        "Every client scored the synthetic rows on its own rows, which it did not show. Means are "
        "weighted by rows; a wide range means that the rows serve some clients better than others."
    )
    head = ["Client", *(capital(key.replace("_", " ")) for key in keys)]
    shown = table("Scores at the clients", head, rows)
    return section("clients", "Clients: whom do the rows serve?", lede(words), shown)


def _cell(key: str, value: object) -> str:
    if key == "rows":
        return count(value)
    if known(value):
        return score(value) if abs(value) <= 1 else amount(value)
    return plain(value)


def _spread(clients: list[Content], keys: list[str]) -> list[list[object]]:
    """The weighted mean and the range of every figure."""
    means: list[object] = [tag("strong", "Mean, weighted by rows")]
    ranges: list[object] = [tag("strong", "Range")]
    for key in keys:
        pairs = [
            (each[key], each.get("rows") or 0)
            for each in clients
            if known(each.get(key)) and known(each.get("rows") or 0)
        ]
        total = sum(weight for _, weight in pairs)
        if key == "rows" or not pairs or not total:
            means.append(count(total) + " in all" if key == "rows" else DASH)
        else:
            means.append(_cell(key, sum(value * weight for value, weight in pairs) / total))
        values = [value for value, _ in pairs]
        ends = f"{_cell(key, min(values))} to {_cell(key, max(values))}" if values else DASH
        ranges.append(ends)
    return [means, ranges]
