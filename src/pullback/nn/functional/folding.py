"""Windows of images as columns, and back."""

from __future__ import annotations

from typing import Any

import pullback.generated as G
from pullback.functions.windowed_arguments import each_dim
from pullback.kernels.windows import window_counts
from pullback.tensor.dims import wrap_dim
from pullback.tensor.tensor import Tensor
from pullback.typing import Shape


def _numbers(function: str, **values: Any) -> list[Shape]:
    return [each_dim(function, name, value, 2) for name, value in values.items()]


def _shown(values: Shape) -> str:
    return f"({', '.join(map(str, values))})"


def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """The windows of (N, C, H, W) or (C, H, W) as columns.

    >>> import pullback
    >>> pullback.nn.functional.unfold(pullback.tensor([[[1.0, 2.0], [3.0, 4.0]]]), (1, 2))
    tensor([[1., 3.],
            [2., 4.]])
    """
    kernel, spread, pad, step = _numbers(
        "unfold", kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride
    )
    if min(kernel) <= 0:
        raise RuntimeError(
            f"kernel size should be greater than zero, but got kernel_height: {kernel[0]} kernel_width: {kernel[-1]}"
        )
    if min(pad) < 0:
        raise RuntimeError(f"padding should be non-negative, but got pad_height: {pad[0]} pad_width: {pad[-1]}")
    if min(step) <= 0:
        raise RuntimeError(
            f"stride should be greater than zero, but got stride_height: {step[0]} stride_width: {step[-1]}"
        )
    if min(spread) <= 0:
        raise RuntimeError(
            f"dilation should be greater than zero, but got dilation_height: {spread[0]} dilation_width: {spread[-1]}"
        )
    if input._array.ndim not in (3, 4):
        if input._array.ndim < 3:
            wrap_dim(2, input._array.ndim)
        raise RuntimeError(f"Expected 3D or 4D input to unfold, but got input of size {list(input._array.shape)}")
    sizes = input._array.shape[-2:]
    counts = window_counts(sizes, kernel, step, pad, spread)
    if min(counts) < 1:
        raise RuntimeError(
            f"Given input with spatial size {_shown(sizes)}, kernel_size={_shown(kernel)}, dilation={_shown(spread)}, "
            f"padding={_shown(pad)}, calculated shape of the array of sliding blocks as {_shown(counts)}, but its "
            "components must be at least one."
        )
    return G.im2col(input, kernel, spread, pad, step)


def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """Add columns up where their windows lie in an image: the adjoint of `unfold`.

    `input` is (N, C * K_h * K_w, L), a column for each of L windows, and the result (N, C, *output_size). What lies in
    several windows is the sum of them.

    >>> import pullback
    >>> pullback.nn.functional.fold(pullback.ones(1, 4, 1), (2, 2), (2, 2)).shape
    pullback.Size([1, 1, 2, 2])
    """
    size, kernel, spread, pad, step = _numbers(
        "fold", output_size=output_size, kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride
    )
    if input._array.ndim not in (2, 3) or 0 in input._array.shape[-2:]:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for "
            f"input, but got: {list(input._array.shape)}"
        )
    rows, columns = input._array.shape[-2:]
    if rows % (kernel[0] * kernel[1]):
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)="
            f"{rows} and kernel_size={_shown(kernel)}."
        )
    counts = window_counts(size, kernel, step, pad, spread)
    if counts[0] * counts[1] != columns:
        raise RuntimeError(
            f"Given output_size={_shown(size)}, kernel_size={_shown(kernel)}, dilation={_shown(spread)}, "
            f"padding={_shown(pad)}, stride={_shown(step)}, expected size of input's dimension 2 to match the "
            "calculated "
            f"number of sliding blocks {counts[0]} * {counts[1]} = {counts[0] * counts[1]}, but got "
            f"input.size(2)={columns}."
        )
    return G.col2im(input, size, kernel, spread, pad, step)
