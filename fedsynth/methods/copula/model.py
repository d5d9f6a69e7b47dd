"""A table's rows from estimated profiles of the classes and a copula for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from fedsynth.codec import GIVEN
from fedsynth.errors import ReleaseError
from fedsynth.methods.copula.cells import TableCells
from fedsynth.methods.copula.copula import Copula, fit_copula, independent
from fedsynth.methods.copula.fitted import Profiles, estimate
from fedsynth.methods.copula.parametric import Fitted, fit_family, parametric_shares
from fedsynth.methods.copula.question import Statistics
from fedsynth.methods.copula.settings import Marginals

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

# Records over noise, of a column's cells together, below which a family is nearer to the truth than
# the smoothed histogram where both fit (measured on wdbc, voice, audit, adult).
_POOR = 4.0


@dataclass(frozen=True, eq=False)
class FusionModel:
    """What was learned of one group of clients: all of it computed from released sums.

    Attributes:
        cells: of the table.
        profiles: shares of classes and cells.
        copula: what joins the columns within a class.
        families: those that the shares are of, by class and column; where none is named they are
            the smoothed histogram's.
    """

    cells: Annotated[TableCells, GIVEN]
    profiles: Profiles
    copula: Copula
    families: Mapping[tuple[int, str], Fitted] = field(default_factory=dict)

    @property
    def frequencies(self) -> Floats:
        """Shares of the target's classes; empty where the table has none to condition on."""
        return self.profiles.frequencies if self.cells.target else np.zeros(0)

    def columns(
        self, labels: Whole | None, rows: int, rng: np.random.Generator
    ) -> dict[str, NDArray[Any]]:
        """Conformed columns [rows] but for the target, given the classes of the rows."""
        classes = np.zeros(rows, np.int64) if labels is None else labels
        codes = np.zeros((rows, len(self.cells.columns)), np.int64)
        for one in np.unique(classes):
            at = np.flatnonzero(classes == one)
            codes[at] = self._codes(int(one), len(at), rng)
        return {
            column.name: column.values(code, rng.random(rows))
            for column, code in zip(self.cells.columns, codes.T, strict=True)
        }

    def _codes(self, label: int, rows: int, rng: np.random.Generator) -> Whole:
        """Codes [rows, columns] of one class."""
        root = np.linalg.cholesky(self.copula.correlations[label])
        latent = rng.standard_normal((rows, len(root))) @ root.T
        codes = np.zeros(latent.shape, np.int64)
        for j, at in enumerate(self.cells.slices()):
            order = np.argsort(self.copula.ranks[at])
            reached = np.cumsum(self.profiles.shares[label, at][order])[:-1]
            codes[:, j] = order[np.searchsorted(ndtri(np.clip(reached, 0, 1)), latent[:, j])]
        return codes

    def check(self) -> None:
        """Raises ReleaseError where the arrays are no model of the cells."""
        cells, profiles, copula = self.cells, self.profiles, self.copula
        columns, classes = len(cells.columns), cells.classes
        fits = (
            profiles.records.shape == (classes,)
            and profiles.shares.shape == (classes, cells.cells)
            and copula.ranks.shape == (cells.cells,)
            and copula.correlations.shape == (classes, columns, columns)
        )
        parts = (profiles.records, profiles.shares, copula.ranks, copula.correlations)
        if not fits or not _plausible(cells, *parts):
            raise ReleaseError("the copula's arrays do not fit the schema")


def _plausible(
    cells: TableCells, records: Floats, shares: Floats, ranks: Whole, correlations: Floats
) -> bool:
    """Whether the arrays are frequencies, orders and correlations."""
    finite = all(np.isfinite(array).all() for array in (records, shares, correlations))
    if not finite or not (records > 0).all() or not (shares >= 0).all():
        return False
    for at, size in zip(cells.slices(), cells.sizes, strict=True):
        sums = shares[:, at].sum(axis=1)
        if (np.abs(sums - 1) > 1e-6).any() or sorted(ranks[at].tolist()) != list(range(size)):
            return False
    even = np.allclose(correlations, correlations.transpose(0, 2, 1))
    return even and bool((np.linalg.eigvalsh(correlations) > 0).all())


def learn(
    statistics: Statistics, group: int = 0, marginals: Marginals = "histogram"
) -> FusionModel:
    """The model of one group of clients from released statistics.

    Args:
        marginals: of numbers within a class: histogram, the smoothed histogram; families, a family
            of distributions wherever one fits within the noise; auto, such a family where the noise
            is large beside the class's records.
    """
    cells = statistics.question.cells
    profiles = estimate(statistics, group)
    families = _families(statistics, group, profiles, marginals)
    shares = profiles.shares.copy()
    for (label, name), fitted in families.items():
        for column, at in zip(cells.columns, cells.slices(), strict=True):
            if column.name == name:
                shares[label, at] = parametric_shares(column, shares[label, at], fitted)
    profiles = replace(profiles, shares=shares)
    joined = bool(statistics.question.share)
    copula = fit_copula(statistics, group, shares) if joined else independent(cells)
    return FusionModel(cells, profiles, copula, families)


def _families(
    statistics: Statistics, group: int, profiles: Profiles, marginals: Marginals
) -> dict[tuple[int, str], Fitted]:
    """The families that fit, by class and column, where they are wanted."""
    cells, sigma = statistics.question.cells, statistics.sigma
    families = {}
    for column, at in zip(cells.columns, cells.slices(), strict=True):
        for label, records in enumerate(profiles.records):
            poor = records < _POOR * sigma * column.size**0.5
            if (
                column.grid is None
                or marginals == "histogram"
                or (marginals == "auto" and not poor)
            ):
                continue
            counts = statistics.counts[group, label, at]
            fitted = fit_family(column, counts, profiles.shares[label, at], sigma)
            if fitted is not None and fitted.fits:
                families[label, column.name] = fitted
    return families
