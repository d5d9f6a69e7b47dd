"""The sections on images and on clients."""

from __future__ import annotations

from collections.abc import Mapping

from fedsynth.evaluation.report.charts.bars import axis, bars
from fedsynth.evaluation.report.charts.drawing import Scale, legend
from fedsynth.evaluation.report.charts.histograms import dots
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
from fedsynth.evaluation.report.markup import Html, join, name, tag
from fedsynth.evaluation.report.sections.diagnostics import plain
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
            picture = tag("img", src=grid[key], alt=alt, class_="picture")
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
    label = "Share of each class's real images recognised after training on synthetic images, "
    label += f"against training on real ones{worst}"
    keys = legend("synthetic", "real", synthetic="trained on synthetic", real="trained on real")
    chart = figure(join([keys, dots(rows, label, shares=False, end=1.0)]))
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
    """Scores on each client's own rows; None where there are none."""
    clients = content.get("clients")
    if not clients:
        return None
    keys = [k for k in dict.fromkeys(k for each in clients for k in each) if k != "name"]
    rows: list[list[object]] = [
        [name(each.get("name"), 40), *(_cell(key, each.get(key)) for key in keys)]
        for each in clients
    ]
    rows += _spread(clients, keys) if len(clients) > 1 else []
    words = "The synthetic rows, scored on each client's own rows. Means are weighted by rows. "
    caution = (
        "A small client's distance is larger by chance alone, and its other scores vary more: "
        "differences between clients of different sizes do not by themselves mean that the rows "
        "serve some of them better than others."
    )
    head = ["Client", *(capital(key.replace("_", " ")) for key in keys)]
    texts = [i for i, key in enumerate(keys, 1) if any(_is_text(each.get(key)) for each in clients)]
    shown = table("Scores at the clients", head, rows, texts=texts)
    return section(
        "clients", "Clients: whom do the rows serve?", lede(words, tag("strong", caution)), shown
    )


_COUNTS = ("rows", "records")


def _is_text(value: object) -> bool:
    return isinstance(value, str | list)


def _figure(value: object) -> object:
    """The number of a figure, which may come with its standard error."""
    return value.get("value") if isinstance(value, Mapping) else value


def _cell(key: str, value: object) -> str:
    number = _figure(value)
    if not known(number):
        return DASH if isinstance(value, Mapping) else plain(value)
    small = key not in _COUNTS and abs(number) <= 1
    shown = score(number) if small else count(number) if key in _COUNTS else amount(number)
    error = value.get("error") if isinstance(value, Mapping) else None
    return f"{shown} ± {score(error) if small else amount(error)}" if error else shown


def _spread(clients: list[Content], keys: list[str]) -> list[list[object]]:
    """The weighted mean and the range of every figure."""
    means: list[object] = [tag("strong", "Mean, weighted by rows")]
    ranges: list[object] = [tag("strong", "Range")]
    for key in keys:
        pairs = [
            (value, max(weight, 0.0))
            for each in clients
            if known(value := _figure(each.get(key))) and known(weight := _weight(each))
        ]
        total = sum(weight for _, weight in pairs)
        mean = sum(value * weight for value, weight in pairs) / total if total else None
        means.append(f"{count(total)} in all" if key in _COUNTS else _cell(key, mean))
        values = [value for value, _ in pairs]
        ends = f"{_cell(key, min(values))} to {_cell(key, max(values))}" if values else DASH
        ranges.append(ends)
    return [means, ranges]


def _weight(client: Content) -> object:
    return next((_figure(client[key]) for key in _COUNTS if client.get(key) is not None), None)
