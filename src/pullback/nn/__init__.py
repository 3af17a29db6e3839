"""Neural networks: modules with parameters, their initialisation, and utilities. PyTorch's `torch.nn`."""

from pullback.nn import functional, init, modules, parameter, utils
from pullback.nn.modules import *  # noqa: F403
from pullback.nn.modules.module import Module
from pullback.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    "Buffer", "Module", "Parameter", "UninitializedBuffer", "UninitializedParameter", "functional", "init", "modules",
    "parameter", "utils",
]  # fmt: skip
__all__ += modules.__all__
