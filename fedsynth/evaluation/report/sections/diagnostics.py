"""Figures about single rows that are no evidence of privacy, and say so."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from fedsynth.evaluation.report.charts.drawing import legend
from fedsynth.evaluation.report.charts.histograms import distribution
from fedsynth.evaluation.report.content import Content, reason
from fedsynth.evaluation.report.layout import Part, absent, bullets, figure, lede, part, table
from fedsynth.evaluation.report.wording import (
    DASH,
    capital,
    cell,
    known,
    percent,
    score,
    sentence,
)
from fedsynth.markup import Html, join, name, tag

_QUANTILES = ("5 %", "25 %", "50 %", "75 %", "95 %")
_UNBOUNDED = frozenset({"enhanced_beta", "delta"})
_MEASURES = {
    "classes": "Classes of equal quasi-identifiers",
    "k": "k: rows of the smallest class",
    "identified": "1/k: highest chance to name a row's person",
    "alpha": "\u03b1: largest share of one sensitive value",
    "l": "l: fewest sensitive values in a class",
    "entropy_l": "Entropy l",
    "c": "c of recursive (c, l)-diversity",
    "t": "t-closeness",
    "beta": "\u03b2-likeness",
    "enhanced_beta": "Enhanced \u03b2-likeness",
    "delta": "\u03b4-disclosure",
    "information": "What a class tells, in nats",
}


def neighbours(content: Content, privacy: Content) -> Part | Html:
    """Exact copies and distances to the nearest training row."""
    entry = privacy.get("neighbours")
    if not entry:
        return absent("Nearest neighbours", reason(content, "neighbours"))
    note = entry.get("note") or "a diagnostic: it is no evidence of privacy"
    badge = tag("p", tag("strong", "No evidence of privacy. "), sentence(capital(str(note))))
    badge = tag("div", badge, class_="caution")
    body = [badge, _copies(entry.get("copies") or {}), _distances(entry), _closeness(entry)]
    return part("neighbours", "Copies and nearest neighbours", *body, link="Neighbours")


def _copies(copies: Content) -> Html:
    words = (
        f"{percent(copies.get('train'))} of synthetic rows equal a training row and "
        f"{percent(copies.get('real'))} equal a held-out real row. Of held-out real rows, "
        f"{percent(copies.get('expected'))} equal a training row: that much happens without any "
        "copying."
    )
    return lede(words)


def _distances(entry: Content) -> Html | None:
    distance, ratio = entry.get("distance") or {}, entry.get("ratio") or {}
    rows = []
    for key, side, title in (
        ("synthetic_to_train", "synthetic", "Synthetic rows"),
        ("real_to_train", "real", "Held-out real rows"),
    ):
        quantiles = list(distance.get(key) or [])
        quantiles += [None] * (len(_QUANTILES) - len(quantiles))
        rows.append([title, *(score(q) for q in quantiles[:5]), score(ratio.get(side))])
    if all(cell == DASH for row in rows for cell in row[1:]):
        return absent("Distances to the nearest training row", "The run recorded none.")
    caption = "Distance to the nearest training row"
    words = (
        f"{caption}: quantiles, and the mean ratio of the nearest distance to the second nearest "
        "(1: no training row stands out as the origin of a synthetic one)."
    )
    head = ["From", *_QUANTILES, "Ratio"]
    return join([tag("p", words), table(caption, head, rows)])


def _closeness(entry: Content) -> Html | None:
    histogram = entry.get("histogram")
    if not histogram or len(histogram.get("edges") or []) < 2:
        return None
    edges = histogram["edges"]
    bins = {
        "labels": [f"{score(a)} to {score(b)}" for a, b in pairwise(edges[:-1])]
        + [f"{score(edges[-2])} or more"],
        "real": histogram.get("real") or [],
        "synthetic": histogram.get("synthetic") or [],
    }
    label = "Distances to the nearest training row, synthetic against held-out real rows"
    keys = legend("synthetic", "real", lines=True, real="held-out real rows")
    return figure(join([keys, distribution(bins, label)]), label)


def anonymity(content: Content, privacy: Content) -> Part | Html:
    """k-anonymity and its kin, for the quasi-identifiers that the user named."""
    entry = privacy.get("anonymity")
    if not entry:
        return absent("k-anonymity and its kin", reason(content, "anonymity"))
    tables = {key: each for key, each in (entry.get("tables") or {}).items() if each}
    flat = {key: _flat(each) for key, each in tables.items()}
    keys = list(dict.fromkeys(key for each in flat.values() for key in each))
    rows = [
        [_MEASURES.get(key, capital(key.replace("_", " ")))]
        + [_measure(key, flat[which].get(key), tables[which].get("library")) for which in flat]
        for key in keys
    ]
    quasi, secret = entry.get("quasi_identifiers") or [], entry.get("sensitive") or []
    words = lede(
        "How well a row hides among others with the same quasi-identifiers (",
        _names(quasi),
        "); sensitive: ",
        _names(secret),
        ". Synthetic rows stand for nobody, so these figures describe the table, not a person's "
        "protection.",
    )
    head = ["Measure", *(capital(str(key)) for key in tables)]
    shown = table("Anonymity measures", head, rows) if rows else None
    notes = bullets(sentence(note) for note in entry.get("notes") or [])
    return part("anonymity", "k-anonymity and its kin", words, shown, notes, link="k-anonymity")


def _flat(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Measures with those of groups among them, without the other library's."""
    flat: dict[str, Any] = {}
    for key, value in figures.items():
        if isinstance(value, Mapping):
            flat |= {} if key == "library" else value
        else:
            flat[key] = value
    return flat


def _measure(key: str, value: object, library: Mapping[str, Any] | None) -> Html:
    """A measure, and pyCANON's where it says something else."""
    own = "none finite" if value is None and key in _UNBOUNDED else cell(value)
    other = (library or {}).get(key)
    differs = known(other) and cell(other) != own
    said = tag("span", f"pyCANON: {cell(other)}", class_="line-of quiet") if differs else None
    return join([own, said])


def _names(entries: list[object]) -> Html:
    return join([name(entry, 40) for entry in entries], ", ") if entries else Html("none named")
