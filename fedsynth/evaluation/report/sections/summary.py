"""The first screen: the verdict, four figures, what the certificate promises, what to beware of."""

from __future__ import annotations

import math
from collections.abc import Callable

from fedsynth.evaluation.report.charts.bars import belief, headline
from fedsynth.evaluation.report.charts.drawing import legend
from fedsynth.evaluation.report.content import Content, is_void
from fedsynth.evaluation.report.layout import Section, bullets
from fedsynth.evaluation.report.wording import (
    DASH,
    capital,
    count,
    known,
    one_in,
    percent,
    score,
    sentence,
)
from fedsynth.markup import Html, join, name, tag
from fedsynth.plain import round_up


def banner(content: Content) -> Html | None:
    """Whether the report may be published; None where its text is missing and it may."""
    lead, words = _disclosure(content)
    if not lead:
        return tag("p", words, class_="open") if words else None
    return tag("p", tag("strong", lead), words, class_="banner", role="note")


def banner_words(content: Content) -> str:
    """The same as text; empty where there is none."""
    return "".join(_disclosure(content))


def _disclosure(content: Content) -> tuple[str, str]:
    """What stands out, and what is said."""
    disclosure = content.get("disclosure") or {}
    words = disclosure.get("text") or ""
    if disclosure.get("public"):
        return "", sentence(capital(words))
    words = words or "computed on real data: not covered by epsilon"
    return "Confidential. ", sentence(capital(words))


def first_screen(content: Content) -> Section:
    """Title, verdict, headline figures, certificate in words and what to beware of."""
    summary = content.get("summary") or {}
    head = [
        tag("p", "Evaluation of synthetic data", class_="kicker"),
        tag("h1", name(content.get("title") or "Untitled", 80), id="summary-title"),
        tag("p", *about(content), class_="about"),
        _released(content),
        banner(content),
        tag("p", summary.get("verdict") or "No verdict was recorded.", class_="verdict"),
    ]
    two = tag("div", _promise(content), _beware(summary.get("beware") or []), class_="two")
    body = [*head, headlines(summary.get("headlines") or []), two]
    shown = tag("section", *body, id="summary", aria_labelledby="summary-title")
    return Section("summary", "Summary", shown)


def _released(content: Content) -> Html | None:
    """What the certificate says of the release itself, in a line; None without one."""
    certificate = content.get("certificate")
    if not certificate:
        return None
    epsilon, delta = certificate.get("epsilon"), certificate.get("delta")
    owners = certificate.get("owners")
    parts = ["epsilon: no finite one"]
    if known(epsilon) and not is_void(certificate):
        parts = [f"epsilon {round_up(epsilon, 4)}" + (f", delta {delta:g}" if known(delta) else "")]
        parts.append(f"for one {certificate.get('unit') or 'record'}")
    if certificate.get("method"):
        parts.append(f"method {certificate['method']}")
    if known(owners) and owners:
        parts.append("one owner" if owners == 1 else f"{count(owners)} owners")
    if certificate.get("date"):
        parts.append(f"released {certificate['date']}")
    if certificate.get("fedsynth"):
        parts.append(f"fedsynth {certificate['fedsynth']}")
    return tag("p", capital(", ".join(parts)), ".", class_="about")


def about(content: Content, show: Callable[[object, int], object] = name) -> list[object]:
    """What was compared, in words and names.

    show: a name, cut to so many characters.
    """
    data = content.get("data") or {}
    rows, image = data.get("rows") or {}, data.get("kind") == "image"
    what = "images" if image else "rows"
    parts: list[object] = [f"{count(rows.get('synthetic'))} synthetic {what}"]
    if known(data.get("columns")) and not image:
        parts[0] = f"{parts[0]} of {count(data['columns'])} columns"
    real = f"{count(rows.get('real'))} real {what}"
    if known(rows.get("train")):
        parts.append(f", measured against {real}, said to be unseen by the generator, ")
        parts.append(f"and the {count(rows['train'])} it learned from")
    else:
        parts.append(f", measured against one half of {real}, ")
        parts.append(f"the other half standing for other real {what}")
    if data.get("target"):
        parts += [". Target: ", show(data["target"], 60)]
        parts.append(f" ({data['task']})" if data.get("task") else "")
    return [*parts, "."]


