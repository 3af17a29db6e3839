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

# Each is a function and the module that it is in. Once a module is imported, its package has it under its name: imported
# here, it is replaced by the function for good.
from pullback.nn.utils.spectral_norm import remove_spectral_norm, spectral_norm
from pullback.nn.utils.weight_norm import remove_weight_norm, weight_norm

# What builds on the modules, which build on `rnn` here: imported when first used.
_LATER = {
    "convert_conv2d_weight_memory_format": "memory_format",
    "convert_conv3d_weight_memory_format": "memory_format",
    "fuse_conv_bn_eval": "fusion",
    "fuse_conv_bn_weights": "fusion",
    "fuse_linear_bn_eval": "fusion",
    "fuse_linear_bn_weights": "fusion",
    "skip_init": "init",
}
_MODULES = ("fusion", "init", "memory_format", "parametrizations", "parametrize", "prune", "rnn", "stateless")

__all__ = [
    "clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm",
    "parameters_to_vector", "remove_spectral_norm", "remove_weight_norm", "spectral_norm", "vector_to_parameters",
    "weight_norm",
]  # fmt: skip
__all__ += [*_LATER, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _LATER:
        value = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
