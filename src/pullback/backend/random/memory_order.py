"""Where the numbers of a stream land in an array that is filled in place.

PyTorch's iterator walks memory upwards whatever the order of the dimensions, so `x.t().uniform_()` gives the
transposed numbers of `x.uniform_()`.
"""

from __future__ import annotations

import numpy as np

from pullback.backend.dtype import real_of
from pullback.typing import Array


def _walk(input: Array) -> list[int]:
    """The dimensions of `input` sorted by stride, the widest first."""
    return sorted(range(input.ndim), key=lambda axis: -input.strides[axis])


def fill(input: Array, values: Array) -> Array:
    """Write a flat stream of values into `input` and return it."""
    target = input if input.flags.c_contiguous else input.transpose(_walk(input))
    target[...] = values.reshape(target.shape)
    return input


def paired(input: Array, other: Array) -> Array:
    """The elements of `other`, broadcast to `input`, in the order in which `input` is filled."""
    broadcast = np.broadcast_to(other, input.shape)
    return (broadcast if input.flags.c_contiguous else broadcast.transpose(_walk(input))).ravel()


def real_view(input: Array) -> Array:
    """View a complex array as real with a last dimension of 2."""
    return input[..., None].view(real_of(input.dtype))
