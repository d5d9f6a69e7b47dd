"""The section on the scores of each client."""

from __future__ import annotations

from collections.abc import Mapping

from fedsynth.evaluation.report.content import Content
from fedsynth.evaluation.report.layout import (
    Section,
    lede,
    section,
    table,
)
from fedsynth.evaluation.report.wording import DASH, amount, capital, cell, count, known, score
from fedsynth.markup import name, tag


def clients_section(content: Content) -> Section | None:
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
        "clients",
        "Clients",
        "Clients: whom do the rows serve?",
        lede(words, tag("strong", caution)),
        shown,
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
        return DASH if isinstance(value, Mapping) else cell(value)
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
