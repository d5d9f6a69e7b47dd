"""The section on what attackers learn from the rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fedsynth.evaluation.report.charts.bars import axis, whiskers
from fedsynth.evaluation.report.charts.curves import Curve, roc
from fedsynth.evaluation.report.charts.drawing import Scale, stroke, svg
from fedsynth.evaluation.report.content import Content, reason
from fedsynth.evaluation.report.layout import (
    Part,
    Section,
    absent,
    bullets,
    figure,
    lede,
    part,
    section,
    several,
    table,
    within,
)
from fedsynth.evaluation.report.sections.diagnostics import anonymity, neighbours
from fedsynth.evaluation.report.wording import (
    DASH,
    capital,
    count,
    interval,
    known,
    percent,
    score,
    sentence,
    tick_percent,
)
from fedsynth.markup import Html, join, name, tag

_STROKES = ("attack0", "attack1", "attack2", "attack3")
_FLOOR = 1e-4


def privacy_section(content: Content) -> Section:
    """Attacks first; then diagnostics, which are labelled as such."""
    privacy = content.get("privacy")
    title = "Privacy: what do the rows give away?"
    if not privacy:
        nothing = absent("Attacks", "None was run: nothing is known.")
        return section("privacy", "Privacy", title, nothing)
    body = [
        _count(privacy),
        _membership(content, privacy),
        _risks(content, privacy),
        _attributes(content, privacy),
        _skipped(privacy),
        neighbours(content, privacy),
        anonymity(content, privacy),
    ]
    return section("privacy", "Privacy", title, *body)


def _count(privacy: Content) -> Html:
    """How many attacks found something, in a sentence.

    Inference of a column is one attack, told twice: as a risk and as an attribute.
    """
    risks, attributes = privacy.get("risks") or [], privacy.get("attributes") or []
    told = {risk.get("column") for risk in risks}
    apart = [entry for entry in attributes if entry.get("column") not in told]
    every = [*(privacy.get("membership") or []), *risks, *apart]
    leaks = sum(bool(entry.get("caught")) for entry in every)
    if not every:
        words = "No attack was run, so nothing is known of what the rows give away."
    elif leaks:
        words = f"{leaks} of {len(every)} attacks found a leak."
    else:
        words = f"None of {len(every)} attacks found a leak."
    rest = (
        " An attack that finds nothing proves nothing about other attacks: only the certificate "
        "limits them all. A leak is called found where chance would show as much in fewer than 1 "
        "of 1,000 runs of that attack, so some attack calls a leak by chance in about one of a "
        "hundred reports; the signal is weak where only the 95 % interval leaves guessing out, as "
        "chance makes it in 1 of 40 attacks. The attacks compare rows learned from with "
        "held-out rows, so they presuppose that both are drawn at random from the same people, "
        "not parted by time, place or person; otherwise leaks may be called or missed."
    )
    return lede(tag("strong", words), rest if every else None)


def result_mark(caught: object, *, weak: bool = False) -> Html:
    """Whether a leak was found, by shape, word and colour; weak: none, but more than guessing."""
    if caught is None:
        return tag("span", "not decided", class_="quiet")
    if caught:
        cross = tag("path", d="M4 4l8 8m0-8l-8 8", class_="sign")
        disc = tag("circle", cx="8", cy="8", r="8", class_="disc")
        sign, said = svg(16, 16, disc, cross, label=None, class_="symbol"), "leak found"
    else:
        ring = tag("circle", cx="8", cy="8", r="6.5", class_="ring")
        sign = svg(16, 16, ring, label=None, class_="symbol")
        said = "weak signal" if weak else "none found"
    return tag("span", sign, " ", said, class_="leak" if caught else "noleak")


def _sentences(entries: Iterable[Content]) -> list[str | None]:
    """What came of each attack, in a sentence, where its row of figures does not say as much: of a
    leak, of an attack that was not decided, and of one no better than guessing."""
    return [
        sentence(entry.get("sentence") or "")
        if entry.get("caught") is not False
        else "Guessing at random did as well, so this says little."
        if entry.get("stronger") is False
        else None
        for entry in entries
    ]


def _weak(low: object, guessing: float) -> bool:
    """Whether an interval leaves guessing out."""
    return known(low) and low > guessing


def _leaks_first(entries: Iterable[Content]) -> list[Content]:
    """Attacks that found something first."""
    return sorted(entries, key=lambda entry: not entry.get("caught"))


def _membership(content: Content, privacy: Content) -> Part | Html:
    entries = _leaks_first(privacy.get("membership") or [])
    if not entries:
        return absent("Membership inference", reason(content, "membership"))
    scale, rows = Scale(0.4, 1, 6, 160), []
    for entry in entries:
        value, low, high = (entry.get(key) for key in ("auroc", "auroc_low", "auroc_high"))
        label = f"AUROC {score(value)}, interval {interval(low, high)}; 0.5 is guessing"
        chart = whiskers(value, low, high, scale, 0.5, label)
        title = capital(str(entry.get("name")))
        rows.append(
            [
                title,
                result_mark(entry.get("caught"), weak=_weak(low, 0.5)),
                chart,
                within(value, low, high),
                _rates(entry),
            ]
        )
    head: list[Any] = ["Attack", "Result", axis(scale, noted={0.5: "0.5", 1.0: "1"}), "AUROC"]
    head += ["Members found"]
    words = (
        "Can anybody tell who was in the training data? The attacker scores people who were in it "
        "(members) and people who were not. AUROC 0.5 is guessing. “Members found” is the share "
        "found at the price of falsely accusing so many of the others: equal shares are guessing."
    )
    shown = table(
        "Membership inference",
        head,
        rows,
        texts=(1, 2, 4),
        below=_sentences(entries),
        class_="attacks",
    )
    title, body = "Membership inference", [lede(words), shown, _curves(entries)]
    return part("membership", title, *body, link="Membership")


def _rates(entry: Content) -> Html:
    lines = [
        tag(
            "span",
            f"{percent(rate.get('value'))} ",
            tag("span", _shares(rate.get("low"), rate.get("high")), class_="quiet"),
            f" at {tick_percent(rate['fpr']) if known(rate.get('fpr')) else DASH}",
            class_="line-of",
        )
        for rate in entry.get("tpr") or []
    ]
    people = f"{count(entry.get('members'))} members, {count(entry.get('others'))} others"
    return join([*lines, tag("span", people, class_="line-of quiet")])


def _shares(low: object, high: object) -> str:
    return f"({percent(low)} to {percent(high)})" if known(low) and known(high) else ""


def _curves(entries: list[Content]) -> Html | None:
    curves = [
        Curve(str(entry.get("name")), _STROKES[index % 4], curve["fpr"], curve["tpr"])
        for index, entry in enumerate(entries)
        if (curve := entry.get("curve")) and curve.get("fpr")
    ]
    if not curves:
        return absent("ROC curves of the attacks", "The run recorded none.")
    areas = "; ".join(f"{entry.get('name')} {score(entry.get('auroc'))}" for entry in entries)
    keys = [tag("li", stroke(curve.stroke), " ", curve.name) for curve in curves]
    charts = several(
        [
            figure(roc(curves, f"ROC curves of the attacks. AUROC: {areas}"), "Linear axes"),
            figure(
                roc(curves, f"The same ROC curves, logarithmic. AUROC: {areas}", floor=_FLOOR),
                "Logarithmic axes: the left end shows attackers who accuse only when they are sure",
            ),
        ]
    )
    return join([tag("ul", *keys, class_="legend", aria_label="Legend"), charts])


def _risks(content: Content, privacy: Content) -> Part | Html:
    entries = _leaks_first(privacy.get("risks") or [])
    if not entries:
        return absent("Singling out, linkability, inference", reason(content, "risks"))
    scale, rows = Scale(0, 1, 6, 160), []
    for entry in entries:
        value, low, high = entry.get("risk"), entry.get("low"), entry.get("high")
        label = f"Risk {score(value)}, interval {interval(low, high)}; 0 is none"
        chart = whiskers(value, low, high, scale, 0.0, label)
        what = join([capital(str(entry.get("name"))), _of(entry.get("column"))])
        rows.append(
            [
                what,
                result_mark(entry.get("caught"), weak=_weak(low, 0.0)),
                chart,
                within(value, low, high),
                *(percent(entry.get(key)) for key in ("attack", "control", "baseline")),
                count(entry.get("attempts")),
            ]
        )
    head: list[Any] = ["Attack", "Result", axis(scale, 2), "Risk", "Hits"]
    head += ["Of control", "By guessing", "Attempts"]
    words = (
        "The three risks that data protection law names, as Anonymeter measures them. Risk is the "
        "attack's success on training rows beyond its success on people who were never in them "
        "(control): 0 is none, 1 is certainty."
    )
    title = "Singling out, linkability, inference"
    shown = table(title, head, rows, texts=(1, 2), below=_sentences(entries), class_="attacks")
    return part("risks", title, lede(words), shown, link="Singling out")


def _of(column: object) -> Html | None:
    return None if column is None else join([" of ", name(column, 40)])


def _attributes(content: Content, privacy: Content) -> Part | Html:
    entries = _leaks_first(privacy.get("attributes") or [])
    if not entries:
        return absent("Attribute inference", reason(content, "attributes"))
    ends = [
        entry[key] for entry in entries for key in ("gain", "low", "high") if known(entry.get(key))
    ]
    reach = max(0.05, *(abs(end) for end in ends)) if ends else 0.05
    scale, rows = Scale(-reach, reach, 6, 160), []
    for entry in entries:
        gain, low, high = entry.get("gain"), entry.get("low"), entry.get("high")
        label = f"Gain {score(gain)}, interval {interval(low, high)}; 0 is none"
        chart = whiskers(gain, low, high, scale, 0.0, label)
        rows.append(
            [name(entry.get("column"), 40)]
            + [result_mark(entry.get("caught"), weak=_weak(low, 0.0)), chart]
            + [within(gain, low, high)]
            + [percent(entry.get(key)) for key in ("synthetic", "others", "held_out", "commonest")]
            + [count(entry.get("rows"))]
        )
    noted = {-reach: f"\u2212{reach:.2g}", 0.0: "0", reach: f"{reach:.2g}"}
    head: list[Any] = ["Secret", "Result", axis(scale, noted=noted), "Gain"]
    head += ["Members", "Others", "From held-out", "Commonest", "Rows"]
    words = (
        "Somebody who knows the rest of a row guesses one column from the synthetic rows. What "
        "they learn about everybody alike is what the data are for; a leak is what they guess "
        "better about members than about others (gain). “From held-out”: the same guess from "
        "real rows of other people; “commonest”: from the commonest value alone."
    )
    shown = table(
        "Attribute inference", head, rows, texts=(1, 2), below=_sentences(entries), class_="attacks"
    )
    title = "Attribute inference"
    return part("attributes", title, lede(words), shown, link="Attributes")


def _skipped(privacy: Content) -> Part | None:
    """Attacks that were not run, where the reader looks for them."""
    entries = bullets(sentence(entry) for entry in privacy.get("skipped") or [])
    if entries is None:
        return None
    return part("skipped", "Attacks that were not run", entries)
