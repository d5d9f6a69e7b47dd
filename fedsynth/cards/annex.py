"""A release in an assessment of data protection: what it answers, and what is left to fill in.

The three tests are those of the Article 29 Working Party's Opinion 05/2014 on anonymisation
techniques: singling out, linkability, inference.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from fedsynth.errors import ConfigError, ReleaseError
from fedsynth.files import FIGURES, read_plain
from fedsynth.plain import round_up
from fedsynth.privacy.trail.certificate import CONFIG, LEDGER, Certificate
from fedsynth.privacy.trail.chain import parse_strictly
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.privacy.trail.page import HELD, most_right
from fedsynth.privacy.trail.standing import before, limits_of, owners_of, rests_on
from fedsynth.views import clean
from fedsynth.yaml_files import read_yaml

REPORT = "report.json"
UNKNOWN = "**The release does not know; to be filled in.**"
_TESTS = (
    (
        "Singling out",
        "Can a person's row be told apart in the release?",
        "singling out",
    ),
    (
        "Linkability",
        "Can two rows, here or in another source, be told to be of one person?",
        "linkability",
    ),
    (
        "Inference",
        "Can a person's value be concluded from the release, beyond what it shows of people at "
        "large?",
        "inference",
    ),
)
_OPEN = (
    "Purpose of the release, and its legal basis",
    "Who is the controller, and who the recipients",
    "Whether rows are of persons, one each, and what makes them sensitive",
    "Where the schema's bounds and categories come from, where it says that they were declared",
    "Other releases, reports or scores of the same persons, beside those named above",
    "What recipients may do, and what happens when somebody is found in it after all",
)


def read_report(folder: Path, certificate: Certificate) -> dict[str, Any]:
    """An evaluation's figures (`fedsynth evaluate`), which must be of this release.

    Raises:
        ConfigError: there are none, they cannot be read, or they are of another release.
    """
    path = folder / REPORT
    if not path.is_file():
        raise ConfigError(f"{path} is missing: give the folder that `fedsynth evaluate` wrote")
    try:
        report: dict[str, Any] = parse_strictly(read_plain(path, ConfigError, FIGURES))
        head = (report["certificate"] or {}).get("head")
        _ = report["disclosure"]["public"], report["privacy"]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ConfigError(f"{path} is damaged, or no report of an evaluation") from None
    if head != certificate.content["ledger"]["head"]:
        raise ConfigError(f"{path} is of another release, or of rows without one")
    return report


def write_annex(folder: Path, report: Mapping[str, Any] | None) -> str:
    """The annex, in Markdown.

    Args:
        folder: of the release.
        report: of :func:`read_report`; None where it was not evaluated.

    Raises:
        ReleaseError: the folder holds no release, or a damaged one.
    """
    certificate, ledger = Certificate.load(folder), Ledger.read(folder / LEDGER)
    config: Mapping[str, Any] = {}
    with suppress(ReleaseError):
        config = read_yaml(folder / CONFIG, ReleaseError)
    parts = [
        "# Annex to a data-protection impact assessment",
        *_introduce(certificate, report),
        "## What was released",
        *_facts(certificate, ledger, config),
        "## Three tests",
        "Of the Article 29 Working Party's Opinion 05/2014. For each: what is bounded whatever an "
        "attacker knows and tries, and what attacks that were tried found. That an attack found "
        "nothing proves nothing; the bound is what holds.",
    ]
    for name, question, prefix in _TESTS:
        parts += [f"### {name}", question, f"**Bounded.** {_bound(name, certificate, ledger)}"]
        parts += ["**Measured.** " + _measured(report, prefix)]
    parts += ["## What it rests on"]
    trust, accountant = (
        certificate.content["guarantee"]["trust_in_words"],
        certificate.content["accountant"],
    )
    parts += [_points(rests_on(ledger, config, trust, accountant))]
    left = [("This release", one) for one in certificate.content["not_covered"]]
    left += [("To know", one) for one in certificate.content["cautions"]]
    parts += ["## What it leaves out", _points([*left, *limits_of(ledger)])]
    parts += ["## Other releases", before(ledger, config)]
    parts += ["## What the release does not know"]
    parts += ["\n".join(f"- {one}: {UNKNOWN}" for one in _OPEN)]
    return "\n\n".join(parts) + "\n"


def _introduce(certificate: Certificate, report: Mapping[str, Any] | None) -> Iterator[str]:
    head = certificate.content["ledger"]["head"]
    yield (
        f"Made by fedsynth {certificate.content['fedsynth']} from the release whose ledger ends in "
        f"`{head}`. Check that first: `fedsynth verify RELEASE --head {head}`."
    )
    if report is not None and not report["disclosure"]["public"]:
        yield (
            "**Not to be published.** What was measured comes from private rows, and no epsilon "
            "covers it."
        )


def _facts(certificate: Certificate, ledger: Ledger, config: Mapping[str, Any]) -> Iterator[str]:
    content, guarantee = certificate.content, certificate.content["guarantee"]
    yield _inline(certificate.sentence)
    rows = [
        ("date", content.get("date") or UNKNOWN),
        ("method", content.get("method") or UNKNOWN),
        ("protected", f"one {guarantee['unit']}"),
        ("owners", owners_of(ledger, config)),
        ("files", ", ".join(sorted(content["files"]))),
    ]
    for one in content.get("adversaries", ()) if certificate.void is None else ():
        epsilon = float(one["epsilon"])
        cost = "no bound" if math.isinf(epsilon) else round_up(epsilon, 4)
        promised = "" if one["promised"] else ", not promised"
        rows.append((f"epsilon against {one['who']}", f"{cost}{promised}"))
    yield "\n".join(
        [
            "| | |",
            "| --- | --- |",
            *(f"| {_inline(name)} | {_inline(value)} |" for name, value in rows),
        ]
    )


def _bound(name: str, certificate: Certificate, ledger: Ledger) -> str:
    if certificate.void is not None:
        return f"Nothing. {certificate.void}"
    guarantee = certificate.content["guarantee"]
    unit = "owner" if guarantee["unit"] == "client" else guarantee["unit"]
    held = HELD[guarantee["neighbours"]].format(unit=unit)
    delta, epsilon = ledger.job.budget.resolved_delta, certificate.epsilon
    if name == "Inference":
        return (
            f"Whether {held} changes the probability of any conclusion by a factor of "
            f"e^{round_up(epsilon, 4)} at most, but for a probability of {delta:.3g}, where "
            "epsilon is promised. What holds of people at large is not bounded: it can be "
            "concluded of those who took no part, too."
        )
    sure = f"{round_up(100 * most_right(epsilon, delta), 3)} %"
    return (
        f"Where epsilon is promised: whoever thinks it as likely as not that {held}, and then "
        f"studies all that was released, is right about it {sure} of the time at most, whatever "
        "else they know" + (", that record included." if name == "Linkability" else ".")
    )


def _measured(report: Mapping[str, Any] | None, prefix: str) -> str:
    if report is None:
        return (
            "Nothing: no evaluation was given (`fedsynth evaluate RELEASE`, then "
            "`fedsynth card RELEASE --report FOLDER`)."
        )
    privacy = report["privacy"] or {}
    said = [
        one["sentence"] for one in privacy.get("risks") or () if str(one["name"]).startswith(prefix)
    ]
    if prefix == "singling out":
        said += [one["sentence"] for one in privacy.get("membership") or ()]
    if prefix == "inference":
        said += [one["sentence"] for one in privacy.get("attributes") or ()]
    if not said:
        return "Nothing: the evaluation ran no such attack, for it needs the rows learned from."
    return "\n\n" + "\n".join(f"- {_inline(sentence)}" for sentence in said)


def _points(told: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"- {topic}: {_inline(words)}" for topic, words in told)


def _inline(text: object) -> str:
    """On one line, and no table, tag or heading of Markdown, whatever a name holds."""
    return re.sub(r"([|<>\[\]`])", r"\\\1", clean(text))
