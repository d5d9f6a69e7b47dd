"""The maximum-entropy model of noisy marginals (Private-PGM; McKenna, Sheldon, Miklau 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import ConfigError
from fedsynth.marginals.domain import Array, Clique, Domain, rest
from fedsynth.marginals.junction_tree import JunctionTree
from fedsynth.marginals.loss import Factors, Loss
from fedsynth.marginals.model import Model
from fedsynth.marginals.newton import approach

Zeros = Sequence[tuple[Clique, NDArray[np.bool_]]]

# Sufficient decrease of a step (Armijo), and how the step grows after one.
_DECREASE = 0.25
_GROWTH = 1.1
_HALVINGS = 60
# A step of Newton's method at the most for two of mirror descent: it takes longer, and soon stops.
_NEWTON = 2
# Exact counts beside noisy ones are taken as this much surer than the surest of those.
_EXACT = 1e-3
# What stands in for no noise in a cell of a table whose other cells have some.
_NOTHING = 1e-9


@dataclass(frozen=True, eq=False)
class Measurement:
    """A noisy table: ``values`` over ``clique``'s columns, the noise's deviation in each cell.

    Attributes:
        sigma: one for all cells, or one for each, in the order of ``values.ravel()``.

    Raises:
        ConfigError: values or deviations that are no finite numbers, or a negative deviation.
    """

    clique: Clique
    values: Array
    sigma: float | tuple[float, ...]

    def __post_init__(self) -> None:
        sigmas = np.asarray(self.sigma)
        if (
            sigmas.size not in (1, self.values.size)
            or not ((sigmas >= 0) & (sigmas < np.inf)).all()
            or not np.isfinite(self.values).all()
        ):
            raise ConfigError(
                f"the measurement of columns {list(self.clique)} needs finite values and a "
                "standard deviation of 0 or more, one for all cells or one for each"
            )

    @property
    def deviations(self) -> Array:
        """The noise's deviations as an array that goes with ``values``."""
        sigmas = np.asarray(self.sigma, np.float64)
        return sigmas.reshape(self.values.shape) if sigmas.ndim else sigmas

    def times(self, factor: float) -> Measurement:
        """The same table, counts and noise so many times as large."""
        return Measurement(self.clique, factor * self.values, _spell(factor * self.deviations))

    def project(self, clique: Clique) -> Measurement:
        """The same summed onto some of its columns: a sum of m cells has sqrt(m) times the noise.

        Raises:
            ConfigError: columns that it does not have.
        """
        if not set(clique) <= set(self.clique):
            raise ConfigError(f"{list(self.clique)} cannot be summed onto {list(clique)}")
        axes = rest(self.clique, clique)
        values = self.values.sum(axis=axes)
        if isinstance(self.sigma, tuple):
            return Measurement(clique, values, _spell((self.deviations**2).sum(axis=axes) ** 0.5))
        return Measurement(clique, values, self.sigma * (self.values.size / values.size) ** 0.5)


def _spell(deviations: Array) -> float | tuple[float, ...]:
    """Deviations as a measurement holds them."""
    return tuple(deviations.ravel().tolist()) if deviations.ndim else float(deviations)


def estimate_marginal(measurements: Sequence[Measurement], clique: Clique) -> Measurement | None:
    """The best unbiased estimate of a marginal from the measurements that hold it, or None.

    Each is summed onto the clique and weighted by its inverse variance.
    """
    wanted = set(clique)
    projected = [m.project(clique) for m in measurements if wanted <= set(m.clique)]
    return _combine(clique, projected) if projected else None


def _combine(clique: Clique, measurements: Sequence[Measurement]) -> Measurement:
    noiseless = [m for m in measurements if (m.deviations == 0).all()]
    if noiseless:
        return noiseless[0]
    weights = [np.maximum(m.deviations, _NOTHING) ** -2.0 for m in measurements]
    whole = sum(weights, np.zeros(()))
    values = sum(w * m.values for w, m in zip(weights, measurements, strict=True)) / whole
    return Measurement(clique, np.asarray(values), _spell(whole**-0.5))


def estimate_total(measurements: Sequence[Measurement]) -> float:
    """Number of records by inverse variance from every measurement's sum, at least 1."""
    estimate = estimate_marginal(measurements, ())
    return max(1.0, float(estimate.values)) if estimate is not None else 1.0


