"""Loss distributions from divergences: dp-accounting's own masses, all at once."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from dp_accounting.pld import pld_pmf
from scipy.special import ndtr

from fedsynth.privacy import curves
from fedsynth.privacy.curves import loss_of


@pytest.mark.parametrize("noise", [0.4, 1.0, 3.0, 500.0])
def test_masses_are_dp_accountings_to_the_bit(noise: float):
    def gaussian(epsilon: np.ndarray) -> np.ndarray:
        shift, half = epsilon * noise, 0.5 / noise
        exact = ndtr(half - shift) - np.exp(epsilon) * ndtr(-half - shift)
        # Which now and then rise by as much as floats may.
        return np.clip(exact + 1e-13 * (np.arange(len(epsilon)) % 2), 0, 1)

    reach = 0.5 / noise**2 + 6 / noise
    ends = (int(np.floor(-reach / curves.MESH)), int(np.ceil(reach / curves.MESH)))
    deltas = gaussian(np.arange(ends[0], ends[1] + 1) * curves.MESH)
    assert (np.diff(deltas) > 0).any() or noise == 500
    wanted = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(curves.MESH, *ends, deltas)
    found = loss_of(gaussian, reach)._pmf_remove
    # Few losses are a dictionary there, many an array.
    assert type(found) is type(wanted)
    assert isinstance(found, pld_pmf.DensePLDPmf) == (noise < 500)
    assert pickle.dumps(vars(found)) == pickle.dumps(vars(wanted))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda epsilon: np.full_like(epsilon, 1.5),
        lambda epsilon: np.where(epsilon < 1, 0.2, np.nan),
        lambda epsilon: np.where(epsilon < 1, 0.2, 0.3),
        lambda epsilon: np.where(epsilon < 1, 0.2, -1e-9),
    ],
    ids=["above 1", "no number", "rising", "below 0"],
)
def test_what_are_no_divergences_is_refused(wrong):
    with pytest.raises(ValueError, match="divergences"):
        loss_of(wrong, 2.0)
