"""Helpers around modules and parameters. PyTorch's `torch.nn.utils`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pullback.nn.utils.clip_grad import (
    clip_grad_norm,
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)
from pullback.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters

# What builds on the modules, which build on `rnn` here: imported when first used.
_LATER = {
    "convert_conv2d_weight_memory_format": "memory_format",
    "convert_conv3d_weight_memory_format": "memory_format",
    "fuse_conv_bn_eval": "fusion",
    "fuse_conv_bn_weights": "fusion",
    "fuse_linear_bn_eval": "fusion",
    "fuse_linear_bn_weights": "fusion",
    "remove_spectral_norm": "spectral_norm",
    "remove_weight_norm": "weight_norm",
    "skip_init": "init",
    "spectral_norm": "spectral_norm",
    "weight_norm": "weight_norm",
}
_MODULES = ("fusion", "init", "memory_format", "parametrizations", "parametrize", "prune", "rnn", "stateless")

__all__ = [
    "clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm",
    "parameters_to_vector", "vector_to_parameters",
]  # fmt: skip
__all__ += [*_LATER, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _LATER:
        # `weight_norm` is a module and the function in it: the function wins, as in PyTorch.
        value = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
