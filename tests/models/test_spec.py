from __future__ import annotations

import json

import pytest
from torch import nn

from fedsynth.models.spec import VAESpec


def parameters(*layers: nn.Module) -> int:
    return sum(p.numel() for layer in layers for p in layer.parameters())


@pytest.mark.parametrize(
    "spec",
    [
        VAESpec("mlp", 3, sizes=(2, 5), hidden=(7,), classes=2, label_bias=True, loss_bound=99.5),
        VAESpec("conv", 8, shape=(28, 28), classes=10, kl_weight=0.5),
        VAESpec("mlp", 1, shape=(2, 3, 3)),
        VAESpec("mlp", 2, numbers=3, sizes=(2,), sigma=0.5),
    ],
)
def test_a_spec_survives_json(spec):
    assert VAESpec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec


def test_the_paper_s_tabular_model_has_the_sizes_of_its_torch_layers():
    spec = VAESpec("mlp", 8, numbers=178, hidden=(128, 64, 32, 16), sigma=1.0)
    widths = [178, 128, 64, 32, 16]
    encoder = [nn.Linear(a, b) for a, b in zip(widths, [*widths[1:], 16], strict=True)]
    widths = [8, 16, 32, 64, 128]
    decoder = [nn.Linear(a, b) for a, b in zip(widths, [*widths[1:], 178], strict=True)]
    assert spec.encoder_dim == parameters(*encoder)
    assert spec.decoder_dim == parameters(*decoder) == 34_082
    learned = VAESpec("mlp", 8, numbers=178, hidden=(128, 64, 32, 16))
    assert learned.decoder_dim == 34_082 + 178


def test_the_paper_s_image_model_has_the_sizes_of_its_torch_layers():
    spec = VAESpec("conv", 8, shape=(28, 28), classes=10)
    convolutions = [nn.Conv2d(1, 32, 3), nn.Conv2d(32, 64, 3), nn.Conv2d(64, 64, 3)]
    assert spec.encoder_dim == parameters(*convolutions, nn.Linear(4 * 4 * 64, 16))
    channels = [32, 32, 64, 64, 32]
    transposed = [
        nn.ConvTranspose2d(a, b, 3) for a, b in zip(channels, [*channels[1:], 1], strict=True)
    ]
    assert spec.decoder_dim == parameters(nn.Linear(18, 1568), *transposed)


def test_a_label_bias_adds_one_weight_for_each_class_and_cell():
    plain = VAESpec("mlp", 2, sizes=(3, 4), classes=5)
    biased = VAESpec("mlp", 2, sizes=(3, 4), classes=5, label_bias=True)
    assert biased.decoder_dim - plain.decoder_dim == 5 * 7
    assert biased.encoder_dim == plain.encoder_dim


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "rnn", "latent": 2, "sizes": (2,)},
        {"kind": "mlp", "latent": 2},
        {"kind": "mlp", "latent": 2, "sizes": (2,), "shape": (4, 4)},
        {"kind": "mlp", "latent": 0, "sizes": (2,)},
        {"kind": "mlp", "latent": 2, "sizes": (2, 0)},
        {"kind": "mlp", "latent": 2, "shape": (4,)},
        {"kind": "mlp", "latent": 2, "sizes": (2,), "hidden": (8, 0)},
        {"kind": "mlp", "latent": 2, "sizes": (2,), "classes": -1},
        {"kind": "mlp", "latent": 2, "sizes": (2,), "label_bias": True},
        {"kind": "mlp", "latent": 2, "sizes": (2,), "kl_weight": float("nan")},
        {"kind": "mlp", "latent": 2, "sizes": (2,), "loss_bound": float("nan")},
        {"kind": "mlp", "latent": 2, "numbers": 2, "shape": (4, 4)},
        {"kind": "mlp", "latent": 2, "numbers": -1, "sizes": (2,)},
        {"kind": "mlp", "latent": 2, "numbers": 1, "classes": 2, "label_bias": True},
        {"kind": "mlp", "latent": 2, "numbers": 1, "classes": 2, "classifier_weight": 1.0},
        {"kind": "mlp", "latent": 2, "numbers": 1, "sigma": 0.0},
        {"kind": "conv", "latent": 2, "sizes": (2,)},
        {"kind": "conv", "latent": 2, "shape": (28, 30)},
        {"kind": "conv", "latent": 2, "shape": (28, 28), "hidden": (8,)},
    ],
)
def test_contradictions_are_refused(fields):
    with pytest.raises(ValueError):
        VAESpec(**fields)


def test_a_bound_that_a_uniform_guess_exceeds_is_refused_by_its_figures():
    with pytest.raises(ValueError, match=r"loss_bound is 1 nats.*2\.07944"):
        VAESpec("mlp", 2, sizes=(8,), loss_bound=1.0)


@pytest.mark.parametrize("values", [{"kind": "mlp"}, {"kind": "mlp", "latent": 1, "sise": [2]}])
def test_a_wrong_key_in_a_stored_spec_is_named(values):
    with pytest.raises(ValueError, match="keys"):
        VAESpec.from_dict(values)
