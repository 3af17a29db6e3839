"""Pooling with the checks and the forms of arguments that PyTorch's has."""

from __future__ import annotations

from typing import Any

import pullback.generated as G
from pullback.errors import wrong_type
from pullback.facts import declare
from pullback.functions.memory_formats import in_format_of
from pullback.functions.windowed_arguments import each_dim
from pullback.graph.in_place import write_out
from pullback.kernels.pooling import pooled_sizes
from pullback.tensor.tensor import Tensor
from pullback.typing import Shape


@declare(found="torch")
def max_pool1d(
    input: Tensor, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Tensor:
    """The largest element of each window of (N, C, L) or (C, L).

    >>> import pullback
    >>> pullback.max_pool1d(pullback.tensor([[1.0, 4.0, 2.0, 3.0]]), 2)
    tensor([[4., 3.]])
    """
    window = _window("max_pool1d", 1, kernel_size, stride, padding, dilation)
    _check_row(input, *[values[0] for values in window])
    size = pooled_sizes(input._array.shape[-1:], *window, ceil_mode)[0]
    if size < 1:
        raise RuntimeError(f"max_pool1d() Invalid computed output size: {size}")
    return _rows_as_planes(input, window, ceil_mode)[0]


def _check_row(input: Tensor, kernel: int, stride: int, padding: int, dilation: int) -> None:
    sizes = input._array.shape
    if len(sizes) not in (2, 3) or 0 in sizes[-2:]:
        raise RuntimeError(
            "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:"
            f"{list(sizes)}"
        )
    for name, value in (("kernel_size", kernel), ("stride", stride), ("dilation", dilation)):
        if value <= 0:
            raise RuntimeError(f"max_pool1d() {name} must be greater than zero, but got {value}")
    if padding < 0:
        raise RuntimeError(f"max_pool1d() padding must be non-negative, but got {padding}")
    if padding > kernel // 2:
        raise RuntimeError(
            f"max_pool1d() padding should be at most half of kernel size, but got padding={padding} and "
            f"kernel_size={kernel}"
        )


def _rows_as_planes(input: Tensor, window: tuple[Shape, Shape, Shape, Shape], ceil_mode: bool) -> tuple[Tensor, Tensor]:
    kernel, stride, padding, dilation = window
    values, indices = G.max_pool2d_with_indices(
        G.unsqueeze(input, input._array.ndim - 1), (1, *kernel), (1, *stride), (0, *padding), (1, *dilation), ceil_mode
    )
    return G.squeeze_dim(values, -2), G.squeeze_dim(indices, -2)


@declare(found="torch")
def max_pool1d_with_indices(
    input: Tensor, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> tuple[Tensor, Tensor]:
    """As `max_pool1d`, with the position of each maximum."""
    if input._array.ndim not in (2, 3):
        raise RuntimeError(
            "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:"
            f"{list(input._array.shape)}"
        )
    window = _window("max_pool1d", 1, kernel_size, stride, padding, dilation)
    _check_window(window)
    size = pooled_sizes(input._array.shape[-1:], *window, ceil_mode)[0]
    if size < 1:
        raise RuntimeError(f"max_pool1d() Invalid computed output size: {size}")
    return _rows_as_planes(input, window, ceil_mode)


@declare(found="torch")
def max_pool2d(
    input: Tensor, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Tensor:
    """The largest element of each window of (N, C, H, W) or (C, H, W)."""
    return max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)[0]


def max_pool2d_with_indices(
    input: Tensor, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> tuple[Tensor, Tensor]:
    """As `max_pool2d`, with the flat position of each maximum in its plane."""
    window = _checked(2, "max_pool2d", input, kernel_size, stride, padding, dilation, ceil_mode)
    values, indices = G.max_pool2d_with_indices(input, *window, ceil_mode)
    return in_format_of(input, values), indices


@declare(found="torch")
def max_pool3d(
    input: Tensor, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Tensor:
    """The largest element of each window of (N, C, D, H, W) or (C, D, H, W)."""
    return max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)[0]


def max_pool3d_with_indices(
    input: Tensor, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> tuple[Tensor, Tensor]:
    """As `max_pool3d`, with the flat position of each maximum in its volume."""
    window = _checked(3, "max_pool3d", input, kernel_size, stride, padding, dilation, ceil_mode)
    values, indices = G.max_pool3d_with_indices(input, *window, ceil_mode)
    return in_format_of(input, values), indices


@declare(functional=True, written_in="c", found="torch")
def avg_pool1d(
    input: Tensor, kernel_size: Any, stride: Any = (), padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:  # fmt: skip
    """The mean of each window of (N, C, L) or (C, L).

    The result is (N, C, L_out), L_out = floor((L + 2 * padding - kernel_size) / stride) + 1; `stride` is the kernel's
    size unless given. Padded zeros count unless `count_include_pad` is False.

    >>> import pullback
    >>> pullback.nn.functional.avg_pool1d(pullback.tensor([[1., 3., 5., 7.]]), 2)
    tensor([[2., 6.]])
    """
    if input._array.ndim not in (2, 3):
        raise RuntimeError(f"Expected 2D or 3D input to avg_pool1d, but got input of size {list(input._array.shape)}")
    kernel, stride, padding, dilation = _window("avg_pool1d", 1, kernel_size, stride, padding, 1)
    _check_window((kernel, stride, padding, dilation))
    wide = G.unsqueeze(input, input._array.ndim - 1)
    _check_sizes(wide, (1, *kernel), (1, *stride), (0, *padding), (1, 1), ceil_mode)
    result = G.avg_pool2d(wide, (1, *kernel), (1, *stride), (0, *padding), ceil_mode, count_include_pad, None)
    return G.squeeze_dim(result, -2)


def avg_pool2d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None, *, out: Any = None,
) -> Tensor:  # fmt: skip
    """The mean of each window of (N, C, H, W) or (C, H, W).

    `kernel_size`, `stride` (the kernel's size unless given) and `padding` are numbers or pairs. H_out = floor((H + 2
    * padding - K_h) / stride) + 1, rounded up with `ceil_mode`. The sum is divided by the window's size with its
    padding, without it if `count_include_pad` is False, or by `divisor_override`.
    """
    window = _checked(2, "avg_pool2d", input, kernel_size, stride, padding, 1, ceil_mode)
    _check_divisor("avg_pool2d", divisor_override)
    result = in_format_of(input, G.avg_pool2d(input, *window[:3], ceil_mode, count_include_pad, divisor_override))
    return result if out is None else write_out("avg_pool2d", out, result)


def avg_pool3d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None, *, out: Any = None,
) -> Tensor:  # fmt: skip
    """The mean of each window of (N, C, D, H, W) or (C, D, H, W).

    The other arguments are those of `avg_pool2d`, each a number or three of them.

    >>> import pullback
    >>> pullback.nn.functional.avg_pool3d(pullback.ones(1, 1, 2, 2, 2), 2)
    tensor([[[[[1.]]]]])
    """
    window = _checked(3, "avg_pool3d", input, kernel_size, stride, padding, 1, ceil_mode)
    _check_divisor("avg_pool3d", divisor_override)
    result = in_format_of(input, G.avg_pool3d(input, *window[:3], ceil_mode, count_include_pad, divisor_override))
    return result if out is None else write_out("avg_pool3d", out, result)


def _check_divisor(function: str, divisor: int | None) -> None:
    if divisor == 0:
        raise RuntimeError("divisor must be not zero")
    if divisor is not None and not hasattr(divisor, "__index__"):
        raise wrong_type(function, "divisor_override", 7, "int", divisor)


def _window(
    function: str, dims: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any
) -> tuple[Shape, Shape, Shape, Shape]:
    kernel = each_dim(function, "kernel_size", kernel_size, dims)
    none = stride is None or (isinstance(stride, (tuple, list)) and not stride)
    return (
        kernel,
        kernel if none else each_dim(function, "stride", stride, dims),
        each_dim(function, "padding", padding, dims),
        each_dim(function, "dilation", dilation, dims),
    )


def _checked(
    dims: int, function: str, input: Tensor, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> tuple[Shape, Shape, Shape, Shape]:
    window = _window(function, dims, kernel_size, stride, padding, dilation)
    _check_padding(window)
    sizes = input._array.shape
    if len(sizes) not in (dims + 1, dims + 2) or 0 in sizes[-dims - 1 :]:
        raise RuntimeError(_shape_refusal(dims, function, sizes))
    _check_window(window)
    if any(p > k // 2 for k, p in zip(window[0], window[2], strict=True)):
        raise RuntimeError(
            f"pad should be smaller than or equal to half of kernel size, but got padding {list(window[2])} of kernel "
            f"size {list(window[0])}"
        )
    _check_sizes(input, *window, ceil_mode)
    return window


def _shape_refusal(dims: int, function: str, sizes: Shape) -> str:
    if len(sizes) in (dims + 1, dims + 2) and dims == 2:
        return f"Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got:{list(sizes)}"
    if len(sizes) in (dims + 1, dims + 2) and function == "max_pool3d":
        return (
            "max_pool3d_with_indices_out_cpu_template(): Expected input's non-batch dimensions to have positive length, "
            f"but input has a shape of {list(sizes)} and non-batch dimension 0 has length zero!"
        )
    return (
        f"non-empty {dims + 1}D or {dims + 2}D (batch mode) tensor expected for input, but got an input of size "
        f"{list(sizes)} to {function}"
    )


def _check_padding(window: tuple[Shape, Shape, Shape, Shape]) -> None:
    kernel, stride, padding, dilation = window
    if any(s == 0 for s in stride):
        raise RuntimeError("stride should not be zero")
    for k, p, d in zip(kernel, padding, dilation, strict=True):
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if p > ((k - 1) * d + 1) // 2:
            raise RuntimeError(
                f"pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and "
                f"dilation={d}"
            )


def _check_window(window: tuple[Shape, Shape, Shape, Shape]) -> None:
    names = ("T", "H", "W")[-len(window[0]) :]
    _check_padding(window)
    kernel, stride, _, dilation = window
    for word, values in (("kernel size", kernel), ("stride", stride), ("dilation", dilation)):
        if any(v <= 0 for v in values):
            short = {"kernel size": "k"}.get(word, word if word == "dilation" else "d")
            shown = " ".join(f"{short}{n}: {v}" for n, v in zip(names, values, strict=True))
            raise RuntimeError(f"{word} should be greater than zero, but got {shown}")


def _check_sizes(input: Tensor, kernel: Shape, stride: Shape, padding: Shape, dilation: Shape, ceil_mode: bool) -> None:
    dims = len(kernel)
    sizes = input._array.shape[-dims - 1 :]
    counts = pooled_sizes(sizes[1:], kernel, stride, padding, dilation, ceil_mode)
    if any(c < 1 for c in counts):
        given, made = "x".join(map(str, sizes)), "x".join(map(str, (sizes[0], *counts)))
        raise RuntimeError(f"Given input size: ({given}). Calculated output size: ({made}). Output size is too small")
