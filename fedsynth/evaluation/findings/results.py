"""What an evaluation found, and what to beware of in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fedsynth.evaluation.attacks.membership import MembershipAttack
from fedsynth.evaluation.attacks.suite import Privacy
from fedsynth.evaluation.measures.coherence import Coherence
from fedsynth.evaluation.measures.fidelity import Fidelity
from fedsynth.evaluation.measures.images import ImageFidelity
from fedsynth.evaluation.measures.utility import Utility
from fedsynth.evaluation.yardsticks import Yardstick

_LARGE_EPSILON = 10.0
_POOR_COLUMN = 0.8
_ODD = 0.005
"""Share of rows with values that do not go together, beyond the real one, that is told."""


@dataclass(frozen=True)
class Results:
    """The parts of an evaluation; None where there is none.

    unlearned: why a table has no utility, as a sentence.
    shared: what to beware of where real rows given as unseen stand among the training rows.
    tested: real rows that models were tested on.
    yardsticks: the synthetic rows beside those of synthesizers without privacy; perhaps none.
    """

    fidelity: Fidelity | None
    utility: Utility | None
    images: ImageFidelity | None
    privacy: Privacy
    unlearned: str | None = None
    shared: str | None = None
    tested: int = 0
    yardsticks: tuple[Yardstick, ...] = ()


def successful_attacks(privacy: Privacy) -> list[str]:
    """Names of the attacks that told training rows from others.

    What inference finds of a column it finds once, in the risks and, in other words, in attributes.
    """
    names = [f"membership, {attack.name}" for attack in privacy.membership if attack.caught]
    for risk in privacy.risks:
        if risk.caught:
            names.append(risk.name if risk.column is None else f"{risk.name} of {risk.column}")
    named = {risk.column for risk in privacy.risks if risk.caught}
    return names + [
        f"attribute {one.column}"
        for one in privacy.attributes
        if one.caught and one.column not in named
    ]


def weak_signals(privacy: Privacy) -> list[MembershipAttack]:
    """Attacks whose interval leaves guessing out, short of what counts as found."""
    return [one for one in privacy.membership if not one.caught and one.auroc_low > 0.5]


def share_of_gain(utility: Utility) -> float | None:
    """Of what the first model gains by real rows over the best answer that learns nothing, the
    share that it gains by synthetic ones; None where real rows gain nothing."""
    model = utility.models[0]
    ours, theirs = model.synthetic[utility.primary], model.real[utility.primary]
    least = best_baseline(utility)
    if ours is None or theirs is None or least is None or theirs - least < 0.01:
        return None
    return (ours - least) / (theirs - least)


def best_baseline(utility: Utility) -> float | None:
    """The best score of answers that learn nothing."""
    known = [base.scores.get(utility.primary) for base in utility.baselines]
    return max((score for score in known if score is not None), default=None)


def warnings(
    results: Results, *, public: bool, epsilon: float | None, certified: bool
) -> tuple[str, ...]:
    """What to beware of, as sentences; the arguments are those of `summarise`."""
    return (
        *([results.shared] if results.shared else []),
        *_of_attacks(results.privacy),
        *_of_disclosure(public),
        *_of_guarantee(epsilon, certified),
        *_of_measures(results),
    )


def _of_attacks(privacy: Privacy) -> list[str]:
    names = successful_attacks(privacy)
    sentences = [f"Training rows can be told from others by: {'; '.join(names)}."] if names else []
    for one in weak_signals(privacy):
        sentences.append(
            f"A weak signal: membership, {one.name}, has an AUROC of {one.auroc:.3f}, and its 95 % "
            f"interval begins at {one.auroc_low:.3f}, above guessing. One of forty attacks does so "
            "by chance."
        )
    neighbours = privacy.neighbours
    if neighbours is not None:
        copies, expected = neighbours.copies["train"], neighbours.copies["expected"]
        if copies > 0.01 and copies > 2 * expected:
            sentences.append(
                f"{copies:.1%} of the synthetic rows equal a training row; of other real rows "
                f"{expected:.1%} do."
            )
    return sentences


def _of_disclosure(public: bool) -> list[str]:
    if public:
        return []
    return [
        "This report was computed on private rows and is itself private: no epsilon covers it. Do "
        "not publish it beside the release."
    ]


def _of_guarantee(epsilon: float | None, certified: bool) -> list[str]:
    if not certified:
        return [
            "No certificate: that attacks find nothing is no guarantee, since a better one may."
        ]
    if epsilon is None or epsilon > _LARGE_EPSILON:
        shown = "No finite epsilon" if epsilon is None else f"An epsilon of {epsilon:.3g}"
        verb = "is guaranteed" if epsilon is None else "limits next to nothing"
        return [f"{shown} {verb}: only the attacks speak."]
    return []


def _of_measures(results: Results) -> list[str]:
    beware = []
    utility, fidelity = results.utility, results.fidelity
    share = None if utility is None else share_of_gain(utility)
    if share is not None and share < 0.5:
        beware.append(f"Models keep {max(0.0, share):.0%} of what real rows teach beyond guessing.")
    if utility is not None:
        ranks = utility.agreement.classifiers
        if ranks.spearman is not None and ranks.high is not None and ranks.high < 0.8:
            beware.append(
                "Do not choose models on these rows: they order kinds of model differently than "
                f"real rows do (rank correlation {ranks.spearman:.2f}, at most {ranks.high:.2f})."
            )
    if fidelity is not None:
        poor = [one.name for one in fidelity.columns if one.score < min(_POOR_COLUMN, one.real)]
        if poor:
            beware.append(f"Columns far from the real ones: {_list(poor)}.")
        beware += _of_coherence(fidelity.coherence)
        outside = [one.name for one in fidelity.columns if one.outside > 0]
        if outside:
            beware.append(f"Columns with values that the schema does not allow: {_list(outside)}.")
    return beware


def _of_coherence(found: Coherence | None) -> list[str]:
    """That rows hold what real ones hardly show, where more do than twice as many real ones."""
    if found is None:
        return []
    beware = []
    if found.synthetic > max(2 * found.real, found.real + _ODD):
        worst = found.worst[0]
        named = f"most of all {worst.columns[0]} and {worst.columns[1]}"
        if worst.example is not None:
            values = [
                f"{name} {value}" for name, value in zip(worst.columns, worst.example, strict=True)
            ]
            named += f", such as {' with '.join(values)} in {worst.share:.1%}"
        beware.append(
            f"{found.synthetic:.1%} of the rows hold two values that hardly go together in real "
            f"rows ({found.real:.1%} of these do): {named}."
        )
    if found.declared:
        beware.append(f"{found.declared:.1%} of the rows break a constraint of the schema.")
    return beware


def _list(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