def fit(
    domain: Domain,
    measurements: Sequence[Measurement],
    *,
    total: float | None = None,
    start: Model | None = None,
    zeros: Zeros = (),
    cliques: Sequence[Clique] = (),
    iterations: int = 200,
    tolerance: float = 1e-4,
) -> Model:
    """The model of largest entropy among those nearest to the measurements.

    It minimises ``sum_c ||total * mu_c - y_c||^2 / (2 sigma_c^2)`` over the marginals mu of all
    distributions: roughly by Newton's method, then by accelerated entropic mirror descent (McKenna
    et al. 2019, Algorithm 1).

    Args:
        total: number of records; default :func:`estimate_total`.
        start: a model of the same domain to continue from; its factors stay in the model.
        zeros: cliques with True where no record can be; exact in the model.
        cliques: to be within the tree beside those measured.
        iterations: steps of mirror descent at the most.
        tolerance: stop when ten steps lower the loss by less than this share of it.

    Raises:
        ConfigError: a clique that is none, values of another shape, or zeros that leave nothing.
    """
    merged = _merge(domain, measurements)
    total = estimate_total(list(merged.values())) if total is None else total
    factors = {clique: np.zeros(domain.shape(clique)) for clique in merged}
    if start is not None:
        if start.domain != domain:
            raise ConfigError("a fit can only continue from a model of the same columns")
        factors = {**factors, **start.factors}
    factors = _apply_zeros(domain, factors, zeros)
    tree = JunctionTree.of(domain, [*factors, *cliques])
    step = 1.0 if start is None else start.step
    losses = Loss(tree, merged, total)
    factors = approach(losses, factors, iterations // _NEWTON)
    factors, step = _descend(losses, factors, step, iterations, tolerance)
    return Model(tree, factors, float(total), step)


def _apply_zeros(domain: Domain, factors: Factors, zeros: Zeros) -> Factors:
    """The factors with minus infinity where no record can be."""
    blocked = dict(factors)
    for clique, impossible in zeros:
        shape = domain.shape(domain.check(clique))
        if impossible.shape != shape:
            raise ConfigError(
                f"the impossible cells of columns {list(clique)} have shape {impossible.shape} "
                f"instead of {shape}"
            )
        blocked[clique] = np.where(impossible, -np.inf, blocked.get(clique, 0.0))
    return blocked


def _merge(domain: Domain, measurements: Sequence[Measurement]) -> dict[Clique, Measurement]:
    """One measurement a clique, exact ones as good as exact."""
    grouped: dict[Clique, list[Measurement]] = {}
    for m in measurements:
        if m.values.shape != domain.shape(domain.check(m.clique)):
            raise ConfigError(
                f"the measurement of columns {list(m.clique)} has shape {m.values.shape} instead "
                f"of {domain.shape(m.clique)}"
            )
        grouped.setdefault(m.clique, []).append(m)
    merged = {clique: _combine(clique, ms) for clique, ms in grouped.items()}
    # What has no noise in one cell and some in others comes out of a combination with next to none.
    noisy = [m.deviations[m.deviations > _NOTHING] for m in merged.values()]
    least = min((float(own.min()) for own in noisy if own.size), default=1.0)
    return {
        clique: Measurement(clique, m.values, _spell(np.maximum(m.deviations, least * _EXACT)))
        for clique, m in merged.items()
    }


def _descend(
    losses: Loss, factors: Factors, step: float, iterations: int, tolerance: float
) -> tuple[Factors, float]:
    """Mirror descent with momentum that starts afresh whenever the loss rises.

    Steps start from a point beyond the last one (Nesterov 1983; restarts as in O'Donoghue and
    Candes 2015). On Adult 60 such steps do what 260 plain ones do.
    """
    flat = last = losses.flatten(factors)
    run = 0
    loss = losses.point(factors).loss
    past = [loss]
    for _ in range(iterations):
        ahead = _extrapolate(flat, last, run / (run + 3))
        trial, lower, step = _step(losses, factors, ahead, step)
        if lower > loss and run:
            last, run = flat, 0
            continue
        last, flat, loss = flat, trial, lower
        run += 1
        past.append(loss)
        if len(past) > 10 and past[-11] - loss <= tolerance * past[-11]:
            break
    return factors | losses.split(flat), step


def _extrapolate(flat: Array, last: Array, share: float) -> Array:
    """Factors moved on by a share of the way from ``last``; structural zeros stay."""
    if share == 0:
        return flat
    with np.errstate(invalid="ignore"):
        return np.where(flat == -np.inf, flat, flat + share * (flat - last))


def _step(losses: Loss, factors: Factors, flat: Array, step: float) -> tuple[Array, float, float]:
    """A step along the gradient, short enough to lower the loss, its loss, and the next step."""
    before = losses.point(factors | losses.split(flat))
    for _ in range(_HALVINGS):
        trial = flat - step * before.gradient
        after = losses.point(factors | losses.split(trial))
        moved = float(np.vdot(before.gradient, before.marginals - after.marginals))
        if after.loss <= before.loss - _DECREASE * moved:
            break
        step /= 2
    return trial, after.loss, step * _GROWTH
