"""An evaluation in a sentence, four figures and a list of what to beware of."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from fedsynth.evaluation.attacks.membership import able
from fedsynth.evaluation.attacks.suite import Privacy
from fedsynth.evaluation.findings.results import Found, caught, kept, trivial, warnings

_LEAST_TESTED = 50
"""Real rows from which a verdict on models is dared."""


@dataclass(frozen=True)
class Headline:
    """One figure with its yardsticks, any of which may be None: not measured.

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


def summarise(found: Found, *, public: bool, epsilon: float | None, certified: bool) -> Summary:
    """Args: `epsilon` of the certificate, None if it is infinite; `certified`: there is one."""
    headlines = [*_worth(found), *_likeness(found), _attack(found.privacy)]
    beware = warnings(found, public=public, epsilon=epsilon, certified=certified)
    return Summary(_verdict(found), tuple(headlines), beware)


def _verdict(found: Found) -> str:
    parts = []
    names = caught(found.privacy)
    if names:
        number = "one attack tells" if len(names) == 1 else f"{len(names)} attacks tell"
        parts.append(f"Do not hand these rows out: {number} training rows from others.")
    parts.append(_usefulness(found))
    if found.fidelity is not None:
        error = found.fidelity.marginals[min(1, len(found.fidelity.marginals) - 1)]
        subject = "Pairs of columns are" if error.order == 2 else "The column is"
        parts.append(
            f"{subject} off by {error.mean:.1%}, where other real rows are off by {error.real:.1%}."
        )
    parts += [] if names else [_silence(found.privacy, found.shared is not None)]
    return " ".join(part for part in parts if part)


def _silence(privacy: Privacy, shared: bool) -> str:
    """What it means that no attack found anything."""
    if shared:
        return "Training rows stand among the real ones, so attacks that find nothing say nothing."
    if not privacy.membership and not privacy.risks:
        return "No attack was run, so nothing is known here of what the rows give away."
    if not any(able(one.members, one.others) for one in privacy.membership):
        return "So few rows could raise no alarm, so nothing is known of what they give away."
    return "No attack told training rows from others."


def _usefulness(found: Found) -> str:
    if found.images is not None and found.images.student is not None:
        student = found.images.student
        return (
            f"A network trained on these images reads {student['synthetic']:.1%} of real ones "
            f"right, against {student['real']:.1%} after real ones."
        )
    if found.utility is None:
        return ""
    share, utility = kept(found.utility), found.utility
    if found.tested < _LEAST_TESTED:
        return (
            f"What models learn from these rows cannot be told: too few real rows ({found.tested})."
        )
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


def _worth(found: Found) -> list[Headline]:
    if found.images is not None:
        student = found.images.student or {}
        recalls = [one for one in found.images.classes if one.synthetic is not None]
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
    utility = found.utility
    if utility is None:
        reason = found.unlearned or "There is nothing to predict."
        return [Headline("Usefulness", None, None, None, "higher", 0, 1, reason)]
    model = utility.models[0]
    return [
        Headline(
            f"{_metric(utility.primary)} on real rows",
            model.synthetic[utility.primary],
            model.real[utility.primary],
            trivial(utility),
            "higher",
            0,
            1,
            f"How well {model.name}, trained on synthetic rows, predicts {utility.target}. "
            "Trivial: the better of guessing and independent columns.",
        )
    ]


def _likeness(found: Found) -> list[Headline]:
    if found.images is not None:
        return [
            Headline(
                "Pixel means",
                found.images.pixels["mean_error"],
                None,
                None,
                "lower",
                0,
                0.5,
                "Mean difference of a pixel's average from the real one, white being 1.",
            )
        ]
    if found.fidelity is None:
        return []
    error = found.fidelity.marginals[min(1, len(found.fidelity.marginals) - 1)]
    told = found.fidelity.detection[-1] if found.fidelity.detection else None
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
            found.fidelity.distinguished,
            "lower",
            0.5,
            1,
            "AUROC by which boosting tells synthetic from real rows; 0.5 is guessing. Trivial: "
            "independent columns.",
        ),
    ]


def _attack(privacy: Privacy) -> Headline:
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
