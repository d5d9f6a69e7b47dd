"""An evaluation in a sentence, four figures and a list of what to beware of."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from fedsynth.evaluation.attacks.membership import can_alarm
from fedsynth.evaluation.attacks.suite import Privacy
from fedsynth.evaluation.findings.results import (
    Results,
    best_baseline,
    share_of_gain,
    successful_attacks,
    warnings,
)
from fedsynth.evaluation.measures.fidelity import Fidelity
from fedsynth.evaluation.measures.images import ImageFidelity

_LEAST_TESTED = 50
"""Real rows from which utility is summed up in words."""
_TOLD = 0.9
"""AUROC beyond which the verdict says that rows can be told from real ones."""


@dataclass(frozen=True)
class Headline:
    """One figure with its references, any of which may be None: not measured.

    value: of the synthetic rows. real: of real rows in their place. trivial: of a release that
    knows nothing. low, high: ends of the scale.
    """

    name: str
    value: float | None
    real: float | None
    trivial: float | None
    better: Literal["higher", "lower"]
    low: float
    high: float
    meaning: str


@dataclass(frozen=True)
class Summary:
    """What stands on the first screen."""

    verdict: str
    headlines: tuple[Headline, ...]
    beware: tuple[str, ...]


def summarise(results: Results, *, public: bool, epsilon: float | None, certified: bool) -> Summary:
    """Args: `epsilon` of the certificate, None if it is infinite; `certified`: there is one."""
    headlines = [
        *_utility_headlines(results),
        *_fidelity_headlines(results),
        _attack_headline(results.privacy),
    ]
    beware = warnings(results, public=public, epsilon=epsilon, certified=certified)
    return Summary(_write_verdict(results), tuple(headlines), beware)


def _write_verdict(results: Results) -> str:
    parts = []
    names = successful_attacks(results.privacy)
    if names:
        number = "one attack tells" if len(names) == 1 else f"{len(names)} attacks tell"
        parts.append(f"Do not hand these rows out: {number} training rows from others.")
    parts.append(_describe_utility(results))
    if results.fidelity is not None:
        error = results.fidelity.marginals[min(1, len(results.fidelity.marginals) - 1)]
        subject = "Pairs of columns are" if error.order == 2 else "The column is"
        parts.append(
            f"{subject} off by {error.mean:.1%}, where other real rows are off by {error.real:.1%}."
        )
        parts.append(_describe_detection(results.fidelity))
    parts += [] if names else [_describe_silence(results.privacy, results.shared is not None)]
    return " ".join(part for part in parts if part)


def _describe_detection(fidelity: Fidelity) -> str:
    """That a classifier tells the rows from real ones, and by which column most likely."""
    told = fidelity.detection[-1] if fidelity.detection else None
    if told is None or told.auroc <= _TOLD:
        return ""
    furthest = min(fidelity.columns, key=lambda one: one.score - one.real, default=None)
    named = "" if furthest is None else f"; the column furthest off is {furthest.name}"
    return f"A classifier tells them from real rows (AUROC {told.auroc:.3f}){named}."


def _describe_silence(privacy: Privacy, shared: bool) -> str:
    """What it means that no attack found anything."""
    if shared:
        return (
            "Some of the real rows were learned from, or their persons were: attacks that find "
            "nothing say nothing."
        )
    if not privacy.membership and not privacy.risks:
        return "No attack was run, so nothing is known here of what the rows give away."
    if not any(can_alarm(one.members, one.others) for one in privacy.membership):
        return "So few rows could raise no alarm, so nothing is known of what they give away."
    return "No attack told training rows from others."


def _describe_utility(results: Results) -> str:
    if results.images is not None and results.images.student is not None:
        student = results.images.student
        return (
            f"A network trained on these images reads {student['synthetic']:.1%} of real ones "
            f"right, against {student['real']:.1%} after real ones."
        )
    if results.utility is None:
        return ""
    share, utility = share_of_gain(results.utility), results.utility
    if results.tested < _LEAST_TESTED:
        few = f"too few real rows ({results.tested})."
        return f"What models learn from these rows cannot be told: {few}"
    first = utility.models[0]
    if None in (first.synthetic[utility.primary], first.real[utility.primary]):
        metric = _metric(utility.primary)
        return f"What models learn from these rows cannot be told: their {metric} is not defined."
    if share is None:
        return "Whether models learn from these rows cannot be told: real ones teach them nothing."
    words = next(
        words
        for least, words in (
            (0.97, "Models learn as much from these rows as from real ones"),
            (0.9, "Models learn nearly as much from these rows as from real ones"),
            (0.7, "Models learn from these rows most of what real ones teach"),
            (0.3, "Models learn from these rows a part of what real ones teach"),
            (-math.inf, "Models learn little from these rows"),
        )
        if share >= least
    )
    model = utility.models[0]
    ours, theirs = model.synthetic[utility.primary], model.real[utility.primary]
    return f"{words} ({_metric(utility.primary)} {ours:.3f} against {theirs:.3f})."


def _metric(name: str) -> str:
    return {"auroc": "AUROC", "r2": "R2"}.get(name, name.replace("_", " "))


def _utility_headlines(results: Results) -> list[Headline]:
    if results.images is not None:
        return _student_headlines(results.images)
    utility = results.utility
    if utility is None:
        reason = results.unlearned or "There is nothing to predict."
        return [Headline("Usefulness", None, None, None, "higher", 0, 1, reason)]
    model = utility.models[0]
    return [
        Headline(
            f"{_metric(utility.primary)} on real rows",
            model.synthetic[utility.primary],
            model.real[utility.primary],
            best_baseline(utility),
            "higher",
            0,
            1,
            f"How well {model.name}, trained on synthetic rows, predicts {utility.target}. "
            "Trivial: the better of guessing and independent columns.",
        )
    ]


def _student_headlines(images: ImageFidelity) -> list[Headline]:
    student = images.student or {}
    recalls = [one for one in images.classes if one.synthetic is not None]
    worst = min(recalls, key=lambda one: one.synthetic or 0.0, default=None)
    return [
        Headline(
            "Accuracy of a student network",
            student.get("synthetic"),
            student.get("real"),
            student.get("majority"),
            "higher",
            0,
            1,
            "Share of real images read right after training on synthetic ones. Trivial: the "
            "commonest class.",
        ),
        Headline(
            "Worst class",
            None if worst is None else worst.synthetic,
            None if worst is None else worst.real,
            0.0,
            "higher",
            0,
            1,
            f"Recall of {'a class' if worst is None else worst.name}, the class read worst.",
        ),
    ]


def _fidelity_headlines(results: Results) -> list[Headline]:
    if results.images is not None:
        return [
            Headline(
                "Pixel means",
                results.images.pixels["mean_error"],
                None,
                None,
                "lower",
                0,
                0.5,
                "Mean difference of a pixel's average from the real one, white being 1.",
            )
        ]
    if results.fidelity is None:
        return []
    error = results.fidelity.marginals[min(1, len(results.fidelity.marginals) - 1)]
    told = results.fidelity.detection[-1] if results.fidelity.detection else None
    what = "pairs of columns" if error.order == 2 else "the column"
    return [
        Headline(
            f"Error of {what}",
            error.mean,
            error.real,
            error.trivial,
            "lower",
            0,
            1,
            "Share of rows that would have to move for the frequencies to agree with the real "
            "ones. Trivial: columns shuffled each on its own.",
        ),
        Headline(
            "Told from real rows",
            None if told is None else told.auroc,
            None if told is None else told.real,
            results.fidelity.distinguished,
            "lower",
            0.5,
            1,
            "AUROC by which boosting tells synthetic from real rows; 0.5 is guessing. Trivial: "
            "independent columns.",
        ),
    ]


def _attack_headline(privacy: Privacy) -> Headline:
    strongest = max(privacy.membership, key=lambda attack: attack.auroc, default=None)
    return Headline(
        "Membership attack",
        None if strongest is None else strongest.auroc,
        None if strongest is None else 0.5,
        None,
        "lower",
        0.4,
        1,
        "AUROC of the strongest attack that tells rows learned from others: 0.5 is guessing, 1 "
        "certainty.",
    )
