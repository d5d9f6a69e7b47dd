"""How near synthetic rows lie to the training rows: copies and distances, a diagnostic only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsynth.evaluation.reading.features import Features, nearest
from fedsynth.evaluation.reading.rows import Rows

NOTE = (
    "a diagnostic, no evidence of privacy: sets that pass it remain open to membership attacks "
    "(arXiv 2505.01524)"
)
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
SEARCHED = 100_000
"""Rows, at most, among which neighbours are looked for; of more, a sample."""

_BINS = 20


Keys = NDArray[np.uint64] | NDArray[np.void]
"""Of rows [n], the same for equal rows."""


@dataclass(frozen=True)
class Neighbours:
    """Copies and nearest neighbours of synthetic rows, beside those of held-out real rows.

    copies: shares in [0, 1]: "train" of synthetic rows equal to a training row, "real" of synthetic
        rows equal to a held-out row, "expected" of held-out rows equal to a training row. Rows of a
        few coarse columns coincide by chance, so the first is to be read beside the last; the
        second grows with the number of held-out rows.
    distance: Euclidean distances in the space of `Features` learned from the training rows to the
        nearest of these, `QUANTILES` of "synthetic_to_train" and "real_to_train".
    ratio: mean in [0, 1] of the distance to the nearest training row over that to the second
        nearest, of "synthetic" and "real" rows; 1 where both are 0. None with one training row.
    histogram: of those distances: "edges" and, of each bin between two of them, shares of
        "synthetic" and "real" rows. The last bin takes all distances above, too.
    note: what this does not show.
    """

    copies: dict[str, float]
    distance: dict[str, list[float]]
    ratio: dict[str, float | None]
    histogram: dict[str, list[float]]
    note: str = NOTE


def neighbours(
    synthetic: Rows, train: Rows, real: Rows, *, seed: int = 0, most: int = 4000
) -> Neighbours:
    """Distance to the closest record and nearest-neighbour distance ratio (Zhao et al. 2021).

    Copies are counted over all rows: rows equal in all modelled columns, gaps equal to gaps,
    numbers rounded to the schema's decimals. Distances are those of `most` rows of either kind to
    at most `SEARCHED` training rows, drawn at random whatever the order of the rows.
    """
    made, taught, held = row_keys(synthetic), row_keys(train), row_keys(real)
    features, rng = Features.of(train), np.random.default_rng(seed)
    among = features.matrix(train.take(draw_rows(taught, SEARCHED, rng)))
    distances = {
        "synthetic": nearest(features.matrix(synthetic.take(draw_rows(made, most, rng))), among, 2)[
            0
        ],
        "real": nearest(features.matrix(real.take(draw_rows(held, most, rng))), among, 2)[0],
    }
    return diagnose(made, taught, held, distances)


def diagnose(
    made: Keys, taught: Keys, held: Keys, distances: dict[str, NDArray[np.float64]]
) -> Neighbours:
    """From keys of synthetic, training and held-out rows, equal for equal rows, and the distances
    [n, 1 or 2] of "synthetic" and "real" rows to the nearest training rows."""
    return Neighbours(
        copies={
            "train": float(np.isin(made, taught).mean()),
            "real": float(np.isin(made, held).mean()),
            "expected": float(np.isin(held, taught).mean()),
        },
        distance={
            f"{kind}_to_train": np.quantile(nearest_two[:, 0], QUANTILES).tolist()
            for kind, nearest_two in distances.items()
        },
        ratio={kind: _ratio(nearest_two) for kind, nearest_two in distances.items()},
        histogram=_histogram({kind: nearest_two[:, 0] for kind, nearest_two in distances.items()}),
    )


def row_keys(rows: Rows) -> NDArray[np.uint64]:
    """A hash [n] of each row's modelled values: equal rows share one, others practically never.

    64 bits, so that even among a million rows two different ones meet with chance 3e-8.
    """
    keys = np.zeros(len(rows), dtype=np.uint64)
    for j, column in enumerate(rows.schema.observed):
        # Adding 0 turns -0.0 into 0.0, which has other bits.
        values = np.round(rows.values[:, j], getattr(column, "decimals", 0)) + 0.0
        values[np.isnan(values)] = np.nan
        keys = _mix(keys + values.view(np.uint64) + np.uint64(0x9E3779B97F4A7C15))
    return keys


def draw_rows(keys: NDArray[np.uint64], most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Places of at most `most` rows at random, each once, in random order.

    Which rows these are does not depend on the order of the rows: it is drawn among them sorted by
    their keys.
    """
    return np.argsort(keys, kind="stable")[rng.permutation(len(keys))[:most]]


def _mix(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014)."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))


def _ratio(distances: NDArray[np.float64]) -> float | None:
    if distances.shape[1] < 2:
        return None
    first, second = distances.T
    return float(np.divide(first, second, out=np.ones_like(first), where=second > 0).mean())


def _histogram(distances: dict[str, NDArray[np.float64]]) -> dict[str, list[float]]:
    top = float(np.quantile(np.concatenate(list(distances.values())), 0.99)) or 1.0
    edges = np.linspace(0, top, _BINS + 1)
    shares = {
        kind: (np.histogram(np.minimum(values, top), edges)[0] / len(values)).tolist()
        for kind, values in distances.items()
    }
    return {"edges": edges.tolist(), **shares}
