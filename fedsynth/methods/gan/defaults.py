"""Defaults of FedGAN and FedCTGAN, by unit and whether the data are images."""

from __future__ import annotations

from typing import Any

# Widths, or channels, by kind of network.
GENERATORS: dict[str, tuple[int, ...]] = {
    "conv": (32,),
    "mlp": (128, 256),
    "residual": (128,),
}
# Small ones: of the same noise in every number a smaller network gets less.
SCORERS: dict[str, tuple[int, ...]] = {"conv": (16, 32, 32), "mlp": (32,), "quadratic": (8,)}

QUADRATIC: dict[str, Any] = {
    "matching": 10.0,
    "asks": False,
    "loss": "wasserstein",
    "penalty": 0.0,
    "smoothing": 0.0,
    "conditional_loss": 0.0,
    "rounds": 100,
    "generator_steps": 10,
    "generator_batch": 1000,
}

_BOTH: dict[str, Any] = {
    "discriminator": "mlp",
    "scheme": "uni",
    "asks": False,
    "loss": "logistic",
    "penalty": 0.0,
    "conditional_loss": 0.0,
    "auxiliary_loss": 0.0,
    "schedule": "linear",
    "clip": 1.0,
}
_CLIENT: dict[str, Any] = {
    **_BOTH,
    "rounds": 300,
    "rate": 0.5,
    "local_steps": 10,
    "batch_size": 10,
    "discriminator_learning_rate": 1e-3,
    "learning_rate": 1e-3,
    "schedule": "constant",
    "generator_steps": 10,
    "label_table_share": 0.0,
}
_RECORD: dict[str, Any] = {
    **_BOTH,
    "rounds": 300,
    "rate": 0.1,
    "discriminator_learning_rate": 3e-3,
    "learning_rate": 2e-3,
    "generator_steps": 5,
    "generator_batch": 500,
}

GAN: dict[tuple[bool, bool], dict[str, Any]] = {
    # Paper 001, Algorithm 3, with its S, batches and generator's learning rate; its discriminator
    # (0.0001) hardly learned here, and under noise more rounds than these made digits worse.
    (False, True): {
        **_CLIENT,
        "architecture": "mlp",
        "latent": 100,
        "generator_batch": 64,
        "smoothing": 0.3,
        "matching": 0.0,
        "mode_seeking_loss": 0.3,
    },
    (False, False): {
        **_CLIENT,
        "architecture": "residual",
        "latent": 30,
        "generator_batch": 100,
        "smoothing": 0.1,
        "matching": 3.0,
        "mode_seeking_loss": 0.0,
    },
    (True, True): {
        **_RECORD,
        "architecture": "mlp",
        "latent": 100,
        "generator_batch": 64,
        "smoothing": 0.3,
        "matching": 0.0,
        "auxiliary_loss": 1.0,
        "mode_seeking_loss": 0.1,
        "label_table_share": 0.0,
    },
    (True, False): {
        **_RECORD,
        "architecture": "residual",
        "discriminator": "quadratic",
        "latent": 16,
        "smoothing": 0.1,
        "matching": 3.0,
        "mode_seeking_loss": 0.0,
        "label_table_share": 0.2,
    },
}

_OWN: dict[str, Any] = {
    "discriminator": "mlp",
    "asks": True,
    "conditional_loss": 1.0,
    "loss": "wasserstein",
    "penalty": 1.0,
}

CTGAN: dict[tuple[bool, bool], dict[str, Any]] = {
    (False, False): {**GAN[False, False], **_OWN},
    (True, False): {
        **GAN[True, False],
        **_OWN,
        "rounds": 100,
        "learning_rate": 1e-3,
        "generator_batch": 1000,
    },
}
