"""Convolutions with the checks and the forms of arguments that PyTorch's have."""

from __future__ import annotations

import math
from typing import Any

import pullback.generated as G
from pullback.backend.dtype import cpp_type_name, float32, is_complex, scalar_type_name, type_in_errors
from pullback.errors import not_a_tensor, wrong_type
from pullback.facts import declare
from pullback.functions.memory_formats import in_format_of
from pullback.modes.interception import taken_whole
from pullback.tensor.arguments import as_int, as_shape
from pullback.tensor.tensor import Tensor
from pullback.typing import Array, Shape

_WORDS = {1: "2D (unbatched) or 3D (batched)", 2: "3D (unbatched) or 4D (batched)", 3: "4D (unbatched) or 5D (batched)"}


@taken_whole
@declare(autocast="lower", functional=True, written_in="c", found="torch")
def conv1d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1,
) -> Tensor:  # fmt: skip
    """Convolve (N, C, L), or (C, L), with filters (C_out, C / groups, K).

    `bias` is (C_out,) or None; `stride`, `padding`, `dilation` are numbers; `padding` may be "same" or "valid". The
    result is (N, C_out, L_out), L_out = floor((L + 2 * padding - dilation * (K - 1) - 1) / stride) + 1. y[n, o, l] =
    bias[o] + sum over c, k of weight[o, c, k] * x[n, c, stride * l + dilation * k - padding].

    >>> import pullback
    >>> pullback.conv1d(pullback.tensor([[[1.0, 2.0, 3.0]]]), pullback.tensor([[[1.0, 1.0]]]))
    tensor([[[3., 5.]]])
    """
    return _convolve(1, input, weight, bias, stride, padding, dilation, groups)


@taken_whole
@declare(autocast="lower", functional=True, written_in="c", found="torch")
def conv2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1,
) -> Tensor:  # fmt: skip
    """Convolve (N, C, H, W), or (C, H, W), with filters (C_out, C / groups, K_h, K_w).

    `bias` is (C_out,) or None; `stride`, `padding`, `dilation` are numbers or pairs; `padding` may be "same" or
    "valid". The result is (N, C_out, H_out, W_out), H_out = floor((H + 2 * padding - dilation * (K_h - 1) - 1) /
    stride) + 1, and W_out likewise. y[n, o, h, w] = bias[o] + sum over c, i, j of weight[o, c, i, j] * x[n, c, stride
    * h + dilation * i - padding, stride * w + dilation * j - padding].
    """
    return _convolve(2, input, weight, bias, stride, padding, dilation, groups)


@taken_whole
@declare(autocast="lower", functional=True, written_in="c", found="torch")
def conv3d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1,
) -> Tensor:  # fmt: skip
    """Convolve (N, C, D, H, W), or (C, D, H, W), with filters (C_out, C / groups, K_d, K_h, K_w).

    `bias` is (C_out,); `stride`, `padding` and `dilation` are numbers or one number per dimension; `padding` may be
    "same" or "valid". The result is (N, C_out, D', H', W') with D' = (D + 2 * padding - dilation * (K_d - 1) - 1) //
    stride + 1, and so on.

    >>> import pullback
    >>> pullback.conv3d(pullback.ones(1, 1, 4, 4, 4), pullback.ones(2, 1, 3, 3, 3)).shape
    pullback.Size([1, 2, 2, 2, 2])
    """
    return _convolve(3, input, weight, bias, stride, padding, dilation, groups)


@taken_whole
@declare(autocast="lower", functional=True, written_in="c", found="torch")
def conv_transpose1d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
    output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
) -> Tensor:  # fmt: skip
    """The adjoint of `conv1d` with respect to its input; `output_padding` chooses among the sizes that fit.

    `input` is (N, C, L) or (C, L), `weight` (C, K / groups, k). The length becomes
    (L - 1) * stride - 2 * padding + dilation * (k - 1) + output_padding + 1.

    >>> import pullback
    >>> pullback.nn.functional.conv_transpose1d(pullback.ones(1, 1, 2), pullback.tensor([[[1.0, 2.0]]]), stride=2)
    tensor([[[1., 2., 1., 2.]]])
    """
    extra = _given("conv_transpose1d", output_padding)
    return _convolve(1, input, weight, bias, stride, padding, dilation, groups, extra)


