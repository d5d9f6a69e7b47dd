"""Private selection: what the best of several trials costs, where nothing else of them is seen.

Papernot and Steinke 2022, "Hyperparameter tuning with Renyi differential privacy". A trial draws a
candidate from a public list, releases what that asks, and a score of it. How many trials there are
is drawn from a public law (:mod:`fedsynth.privacy.trials`), and is secret. All that leaves is the
trial whose score is highest, whole. docs/guarantee.md says why that costs what it does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedsynth.errors import PrivacyError
from fedsynth.privacy.accounting import Counts, charged, replaces_one
from fedsynth.privacy.curves import Curve, Loss, orders
from fedsynth.privacy.mechanisms.mechanism import Mechanism
from fedsynth.privacy.rows.clipping import Norm
from fedsynth.privacy.sampling import Everyone, Sampling
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trials import Trials
from fedsynth.privacy.trust import Trust

Part = tuple[tuple[Terms, int], ...]
"""Releases that one unit may be in, by their terms and how often."""


def best_of(one: Curve, trials: Trials) -> Curve:
    """Renyi divergences of the best trial alone, at :func:`orders`.

    Theorem 2 of the paper for negative binomial numbers of trials, theorem 6 for Poisson ones.

    Args:
        one: of a trial by itself, its score included.
    """
    from dp_accounting.rdp import rdp_privacy_accountant as rdp

    order, mean = orders(), trials.mean
    chosen = one + math.log(mean) / (order - 1)
    if trials.kind == "poisson":
        # delta of one trial at e^epsilon = 1 + 1/(order - 1).
        fails = [rdp.compute_delta(order, one, epsilon)[0] for epsilon in np.log1p(1 / (order - 1))]
        chosen = chosen + mean * np.array(fails)
    else:
        scale = 1 + trials.shape
        chosen = chosen + scale * np.min((1 - 1 / order) * one - math.log(trials.gamma) / order)
    # Divergences grow with their order.
    return np.asarray(np.minimum.accumulate(chosen[::-1])[::-1])


def divergences(counts: Counts, exchange: bool = False) -> Curve:
    """Renyi divergences of releases composed, as they are charged, at :func:`orders`."""
    exchange = exchange or replaces_one(counts)
    return sum(
        (
            count * terms.kind.renyi(terms.noise_multiplier, terms.sampling, exchange)
            for terms, count in counts.items()
        ),
        0 * orders(),
    )


@dataclass(frozen=True)
class BestOf(Mechanism):
    """The trial whose score is highest, of a secret number of them.

    Attributes:
        parts: of what a unit may be in in one trial, whatever was drawn, it is in one part's
            releases alone; as they are charged.
    """

    trials: Trials
    parts: tuple[Part, ...]

    name: ClassVar[str] = "selection"
    norm: ClassVar[Norm] = "l2"
    selects: ClassVar[bool] = True
    composes: ClassVar[bool] = False
    assumes: ClassVar[str] = (
        " What is released is the best of several trials: whoever runs them sees them all, and "
        "keeps everything of the others to itself, how many there were and how long they took too."
    )
    caution: ClassVar[str] = (
        "the best of a secret number of trials. Whoever learns anything else of them (their "
        "number, other trials' rows or scores), as owners do that are asked, is promised nothing."
    )

    def admit(self, trust: Trust, sampling: Sampling) -> None:
        if not (trust.server_adds and sampling == Everyone()):
            raise PrivacyError(
                "only a trusted server can try in secret and release the best: without one "
                "(distributed or local trust) the server sees what every trial releases, so all "
                "of them would count. Say trust central, or choose on public rows (fs.select)"
            )

    def renyi(self, noise: float, sampling: Sampling, replace_one: bool) -> Curve:
        """Of a unit that is in one of the parts: at most the largest of theirs. The noise is that
        of the parts."""
        each = [divergences(dict(part), replace_one) for part in self.parts]
        return best_of(np.max(each, axis=0), self.trials)

    def loss(self, noise: float, sampling: Sampling, count: int) -> Loss:
        raise PrivacyError("of the best of several trials no loss distribution is known")


@dataclass(frozen=True, kw_only=True)
class Selecting(Terms):
    """Terms of one selection, charged as a whole before anything is asked.

    Attributes:
        trials: the law of how many there are.
        parts: releases of a trial as they are planned, in sets: whatever candidate is drawn, a unit
            is in the releases of one set at most. Records that are fitted to and records that only
            a score sees are different ones, and so are candidates of different trials.
    """

    mechanism: str = BestOf.name
    clip: float = 1.0
    noise_multiplier: float = 1.0
    trials: Trials
    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        every = [own for part in self.parts for own in part]
        if not self.parts or not all(self.parts):
            raise PrivacyError("a selection of nothing: give what a trial releases")
        for terms, count in every:
            if terms.trust != self.trust or type(count) is not int:
                raise PrivacyError("trials have the trust of their selection")
            if terms.sampling.replaces_one or isinstance(terms, Selecting):
                raise PrivacyError("no selection of selections, nor of samples of a fixed size")
            if count < 1 or terms.noise_multiplier == 0:
                raise PrivacyError("a trial without noise protects nobody")

    @property
    def kind(self) -> BestOf:
        return BestOf(
            self.trials,
            tuple(tuple(charged(dict(part), None, self.unit).items()) for part in self.parts),
        )


def released(terms: Iterable[Terms]) -> set[Terms]:
    """The same, with what trials release in place of a selection: whose noise is in the release."""
    found: set[Terms] = set()
    for one in terms:
        found |= (
            {own for part in one.parts for own, _ in part} if isinstance(one, Selecting) else {one}
        )
    return found


def part_of(counts: Mapping[Terms, int]) -> Part:
    """The same, in an order that does not hang on how they were counted."""
    return tuple(sorted(counts.items(), key=repr))
