"""Linkability: two sources hold different columns of the same people; does the release join them?

After Giomi et al. 2023, section 5.2: a record's two halves are linked where the same synthetic row
is near both. Rows as near as the k-th count among the k nearest, so that a release with many equal
halves cannot hide the row that fits both.
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
from fedsynth.evaluation.attacks.vectors import describe_search, group_rows, sample_affordable
from fedsynth.evaluation.reading.features import Features, nearest
from fedsynth.evaluation.reading.rows import Rows

_CANDIDATES = 10
"""Different halves near each row that are looked at for ties, or k of them if that is more."""

_TIED = 1e-6


def linkability(
    synthetic: Rows,
    train: Rows,
    real: Rows,
    *,
    halves: tuple[tuple[str, ...], tuple[str, ...]] | None = None,
    neighbours: int = 1,
    attempts: int = 2000,
    seed: int = 0,
) -> Risk:
    """The share of training rows whose halves the release links, beyond that of unseen rows.

    Args:
        synthetic: the release. train: rows it was learned from. real: rows it never saw.
        halves: the columns that either source holds; every other column if not given.
        neighbours: k, the nearest synthetic rows of a half; Anonymeter's default is 1.
        attempts: rows of each table that are attacked, at most, drawn at random: one a person.

    Raises:
        ConfigError: halves that share a column, are empty or name no modelled column.
        DataError: the table has one column, so that there are no two halves.
    """
    first, second = _demand_halves(synthetic.names, halves)
    release = sample_affordable(synthetic, seed)
    one, two = _View.of(release, first), _View.of(release, second)
    k = min(neighbours, len(release))
    members, others = (rows.one_each(seed).sample(attempts, seed) for rows in (train, real))
    hits, missed = (int(_link(rows, one, two, k).sum()) for rows in (members, others))
    rng = np.random.default_rng(seed)
    # Whoever guesses names k random rows for either half: how many they share is hypergeometric.
    lucky = int((rng.hypergeometric(k, len(release) - k, k, len(members)) > 0).sum())
    risk = _risk(Hits(hits, len(members), missed, len(others), lucky), k)
    return replace(risk, sentence=risk.sentence + describe_search(release, synthetic))


def _demand_halves(
    names: tuple[str, ...], halves: tuple[tuple[str, ...], tuple[str, ...]] | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if len(names) < 2:
        raise DataError("linkability needs two columns or more: one cannot be split between two")
    if halves is None:
        return names[::2], names[1::2]
    for name in (*halves[0], *halves[1]):
        if name not in names:
            raise ConfigError(f"halves: there is no column {name!r}{suggestion(name, names)}")
    if not halves[0] or not halves[1] or set(halves[0]) & set(halves[1]):
        raise ConfigError("halves: give each source a column or more, and none to both")
    return halves


@dataclass(frozen=True, eq=False)
class _View:
    """What one source sees of the release: some columns, as g different vectors.

    group: of each synthetic row [n] its vector's place. sizes: rows of each vector [g].
    """

    features: Features
    vectors: NDArray[np.float32]
    group: NDArray[np.int64]
    sizes: NDArray[np.int64]

    @classmethod
    def of(cls, release: Rows, half: tuple[str, ...]) -> _View:
        features = Features.of(release, tuple(name for name in release.names if name not in half))
        seen = release.values[:, [release.names.index(name) for name in half]]
        group = group_rows(seen)
        _, first = np.unique(group, return_index=True)
        vectors = features.matrix(release.take(first))
        return cls(features, vectors, group, np.bincount(group))

    def near(self, rows: Rows, k: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Vectors [n, c] near each row, and which of them have one of the k nearest synthetic rows,
        or one as near as these."""
        wanted = max(k, _CANDIDATES)
        distances, places = nearest(self.features.matrix(rows), self.vectors, wanted)
        reached = (self.sizes[places].cumsum(axis=1) >= k).argmax(axis=1)
        limit = np.take_along_axis(distances, reached[:, None], axis=1)
        return places, distances <= limit + _TIED


def _link(rows: Rows, first: _View, second: _View, k: int) -> NDArray[np.bool_]:
    """Which rows [n] have a synthetic row among the k nearest, ties included, by both halves."""
    width = len(second.sizes)
    occurring = np.unique(first.group * width + second.group)
    (left, near_left), (right, near_right) = first.near(rows, k), second.near(rows, k)
    pairs = left[:, :, None] * width + right[:, None, :]
    linked = np.isin(pairs, occurring) & near_left[:, :, None] & near_right[:, None, :]
    return np.asarray(linked.any(axis=(1, 2)))


def _risk(hits: Hits, k: int) -> Risk:
    near = "the nearest synthetic row" if k == 1 else f"one of the {k} nearest synthetic rows"
    return hits.risk(
        "linkability",
        None,
        f"Two halves of a record, known to two sources, share {near} for {hits.attack:.1%} of the "
        f"training rows and {hits.control:.1%} of rows never seen",
    )
