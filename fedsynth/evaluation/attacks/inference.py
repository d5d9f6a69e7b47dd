"""Inference: who holds the release and all other columns of a record guesses the one kept secret.

The guess is the nearest synthetic row's value (Giomi et al. 2023, section 5.3): a row that the
generator repeats is then answered right, which a model fitted to all rows would smooth away.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fedsynth.agreed import suggestion
from fedsynth.errors import ConfigError, DataError
from fedsynth.evaluation.attacks.risks import (
    Hits,
    Risk,
)
from fedsynth.evaluation.attacks.vectors import describe_search, sample_affordable
from fedsynth.evaluation.reading.confidence import share_interval
from fedsynth.evaluation.reading.features import Features, nearest
from fedsynth.evaluation.reading.rows import Rows

_TOLERANCE = 0.05
_MOST_SECRETS = 5
_COMPARED = 10_000


@dataclass(frozen=True)
class Attribute:
    """How well one column is guessed from the others; accuracies are in [0, 1].

    column: the secret. caught: the release's attacker knows training rows better than rows never
        seen, at `ALARM`. sentence: that in words.
    synthetic: accuracy on training rows of an attacker who holds the release.
    others: the same attacker's on rows that the generator never saw.
    held_out: accuracy on training rows of one who holds such real rows instead of the release.
    commonest: of always guessing the release's commonest value, or its median.
    gain, low, high: synthetic - others, in [-1, 1], and its 95 % interval.
    rows: training rows attacked.
    """

    column: str
    caught: bool
    sentence: str
    synthetic: float
    others: float
    held_out: float
    commonest: float
    gain: float
    low: float
    high: float
    rows: int


@dataclass(frozen=True)
class Inferences:
    """Two readings of the same guesses, one of each a secret: Anonymeter's risk (the attack on
    training rows against unseen ones), and the same beside an attacker without the release."""

    risks: tuple[Risk, ...]
    attributes: tuple[Attribute, ...]


def inference(
    synthetic: Rows,
    train: Rows,
    real: Rows,
    *,
    secrets: tuple[str, ...] | None = None,
    attempts: int = 1000,
    seed: int = 0,
) -> Inferences:
    """Guess the secrets of training rows and of unseen rows, by the release and by unseen rows.

    A guess is right if it is the same category, or within 5 % of the 5 to 95 % range of the release
    for a number; a gap is guessed right as a gap.

    Args:
        synthetic: the release. train: rows it was learned from. real: rows it never saw; they are
            attacked, and they are what the attacker without the release looks neighbours up in.
        secrets: columns to guess; `default_secrets` if not given.
        attempts: rows of each table that are attacked, at most, drawn at random: one a person.

    Raises:
        ConfigError: a secret that is no modelled column.
        DataError: the table has one column, so that nothing is left to guess from.
    """
    names = synthetic.names
    if len(names) < 2:
        raise DataError("inference needs two columns or more: one to guess, one to guess it from")
    for name in secrets or ():
        if name not in names:
            raise ConfigError(f"secrets: there is no column {name!r}{suggestion(name, names)}")
    release, unseen = sample_affordable(synthetic, seed), sample_affordable(real, seed)
    members, others = (rows.one_each(seed).sample(attempts, seed) for rows in (train, real))
    targets = _Targets(members, others)
    by_release = _Attacker.of(release, (targets.members, targets.others))
    by_unseen = _Attacker.of(unseen, (targets.members,))
    risks, attributes, part = [], [], describe_search(release, synthetic)
    for secret in map(names.index, secrets or default_secrets(synthetic, seed)):
        guesses = by_release.guesses(secret)
        outcome = _Outcome.of(release, targets, secret, guesses, by_unseen.guesses(secret)[0], seed)
        risk = outcome.inference(names[secret])
        attribute = outcome.attribute(names[secret], len(unseen))
        risks.append(replace(risk, sentence=risk.sentence + part))
        attributes.append(replace(attribute, sentence=attribute.sentence + part))
    return Inferences(tuple(risks), tuple(attributes))


def default_secrets(synthetic: Rows, seed: int = 0) -> tuple[str, ...]:
    """The target and up to five more columns: those that are hardest to guess blindly.

    That is, on which two random synthetic rows agree least often. Only the release is looked at, so
    that the choice tells nothing of private rows.
    """
    rows = synthetic.sample(_COMPARED, seed)
    shift = np.roll(np.arange(len(rows)), 1)
    agreement = {
        name: _right(rows.values[:, j], rows.values[shift, j], _tolerance(rows, j)).mean()
        for j, name in enumerate(rows.names)
    }
    target = rows.schema.target
    ranked = sorted((name for name in rows.names if name != target), key=agreement.__getitem__)
    return (*([target] if target in rows.names else []), *ranked[:_MOST_SECRETS])


def _tolerance(release: Rows, column: int) -> float:
    """How far a guess of this column may be off and still count as right."""
    values = release.values[:, column]
    known = values[~np.isnan(values)]
    if release.sizes[column] or len(known) == 0:
        return 0.0
    low, high = np.quantile(known, [0.05, 0.95])
    return float(_TOLERANCE * (high - low))


def _right(
    guesses: NDArray[np.float64], truth: NDArray[np.float64], tolerance: float
) -> NDArray[np.bool_]:
    # Rounding must not decide about a difference of exactly the tolerance.
    near = np.abs(guesses - truth) <= tolerance * (1 + 1e-9)
    return near | (np.isnan(guesses) & np.isnan(truth))


@dataclass(frozen=True, eq=False)
class _Targets:
    members: Rows
    others: Rows


@dataclass(frozen=True, eq=False)
class _Attacker:
    """A table to look neighbours up in, and the rows to attack, as vectors of each column."""

    held: Rows
    table: list[NDArray[np.float32]]
    attacked: list[list[NDArray[np.float32]]]

    @classmethod
    def of(cls, held: Rows, attacked: tuple[Rows, ...]) -> _Attacker:
        """The columns' vectors are apart, so that leaving a secret out is cheap."""
        names = held.names
        alone = [Features.of(held, tuple(n for n in names if n != name)) for name in names]
        return cls(
            held,
            [features.matrix(held) for features in alone],
            [[features.matrix(rows) for features in alone] for rows in attacked],
        )

    def guesses(self, secret: int) -> list[NDArray[np.float64]]:
        """Of each attacked table, the nearest held row's value of the secret [n]."""

        def others(parts: list[NDArray[np.float32]]) -> NDArray[np.float32]:
            return np.concatenate([p for j, p in enumerate(parts) if j != secret], axis=1)

        table, sizes = others(self.table), [len(parts[0]) for parts in self.attacked]
        queries = np.concatenate([others(parts) for parts in self.attacked])
        values = self.held.values[nearest(queries, table)[1][:, 0], secret]
        return np.split(values, np.cumsum(sizes)[:-1])


