"""The certificate as one page that loads nothing from anywhere, for who answers for a release.

It is derived from the release's certified files and the signatures beside them, and from nothing
else: made anew it is the same.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

from fedsynth.durable import write_whole
from fedsynth.errors import ReleaseError
from fedsynth.files import writing
from fedsynth.markup import Html, sentence, tag
from fedsynth.plain import round_up
from fedsynth.privacy.trail.certificate import CONFIG, LEDGER, PAGE, Certificate
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.privacy.trail.signatures import Signature, read_signatures
from fedsynth.privacy.trail.standing import before, limits_of, owners_of, rests_on
from fedsynth.yaml_files import read_yaml

HELD = {
    "add-or-remove-one": "a given {unit} was among the data",
    "replace-one": "a given {unit} was among the data rather than another",
    "zero-out-one": "a given {unit} contributed its records rather than none",
}
"""What is in doubt of a unit between neighbouring data sets."""


def most_right(epsilon: float, delta: float) -> float:
    """How often at most whoever thinks two neighbouring data sets equally likely can say which it
    was: (e^epsilon + delta) / (1 + e^epsilon).

    Of a test that takes one for the other with probability a, and the other for the one with b,
    e^epsilon a + b and a + e^epsilon b are at least 1 - delta (Kairouz, Oh and Viswanath 2015,
    "The composition theorem for differential privacy"); it is right with 1 - (a + b) / 2.
    """
    if epsilon > 700:
        return 1.0
    return min(1.0, (math.exp(epsilon) + delta) / (1 + math.exp(epsilon)))


def write_page(folder: Path, certificate: Certificate | None = None) -> Path:
    """Write ``certificate.html`` into a release, in place of one that stands there.

    Args:
        certificate: before it stands in the folder itself.

    Raises:
        ReleaseError: the release is damaged.
        MachineError: the folder cannot be written to.
    """
    path, text = folder / PAGE, page_of(folder, certificate)
    with writing(path):
        write_whole(path, text.encode())
    return path


def page_of(
    folder: Path,
    certificate: Certificate | None = None,
    signatures: Sequence[Signature] | None = None,
) -> str:
    """The page of a release.

    Args:
        certificate: as of :func:`write_page`.
        signatures: that it names in so far as they hold; None for those that stand in the folder.

    Raises:
        ReleaseError: the release is damaged.
    """
    found = Certificate.load(folder) if certificate is None else certificate
    ledger = Ledger.read(folder / LEDGER)
    given = read_signatures(folder) if signatures is None else signatures
    config: Mapping[str, Any] = {}
    if CONFIG in found.content["files"]:
        # Of one that cannot be read `verify` fails the release; here nothing is known of it.
        with suppress(ReleaseError):
            config = read_yaml(folder / CONFIG, ReleaseError)
    return _page(found, ledger, config, [one for one in given if one.holds(ledger.head)])


def generator_of(page: str) -> str | None:
    """The version of fedsynth that a page names as its maker."""
    found = re.search(r'<meta name="generator" content="fedsynth ([^"<>]*)">', page)
    return found and found[1]


def _page(
    certificate: Certificate, ledger: Ledger, config: Mapping[str, Any], signed: list[Signature]
) -> str:
    content = certificate.content
    style = Html(files(__package__).joinpath("certificate.css").read_text(encoding="utf-8"))
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("meta", name="generator", content=f"fedsynth {content['fedsynth']}"),
        tag("title", "Certificate of a release of synthetic data"),
        tag("style", style),
    )
    trust, accountant = content["guarantee"]["trust_in_words"], content["accountant"]
    resting = rests_on(ledger, config, trust, accountant)
    not_covered = [("This release", one) for one in (*content["not_covered"], *content["cautions"])]
    body = [
        tag("p", "fedsynth", class_="brand"),
        tag("p", "Synthetic data: what a release may tell", class_="kicker"),
        tag("h1", "Certificate"),
        *_promise(certificate),
        _section("facts", "What was released", _facts(certificate, ledger, config)),
        _section("against", "Against whom", _adversaries(content)),
        _section("rests-on", "What it rests on", _list(resting)),
        _section("limits", "What it leaves out", _list([*not_covered, *limits_of(ledger)])),
        _section("before", "Releases before this one", tag("p", sentence(before(ledger, config)))),
        _section("vouch", "Who stands for it, and how to check", *_vouching(ledger, signed)),
        _section("asked", "What was asked of the owners", *_asked(content)),
        _section("files", "Files", _files(content)),
        _footer(content),
    ]
    return (
        "<!doctype html>\n" + tag("html", head, tag("body", tag("main", *body)), lang="en") + "\n"
    )


def _section(key: str, title: str, *children: Html | None) -> Html:
    return tag("section", tag("h2", title), *children, id=key)


def _promise(certificate: Certificate) -> list[Html]:
    """The sentence, and what its epsilon lets anybody come to believe."""
    said = tag(
        "p", certificate.sentence, class_="void" if certificate.void else "lede", id="promise"
    )
    guarantee = certificate.content["guarantee"]
    if certificate.void:
        words = "No limit is known on what this release tells of anybody."
        return [said, tag("p", words)]
    epsilon, delta = certificate.epsilon, guarantee["delta"]
    share = most_right(epsilon, delta)
    unit = guarantee["unit"]
    held = HELD[guarantee["neighbours"]].format(unit="owner" if unit == "client" else unit)
    sure = _percent(share)
    words = (
        f"Somebody who thinks it as likely as not that {held}, and who then studies all that is "
        f"covered here, with whatever else there is to know, can be at most {sure} sure: of such "
        f"guesses at most {sure} are right, by whatever method they are made."
    )
    weak = "" if share < 0.99 else " By itself, that is hardly a promise."
    how = f"(e^ε + δ) / (1 + e^ε), with ε = {round_up(epsilon, 4)} and δ = {delta:g}: "
    source = "the best that any test of one hypothesis against another can do (Kairouz, Oh and "
    source += "Viswanath 2015)."
    return [
        said,
        tag("figure", _bar(share, sure), tag("figcaption", words, weak), id="sure"),
        tag("p", how, source, class_="quiet"),
    ]


def _bar(share: float, sure: str) -> Html:
    """From 50 % to what somebody may be sure of, on a line from 0 to 100 %."""
    # Strokes and anchors here as well as in the style sheet, which only browsers apply inside.
    strokes = {"axis": {"stroke": "#666d76"}, "reach": {"stroke": "#c2410c", "stroke_width": "4"}}
    left, right = 10, 330
    middle, at = (left + part * (right - left) for part in (0.5, share))
    end = at > 280

    def line(x: float, y: float, across: float, down: float, kind: str) -> Html:
        ends = {"x1": f"{x:g}", "y1": f"{y:g}", "x2": f"{across:g}", "y2": f"{down:g}"}
        return tag("line", **ends, class_=kind, **strokes[kind])

    def words(x: float, y: float, said: str, anchor: str) -> Html:
        place = {"x": f"{x:g}", "y": f"{y:g}"}
        return tag("text", said, **place, text_anchor=anchor, font_family="sans-serif")

    parts = [
        line(left, 28, right, 28, "axis"),
        *(line(x, 22, x, 34, "axis") for x in (left, middle, right)),
        line(middle, 28, round(at, 1), 28, "reach"),
        tag("circle", cx=f"{at:.1f}", cy="28", r="6", class_="mark", fill="#c2410c"),
        words(round(at, 1), 14, f"at most {sure}", "end" if end else "middle"),
        words(left, 50, "0 %", "start"),
        words(middle, 50, "50 %: a guess", "middle"),
        words(right, 50, "100 %", "end"),
    ]
    label = f"Before: 50 % sure. After: at most {sure} sure."
    return tag("svg", *parts, viewBox="0 0 340 56", font_size="12", role="img", aria_label=label)


def _facts(certificate: Certificate, ledger: Ledger, config: Mapping[str, Any]) -> Html:
    content, job = certificate.content, ledger.job
    guarantee, closing = content["guarantee"], ledger.closing
    void = certificate.void is not None
    delta = guarantee["delta"]
    what = ": a row, or an image" if job.budget.unit == "record" else ""
    rows = [
        ("Made on", closing.date if closing is not None and closing.date else "not recorded"),
        ("By the method", job.method or "not recorded"),
        ("Owners of rows", owners_of(ledger, config)),
        ("Protected is", "nobody" if void else f"one {job.budget.protects.words}{what}"),
        (
            "Epsilon",
            "void"
            if void
            else f"{round_up(certificate.epsilon, 4)}, of {job.budget.epsilon:g} allowed",
        ),
        ("Delta", f"{delta:g} (one in {1 / delta:,.0f})"),
        ("Holds rows", "yes" if any(n.startswith("rows.") for n in content["files"]) else "no"),
        ("Answers that are missing", _incidents(content.get("incidents"))),
        ("Job", content["job"]),
    ]
    return _list(rows)


def _incidents(found: Sequence[Mapping[str, Any]] | None) -> str:
    if found is None:
        return "not recorded"
    told = [
        f"{one['client']}, {one['stage']}: {one['reason']} (rounds: {one['rounds']})"
        for one in found
    ]
    return "; ".join(told) or "none"


def _adversaries(content: Mapping[str, Any]) -> Html:
    found = content.get("adversaries")
    if not found:
        return tag("p", "Not recorded: an earlier fedsynth wrote this release.")
    delta = content["guarantee"]["delta"]
    rows = []
    for one in found:
        epsilon = float(one["epsilon"])
        known = math.isfinite(epsilon)
        rows.append(
            (
                one["who"],
                one["knows"],
                round_up(epsilon, 4) if known else "no bound",
                _percent(most_right(epsilon, delta)) if known else "no bound",
                "yes" if one["promised"] else "no",
            )
        )
    head = ("For", "Who knows, beside its own records", "Epsilon", "Sure at most", "Promised")
    return _table("Epsilon by adversary", head, rows, numbers=(2, 3))


def _vouching(ledger: Ledger, signed: Sequence[Signature]) -> list[Html]:
    names = [f"{one.name} (key {one.key[:16]})" for one in signed]
    who = (
        f"Signed by {', '.join(names)}. Whose keys these are, this page cannot tell: compare them "
        "with what their owners published (`fedsynth verify RELEASE --trust KEYS`)."
        if names
        else "Nobody signed it. Without a signature, whoever can write all of a release's files "
        "can write others that agree with each other: compare the head with the published one."
    )
    head = f"fedsynth verify RELEASE --head {ledger.head}"
    return [
        tag("p", sentence(who)),
        tag(
            "p",
            "This page is no proof. The head below fixes every file of the release: get it "
            "from whoever published the release, and not from here, then check it by",
        ),
        tag("p", tag("code", head)),
    ]


def _asked(content: Mapping[str, Any]) -> list[Html]:
    rows: list[tuple[str, ...]] = []
    for one in content["releases"]:
        terms, label, times = one["terms"], one["label"], one["count"] * one.get("steps", 1)
        if "parts" in terms:
            best = f"the best of {terms['trials']['mean']:g} trials, on average"
            rows.append((label, f"{times:,}", best, "-"))
            trial = (own for part in terms["parts"] for own in part)
            rows += [_question(f"{label}: of a trial", own["count"], own["terms"]) for own in trial]
        else:
            rows.append(_question(label, times, terms))
    words = (
        "All that rows were asked. A noise multiplier is the noise's width over the most that "
        "one unit can move the answer."
    )
    head = ("Question", "Times", "Noise", "Multiplier")
    return [tag("p", words), _table("What was asked", head, rows, numbers=(1, 3))]


def _question(label: str, times: int, terms: Mapping[str, Any]) -> tuple[str, ...]:
    return label, f"{times:,}", str(terms["mechanism"]), f"{terms['noise_multiplier']:.4g}"


def _files(content: Mapping[str, Any]) -> Html:
    rows = [(name, tag("code", digest)) for name, digest in content["files"].items()]
    return _table("Files by their SHA-256", ("File", "SHA-256"), rows)


def _footer(content: Mapping[str, Any]) -> Html:
    words = (
        f"fedsynth {content['fedsynth']}. Everything here follows from certificate.json and the "
        "files that it names; `fedsynth certificate RELEASE` writes this page anew."
    )
    return tag("footer", tag("p", sentence(words)))


def _list(rows: Iterable[tuple[object, object]]) -> Html:
    cells = (tag("div", tag("dt", name), tag("dd", sentence(value))) for name, value in rows)
    return tag("dl", *cells)


def _table(
    caption: str,
    head: Sequence[str],
    rows: Iterable[Sequence[object]],
    numbers: Sequence[int] = (),
) -> Html:
    """A table; on a phone each row is a block of its own."""

    def kind(place: int) -> str | None:
        return "num" if place in numbers else None

    top = [tag("th", title, scope="col", class_=kind(k)) for k, title in enumerate(head)]
    lines = [
        tag(
            "tr",
            tag("th", row[0], scope="row"),
            *(
                tag("td", cell, class_=kind(k), data_head=head[k])
                for k, cell in enumerate(row)
                if k
            ),
        )
        for row in rows
    ]
    return tag(
        "table",
        tag("caption", caption, class_="unseen"),
        tag("thead", tag("tr", *top)),
        tag("tbody", *lines),
    )


def _percent(share: float) -> str:
    """A bound; what falls short of certainty never reads 100 %."""
    return "more than 99.9 %" if 0.999 < share < 1 else f"{round_up(100 * share, 3)} %"
