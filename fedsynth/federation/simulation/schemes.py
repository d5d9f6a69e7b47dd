"""Schemes: frozen values that say which client owns each row of a cut.

Sources: Margaritis (paper 001), section 4.4.1, for uniform, kmeans and geometric; Sempere (paper
000), section 2.3, after Li et al. 2021 (arXiv 2102.02079), for the label, quantity and feature
skews.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.agreed import demand_whole, shown
from fedsynth.demands import demand_number
from fedsynth.errors import ConfigError, DataError
from fedsynth.federation.simulation.rows import Rows, feature_matrix, label_codes

Owners = NDArray[np.int64]

_REDRAWS = 1000


class Scheme(Protocol):
    """How rows are dealt to numbered clients."""

    def owners(self, rows: Rows, clients: int, rng: np.random.Generator) -> Owners:
        """The client of each row: int64 [n] in [0, clients)."""


@dataclass(frozen=True)
class Uniform:
    """Every client is equally likely to own a row (equation 4.4.1); sizes differ by one at most."""

    def owners(self, rows: Rows, clients: int, rng: np.random.Generator) -> Owners:
        """The client of each row: int64 [n] in [0, clients)."""
        # The surplus rows go to random clients, else the first ones would be favoured.
        return rng.permutation(clients)[rng.permutation(len(rows)) % clients]


@dataclass(frozen=True)
class KMeans:
    """A cluster of the features is a client, so sizes are very uneven (section 4.4.1)."""

    def owners(self, rows: Rows, clients: int, rng: np.random.Generator) -> Owners:
        """The client of each row: int64 [n] in [0, clients)."""
        from sklearn.cluster import KMeans as Clustering
        from sklearn.exceptions import ConvergenceWarning
        from threadpoolctl import threadpool_limits

        seed = int(rng.integers(2**31))
        clustering = Clustering(clients, n_init=1, max_iter=100, random_state=seed)
        # Threads add the centres up in any order, and a seed must give one answer.
        with threadpool_limits(limits=1), warnings.catch_warnings():
            # Fewer distinct rows than clients leave clusters empty, as documented.
            warnings.simplefilter("ignore", ConvergenceWarning)
            clusters = clustering.fit_predict(feature_matrix(rows))
        return np.asarray(clusters, dtype=np.int64)


@dataclass(frozen=True)
class Geometric:
    """P[client k] proportional to p(1-p)^(k-1) for k = 1..N (equations 4.4.2 and 4.4.3).

    The untruncated variable stays within N clients with probability `a`; the rest, which the paper
    leaves open, is drawn again.
    """

    a: float = 0.99

    def __post_init__(self) -> None:
        if not 0 < demand_number("a", self.a) < 1:
            raise ConfigError(f"geometric: a must lie between 0 and 1 and is {self.a}")

    def success(self, clients: int) -> float:
        """The p of equation 4.4.3, in (0, 1]."""
        return float(-math.expm1(math.log1p(-self.a) / clients))

    def owners(self, rows: Rows, clients: int, rng: np.random.Generator) -> Owners:
        """The client of each row: int64 [n] in [0, clients)."""
        # The inverse of the distribution function given X <= N, hence u in [0, a).
        u = rng.random(len(rows)) * self.a
        drawn = np.floor(np.log1p(-u) / math.log1p(-self.success(clients)))
        return np.minimum(drawn, clients - 1).astype(np.int64)


@dataclass(frozen=True)
class Dirichlet:
    """Each label is spread over the clients by its own draw from Dir(beta, ..., beta).

    With `minimum` above 0 the cut is drawn again until every client has that many rows.
    """

    beta: float = 0.5
    minimum: int = 0

    def __post_init__(self) -> None:
        _check_dirichlet("dirichlet", self.beta, self.minimum)

    def owners(self, rows: Rows, clients: int, rng: np.random.Generator) -> Owners:
        """The client of each row: int64 [n] in [0, clients)."""
        labels = label_codes(rows)
        return _redraw(
            lambda: _deal(labels, clients, self.beta, rng), clients, self.minimum, "dirichlet"
        )


@dataclass(frozen=True)
class Quantity:
    """Clients differ in size alone: shares of the rows from Dir(beta, ..., beta)."""

    beta: float = 0.5
    minimum: int = 0

    def __post_init__(self) -> None:
        _check_dirichlet("quantity", self.beta, self.minimum)

    def owners(self, rows: Rows, clients: int, rng: np.random.Generator) -> Owners:
        """The client of each row: int64 [n] in [0, clients)."""
        one = np.zeros(len(rows), dtype=np.int64)
        return _redraw(
            lambda: _deal(one, clients, self.beta, rng), clients, self.minimum, "quantity"
        )


@dataclass(frozen=True)
class Labels:
    """Each client holds rows of `per_client` labels: one number, or one for each client in turn.

    A client takes the labels that fewest clients hold yet, ties broken at random, so every label
    has an owner; (2, 3, 5) over ten labels gives paper 000's disjoint sets. A label's rows are
    shared evenly among its owners.
    """

    per_client: int | Sequence[int] = 2

    def owners(self, rows: Rows, clients: int, rng: np.random.Generator) -> Owners:
        """The client of each row: int64 [n] in [0, clients)."""
        labels = label_codes(rows)
        classes = int(labels.max()) + 1
        holds = np.zeros((clients, classes), dtype=bool)
        holders = np.zeros(classes, dtype=np.int64)
        for client, wanted in enumerate(self._counts(clients, classes)):
            rarest = np.lexsort((rng.random(classes), holders))
            holds[client, rarest[:wanted]] = True
            holders += holds[client]
        owner = np.empty(len(labels), dtype=np.int64)
        for label in range(classes):
            members = rng.permutation(np.flatnonzero(labels == label))
            sharers = rng.permutation(np.flatnonzero(holds[:, label]))
            owner[members] = sharers[np.arange(len(members)) % len(sharers)]
        return owner

    def _counts(self, clients: int, classes: int) -> list[int]:
        given = self.per_client
        several = isinstance(given, Sequence | np.ndarray) and not isinstance(given, str)
        found = list(given) if several else [given] * clients  # type: ignore[arg-type]
        if len(found) != clients:
            raise ConfigError(f"labels: per_client has {len(found)} numbers for {clients} clients")
        counts = [demand_whole("labels: per_client", wanted, 1) for wanted in found]
        if max(counts) > classes:
            raise ConfigError(
                f"labels: per_client must be whole numbers from 1 to the {classes} labels there are"
            )
        if sum(counts) < classes:
            raise ConfigError(
                f"labels: {clients} clients of so few labels leave some of the {classes} labels "
                "without an owner; raise per_client or clients"
            )
        return counts


@dataclass(frozen=True)
class Noise:
    """A uniform cut in which client i's numbers get N(0, (sigma i/N)^2), i = 1..N.

    Unit of sigma: the column's standard deviation over all clients (images: over all pixels). The
    target, categories and dates stay; whole numbers are rounded, bounds and decimals kept.
    """

    sigma: float = 0.5

    def __post_init__(self) -> None:
        if demand_number("sigma", self.sigma) < 0:
            raise ConfigError(f"noise: sigma must not be negative and is {self.sigma}")

    def owners(self, rows: Rows, clients: int, rng: np.random.Generator) -> Owners:
        """The client of each row: int64 [n] in [0, clients)."""
        return Uniform().owners(rows, clients, rng)

    def spread(self, owners: Owners, clients: int) -> NDArray[np.float64]:
        """Each row's noise in standard deviations: float64 [n] in (0, sigma]."""
        return self.sigma * (owners + 1.0) / clients


