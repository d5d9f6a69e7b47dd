"""Symmetric alpha-stable noise beside Laplace and Gaussian noise at equal epsilon.

    python evaluation/studies/stable_noise.py > evaluation/results/stable_noise.jsonl

Needs no data: the error of a released sum is its noise. Four tables, a row each line.

`error`: a histogram of d blocks, in each of which a record adds one one, so that its L1 norm is d
and its L2 norm sqrt(d) (one-hot: d = 1). One release at delta 1e-5 by each mechanism, calibrated by
fedsynth's own accounting; the error of one count: mean magnitude (closed form, and measured on
draws), and the quantiles that a mean hides where tails are heavy. Central: the server adds the
noise. Distributed: ten clients add shares, the release counts on all ten or on seven of them.
Local: each of the ten adds the whole.

`product`: epsilon times mean magnitude for a clip of 1, over alpha.

`spread`: epsilon at delta 1e-5 of noise of scale 1 against a shift of L2 norm 1 that is spread over
m coordinates, by convolution of losses. A mechanism for vectors costs the largest.

`thesis`: the configurations of Zawacki 2024 ("Studies in differential privacy and federated
learning", tables 4.1 and 4.3), which claims less epsilon for stable noise of alpha 1.999 than for
Gaussian noise of its scale. What the same steps cost with Gaussian noise of that scale, which
stable noise comes to as a shift is spread; and the pure epsilon of one step before sampling.

`equal`: the same steps at truly equal epsilon, the thesis' targets: the mean magnitude that noise
has in one coordinate, for a record that moves the sum by 1 (the thesis' own Gaussian rows hold for
2). `number`: the query is one number, as the thesis reckons (stable noise by convolution of losses,
which the first line checks on Gaussian noise). `vector`: a gradient clipped in L2: Laplace noise
must cover an L1 norm of sqrt(parameters), and stable noise a shift that is spread, for which no
less than Gaussian noise will do.
"""

from __future__ import annotations

import argparse
import json
import math
from functools import cache

import numpy as np
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from fedsynth.privacy.accounting import spent
from fedsynth.privacy.calibration import calibrate
from fedsynth.privacy.mechanisms import norm_of
from fedsynth.privacy.mechanisms import stable_law as stable
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.sampling import Poisson
from fedsynth.privacy.terms import Terms

DELTA = 1e-5
DRAWS = 200_000
CLIENTS = 10
QUANTILES = {"median": 0.5, "q99": 0.99, "q9999": 0.9999}
ALPHAS = (1.0, 1.5, 1.7, 1.9, 1.99)
MECHANISMS = [("gaussian", None), ("laplace", None), *(("stable", alpha) for alpha in ALPHAS)]

# Data, number of parameters, sampling rate, steps, then (claimed epsilon, scale of the Gaussian
# row, scale of the stable row); scales over the clip of 1.
THESIS = [
    ("MNIST", 26_010, 64 / 60_000, 9375, [(0.5, 1.41, 0.93), (1, 1.06, 0.81), (3, 0.81, 0.67)]),
    ("CIFAR-10", None, 2048 / 50_000, 4882, [(1, 15.41, 5.66), (3, 5.66, 3.20), (8, 2.60, 2.01)]),
]


def terms(mechanism, alpha, clip, multiplier, trust="central", survivors=1, sampling=None):
    extra = {} if sampling is None else {"sampling": sampling}
    return Terms(
        unit="record",
        trust=trust,
        clip=clip,
        noise_multiplier=multiplier,
        norm=norm_of(mechanism),
        mechanism=mechanism,
        alpha=alpha,
        survivors=survivors,
        **extra,
    )


def mean_magnitude(mechanism, alpha):
    if mechanism == "gaussian":
        return math.sqrt(2 / math.pi)
    return 1.0 if mechanism == "laplace" else stable.mean_magnitude(alpha)


def errors():
    ways = [("central", 1), ("distributed", CLIENTS), ("distributed", 7), ("local", 1)]
    for blocks in (1, 4, 24):
        for epsilon in (0.1, 1.0, 3.0):
            for mechanism, alpha in MECHANISMS:
                clip = math.sqrt(blocks) if mechanism == "gaussian" else float(blocks)
                multiplier = calibrate(
                    lambda m, k=(mechanism, alpha, clip): {terms(*k, m): 1}, epsilon, DELTA
                )
                for trust, survivors in ways:
                    given = terms(mechanism, alpha, clip, multiplier, trust, survivors)
                    yield {"blocks": blocks, "epsilon": epsilon, **error(given)}