@taken_whole
@declare(autocast="lower", functional=True, written_in="c", found="torch")
def conv_transpose2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
    output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
) -> Tensor:  # fmt: skip
    """The adjoint of `conv2d` with respect to its input.

    `input` is (N, C, H, W) or (C, H, W), `weight` (C, C_out / groups, K_h, K_w), `bias` (C_out,) or None. H_out = (H
    - 1) * stride - 2 * padding + dilation * (K_h - 1) + output_padding + 1, and W_out likewise. Each element adds
    itself times the filter to the window that begins at stride times its position.
    """
    extra = _given("conv_transpose2d", output_padding)
    return _convolve(2, input, weight, bias, stride, padding, dilation, groups, extra)


@taken_whole
@declare(autocast="lower", functional=True, written_in="c", found="torch")
def conv_transpose3d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
    output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
) -> Tensor:  # fmt: skip
    """The adjoint of `conv3d` with respect to its input.

    `input` is (N, C, D, H, W), `weight` (C, K / groups, d, h, w); each size is as that of `conv_transpose1d`.

    >>> import pullback
    >>> pullback.nn.functional.conv_transpose3d(pullback.ones(1, 1, 1, 1, 1), pullback.ones(1, 1, 1, 1, 2))
    tensor([[[[[1., 1.]]]]])
    """
    extra = _given("conv_transpose3d", output_padding)
    return _convolve(3, input, weight, bias, stride, padding, dilation, groups, extra)


@declare(found="torch")
def convolution(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int,
) -> Tensor:  # fmt: skip
    """A convolution of as many dimensions as the weight has beyond two."""
    extra = output_padding if transposed else None
    return _convolve(weight._array.ndim - 2, input, weight, bias, stride, padding, dilation, groups, extra)


@taken_whole
@declare(autocast="lower", functional=True, written_in="c", found="torch")
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """Convolve (T, B, C) with (K, C, C_out)."""
    sequence = G.permute(input, (1, 2, 0))
    result = _convolve(1, sequence, G.permute(weight, (2, 1, 0)), bias, 1, pad, 1, 1)
    return G.permute(result, (2, 0, 1))


def _given(function: str, output_padding: Any) -> Any:
    if output_padding is None:
        raise wrong_type(function, "output_padding", None, "tuple of ints", None)
    return output_padding


def _convolve(
    dims: int, input: Any, weight: Any, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, groups: int,
    output_padding: Any = None,
) -> Tensor:  # fmt: skip
    transposed = output_padding is not None
    function = f"conv_transpose{dims}d" if transposed else f"conv{dims}d"
    for position, (name, value) in enumerate((("input", input), ("weight", weight)), 1):
        if not isinstance(value, Tensor):
            raise not_a_tensor(function, name, position, value)
    unbatched = input._array.ndim == dims + 1
    if not unbatched and input._array.ndim != dims + 2:
        raise RuntimeError(
            f"Expected {_WORDS[dims]} input to {function}, but got input of size: {list(input._array.shape)}"
        )
    weight_dims = weight._array.ndim - 2
    if weight_dims < 1:
        raise RuntimeError(f"weight should have at least three dimensions, but has {weight._array.ndim}")
    if isinstance(padding, str) and weight_dims != dims:
        raise RuntimeError(
            f"Expected {weight_dims + 2}-dimensional input for {weight_dims + 2}-dimensional "
            f"weight{list(weight._array.shape)}, but got {input._array.ndim}-dimensional input of size "
            f"{list(input._array.shape)} instead"
        )
    stride = _each("stride", stride, dims, weight_dims)
    dilation = _each("dilation", dilation, dims, weight_dims)
    if isinstance(padding, str):
        if transposed:
            raise wrong_type(function, "padding", None, "tuple of ints", padding)
        input, padding = _named_padding(input, weight, padding, stride, dilation)
    padding = _each("padding", padding, dims, weight_dims)
    extra = _each("output_padding", output_padding, dims, weight_dims) if transposed else (0,) * dims
    if unbatched:
        input = G.unsqueeze(input, 0)
    _check(input, weight, bias, stride, padding, dilation, transposed, extra, groups)
    result = G.convolution(input, weight, bias, stride, padding, dilation, transposed, extra, groups)
    if unbatched:
        return G.squeeze_dim(result, 0)
    return in_format_of(input, in_format_of(weight, result))


