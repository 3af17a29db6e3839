"""Pooling over windows and to given sizes."""

from __future__ import annotations

import math
from typing import Any

from pullback import functions
from pullback.tensor.tensor import Tensor


def _max_pool(
    dims: int, input: Tensor, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool,
    return_indices: bool,
) -> Any:  # fmt: skip
    if dims == 1 and not return_indices:
        return functions.max_pool1d(input, kernel_size, () if stride is None else stride, padding, dilation, ceil_mode)
    name = f"max_pool{dims}d_with_indices"
    pair = getattr(functions, name)(input, kernel_size, () if stride is None else stride, padding, dilation, ceil_mode)
    return pair if return_indices else pair[0]


def max_pool1d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:  # fmt: skip
    """The largest element of each window of (N, C, L) or (C, L).

    The result is (N, C, L_out), L_out = floor((L + 2 * padding - dilation * (kernel_size - 1) - 1) / stride) + 1;
    `stride` is the kernel's size unless given, `ceil_mode` rounds up, `return_indices` gives the places too.

    >>> import pullback
    >>> pullback.nn.functional.max_pool1d(pullback.tensor([[1., 3., 7., 5.]]), 2)
    tensor([[3., 7.]])
    """
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool2d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:  # fmt: skip
    """The largest element of each window of (N, C, H, W) or (C, H, W).

    `kernel_size`, `stride` (the kernel's size unless given), `padding` and `dilation` are numbers or pairs. H_out =
    floor((H + 2 * padding - dilation * (K_h - 1) - 1) / stride) + 1, rounded up with `ceil_mode`; with
    `return_indices` the positions come second. The gradient goes to the largest element.

    >>> import pullback
    >>> pullback.nn.functional.max_pool2d(pullback.tensor([[[1.0, 2.0], [3.0, 4.0]]]), 2)
    tensor([[[4.]]])
    """
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool3d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:  # fmt: skip
    """The largest element of each window of (N, C, D, H, W) or (C, D, H, W).

    The other arguments are those of `max_pool2d`, each a number or three; `return_indices` gives a pair, positions second.

    >>> import pullback
    >>> pullback.nn.functional.max_pool3d(pullback.arange(8.0).reshape(1, 1, 2, 2, 2), 2)
    tensor([[[[[7.]]]]])
    """
    return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool1d_with_indices(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:  # fmt: skip
    """As `max_pool1d`, with the positions of the maxima."""
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool2d_with_indices(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:  # fmt: skip
    """As `max_pool2d`, with the flat positions of the maxima."""
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool3d_with_indices(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:  # fmt: skip
    """As `max_pool3d`, with the flat positions of the maxima."""
    return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, True)


def _lp_pool(dims: int, input: Tensor, norm_type: float, kernel_size: Any, stride: Any, ceil_mode: bool) -> Tensor:
    name = f"avg_pool{dims}d"
    kernel = kernel_size if isinstance(kernel_size, (tuple, list)) else (kernel_size,) * dims
    window = () if stride is None else stride
    powers = functions.pow(input, norm_type)
    mean = getattr(functions, name)(powers, kernel_size, window, 0, ceil_mode)
    clipped = functions.mul(functions.sign(mean), functions.relu(functions.abs(mean)))
    return functions.pow(functions.mul(clipped, math.prod(kernel)), 1.0 / norm_type)


def lp_pool1d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """The p-norm of each window of (N, C, L) or (C, L)."""
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """The p-norm of each window of (N, C, H, W) or (C, H, W).

    The result is (N, C, H_out, W_out), H_out = floor((H - kernel_size) / stride) + 1. y = (sum of x ** norm_type) ** (1
    / norm_type).

    >>> import pullback
    >>> pullback.nn.functional.lp_pool2d(pullback.ones(1, 4, 4), 1, 2)
    tensor([[[4., 4.],
             [4., 4.]]])
    """
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """The p-norm of each window of (N, C, D, H, W) or (C, D, H, W)."""
    return _lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)