def error(given):
    """Of one released count, measured on draws as clients and server would make them."""
    source = NoiseSource(20)
    answers = 1 if given.trust == "central" else CLIENTS
    noise = np.zeros(DRAWS)
    for _ in range(answers):
        own = given.noised if given.trust == "central" else given.client_noised
        noise += own(np.zeros(DRAWS), source)
    size = np.abs(noise)
    mean = given.summed_scale(answers) * mean_magnitude(given.mechanism, given.alpha)
    if given.mechanism == "laplace" and answers not in (1, given.shares):
        # A sum of Laplace variables is none, nor one of more shares than carry the whole.
        mean, exact = None, [None] * 3
    else:
        exact = [given.summed_scale(answers) * beyond(given, p) for p in (0.5, 0.01, 1e-4)]
    return {
        "table": "error",
        "mechanism": given.mechanism,
        "alpha": given.alpha,
        "trust": given.trust,
        "survivors": given.survivors,
        "spent": spent({given: 1}, DELTA).epsilon,
        "mean": "inf" if mean == math.inf else mean,
        "measured": float(size.mean()),
        **dict(zip(("median", "q99", "q9999"), exact, strict=True)),
        **{f"measured_{k}": float(np.quantile(size, q)) for k, q in QUANTILES.items()},
    }


def beyond(given, probability):
    """What the magnitude of noise of scale 1 exceeds with this probability."""
    if given.mechanism == "gaussian":
        return -float(ndtri(probability / 2))
    if given.mechanism == "laplace":
        return -math.log(probability)
    return stable.reach(given.alpha, probability)


def products():
    for alpha in (1.2, 1.3, 1.4, 1.5, 1.6, stable.best_alpha(), 1.8, 1.9, 1.95, 1.99, 1.999):
        yield {
            "table": "product",
            "alpha": alpha,
            "score_bound": stable.score_bound(alpha),
            "mean_magnitude": stable.mean_magnitude(alpha),
            "epsilon_times_mean": stable.score_bound(alpha) * stable.mean_magnitude(alpha),
        }


def spread():
    for alpha in (1.5, 1.9, 1.999):
        for length in (1, 4, 16, 256):
            yield {
                "table": "spread",
                "alpha": alpha,
                "coordinates": length,
                "epsilon": spread_epsilon(alpha, length),
                "gaussian": spent({terms("gaussian", None, 1.0, math.sqrt(2)): 1}, DELTA).epsilon,
                "pure": stable.score_bound(alpha) * math.sqrt(length),
            }


def spread_epsilon(alpha, length, mesh=1e-4):
    """Losses of one coordinate by cells of its outcome, to the nearest mesh point, composed."""
    edges = np.sinh(np.linspace(-16, 16, 16_001))
    tails = stable.survival(np.maximum(np.abs(edges), 1e-9), alpha)
    masses = np.diff(np.where(edges > 0, 1 - tails, tails))
    shift = 1 / math.sqrt(length)
    loss = np.log(stable.density(edges, alpha) / stable.density(edges + shift, alpha))
    places = np.rint((loss[1:] + loss[:-1]) / 2 / mesh).astype(int)
    found = {}
    for place, mass in zip(places.tolist(), masses.tolist(), strict=True):
        found[place] = found.get(place, 0.0) + mass
    one = pld.PrivacyLossDistribution.create_from_rounded_probability(
        found, 2 * float(tails[-1]), mesh
    )
    return float(one.self_compose(length).get_epsilon_for_delta(DELTA))


def thesis():
    for data, parameters, rate, steps, rows in THESIS:
        for claimed, normal, heavy in rows:
            row = {"table": "thesis", "data": data, "claimed": claimed}
            for name, scale in (("gaussian_row", normal), ("stable_row", heavy)):
                # The noise over the sensitivity for which the claims of its Gaussian rows hold.
                counts = {
                    terms(
                        "gaussian", None, 1.0, scale / math.sqrt(2), sampling=Poisson(rate)
                    ): steps
                }
                row[name] = {"scale": scale, "epsilon_as_gaussian": spent(counts, DELTA).epsilon}
            if parameters:
                # An L2 clip of 1 allows an L1 norm of sqrt(parameters).
                one = terms("stable", 1.999, math.sqrt(parameters), heavy / math.sqrt(parameters))
                row["pure_epsilon_of_one_step_as_a_vector"] = one.kind.pure_epsilon(
                    one.noise_multiplier, one.sampling, False
                )
            row["pure_epsilon_of_one_step_of_one_number"] = stable.scalar_epsilon(1.999, heavy)
            yield row


