"""Weights of convolutions in another memory format."""

from __future__ import annotations

from typing import Any

from pullback.nn.modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def _convert(module: Any, memory_format: Any, kinds: Any) -> Any:
    for child in module.modules():
        if isinstance(child, kinds):
            child.weight.data = child.weight.detach().contiguous(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Lay out the weights of convolutions over images as `memory_format` says."""
    return _convert(module, memory_format, (Conv2d, ConvTranspose2d))


def convert_conv3d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Lay out the weights of convolutions over volumes as `memory_format` says."""
    return _convert(module, memory_format, (Conv3d, ConvTranspose3d))
