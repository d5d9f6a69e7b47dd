"""A certificate's figures held against second accountants.

The ledger's releases are charged by rules of their own (:mod:`fedsynth.privacy.verify.charges`) and
composed apart (:mod:`fedsynth.privacy.verify.moments`; for the privacy loss distribution
:mod:`fedsynth.privacy.verify.gaussian` or :mod:`fedsynth.privacy.verify.pure`, which are exact, or
Microsoft's PRV accountant where Gaussian releases are of samples).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedsynth.errors import FedsynthError
from fedsynth.privacy.adversaries import ALL, SERVER
from fedsynth.privacy.trail.certificate import Certificate
from fedsynth.privacy.verify import charges, gaussian, moments, pure
from fedsynth.privacy.verify.charges import Charge, Charges
from fedsynth.privacy.verify.check import Check

# What the second accountants may find above the certified figures: rounding in one case, a mesh in
# the other. The PRV accountant's mesh grows with epsilon and fails for large ones.
_RDP_SLACK = 1e-3
# Another build of the accountant may round the last digits differently.
ROUNDING = 1e-6
_PRV_ERROR = 0.01
_PRV_LIMIT = 10.0


def second_opinions(path: Path, derived: Certificate) -> Iterator[Check]:
    """The ledger's lines, read and charged a second time, and the figures held against that."""
    claimed = derived.content["guarantee"]
    try:
        lines = charges.lines_of(path)
        yield from (Check(*found) for found in charges.structure(lines))
        read = charges.charge(lines)
        yield _second_reading(claimed, read)
        if not math.isfinite(derived.epsilon) or not read.counts:
            return
        second = moments.epsilon(moments.compose(read.counts, read.replace_one), read.delta)
    except FedsynthError as error:
        yield Check("second reading", False, str(error))
        return
    rdp = float(claimed["rdp"])
    yield Check(
        "second accountant (moments)",
        second <= rdp * (1 + _RDP_SLACK) + _RDP_SLACK,
        f"RDP {rdp:.6g} certified, {second:.6g} computed apart",
    )
    if claimed["pld"] is not None and math.isfinite(second):
        yield from _opinion_on_pld(read.counts, read.delta, float(claimed["pld"]))
    if "adversaries" in derived.content:
        yield _opinion_on_adversaries(lines, derived)


def _opinion_on_adversaries(lines: Sequence[charges.Line], derived: Certificate) -> Check:
    """Each adversary's epsilon, charged a second time: exactly where all sums are Gaussian or all
    releases pure, else as at most what the moments say."""
    rows = derived.content["adversaries"]
    trust = derived.content["guarantee"]["trust"]
    told = [0, 0, *charges.colluders(lines)] if trust == "distributed" else [0] * len(rows)
    if len(told) != len(rows):
        return Check("adversaries", False, "there are others than the certificate names")
    for colluding, row in zip(told, rows, strict=True):
        epsilon = math.inf if row["epsilon"] == "inf" else row["epsilon"]
        read = charges.charge(lines, colluding)
        moment = moments.epsilon(moments.compose(read.counts, read.replace_one), read.delta)
        exact = gaussian.epsilon(read.counts, read.delta)
        if exact is None:
            exact = pure.epsilon(read.counts, read.delta)
        slack = _RDP_SLACK * (1 + moment)
        # Of a server that is trusted, and of owners that are asked in every trial.
        hidden = any(one.best is not None for one in read.counts)
        central = trust == "central" and (row["who"] == SERVER or (hidden and row["who"] == ALL))
        if central:
            sound = not row["promised"]
        elif hidden:
            sound = epsilon >= moment - slack
        elif exact is not None and math.isfinite(moment):
            sound = exact - slack <= epsilon <= max(moment, exact) + slack
        else:
            sound = epsilon <= moment + slack if math.isfinite(moment) else math.isinf(epsilon)
        if not sound:
            found = f"{row['who']}: epsilon {epsilon:.4g} certified, another one computed apart"
            return Check("adversaries", False, found)
    promised = [row for row in rows if row["promised"]]
    worst = max(math.inf if row["epsilon"] == "inf" else row["epsilon"] for row in promised)
    return Check(
        "adversaries",
        worst <= derived.epsilon * (1 + ROUNDING),
        f"{len(promised)} of {len(rows)} are promised epsilon {worst:.6g} at most",
    )


def _second_reading(claimed: Mapping[str, Any], read: Charges) -> Check:
    """Whom the guarantee is about."""
    same = (
        claimed["unit"] == read.unit
        and (claimed["neighbours"] == "replace-one") is read.replace_one
        and math.isclose(claimed["delta"], read.delta, rel_tol=ROUNDING)
    )
    found = f"{'exchanging ' if read.replace_one else ''}one {read.unit}, delta {read.delta:g}"
    return Check("second reading", same, found if same else f"another guarantee: {found}")


def _opinion_on_pld(counts: Mapping[Charge, int], delta: float, pld: float) -> Iterator[Check]:
    """Of pure releases, and of Gaussian sums: alone they cost what is certified, beside other
    releases no more than that."""
    exact = pure.epsilon(counts, delta)
    if exact is not None:
        yield _compare("pure", pld, exact, "composed exactly", _RDP_SLACK * (1 + pld))
    sums = {charge: count for charge, count in counts.items() if charge.mechanism == "gaussian"}
    alone = len(sums) == len(counts)
    exact = gaussian.epsilon(sums, delta)
    if exact is not None:
        yield _compare("Gaussian", pld, exact, "exactly", _RDP_SLACK * (1 + pld), alone)
    elif sums and pld <= _PRV_LIMIT and all(one.sampling != "fixed-size" for one in sums):
        # As fine as a small epsilon needs.
        error = max(1e-3, min(_PRV_ERROR, pld / 20))
        yield _compare("PRV", pld, prv(sums, delta, error), "by PRV", 3 * error, alone)


def _compare(
    name: str, pld: float, second: float, how: str, slack: float, alone: bool = True
) -> Check:
    return Check(
        f"second accountant ({name})",
        second <= pld + slack and (not alone or pld <= second + slack),
        f"PLD {pld:.6g} certified, {second:.6g} {how}"
        + ("" if alone else " for the Gaussian sums alone"),
    )


def prv(counts: Mapping[Charge, int], delta: float, error: float) -> float:
    """The upper bound of a numerical composition of privacy random variables (Gopi, Lee and
    Wutschitz, 2021, Algorithm 2), by their own package."""
    from prv_accountant import PoissonSubsampledGaussianMechanism, PRVAccountant

    repetitions = list(counts.values())
    with warnings.catch_warnings(), np.errstate(divide="ignore"):
        # It first looks for a range by RDP, and warns where its orders end.
        warnings.simplefilter("ignore")
        accountant = PRVAccountant(
            prvs=[
                PoissonSubsampledGaussianMechanism(
                    sampling_probability=charge.rate, noise_multiplier=charge.noise
                )
                for charge in counts
            ],
            max_self_compositions=repetitions,
            eps_error=error,
            delta_error=delta / 1000,
        )
        _, _, upper = accountant.compute_epsilon(delta, repetitions)
    return float(upper)
