from __future__ import annotations

import pytest
import torch

from tests.models.vae_reference import SPECS


@pytest.fixture(params=list(SPECS))
def spec(request):
    return SPECS[request.param]


@pytest.fixture
def draw():
    """Records, labels and noise for a spec."""

    def records(spec, rows, seed=0):
        generator = torch.Generator().manual_seed(seed)
        if spec.sizes:
            columns = [torch.randint(0, s, (rows,), generator=generator) for s in spec.sizes]
            x = torch.stack(columns, dim=1).int()
            if spec.numbers:
                numbers = torch.randn(rows, spec.numbers, generator=generator)
                x = torch.cat([numbers, x], dim=1)
        elif spec.numbers:
            x = torch.randn(rows, spec.numbers, generator=generator)
        else:
            x = torch.rand(rows, spec.width, generator=generator)
        y = torch.randint(0, spec.classes, (rows,), generator=generator) if spec.classes else None
        return x, y, torch.randn(rows, spec.latent, generator=generator)

    return records