def _each(name: str, value: Any, dims: int, weight_dims: int) -> Shape:
    values = as_shape(value) * dims if isinstance(value, (tuple, list)) and len(value) == 1 else None
    if values is None:
        values = as_shape(value) if isinstance(value, (tuple, list)) else (as_int(value),) * dims
    if len(values) != weight_dims:
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of {weight_dims} values to match the convolution "
            f"dimensions, but got {name}={list(values)}"
        )
    return values


def _named_padding(input: Tensor, weight: Tensor, padding: str, stride: Shape, dilation: Shape) -> tuple[Tensor, Shape]:
    """The input and the numbers that 'same' and 'valid' stand for; an odd total is padded beforehand, at the end."""
    dims = len(stride)
    if padding == "valid":
        return input, (0,) * dims
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    if any(s != 1 for s in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    totals = [d * (k - 1) for d, k in zip(dilation, weight._array.shape[2:], strict=True)]
    if any(total % 2 for total in totals):
        ends = [value for total in reversed(totals) for value in (0, total % 2)]
        input = G.constant_pad_nd(input, tuple(ends), 0)
    return input, tuple([total // 2 for total in totals])


def _check(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Shape, padding: Shape, dilation: Shape,
    transposed: bool, extra: Shape, groups: int,
) -> None:  # fmt: skip
    _check_numbers(stride, padding, dilation, extra, groups)
    _check_dtypes(input, weight, bias, transposed, groups)
    shape, size = weight._array.shape, list(weight._array.shape)
    if shape[0] % groups or shape[0] < groups:
        wrong = "divisible by" if shape[0] >= groups else "at least"
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be {wrong} {groups} at dimension 0, but got weight of size "
            f"{size} instead"
        )
    channels = shape[0] if transposed else shape[1] * groups
    if input._array.shape[1] != channels:
        kind = f"transposed={int(transposed)}" if transposed else f"groups={groups}"
        raise RuntimeError(
            f"Given {kind}, weight of size {size}, expected input{list(input._array.shape)} to have {channels} "
            "channels, "
            f"but got {input._array.shape[1]} channels instead"
        )
    outputs = shape[1] * groups if transposed else shape[0]
    if bias is not None and bias._array.shape != (outputs,):
        raise RuntimeError(
            f"Given {'transposed=1, ' if transposed else ''}weight of size {size}, expected bias to be "
            "1-dimensional with "
            f"{outputs} elements, but got bias of size {list(bias._array.shape)} instead"
        )
    if transposed:
        _check_output_padding(extra, stride, dilation)
        _check_extent(input._array.shape)
        _check_output_size(input._array.shape[2:], shape[2:], stride, padding, dilation, extra)
    else:
        _check_kernel_fits(input._array.shape[2:], shape[2:], padding, dilation)
        _check_extent(input._array.shape)


def _check_numbers(stride: Shape, padding: Shape, dilation: Shape, extra: Shape, groups: int) -> None:
    if any(p < 0 for p in padding):
        raise RuntimeError("negative padding is not supported")
    if any(p < 0 for p in extra):
        raise RuntimeError("negative output_padding is not supported")
    if any(s <= 0 for s in stride):
        raise RuntimeError("non-positive stride is not supported")
    if any(d <= 0 for d in dilation):
        raise RuntimeError(f"dilation should be greater than zero, but got {list(dilation)}")
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")


def _check_dtypes(input: Tensor, weight: Tensor, bias: Tensor | None, transposed: bool, groups: int) -> None:
    array = input._array
    if bias is not None and not transposed and bias._array.dtype != array.dtype:
        raise RuntimeError(
            f"Input type ({cpp_type_name(array.dtype)}) and bias type ({cpp_type_name(bias._array.dtype)}) should be the "
            "same"
        )
    parameters = [weight] if bias is None else [weight, bias]
    other = next((p._array.dtype for p in parameters if p._array.dtype != array.dtype), None)
    if other is None:
        return
    blocked = _is_blocked(array, weight._array.shape, groups)
    if blocked or is_complex(array.dtype):
        raise RuntimeError(
            f"Input type ({type_in_errors(array.dtype)}) and weight type ({type_in_errors(other)}) should be the same"
            + (" or input should be a MKLDNN tensor and weight is a dense tensor" if blocked else "")
        )
    raise RuntimeError(f"expected scalar type {scalar_type_name(array.dtype)} but found {scalar_type_name(other)}")


def _is_blocked(input: Array, filters: Shape, groups: int) -> bool:
    """Whether PyTorch takes blocked kernels for a convolution, which have words of their own for other dtypes."""
    if input.dtype != float32.numpy_dtype:
        return scalar_type_name(input.dtype) == "BFloat16"
    large = math.prod(input.shape[:4]) > 20480
    return groups > 1 or input.shape[0] > 1 or large or (filters[-1] > 3 and filters[-2] > 3)


def _check_extent(shape: Shape) -> None:
    """Refuse images without pixels; there may be no images, or no channels."""
    if 0 in shape[2:] and 0 not in shape[:2]:
        shown = [*shape[:2], 1, shape[2]] if len(shape) == 3 else list(shape)  # a line is an image of one row
        raise RuntimeError(f"Only zero batch or zero channel inputs are supported, but got input shape: {shown}")


def _check_kernel_fits(sizes: Shape, kernel: Shape, padding: Shape, dilation: Shape) -> None:
    padded = [n + 2 * p for n, p in zip(sizes, padding, strict=True)]
    extent = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    if any(n < k for n, k in zip(padded, extent, strict=True)):
        raise RuntimeError(
            f"Calculated padded input size per channel: ({' x '.join(map(str, padded))}). Kernel size: "
            f"({' x '.join(map(str, extent))}). Kernel size can't be greater than actual input size"
        )


def _check_output_size(
    sizes: Shape, kernel: Shape, stride: Shape, padding: Shape, dilation: Shape, extra: Shape
) -> None:
    each = zip(sizes, kernel, stride, padding, dilation, extra, strict=True)
    made = [(n - 1) * s - 2 * p + d * (k - 1) + o + 1 for n, k, s, p, d, o in each]
    if min(made) < 1:
        raise RuntimeError(
            f"Given input size per channel: ({' x '.join(map(str, sizes))}). Calculated output size per channel: "
            f"({' x '.join(map(str, made))}). Output size is too small"
        )


def _check_output_padding(extra: Shape, stride: Shape, dilation: Shape) -> None:
    if all(o < s or o < d for o, s, d in zip(extra, stride, dilation, strict=True)):
        return
    names = ("depth", "height", "width")[-len(extra) :]
    groups = (("output_padding", extra), ("stride", stride), ("dilation", dilation))
    values = " ".join(f"{kind}_{n}: {v}" for kind, each in groups for n, v in zip(names, each, strict=True))
    raise RuntimeError(f"output padding must be smaller than either stride or dilation, but got {values}")
