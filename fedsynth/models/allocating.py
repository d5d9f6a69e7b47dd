"""Memory for networks whose layers were made on the meta device, where they draw nothing."""

from __future__ import annotations

import torch
from torch import nn


def allocate(net: nn.Module) -> None:
    """Give a network on the meta device parameters on the CPU, whose values are yet to be set.

    What torch's own `to_empty` does, which imports sympy to do it: half a second.
    """
    for layer in net.modules():
        for name, parameter in list(layer.named_parameters(recurse=False)):
            empty = torch.empty(parameter.shape, dtype=parameter.dtype)
            setattr(layer, name, nn.Parameter(empty))
