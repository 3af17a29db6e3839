"""Layers on images keep the order in which their input lies in memory.

PyTorch's convolutions, poolings, normalisations and resizings answer an image whose channels vary fastest with one that
lies likewise. Programs see it in strides, and in the elements that a dropout after the layer leaves out: random numbers
are drawn in the order of memory.
"""

from __future__ import annotations

from pullback.kernels.creation import channels_last_array
from pullback.kernels.joining import lies_channels_last
from pullback.modes.switches import process, switches
from pullback.tensor.tensor import Tensor


def in_format_of(input: Tensor, result: Tensor) -> Tensor:
    """Lay a fresh `result` out with channels fastest if `input` lies so."""
    array = input._array
    if array.flags.c_contiguous or array.ndim not in (4, 5) or not lies_channels_last(array):
        return result
    if not result._array.flags.c_contiguous:  # it lies so already
        return result
    if process.changed and switches.interceptors:
        return result
    result._array = channels_last_array(result._array)
    return result
