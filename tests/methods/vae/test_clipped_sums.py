"""Clipped sums of a VAE's records are those of Opacus, which forms every gradient by itself."""

import numpy as np
import pytest
import torch

from fedsynth.models import vae
from fedsynth.privacy.rows.clipping import clip_and_sum
from fedsynth.privacy.rows.factored import FactoredRows
from tests.models.vae_reference import SPECS, ReferenceVAE

RECORDS = 12


class Losses(torch.nn.Module):
    """A reference VAE whose output is the sum of its records' losses."""

    def __init__(self, reference):
        super().__init__()
        self.encoder, self.decoder = reference.encoder, reference.decoder
        self.loss = reference.loss

    def forward(self, x, y, noise):
        return self.loss(x, y, noise).sum()


@pytest.mark.filterwarnings("ignore:Full backward hook")
@pytest.mark.parametrize("name", ["table", "numbers"])
def test_clipped_sums_are_those_of_opacus(name):
    # Which takes two seconds to import: here, and not wherever tests are collected.
    from opacus import GradSampleModule
    from opacus.optimizers import DPOptimizer

    spec, generator = SPECS[name], torch.Generator().manual_seed(2)
    phi, theta = vae.initial(spec, generator)
    x = torch.zeros(RECORDS, spec.columns)
    for column, size in enumerate(spec.sizes):
        x[:, spec.numbers + column] = torch.randint(0, size, (RECORDS,), generator=generator)
    x[:, : spec.numbers] = 3 * torch.randn(RECORDS, spec.numbers, generator=generator)
    y = torch.randint(0, spec.classes, (RECORDS,), generator=generator) if spec.classes else None
    noise = torch.randn(RECORDS, spec.latent, generator=generator)
    factors = vae.record_gradients(spec, phi, theta, x if spec.numbers else x.long(), y, noise)
    rows = FactoredRows([(left.numpy(), right.numpy()) for left, right in factors])
    squares = sum(np.square(a).sum(1) * np.square(b).sum(1) for a, b in rows.layers)
    clip = float(np.sqrt(np.median(squares)))  # half of the records are longer

    reference = ReferenceVAE(spec, phi, theta)
    modules = GradSampleModule(Losses(reference), loss_reduction="sum")
    optimiser = DPOptimizer(
        torch.optim.SGD(modules.parameters(), lr=1.0),
        noise_multiplier=0.0,
        max_grad_norm=clip,
        expected_batch_size=None,
        loss_reduction="sum",
    )
    modules(x if spec.numbers else x.long(), y, noise).backward()
    optimiser.clip_and_accumulate()
    with torch.no_grad():
        for parameter in modules.parameters():
            parameter.copy_(parameter.summed_grad)
    expected = torch.cat(reference.flat()).numpy()
    # Opacus divides by the norm and a millionth.
    np.testing.assert_allclose(clip_and_sum(rows, clip), expected, rtol=1e-4, atol=1e-5)
