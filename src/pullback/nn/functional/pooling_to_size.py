"""Pooling to given sizes, fractional pooling, and unpooling."""

from __future__ import annotations

from typing import Any

import pullback.generated as G
from pullback import functions
from pullback.backend.dtype import scalar_type_name
from pullback.checks.shapes import nothing_to_pool
from pullback.functions.memory_formats import in_format_of
from pullback.functions.windowed_arguments import each_dim
from pullback.graph.history import refuse_history
from pullback.modes.interception import taken_whole
from pullback.tensor.tensor import Tensor
from pullback.typing import Shape


def _sizes(function: str, dims: int, input: Tensor, output_size: Any) -> Shape:
    """Target sizes; None keeps that of the input."""
    if output_size is None:
        raise TypeError("object of type 'NoneType' has no len(): output_size must be an int or a tuple")
    if isinstance(output_size, (tuple, list)) and input._array.ndim <= len(output_size):
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
    if input._array.ndim not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"{function}(): Expected {dims + 1}D or {dims + 2}D tensor, but got"
            f"{':' if 'max' in function else ''} {list(input._array.shape)}"
        )
    if not isinstance(output_size, (tuple, list)):
        output_size = (output_size,) * dims
    if len(output_size) != dims:
        subject = "(): internal error: output_size.size()" if "max" in function else ": output_size"
        raise RuntimeError(f"{function}{subject} must be {dims}")
    old = input._array.shape[-dims:]
    is_mean = "avg" in function and all(s == 1 for s in output_size)  # nan where there are no elements
    if not is_mean and 0 in (old if function == "adaptive_avg_pool2d" else input._array.shape[1:]):
        raise nothing_to_pool(function, input._array.shape)
    for position, wanted in enumerate(output_size):
        if wanted is not None and not hasattr(wanted, "__index__"):
            raise TypeError(
                f"{function}(): argument 'output_size' (position 2) must be tuple of ints, but found element of type "
                f"{type(wanted).__name__} at pos {position}"
            )
    sizes = tuple([n if o is None else int(o) for o, n in zip(output_size, old, strict=True)])
    if any(s < 0 for s in sizes):
        if "max" in function:
            shape = [*input._array.shape[:-dims], *sizes]
            raise RuntimeError(f"Trying to create tensor with negative dimension {min(sizes)}: {shape}")
        raise RuntimeError(
            f"{function}: elements of output_size must be greater than or equal to 0 but received {sizes}"
        )
    return sizes


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """The means of `output_size` windows that cover the last two dimensions.

    (N, C, H, W) or (C, H, W) becomes (..., *output_size); a number means a square, None the size as it is. Window i
    reaches from floor(i * H / H_out) to ceil((i + 1) * H / H_out).
    """
    sizes = _sizes("adaptive_avg_pool2d", 2, input, output_size)
    if sizes == (1, 1):
        return G.mean(input, (-1, -2), True)
    return in_format_of(input, G.adaptive_avg_pool2d(input, sizes))


@taken_whole
def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """The means of `output_size` windows that cover the last three dimensions.

    `output_size` is a number or three, None for a size that stays. (N, C, D, H, W) becomes (N, C, *output_size).

    >>> import pullback
    >>> pullback.nn.functional.adaptive_avg_pool3d(pullback.ones(1, 1, 4, 4, 4), 1)
    tensor([[[[[1.]]]]])
    """
    sizes = _sizes("adaptive_avg_pool3d", 3, input, output_size)
    if sizes == (1, 1, 1):
        return G.mean(input, (-3, -2, -1), True)
    return G.adaptive_avg_pool3d(input, sizes)


def adaptive_max_pool1d_with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """As `adaptive_max_pool1d`, with the positions of the maxima."""
    return functions.adaptive_max_pool1d(input, output_size)


def adaptive_max_pool2d_with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """As `adaptive_max_pool2d`, with the flat positions of the maxima."""
    values, indices = G.adaptive_max_pool2d(input, _sizes("adaptive_max_pool2d", 2, input, output_size))
    return in_format_of(input, values), indices


def adaptive_max_pool3d_with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """As `adaptive_max_pool3d`, with the flat positions of the maxima."""
    return G.adaptive_max_pool3d(input, _sizes("adaptive_max_pool3d", 3, input, output_size))


def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The maxima of `output_size` windows that cover the last dimension."""
    pair = adaptive_max_pool1d_with_indices(input, output_size)
    return pair if return_indices else pair[0]


def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The maxima of `output_size` windows that cover the last two dimensions.

    (N, C, H, W) or (C, H, W) becomes (N, C, *output_size), and `return_indices` gives the places too.

    >>> import pullback
    >>> pullback.nn.functional.adaptive_max_pool2d(pullback.ones(3, 8, 8), 2).shape
    pullback.Size([3, 2, 2])
    """
    pair = adaptive_max_pool2d_with_indices(input, output_size)
    return pair if return_indices else pair[0]