def headlines(entries: list[Content]) -> Html:
    """A card for each figure, and what its marks are."""
    if not entries:
        return tag("p", "No headline figures were recorded.", class_="absent")
    cards = [tag("li", *_card(entry)) for entry in entries]
    keys = legend("synthetic", "real", "trivial", real="real rows in their place")
    return join([tag("ul", *cards, class_="headlines"), keys])


def _card(entry: Content) -> list[Html]:
    arrow = "higher is better" if entry.get("better") == "higher" else "lower is better"
    value = tag("p", score(entry.get("value")), " ", tag("small", arrow), class_="value")
    said = sentence(entry.get("meaning") or "")
    if not known(entry.get("value")):
        said = f"Not measured. {said}"
        value = tag("p", DASH, class_="value")
    top = tag("h2", entry.get("name") or DASH)
    figures = (entry.get("value"), entry.get("real"), entry.get("trivial"))
    chart = headline(entry) if any(known(figure) for figure in figures) else None
    return [top, value, chart or tag("span"), tag("p", said, class_="meaning")]


def _promise(content: Content) -> Html:
    """The certificate in words, and what its epsilon means for one unit."""
    head = tag("h2", "What the certificate promises")
    certificate = content.get("certificate")
    if not certificate:
        words = (
            "There is no certificate with these rows: no limit is known on what they tell about "
            "a person. The attacks below show what was tried, not what is possible."
        )
        return tag("div", head, tag("p", words), class_="promise")
    said = tag("p", sentence(certificate.get("sentence") or "It has no sentence."))
    more = tag("p", tag("a", "The whole certificate", href="#certificate"), class_="more")
    return tag("div", head, said, *_meaning(certificate), more, class_="promise")


def _meaning(certificate: Content) -> list[Html]:
    epsilon, delta = certificate.get("epsilon"), certificate.get("delta")
    units = {"client": "client's records were", "person": "person's rows were"}
    unit = units.get(str(certificate.get("unit")), "record was")
    alone = certificate.get("unit") not in units
    if is_void(certificate) or not known(epsilon):
        lead = "It is void" if is_void(certificate) else "It states no finite epsilon"
        words = (
            f"{lead}: it sets no limit on what anybody can come to believe about whether a {unit} "
            "among the data."
        )
        return [tag("p", words, class_="void")]
    after = belief_after(epsilon)
    share = percent(float(round_up(after, 3)))
    sure = f"at most {share} sure" if after <= 0.999 else "practically certain"
    words = (
        f"Somebody who thinks it as likely as not (50 %) that a {unit} among the data, and who "
        f"then studies all that the certificate covers, can become {sure} of it"
    )
    aside = f" (leaving aside delta, {one_in(delta)})" if known(delta) and delta else ""
    ends = "." if after < 0.99 else ": by itself, that is hardly a promise."
    how = tag("span", f" (e^ε / (1 + e^ε) with ε = {round_up(epsilon, 4)})", class_="quiet")
    most = f"at most {share}" if after <= 0.999 else "up to certainty"
    chart = belief(0.5, after, most, f"Belief before: 50 %. Belief after: {most}")
    several = (
        "A record is not a person: for k records of one person, epsilon is up to k times as large."
    )
    return [tag("p", words, aside, ends, how), chart, *([tag("p", several)] if alone else [])]


def belief_after(epsilon: float) -> float:
    """The most that a belief of one half can become: e^epsilon / (1 + e^epsilon), for delta 0."""
    return 1 / (1 + math.exp(-epsilon))


def _beware(entries: list[object]) -> Html:
    said = bullets((sentence(entry) for entry in entries), "plain")
    none = tag("p", "The run recorded nothing in particular. Read the notes all the same.")
    return tag("div", tag("h2", "Beware"), said or none, class_="beware")