@dataclass(frozen=True, eq=False)
class Column:
    """One client for each value of a column (or of an array as long as the data).

    Attributes:
        names: of all clients, also of those without a row; None reads them off the rows.
    """

    column: str | Sequence[Any] | NDArray[Any] | pd.Series
    names: Sequence[object] | None = None

    def __post_init__(self) -> None:
        if self.names is None:
            return
        several = isinstance(self.names, Collection) and not isinstance(self.names, str)
        names = [_name(value) for value in self.names] if several else []
        if not names or len(set(names)) < len(names):
            raise ConfigError("column: names must be those of one client or more, each once")

    def groups(self, rows: Rows) -> tuple[Owners, tuple[str, ...]]:
        """The client of each row, int64 [n], and the clients' names, as declared or in the values'
        order."""
        if isinstance(self.column, str):
            values, where = rows.column(self.column), f"column {self.column!r}"
        else:
            try:
                values = pd.Series(self.column)
            except (TypeError, ValueError):
                raise ConfigError(
                    f"column must be a column's name, or a value for each row, not "
                    f"{shown(self.column)}"
                ) from None
            where = "the column given" if values.name is None else f"column {values.name!r}"
        if len(values) != len(rows):
            raise DataError(f"{where} has {len(values)} values for {len(rows)} rows")
        if absent := int(values.isna().sum()):
            raise DataError(f"{where} is missing in {absent} rows: give them a client or drop them")
        spelled = np.array([_name(v) for v in values])
        if self.names is not None:
            names = np.array([_name(name) for name in self.names])
        else:
            names, firsts = np.unique(spelled, return_index=True)
            if pd.api.types.is_numeric_dtype(values.dtype):
                names = names[np.argsort(values.to_numpy(dtype=np.float64)[firsts], kind="stable")]
        owner = pd.Index(names).get_indexer(spelled)
        if (owner < 0).any():
            # Which name it is, is the row's: it stays out of what may end in a log.
            raise DataError(
                f"{where}: row {int(np.argmax(owner < 0)) + 1} names a client that is not among "
                "the declared names: declare it, or drop the row"
            )
        return owner.astype(np.int64), tuple(str(name) for name in names)


def _check_dirichlet(scheme: str, beta: float, minimum: int) -> None:
    if demand_number("beta", beta) <= 0:
        raise ConfigError(f"{scheme}: beta must be above 0 and is {beta}")
    demand_whole("minimum", minimum, 0)


def _deal(labels: NDArray[np.int64], clients: int, beta: float, rng: np.random.Generator) -> Owners:
    """Cuts each label's rows, in random order, by its own Dirichlet shares."""
    owners = np.empty(len(labels), dtype=np.int64)
    for label in np.unique(labels):
        members = rng.permutation(np.flatnonzero(labels == label))
        shares = rng.dirichlet(np.full(clients, beta))
        ends = np.rint(np.cumsum(shares) * len(members))
        ends[-1] = len(members)
        owners[members] = np.searchsorted(ends, np.arange(len(members)), side="right")
    return owners


def _redraw(draw: Callable[[], Owners], clients: int, minimum: int, scheme: str) -> Owners:
    for _ in range(_REDRAWS if minimum else 1):
        owners = draw()
        if np.bincount(owners, minlength=clients).min() >= minimum:
            return owners
    raise ConfigError(
        f"{scheme}: no cut of {_REDRAWS} gave each of {clients} clients {minimum} rows; lower "
        "minimum or clients, or raise beta"
    )


def _name(value: object) -> str:
    """A value as a client's name: 3.0, which a gap elsewhere made of 3, is 3 again."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
