"""What the report ends with: certificate, notes, how to read it, and its origin."""

from __future__ import annotations

from collections.abc import Sequence

from fedsynth.evaluation.report.content import Content, is_void, reason
from fedsynth.evaluation.report.layout import (
    Part,
    Section,
    absent,
    bullets,
    pairs_of,
    part,
    section,
    table,
)
from fedsynth.evaluation.report.wording import DASH, cell, count, known, one_in, sentence
from fedsynth.markup import Html, tag
from fedsynth.plain import round_up

_TRUST = {
    "central": "central: the server is trusted with what clients send before it adds noise",
    "distributed": "distributed: the server sees sums alone, every client adds its share of noise",
    "local": "local: nobody is trusted, and every client adds all the noise itself",
}


def certificate_section(content: Content) -> Section:
    """The guarantee with what it does not cover."""
    certificate, title = content.get("certificate"), "Certificate"
    if not certificate:
        words = (
            "The rows came without one. Nothing is known of a guarantee, whatever the attacks "
            "above found."
        )
        return section("certificate", title, title, absent("Certificate", words))
    epsilon, delta = certificate.get("epsilon"), certificate.get("delta")
    void = is_void(certificate)
    chance = f"{delta:g} ({one_in(delta)})" if known(delta) and delta else cell(delta)
    facts = pairs_of(
        [
            (
                "Epsilon",
                "void" if void else round_up(epsilon, 4) if known(epsilon) else "none finite",
            ),
            ("Delta", "void" if void else chance),
            ("Protects", "nobody" if void else f"one {certificate.get('unit') or DASH}"),
            ("Trust", _TRUST.get(str(certificate.get("trust")), certificate.get("trust") or DASH)),
            *_head(certificate.get("head")),
        ]
    )
    not_covered = bullets(sentence(e) for e in certificate.get("not_covered") or [])
    cautions = bullets(sentence(e) for e in certificate.get("cautions") or [])
    apart = tag(
        "p",
        "Limits that hold of every release, whatever is recorded of this one, stand in its "
        "certificate.html.",
    )
    return section(
        "certificate",
        title,
        title,
        tag("p", sentence(certificate.get("sentence") or ""), class_="void" if void else "lede"),
        facts,
        None if void else _adversaries(certificate.get("adversaries") or []),
        not_covered and part("not-covered", "What it does not cover", not_covered),
        cautions and part("cautions", "Cautions", cautions),
        apart,
    )


def _head(head: object) -> list[tuple[str, str]]:
    """What fixes the release, and how to learn who vouches for it."""
    how = "compare it with the published one; fedsynth verify tells whether anybody signed it"
    return [("Head of the ledger", f"{head}: {how}")] if head else []


def _adversaries(adversaries: Sequence[Content]) -> Part | None:
    """Epsilon for each of those who may look."""
    if not adversaries:
        return None
    rows = [
        (
            one["who"],
            one["knows"],
            round_up(one["epsilon"], 4) if known(one["epsilon"]) else "no bound",
            "yes" if one["promised"] else "no",
        )
        for one in adversaries
    ]
    head = ("For", "Knows, beside its own records", "Epsilon", "Promised")
    return part(
        "adversaries", "Whom it holds off", table("Epsilon by adversary", head, rows, texts=(1, 3))
    )


def notes_section(content: Content) -> Section:
    """What was sampled or skipped, and which parts the report does not have."""
    notes = bullets(sentence(note) for note in content.get("notes") or [])
    missing = [
        absent(title, reason(content, key))
        for key, title in (("clients", "Scores at the clients"), ("errors", "Errors of counts"))
        if not content.get(key) and (key == "clients" or content.get("certificate"))
    ]
    said = notes or tag("p", "Nothing was sampled or left out.")
    return section("notes", "Notes", "Notes on this run", said, *missing)


_TERMS = (
    (
        "Synthetic, real, trivial",
        "Every figure of synthetic rows stands beside two others: the same figure for real rows in "
        "their place (the best to expect, as two samples of the same people differ too), and for "
        "something that needs no skill (columns drawn independently, the commonest class).",
    ),
    (
        "Total variation distance",
        "The share of rows that would have to change for two tables of frequencies to agree. 0 is "
        "identical, 1 shares nothing.",
    ),
    (
        "KSComplement, TVComplement",
        "The score of a column of numbers (1 minus the largest gap of the cumulative "
        "distributions) or of categories (1 minus the total variation distance).",
    ),
    (
        "AUROC",
        "How often a model ranks a case above a non-case: 0.5 is guessing, 1 is perfect.",
    ),
    (
        "pMSE",
        "How far a classifier's belief that a row is synthetic strays from the share of synthetic "
        "rows: 0 is indistinguishable.",
    ),
    (
        "Epsilon and delta",
        "The guarantee of differential privacy: any one record (or one client with all its "
        "records) changes the probability of anything that the certificate covers by at most a "
        "factor of e^epsilon, except with probability delta. It holds against every attack, also "
        "those not invented yet, if the certificate is not void.",
    ),
    (
        "Attacks",
        "What was tried on this release. A leak that is found is all but certainly real; one "
        "that is not found may still be there.",
    ),
    (
        "95 % interval",
        "A range made so that in 95 of 100 such measurements it holds the true value.",
    ),
    (f"A dash ({DASH})", "The figure was not computed or is not defined for this column or model."),
)


def reading_section() -> Section:
    """Terms, for a reader who does not work with them every day."""
    cells = (tag("div", tag("dt", term), tag("dd", words)) for term, words in _TERMS)
    return section(
        "reading", "How to read this", "How to read this report", tag("dl", *cells, class_="terms")
    )


def footer(content: Content) -> Html:
    """Where the figures come from."""
    rows = (content.get("data") or {}).get("rows") or {}
    counts = ", ".join(
        f"{count(rows[key])} {title}"
        for key, title in (("real", "real"), ("train", "training"), ("synthetic", "synthetic"))
        if known(rows.get(key))
    )
    made = f", {content['created']}" if content.get("created") else ""
    words = f"fedsynth {content.get('fedsynth') or DASH}{made}. Seed {cell(content.get('seed'))}. "
    words += f"Rows: {counts or DASH}. Every figure on this page stands in report.json beside it."
    return tag("footer", tag("p", words))
