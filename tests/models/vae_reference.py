"""Models to check, and the same models from torch's own modules to check them against."""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from torch import nn
from torch.distributions import Normal
from torch.nn import functional

from fedsynth.models.vae import VAESpec

SPECS = {
    "table": VAESpec("mlp", 3, sizes=(4, 1, 2, 2, 5), hidden=(9, 6)),
    "labelled table": VAESpec("mlp", 2, sizes=(3, 3, 4), hidden=(8,), classes=3, label_bias=True),
    "linear table": VAESpec("mlp", 1, sizes=(2,), classes=2, kl_weight=0.3),
    "numbers": VAESpec("mlp", 2, numbers=4, hidden=(6,), classes=2, sigma=0.5),
    "numbers by class": VAESpec("mlp", 2, numbers=3, sizes=(2,), hidden=(5,), classes=2),
    "numbers and codes": VAESpec("mlp", 3, numbers=3, sizes=(2, 4), hidden=(5,)),
    "dense image": VAESpec("mlp", 2, shape=(3, 5), hidden=(7,), classes=2),
    "image": VAESpec("conv", 3, shape=(8, 12), classes=2),
    "colour image": VAESpec("conv", 2, shape=(4, 4, 3), classes=2, label_bias=True),
}


class ReferenceVAE(nn.Module):
    """The VAE of a spec from torch's own layers, its weights read from flat vectors."""

    def __init__(self, spec: VAESpec, phi: torch.Tensor, theta: torch.Tensor) -> None:
        super().__init__()
        self.spec = spec
        width, latent = spec.width, spec.latent
        if spec.kind == "mlp":
            self.encoder = dense(width, *spec.hidden, 2 * latent)
            self.decoder = dense(latent + spec.classes, *reversed(spec.hidden), width)
        else:
            self.encoder, self.decoder = image_encoder(spec), image_decoder(spec)
        self.spreads = None
        if spec.learns_deviations:
            self.spreads = nn.Linear(max(1, spec.classes), spec.numbers, bias=False)
        self.label = nn.Linear(spec.classes, width, bias=False) if spec.label_bias else None
        read(self.encoder, phi)
        used = read(self.decoder, theta)
        if self.label is not None:
            self.label.weight.data.copy_(theta[used:].view(width, spec.classes))
        elif self.spreads is not None:
            self.spreads.weight.data.copy_(theta[used:].view(self.spreads.weight.shape))

    def loss(self, x, y, noise):
        spec = self.spec
        numbers, x = x[:, : spec.numbers], x[:, spec.numbers :]
        if spec.sizes:
            columns = [functional.one_hot(x[:, j].long(), s) for j, s in enumerate(spec.sizes)]
            cells = torch.cat(columns, dim=1).float()
        else:
            cells = x
        cells = torch.cat([numbers, cells], dim=1)
        mean, log_variance = self.encoder(cells).chunk(2, dim=1)
        u = mean + (0.5 * log_variance).exp() * noise
        labels = u.new_zeros(len(x), 0) if y is None else functional.one_hot(y, spec.classes)
        logits = self.decoder(torch.cat([u, labels], dim=1))
        if self.label is not None:
            logits = logits + self.label(labels.float())
        means, logits = logits[:, : spec.numbers], logits[:, spec.numbers :]
        if spec.table:
            groups = logits.split(spec.sizes, dim=1) if spec.sizes else []
            total = sum(
                functional.cross_entropy(group, x[:, j].long(), reduction="none")
                for j, group in enumerate(groups)
            )
            spreads = torch.tensor(spec.sigma or 1.0)
            if self.spreads is not None:
                given = labels.float() if spec.classes else u.new_ones(len(x), 1)
                spreads = self.spreads(given).exp()
            density = Normal(means, spreads).log_prob(numbers)
            total = total - (density + 0.5 * math.log(2 * math.pi)).sum(1)
        else:
            total = functional.binary_cross_entropy(logits.sigmoid(), x, reduction="none").sum(1)
        kl = 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance).sum(1)
        return total + spec.kl_weight * kl

    def flat(self):
        """The weights as the flat vectors phi and theta."""
        theta = written(self.decoder)
        if self.label is not None:
            theta = torch.cat([theta, self.label.weight.detach().flatten()])
        elif self.spreads is not None:
            theta = torch.cat([theta, self.spreads.weight.detach().flatten()])
        return written(self.encoder), theta


class ChannelsLast(nn.Module):
    def forward(self, x):
        return x.permute(0, 2, 3, 1).flatten(1)


class ChannelsFirst(nn.Module):
    def __init__(self, height, width):
        super().__init__()
        self.shape = height, width

    def forward(self, x):
        return x.view(len(x), *self.shape, -1).permute(0, 3, 1, 2)


def dense(*widths):
    layers = [part for pair in pairwise(widths) for part in (nn.Linear(*pair), nn.ReLU())]
    return nn.Sequential(*layers[:-1])


def image_encoder(spec):
    height, width = spec.shape[:2]
    layers = [ChannelsFirst(height, width)]
    for inputs, outputs in pairwise((spec.channels, 32, 64, 64)):
        layers += [nn.Conv2d(inputs, outputs, 3, 2, 1), nn.ReLU()]
    flat = 64 * -(-height // 8) * -(-width // 8)
    return nn.Sequential(*layers, ChannelsLast(), nn.Linear(flat, 2 * spec.latent))


def image_decoder(spec):
    height, width = (side // 4 for side in spec.shape[:2])
    first = nn.Linear(spec.latent + spec.classes, 32 * height * width)
    layers = [first, nn.ReLU(), ChannelsFirst(height, width)]
    channels = pairwise((32, 32, 64, 64, 32, spec.channels))
    for (inputs, outputs), stride in zip(channels, (1, 1, 2, 2, 1), strict=True):
        layers += [nn.ConvTranspose2d(inputs, outputs, 3, stride, 1, stride - 1), nn.ReLU()]
    return nn.Sequential(*layers[:-1], ChannelsLast())


def affine_layers(network):
    return [layer for layer in network if hasattr(layer, "weight")]


def matrix_of(layer):
    transposed = isinstance(layer, nn.ConvTranspose2d)
    return layer.weight.transpose(0, 1) if transposed else layer.weight


def read(network, flat):
    used = 0
    with torch.no_grad():
        for layer in affine_layers(network):
            weight, outputs = matrix_of(layer), len(layer.bias)
            columns = weight.numel() // outputs + 1
            block = flat[used : used + outputs * columns].view(outputs, columns)
            weight.copy_(block[:, :-1].view(weight.shape))
            layer.bias.copy_(block[:, -1])
            used += outputs * columns
    return used


def written(network):
    parts = []
    for layer in affine_layers(network):
        matrix = matrix_of(layer).detach().flatten(1)
        parts.append(torch.cat([matrix, layer.bias.detach()[:, None]], dim=1).flatten())
    return torch.cat(parts)
