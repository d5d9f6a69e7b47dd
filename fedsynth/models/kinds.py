"""Layers of a network as data, named as PyTorch names them. It loads no PyTorch, so that a job file
is read without."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

_SCALED = ("eps", "elementwise_affine", "bias")
_POOLED = ("kernel_size", "stride", "padding")
_WOVEN = ("kernel_size", "stride", "padding", "dilation", "groups", "bias")
KINDS: dict[str, tuple[str, ...]] = {
    "Linear": ("in_features", "out_features", "bias"),
    "LazyLinear": ("out_features", "bias"),
    "Conv2d": ("in_channels", "out_channels", *_WOVEN),
    "LazyConv2d": ("out_channels", *_WOVEN),
    "MaxPool2d": _POOLED,
    "AvgPool2d": _POOLED,
    "AdaptiveAvgPool2d": ("output_size",),
    "Flatten": ("start_dim", "end_dim"),
    "Unflatten": ("dim", "unflattened_size"),
    "LayerNorm": ("normalized_shape", *_SCALED),
    "GroupNorm": ("num_groups", "num_channels", "eps", "affine"),
    "ReLU": (),
    "Tanh": (),
    "Sigmoid": (),
    "Softplus": ("beta",),
    "ELU": ("alpha",),
    "LeakyReLU": ("negative_slope",),
    "GELU": ("approximate",),
    "SiLU": (),
}
"""Layers of `torch.nn`, each record's answer by that record alone, and the arguments they take."""

_MIXING = "it takes records together, so that none has a gradient of its own"
_WHY = {
    **dict.fromkeys(("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm"), _MIXING),
    **dict.fromkeys(("Dropout", "Dropout2d", "AlphaDropout"), "noise protects, and drops enough"),
}

Kind = tuple[str, dict[str, Any]]
"""A layer's class in `torch.nn`, and its arguments by name."""


def describe(given: object) -> tuple[Kind, ...]:
    """Layers in order, of a `torch.nn` module or of a list as YAML has it: "ReLU", or a class with
    its arguments in order or by name, {"Linear": [8, 2]}, {"LazyConv2d": {"out_channels": 4, ..}}.

    Raises:
        ValueError: what is no such layer, or takes records together.
    """
    # Whoever gives a module has loaded it.
    module = getattr(sys.modules.get("torch.nn"), "Module", ())
    if isinstance(given, module):
        return _of_module(given)
    if isinstance(given, str | Mapping) or not isinstance(given, Sequence) or not given:
        raise ValueError("must be a list of layers of torch.nn, or a torch.nn.Sequential of them")
    parts = (_of_module(one) if isinstance(one, module) else (_of_words(one),) for one in given)
    return tuple(kind for part in parts for kind in part)


def _of_module(module: Any) -> tuple[Kind, ...]:
    nn, name = sys.modules["torch.nn"], type(module).__name__
    if type(module) is nn.Sequential:
        return tuple(kind for child in module for kind in _of_module(child))
    names = _known(name)
    if type(module) is not getattr(nn, name):
        raise ValueError(f"{name} is a class of its own, and only torch.nn's own layers travel")
    if getattr(module, "padding_mode", "zeros") != "zeros":
        raise ValueError(f"{name}: padding_mode must be 'zeros'")
    said = {key: getattr(module, key) for key in names if key != "bias"}
    if "bias" in names:
        said["bias"] = module.bias is not None
    return ((name, {key: _plain(value) for key, value in said.items()}),)


def _of_words(one: object) -> Kind:
    if isinstance(one, Sequence) and not isinstance(one, str) and len(one) == 2:
        one = {one[0]: one[1]}
    if isinstance(one, str):
        one = {one: {}}
    if not isinstance(one, Mapping) or len(one) != 1:
        raise ValueError(f"a layer is a name, or one name with its arguments; not {one!r:.40}")
    ((name, said),) = one.items()
    names = _known(str(name))
    if not isinstance(said, Mapping):
        values = said if isinstance(said, list | tuple) else [said]
        if len(values) > len(names):
            raise ValueError(f"{name} takes {len(names)} arguments at most: {', '.join(names)}")
        said = dict(zip(names, values, strict=False))
    for key in said:
        if key not in names:
            raise ValueError(f"{name} has no argument {key!r}; it takes {', '.join(names)}")
    return str(name), {str(key): _plain(value) for key, value in said.items()}


def _known(name: str) -> tuple[str, ...]:
    if name in KINDS:
        return KINDS[name]
    why = f": {_WHY[name]}" if name in _WHY else ""
    raise ValueError(f"{name} is no layer that can be used{why}; those are {', '.join(KINDS)}")


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ValueError(f"an argument of a layer is a number, a word or a list; not {value!r:.40}")
