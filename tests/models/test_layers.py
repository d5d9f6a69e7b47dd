"""Layers of PyTorch's as data: the same network, its gradients record by record, and refusals."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from fedsynth.models.classifier import Network
from fedsynth.models.kinds import KINDS, describe
from fedsynth.models.layers import Stack

CLASSES = 3
PICTURE = nn.Sequential(
    nn.Conv2d(2, 4, 3, stride=2, padding=1),
    nn.GroupNorm(2, 4),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Sequential(nn.Flatten(), nn.LayerNorm(4), nn.Linear(4, 5, bias=False), nn.Tanh()),
    nn.Linear(5, CLASSES),
)


def made(module, shape):
    """The stack of a module, its weights, records and labels."""
    stack = Stack(shape, CLASSES, describe(module))
    source = torch.Generator().manual_seed(3)
    weights = torch.randn(stack.dim, generator=source) / 3
    x = torch.rand(7, stack.inputs, generator=source)
    return stack, weights, x, torch.arange(7) % CLASSES


def load(module, weights):
    parameters = list(module.parameters())
    parts = torch.split(weights, [one.numel() for one in parameters])
    with torch.no_grad():
        for own, part in zip(parameters, parts, strict=True):
            own.copy_(part.view_as(own))
    return module


@pytest.mark.filterwarnings("ignore:Full backward hook")
def test_it_answers_as_the_module_and_its_gradients_are_those_of_opacus():
    from opacus.grad_sample import GradSampleModule

    stack, weights, x, y = made(PICTURE, (2, 6, 5))
    pictures = x.view(7, 6, 5, 2).permute(0, 3, 1, 2).contiguous()
    # Opacus reads a convolution's input in the order of its memory, whatever the strides.
    theirs = GradSampleModule(load(PICTURE, weights), loss_reduction="sum")
    logits = theirs(pictures)
    torch.testing.assert_close(stack.answers(weights, x), logits.detach(), atol=1e-5, rtol=1e-5)
    functional.cross_entropy(logits, y, reduction="sum").backward()
    wanted = torch.cat([one.grad_sample.flatten(1) for one in theirs.parameters()], 1)
    ((ones, rows),) = stack.factors(weights, x, y)
    assert (ones == 1).all() and ones.shape == (7, 1)
    torch.testing.assert_close(rows, wanted, atol=1e-5, rtol=1e-4)


def test_a_clients_gradient_is_the_weighted_sum_of_its_records():
    stack, weights, x, y = made(PICTURE, (2, 6, 5))
    shares = torch.tensor([[0.5, 0.25, 0.25, 0.0], [1.0, 0.0, 0.0, 0.0]])
    places = torch.tensor([[0, 1, 2, 3], [4, 5, 6, 0]])
    both = torch.stack([weights, weights / 2])
    found = stack.client_gradients(both, x[places], y[places], shares)
    for client in range(2):
        ((_, rows),) = stack.factors(both[client], x[places[client]], y[places[client]])
        torch.testing.assert_close(found[client], shares[client] @ rows, atol=1e-5, rtol=1e-4)


def test_dense_layers_are_the_dense_network():
    dense = Network(4, (5,), CLASSES)
    stack = Stack((4,), CLASSES, describe([{"LazyLinear": 5}, "Tanh", {"LazyLinear": CLASSES}]))
    assert (stack.dim, stack.inputs) == (dense.dim, dense.inputs)
    source = torch.Generator().manual_seed(0)
    matrices = [torch.randn(5, 5, generator=source), torch.randn(CLASSES, 6, generator=source)]
    ours = torch.cat([part for m in matrices for part in (m[:, :-1].flatten(), m[:, -1])])
    x = torch.rand(6, 4, generator=source)
    expected = dense.answers(torch.cat([m.flatten() for m in matrices]), x)
    torch.testing.assert_close(stack.answers(ours, x), expected, atol=1e-5, rtol=1e-5)


def test_a_module_and_words_say_the_same_and_travel():
    words = [
        {"LazyConv2d": {"out_channels": 4, "kernel_size": 3, "stride": 2, "padding": 1}},
        {"GroupNorm": [2, 4]},
        "ReLU",
        {"MaxPool2d": 2},
        "Flatten",
        {"LayerNorm": [[4]]},
        {"Linear": [4, 5, False]},
        "Tanh",
        {"LazyLinear": CLASSES},
    ]
    stack, _, x, _ = made(PICTURE, (2, 6, 5))
    said = Stack((2, 6, 5), CLASSES, describe(words))
    weights = torch.randn(stack.dim, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(said.answers(weights, x), stack.answers(weights, x))
    for one in (stack, said):
        assert Stack.from_dict(json.loads(json.dumps(one.to_dict()))) == one


def test_it_begins_with_the_classes_shares_whatever_the_record():
    stack, _, x, _ = made(PICTURE, (2, 6, 5))
    shares = torch.tensor([0.2, 0.3, 0.5])
    first, again, other = (
        stack.initial(shares, torch.Generator().manual_seed(seed)) for seed in (5, 5, 6)
    )
    assert torch.equal(first, again) and not torch.equal(first, other)
    found = torch.softmax(stack.answers(first, x), 1)
    torch.testing.assert_close(found, shares.expand(7, -1), atol=1e-5, rtol=1e-5)
    assert first.shape == stack.decayed.shape == (stack.dim,)
    # Kernels and matrices are held small; biases and scales are not.
    assert int(stack.decayed.sum()) == 4 * 2 * 9 + 4 * 5 + 5 * CLASSES


def test_what_does_not_end_in_numbers_moves_nobody():
    stack, weights, x, y = made(PICTURE, (2, 6, 5))
    ((_, rows),) = stack.factors(weights * 1e30, x, y)
    assert np.isfinite(rows.numpy()).all()


class Own(nn.Linear):
    """A class of somebody's own."""


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ("ReLU", "must be a list of layers"),
        ([], "must be a list of layers"),
        (["Flatten", "BatchNorm1d"], "BatchNorm1d is no layer.*takes records together"),
        ([nn.Flatten(), 3], "a layer is a name"),
        (nn.Sequential(nn.BatchNorm2d(2)), "takes records together"),
        (nn.Dropout(), "noise protects"),
        (nn.Transformer, "must be a list of layers"),
        (Own(4, 3), "Own is no layer"),
        ([{"Linear": {"outs": 3}}], "no argument 'outs'; it takes in_features"),
        ([{"Linear": [1, 2, True, 4]}], "3 arguments at most"),
        ([{"Linear": [60, print]}], "is a number, a word or a list"),
        (
            [{"Flatten": [0]}, {"Unflatten": [0, [3, 60]]}],
            "layer 1, Flatten takes records together",
        ),
        (["Flatten"], r"they end in shape \(60,\), and 3 classes need \(3,\)"),
        ([{"Conv2d": [1, 2, 3]}], r"layer 1, Conv2d does not take a record of shape \(2, 6, 5\)"),
        (["Flatten", {"GroupNorm": [0, 60]}], "layer 2, GroupNorm: .* do not make one"),
        (["Flatten", {"AdaptiveAvgPool2d": 3}], "layer 2, AdaptiveAvgPool2d does not take"),
    ],
)
def test_other_layers_are_refused_in_words(layers, message):
    with pytest.raises(ValueError, match=message):
        Stack((2, 6, 5), CLASSES, describe(layers))


def test_a_class_with_a_torch_layers_name_is_not_that_layer():
    pretender = type("Linear", (nn.Linear,), {})(60, CLASSES)
    with pytest.raises(ValueError, match="a class of its own"):
        describe(pretender)


def test_layers_without_weights_have_nothing_to_learn():
    with pytest.raises(ValueError, match="nothing to learn"):
        Stack((CLASSES,), CLASSES, describe(["ReLU"]))


def test_every_kind_is_pytorchs_and_takes_the_arguments_it_names():
    for name, arguments in KINDS.items():
        known = getattr(nn, name).__init__.__code__.co_varnames
        assert set(arguments) <= set(known), name