@dataclass(frozen=True)
class _Outcome(Hits):
    """Right guesses, also by who holds unseen rows (`held_out`) and of the commonest value."""

    held_out: int
    commonest: int

    @classmethod
    def of(
        cls,
        release: Rows,
        targets: _Targets,
        secret: int,
        guesses: list[NDArray[np.float64]],
        held_out: NDArray[np.float64],
        seed: int,
    ) -> _Outcome:
        truth, unseen = (rows.values[:, secret] for rows in (targets.members, targets.others))
        tolerance, offered = _tolerance(release, secret), release.values[:, secret]
        blind = np.random.default_rng(seed).choice(offered, len(truth))
        always = np.full(len(truth), _middle(offered, release.sizes[secret]))
        return cls(
            members=len(truth),
            others=len(unseen),
            hits=int(_right(guesses[0], truth, tolerance).sum()),
            missed=int(_right(guesses[1], unseen, tolerance).sum()),
            held_out=int(_right(held_out, truth, tolerance).sum()),
            lucky=int(_right(blind, truth, tolerance).sum()),
            commonest=int(_right(always, truth, tolerance).sum()),
        )

    def inference(self, column: str) -> Risk:
        return self.risk(
            "inference",
            column,
            f"The nearest synthetic row tells {column!r} of {self.attack:.1%} of the training rows "
            f"and of {self.control:.1%} of rows never seen",
        )

    def attribute(self, column: str, unseen: int) -> Attribute:
        synthetic, others = self.attack, self.control
        held_out = self.held_out / self.members
        (low_a, high_a) = share_interval(self.hits, self.members)
        (low_b, high_b) = share_interval(self.missed, self.others)
        gain = synthetic - others
        # Newcombe's interval of a difference of independent shares (1998, method 10).
        return Attribute(
            column=column,
            caught=self.caught,
            sentence=(
                f"With the release {column!r} of a training row is guessed right in "
                f"{synthetic:.1%} of cases, of a row never seen in {others:.1%}; who holds "
                f"{unseen:,} unseen rows instead is right for {held_out:.1%} of training rows."
            ),
            synthetic=synthetic,
            others=others,
            held_out=held_out,
            commonest=self.commonest / self.members,
            gain=gain,
            low=gain - float(np.hypot(synthetic - low_a, high_b - others)),
            high=gain + float(np.hypot(high_a - synthetic, others - low_b)),
            rows=self.members,
        )


def _middle(values: NDArray[np.float64], size: int) -> float:
    """The commonest code, the gap being one, or the median of known numbers; NaN means a gap."""
    known = values[~np.isnan(values)]
    if len(known) == 0 or size == 0:
        return float(np.median(known)) if len(known) else np.nan
    counts = np.bincount(known.astype(np.int64))
    return float(counts.argmax()) if counts.max() >= len(values) - len(known) else np.nan