def equal():
    """Mean magnitudes of one coordinate's noise at equal epsilon."""
    check = terms("gaussian", None, 1.0, 1.06 / math.sqrt(2), sampling=Poisson(64 / 60_000))
    given = 64 / 60_000, 9375
    yield {
        "table": "equal",
        "check": "Gaussian noise, MNIST, scale 1.06",
        "accountant": spent({check: 9375}, DELTA).epsilon,
        "by_losses": sampled_epsilon(2.0, 1.06 / SHIFT, *given),
    }
    for data, parameters, rate, steps, rows in THESIS:
        for claimed, _, heavy in rows:
            yield {
                "table": "equal",
                "data": data,
                "epsilon": claimed,
                **magnitudes(claimed, rate, steps, parameters),
                "thesis_stable_row_as_one_number": sampled_epsilon(
                    1.999, heavy / SHIFT, rate, steps
                ),
            }


def magnitudes(epsilon, rate, steps, parameters):
    """Mean magnitudes by mechanism, of one number and of a vector."""

    def own(multiplier):
        return {terms("gaussian", None, 1.0, multiplier, sampling=Poisson(rate)): steps}

    gaussian = calibrate(own, epsilon, DELTA) * mean_magnitude("gaussian", None)
    number = {"gaussian": gaussian}
    number["laplace"] = at(epsilon, lambda scale: laplace_epsilon(scale, rate, steps))
    for alpha in (1.999, 1.9):
        scale = at(epsilon, lambda scale, a=alpha: sampled_epsilon(a, scale, rate, steps))
        number[f"stable {alpha}"] = scale * mean_magnitude("stable", alpha)
    vector = {"gaussian": gaussian, "stable": gaussian}
    if parameters:
        vector["laplace"] = number["laplace"] * math.sqrt(parameters)
    return {"number": number, "vector": vector}


def at(epsilon, costs):
    """The scale that costs so much."""
    return brentq(lambda scale: costs(scale) - epsilon, 0.1, 60.0, xtol=1e-3)


def laplace_epsilon(scale, rate, steps):
    one = pld.from_laplace_mechanism(
        scale, sampling_prob=rate, value_discretization_interval=MESH, use_connect_dots=False
    )
    return float(one.self_compose(steps).get_epsilon_for_delta(DELTA))


MESH = 1e-4
# How far a record moves the thesis' sums of a clip of 1, for its Gaussian rows to cost what they
# say: of its scale the deviation is sqrt(2) times as much.
SHIFT = 2.0


def sampled_epsilon(alpha, scale, rate, steps):
    """Epsilon of so many releases of one number, each record drawn by coins: the larger of both
    directions, losses to the nearest mesh point."""
    middles, without, log_density = law(alpha)
    shifted = log_density(np.arcsinh(np.abs(middles - 1 / scale)))
    ratio = np.exp(shifted - log_density(np.arcsinh(np.abs(middles))))
    mixed, loss = without * (1 - rate + rate * ratio), np.log1p(rate * (ratio - 1))
    found = []
    for masses, losses in ((mixed, loss), (without, -loss)):
        places = np.rint(losses / MESH).astype(int)
        low = int(places.min())
        summed = np.bincount(places - low, masses)
        kept = {low + int(k): float(summed[k]) for k in np.flatnonzero(summed)}
        lost = max(0.0, 1 - float(masses.sum()))
        one = pld.PrivacyLossDistribution.create_from_rounded_probability(kept, lost, MESH)
        found.append(float(one.self_compose(steps).get_epsilon_for_delta(DELTA)))
    return max(found)


@cache
def law(alpha):
    """Cells of an outcome of scale 1: middles and masses [cells], and the logarithm of the density
    by the inverse hyperbolic sine of a magnitude."""
    edges = np.sinh(np.linspace(-12, 12, 60_001))
    nodes = np.linspace(0, 12.5, 4_001)
    if alpha == 2:
        # Normal with variance 2.
        tails = ndtr(-np.abs(edges) / math.sqrt(2))
        known = -(np.sinh(nodes) ** 2) / 4
    else:
        tails = stable.survival(np.maximum(np.abs(edges), 1e-9), alpha)
        known = np.log(stable.density(np.sinh(nodes), alpha))
    masses, middles = np.diff(np.where(edges > 0, 1 - tails, tails)), (edges[1:] + edges[:-1]) / 2
    likely = masses > 1e-20
    return middles[likely], masses[likely], CubicSpline(nodes, known)


if __name__ == "__main__":
    tables = {one.__name__: one for one in (errors, products, spread, thesis, equal)}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=tables, default=list(tables))
    for name in parser.parse_args().only:
        for found in tables[name]():
            print(json.dumps(found), flush=True)