def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The maxima of `output_size` windows that cover the last three dimensions."""
    pair = adaptive_max_pool3d_with_indices(input, output_size)
    return pair if return_indices else pair[0]


def _fractional(
    dims: int, input: Tensor, kernel_size: Any, output_size: Any, output_ratio: Any, samples: Tensor | None
) -> Any:
    name = f"fractional_max_pool{dims}d"
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    if input._array.ndim not in (dims + 1, dims + 2):
        raise RuntimeError(f"{name}(): Expected {dims + 1}D or {dims + 2}D tensor, but got: {list(input._array.shape)}")
    if 0 in input._array.shape[1:]:
        raise nothing_to_pool(name, input._array.shape)
    old = input._array.shape[-dims:]
    kernel = each_dim(name, "kernel_size", kernel_size, dims)
    if output_size is None:
        ratios = output_ratio if isinstance(output_ratio, (tuple, list)) else (output_ratio,) * dims
        if len(ratios) > dims:
            raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of Ints.")
        counts = tuple([int(n * r) for n, r in zip(old, ratios, strict=True)])
    else:
        counts = each_dim(name, "output_size", output_size, dims)
    words = ("time", "height", "width")[-dims:]
    for n, k, c, word in zip(old, kernel, counts, words, strict=True):
        if c + k - 1 > n:
            raise RuntimeError(f"{name}(): pool {word} {k} too large relative to input {word} {n}")
    if samples is None:
        batch = 1 if input._array.ndim == dims + 1 else input._array.shape[0]
        samples = functions.rand(batch, input._array.shape[-dims - 1], dims, dtype=input.dtype, device=input.device)
    if samples._array.dtype != input._array.dtype:
        raise RuntimeError("Expect _random_samples to have the same dtype as input")
    if samples._array.ndim != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {samples._array.ndim}")
    refuse_history(name, random_samples=samples)
    return getattr(G, name)(input, kernel, counts, samples)


def fractional_max_pool2d_with_indices(
    input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:  # fmt: skip
    """As `fractional_max_pool2d`, with the flat positions of the maxima."""
    return _fractional(2, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool3d_with_indices(
    input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:  # fmt: skip
    """As `fractional_max_pool3d`, with the flat positions of the maxima."""
    return _fractional(3, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool2d(
    input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:  # fmt: skip
    """The maxima of windows of the last two dimensions that begin at pseudo-random places."""
    pair = _fractional(2, input, kernel_size, output_size, output_ratio, _random_samples)
    return pair if return_indices else pair[0]


def fractional_max_pool3d(
    input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:  # fmt: skip
    """The maxima of windows of the last three dimensions that begin at pseudo-random places."""
    pair = _fractional(3, input, kernel_size, output_size, output_ratio, _random_samples)
    return pair if return_indices else pair[0]


def _unpooled_sizes(dims: int, input: Tensor, kernel_size: Any, stride: Any, padding: Any, output_size: Any) -> Shape:
    kernel = each_dim("max_unpool", "kernel_size", kernel_size, dims)
    step = kernel if stride is None else each_dim("max_unpool", "stride", stride, dims)
    pad = each_dim("max_unpool", "padding", padding, dims)
    old = input._array.shape[-dims:]
    if len(old) < dims:
        raise IndexError(f"tuple index out of range: an input with {len(old)} dimensions has no {dims} to unpool")
    default = tuple([(n - 1) * s + k - 2 * p for n, s, k, p in zip(old, step, kernel, pad, strict=True)])
    if output_size is None:
        return default
    sizes = tuple([int(n) for n in output_size])
    if len(sizes) == dims + 2:
        sizes = sizes[2:]
    if len(sizes) != dims:
        raise ValueError(
            f"output_size should be a sequence containing {dims} or {dims + 2} elements, but it has a length of "
            f"'{len(sizes)}'"
        )
    for d, (size, usual, s) in enumerate(zip(sizes, default, step, strict=True)):
        if not usual - s < size < usual + s:
            raise ValueError(f'invalid output_size "{sizes}" (dim {d} must be between {usual - s} and {usual + s})')
    return sizes


def _check_indices(input: Tensor, indices: Tensor) -> None:
    if indices._array.dtype.name != "int64":
        found = scalar_type_name(indices._array.dtype)
        raise RuntimeError(f"elements in indices should be type int64 but got: {found}")
    if input._array.shape != indices._array.shape:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({list(input._array.shape)}) but got "
            f"indices tensor with shape: {list(indices._array.shape)}"
        )


def max_unpool1d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Put what `max_pool1d` took back to its positions, with zeros between.

    `indices` are those that the pooling returned; `output_size` chooses among the lengths that it could have come from.

    >>> import pullback
    >>> values, places = pullback.nn.functional.max_pool1d(pullback.tensor([[[1.0, 5.0, 2.0, 0.0]]]), 2, return_indices=True)
    >>> pullback.nn.functional.max_unpool1d(values, places, 2)
    tensor([[[0., 5., 2., 0.]]])
    """
    sizes = _unpooled_sizes(1, input, kernel_size, stride, padding, output_size)
    _check_indices(input, indices)
    rows, places = functions.unsqueeze(input, -1), functions.unsqueeze(indices, -1)
    return functions.squeeze(G.max_unpool2d(rows, places, (*sizes, 1)), -1)


def max_unpool2d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Put what `max_pool2d` took back to its positions, with zeros between.

    `indices` are those that the pooling returned; `output_size` chooses among the sizes that it could have come from.

    >>> import pullback
    >>> image = pullback.tensor([[[1.0, 5.0], [2.0, 0.0]]])
    >>> values, places = pullback.nn.functional.max_pool2d(image, 2, return_indices=True)
    >>> pullback.nn.functional.max_unpool2d(values, places, 2)
    tensor([[[0., 5.],
             [0., 0.]]])
    """
    sizes = _unpooled_sizes(2, input, kernel_size, stride, padding, output_size)
    _check_indices(input, indices)
    return G.max_unpool2d(input, indices, sizes)


def max_unpool3d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Put what `max_pool3d` took back to its positions, with zeros between."""
    sizes = _unpooled_sizes(3, input, kernel_size, stride, padding, output_size)
    _check_indices(input, indices)
    return G.max_unpool3d(input, indices, sizes)
