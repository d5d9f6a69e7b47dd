"""What contributions give away as they are, clipped, and with noise: three attacks from the papers.

    python evaluation/studies/leaks.py [--records 300] [--reservoirs 4] [--rounds 2000]

- `hinge` (paper 002, section 6.2): the gradient of the hinge loss at one record is -y (x, 1), the
  record itself. The server answers with the nearest of 569 real records to what it received
  (breast cancer, 30 standardised numbers); `found` is how often that is the right one.
- `reservoir` (6.3): a client's series of 20 numbers u_t = 5 sin(t^2 / 60) goes through a public
  echo state network of 100 nodes, and A = sum of y_t z_t, B = sum of z_t z_t' leave it. Whoever has
  both looks for the series that gives them (least squares, up to 12 starts). `error` is its root
  mean square error beside that of guessing the mean: below .05 the series is `found`. As printed
  (10,000 steps of 1e-8) the attack hardly moves; a solver does what the paper concludes.
- `client` (paper 003, equation 4.12): was client x in a round? Twenty clients send the mean of
  their logistic gradients, cut to norm 1; each takes part by a coin. The attacker has half of x's
  rows, knows what the others would send but not which of them did, and uses the best linear test.
  `auroc` beside the most that any test can reach against the noise, Phi(mu / sqrt 2).

Noise is Gaussian for (epsilon, 1e-5) of one release, of which the contribution's own norm is the
clip at most; "snr 1:4" is the paper's noise: four times the power of what it hides, and no epsilon.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares
from scipy.stats import norm
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score

from fedsynth.privacy.calibration import optimal_gaussian_sigma

OUT = Path(__file__).resolve().parents[1] / "results/leaks.jsonl"
DELTA = 1e-5
EPSILONS = (8.0, 1.0)
STEPS, NODES, LEAK, RIDGE = 20, 100, 0.3, 0.1
STARTS = 12


def standardised() -> tuple[np.ndarray, np.ndarray]:
    """Features [569, 30] and labels -1 or 1."""
    x, y = load_breast_cancer(return_X_y=True)
    return (x - x.mean(axis=0)) / x.std(axis=0), 2.0 * y - 1


def cut(vector: np.ndarray, most: float) -> np.ndarray:
    return vector * min(1.0, most / np.linalg.norm(vector))


def hinge(records: int, rng: np.random.Generator) -> list[dict[str, object]]:
    x, y = standardised()
    clip = float(np.median(np.linalg.norm(x, axis=1)))
    chosen = rng.choice(len(x), records, replace=False)
    known = np.column_stack([x, np.ones(len(x))])

    def search(send) -> float:
        found = 0
        for i in chosen:
            # Margin 0 at the first weights, so no gradient is zero.
            gradient = send(-y[i] * known[i])
            # Direction alone: a clip takes the length away.
            angles = np.abs(known @ gradient) / np.linalg.norm(known, axis=1)
            found += int(np.argmax(angles) == i)
        return found / records

    ways = {"as it is": lambda g: g, "clipped": lambda g: cut(g, clip)}
    for epsilon in EPSILONS:
        sigma = clip * optimal_gaussian_sigma(epsilon, DELTA)
        ways[f"epsilon {epsilon:g}"] = lambda g, sigma=sigma: (
            cut(g, clip) + rng.normal(0, sigma, len(g))
        )
    return [
        {"what": "hinge", "way": way, "found": round(search(send), 4), "chance": 1 / len(x)}
        for way, send in ways.items()
    ]


def build_reservoir(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    weights = rng.normal(size=(NODES, NODES)) * (rng.random((NODES, NODES)) > 0.8)
    weights *= 0.9 / np.abs(np.linalg.eigvals(weights)).max()
    return weights, rng.normal(size=NODES)


def statistics(series: np.ndarray, weights: np.ndarray, inner: np.ndarray) -> np.ndarray:
    """A and the upper triangle of B [m, ..] of series [m, steps]: states z_t = (1, u_{t-1}, x_t),
    answers u_t."""
    state, rows = np.zeros((len(series), NODES)), []
    for value in series.T[:-1]:
        state = (1 - LEAK) * state + LEAK * np.tanh(state @ weights.T + np.outer(value, inner))
        rows.append(np.column_stack([np.ones(len(series)), value, state]))
    z = np.stack(rows, axis=1)
    b = np.swapaxes(z, 1, 2) @ z + RIDGE * np.eye(z.shape[2])
    a = np.einsum("mtk,mt->mk", z, series[:, 1:])
    return np.concatenate([a, b[:, *np.triu_indices(z.shape[2])]], axis=1)


def invert(sent: np.ndarray, network, rng: np.random.Generator) -> np.ndarray:
    """The series whose statistics come nearest to what was sent."""

    def gap(series: np.ndarray) -> np.ndarray:
        return statistics(series[None], *network)[0] - sent

    def slopes(series: np.ndarray) -> np.ndarray:
        moved = statistics(np.vstack([series, series + 1e-7 * np.eye(STEPS)]), *network)
        return (moved[1:] - moved[0]).T / 1e-7

    best = least_squares(gap, np.zeros(STEPS), slopes, max_nfev=300)
    for _ in range(STARTS - 1):
        # Whoever has fitted what was sent to many digits has it.
        if best.cost < 1e-9 * (sent @ sent):
            break
        tried = least_squares(gap, rng.normal(0, 3, STEPS), slopes, max_nfev=300)
        best = min(best, tried, key=lambda one: one.cost)
    return best.x


def reservoir(count: int, rng: np.random.Generator) -> list[dict[str, object]]:
    true = 5 * np.sin(np.arange(1, STEPS + 1) ** 2 / 60)
    spread = true.std()
    errors: dict[str, list[float]] = {}
    for _ in range(count):
        network = build_reservoir(rng)
        plain = statistics(true[None], *network)[0]
        power = math.sqrt((plain**2).mean())
        sent = {"as it is": plain, "snr 1:4": plain + rng.normal(0, 2 * power, len(plain))}
        for epsilon in EPSILONS:
            sigma = np.linalg.norm(plain) * optimal_gaussian_sigma(epsilon, DELTA)
            sent[f"epsilon {epsilon:g}"] = plain + rng.normal(0, sigma, len(plain))
        for way, statistic in sent.items():
            guess = invert(statistic, network, rng)
            error = math.sqrt(((guess - true) ** 2).mean()) / spread
            errors.setdefault(way, []).append(error)
            print(f"  reservoir, {way}: error {error:.4f}", flush=True)
    return [
        {
            "what": "reservoir",
            "way": way,
            "error": round(float(np.median(of)), 4),
            "found": float(np.mean(np.array(of) < 0.05)),
            "trials": len(of),
        }
        for way, of in errors.items()
    ]


def client(rounds: int, rng: np.random.Generator) -> list[dict[str, object]]:
    x, y = standardised()
    # Clients differ: rows lie next to each other along the first principal axis.
    order = np.argsort(x @ np.linalg.svd(x, full_matrices=False)[2][0])
    parts = np.array_split(order, 20)
    weights = rng.normal(0, 0.1, x.shape[1])

    def contribution(rows: np.ndarray) -> np.ndarray:
        pull = y[rows] / (1 + np.exp(y[rows] * (x[rows] @ weights)))
        return cut((pull[:, None] * x[rows]).mean(axis=0), 1.0)

    target = parts[3]
    sent = np.array([contribution(rows) for rows in parts])
    shadow = contribution(rng.choice(target, len(target) // 2, replace=False))
    took = rng.random((rounds, 20)) < 0.5
    sums = took.astype(float) @ sent
    noise = rng.normal(size=sums.shape)
    lines = []
    for epsilon in (math.inf, *EPSILONS):
        sigma = 0.0 if math.isinf(epsilon) else optimal_gaussian_sigma(epsilon, DELTA)
        others = np.delete(sent, 3, axis=0)
        spread = 0.25 * others.T @ others + max(sigma**2, 1e-9) * np.eye(len(shadow))
        scores = (sums + sigma * noise) @ np.linalg.solve(spread, shadow)
        most = 1.0 if sigma == 0 else float(norm.cdf(1 / sigma / math.sqrt(2)))
        auroc = roc_auc_score(took[:, 3], scores)
        way = "clipped" if sigma == 0 else f"epsilon {epsilon:g}"
        lines.append({"what": "client", "way": way, "auroc": round(auroc, 4), "most": most})
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=300)
    parser.add_argument("--reservoirs", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=2000)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    lines = []
    for study, size in (
        (hinge, options.records),
        (client, options.rounds),
        (reservoir, options.reservoirs),
    ):
        found = study(size, rng)
        lines += found
        for line in found:
            print(line, flush=True)
    OUT.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
