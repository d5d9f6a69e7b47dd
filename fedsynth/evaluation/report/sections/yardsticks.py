"""The section on yardsticks: what synthesizers without privacy reach by the same rows."""

from __future__ import annotations

from fedsynth.evaluation.report.content import Content
from fedsynth.evaluation.report.layout import Section, lede, section, table
from fedsynth.evaluation.report.wording import metric_name, percent, score, seconds
from fedsynth.markup import name

_TITLE = "Yardsticks: what would rows without privacy reach?"


def yardsticks_section(content: Content) -> Section | None:
    """The rows beside those of others; None where none were asked for."""
    found = content.get("yardsticks")
    if not found:
        return None
    utility = content.get("utility") or {}
    first = ((utility.get("models") or [{}])[0]).get("name")
    learned = f"{metric_name(utility['primary'])} of {first}" if first else "Score"
    words = lede(
        "Other synthesizers learned from the same rows without privacy and made as many: no "
        "guarantee stands behind theirs, which were thrown away. Where these rows are as near, "
        "privacy cost nothing that can be seen here; where they are farther, that is its price, "
        "or the method's."
    )
    own = "as certified" if content.get("certificate") else "none known"
    head = ["Rows of", "Guarantee", "Columns off by", "Pairs off by", "Told from real (AUROC)"]
    head += [learned, "Rows that make no sense", "CPU seconds"]
    rows = [
        [
            name(one["name"], 30),
            "no privacy" if place else own,
            percent(one.get("columns")),
            percent(one.get("pairs")),
            score(one.get("told")),
            score(one.get("score")),
            percent(one.get("incoherent")),
            seconds(one.get("seconds")),
        ]
        for place, one in enumerate(found)
    ]
    shown = table("These rows and others, against the same real ones", head, rows, texts=(1,))
    return section("yardsticks", "Yardsticks", _TITLE, words, shown)
