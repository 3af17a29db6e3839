"""What kernels that are not elementwise mean in steps: sums, softmaxes, norms, losses, products, joining and parting.

Each function has the arguments of the kernel of its name, with places for arrays; what it does not cover raises
NotLowered, and the kernel is called as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.backend import array_module
from pullback.compiling import memory
from pullback.compiling.lowering import Lowering, NotLowered, Symbol, apply, as_expression, choose, drop_axes
from pullback.compiling.program import Number
from pullback.compiling.steps import Place, is_dense, row_major
from pullback.expressions import tree
from pullback.expressions.functions import NUMPY_NAMES
from pullback.kernels.joining import split_sizes_of

LOWERINGS: dict[str, Callable[..., Any]] = {}


def _lowering(function: Callable[..., Any]) -> Callable[..., Any]:
    LOWERINGS[function.__name__] = function
    return function


def _axes(place: Place, dim: Any) -> tuple[int, ...]:
    if dim is None or dim == ():
        return tuple(range(len(place.shape)))
    return tuple([d % max(len(place.shape), 1) for d in (dim if isinstance(dim, (tuple, list)) else (dim,))])


def _floating(*places: Place | None) -> None:
    if any(place is not None and place.dtype.char not in "fd" for place in places):
        raise NotLowered("no floating point numbers")
    if len({place.dtype for place in places if place is not None}) > 1:
        raise NotLowered("several dtypes")


def _reshaped(lower: Lowering, place: Place, shape: tuple[int, ...]) -> Place:
    if place.shape == shape:
        return place
    return lower.window(place, lambda array: array.reshape(shape))


def _copied(lower: Lowering, place: Place) -> Place:
    return lower.map(lambda x: x, place)


def _identity(x: Symbol) -> Symbol:
    return x


# Sums ---------------------------------------------------------------------------------------------------------------


@_lowering
def sum(lower: Lowering, input: Place, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Place:
    _floating(input)
    if dtype is not None and np.dtype(dtype) != input.dtype:
        raise NotLowered("a sum in another dtype")
    return _fresh(lower, input, lower.reduce("sum", input, _axes(input, dim)), _axes(input, dim), keepdim)


def _fresh(lower: Lowering, input: Place, reduced: Place, axes: tuple[int, ...], keepdim: bool) -> Place:
    """A reduced place, copied where nothing was reduced."""
    if reduced is input:
        reduced = _copied(lower, input)
    return reduced if keepdim else drop_axes(reduced, axes)


@_lowering
def sum_all(lower: Lowering, input: Place, *, dtype: Any = None) -> Place:
    made: Place = sum(lower, input, dtype=dtype)
    return made


@_lowering
def mean(lower: Lowering, input: Place, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Place:
    axes = _axes(input, dim)
    total = sum(lower, input, dim, True, dtype=dtype)
    count = math.prod([input.shape[axis] for axis in axes])
    made = lower.map(lambda x: x / count, total)
    return made if keepdim else drop_axes(made, axes)


@_lowering
def mean_all(lower: Lowering, input: Place, *, dtype: Any = None) -> Place:
    made: Place = mean(lower, input, dtype=dtype)
    return made


@_lowering
def sum_to(lower: Lowering, grad: Place, shape: tuple[int, ...]) -> Place:
    _floating(grad)
    extra = len(grad.shape) - len(shape)
    axes = [*range(extra), *[extra + i for i, size in enumerate(shape) if size == 1 and grad.shape[extra + i] != 1]]
    return _reshaped(lower, lower.reduce("sum", grad, tuple(axes)) if axes else grad, tuple(shape))


@_lowering
def sum_to_like(lower: Lowering, grad: Place, shape: tuple[int, ...], dtype: Any) -> Place:
    summed = sum_to(lower, grad, shape)
    return summed if summed.dtype == dtype else to_dtype(lower, summed, dtype)


@_lowering
def linear_grad_bias(lower: Lowering, grad: Place) -> Place:
    _floating(grad)
    axes = tuple(range(len(grad.shape) - 1))
    return drop_axes(lower.reduce("sum", grad, axes), axes) if axes else grad


@_lowering
def expand_reduced(lower: Lowering, grad: Place, shape: tuple[int, ...], dim: Any, keepdim: bool) -> Place:
    if tuple(shape) == ():
        return grad
    if dim is None or dim == ():
        grad = grad.windowed((1,) * len(shape), (0,) * len(shape))
    elif not keepdim:
        grad = grad.with_ones([d % len(shape) for d in dim])
    return grad.broadcast(tuple(shape))


@_lowering
def mean_grad(lower: Lowering, grad: Place, shape: tuple[int, ...], dim: Any, keepdim: bool) -> Place:
    _floating(grad)
    axes = range(len(shape)) if dim is None or dim == () or tuple(shape) == () else dim
    count = math.prod([shape[a] for a in axes])
    return expand_reduced(lower, lower.map(lambda x: x / count, grad), shape, dim, keepdim)


@_lowering
def restore_reduced(lower: Lowering, input: Place, shape: tuple[int, ...], dim: Any, keepdim: bool) -> Place:
    if keepdim or tuple(shape) == ():
        return input
    if dim is None or dim == ():
        return input.windowed((1,) * len(shape), (0,) * len(shape))
    return input.with_ones([d % len(shape) for d in dim])


@_lowering
def amax(lower: Lowering, input: Place, dim: Any = (), keepdim: bool = False) -> Place:
    _floating(input)
    axes = _axes(input, dim)
    return _fresh(lower, input, lower.reduce("maximum", input, axes), axes, keepdim)


@_lowering
def amin(lower: Lowering, input: Place, dim: Any = (), keepdim: bool = False) -> Place:
    _floating(input)
    axes = _axes(input, dim)
    return _fresh(lower, input, lower.reduce("minimum", input, axes), axes, keepdim)


# Casts, fills, comparisons ------------------------------------------------------------------------------------------


@_lowering
def to_dtype(lower: Lowering, input: Place, dtype: Any) -> Place:
    target = np.dtype(dtype)
    if target == input.dtype:
        return input
    return _cast(lower, input, target)


def _cast(lower: Lowering, input: Place, target: Any) -> Place:
    """In C a cast of a number out of range means nothing, so floating point numbers become no integers here."""
    if input.dtype.kind == "f" and target.kind in "iu":
        raise NotLowered("a cast to integers")
    if not is_dense(input.shape, input.strides, input.dtype.itemsize):
        strides = row_major(input.shape, target.itemsize)
    else:
        strides = tuple([s // input.dtype.itemsize * target.itemsize for s in input.strides])
    out = lower.new(input.shape, target, strides)
    if target.char == "?":
        return lower.map(lambda x: x.compare("!=", 0), input, out=out)
    return lower.map(lambda x: choose(x, 1, 0) if x.expression.kind == tree.MASK else x, input, out=out)


@_lowering
def to_copy(lower: Lowering, input: Place, dtype: Any) -> Place:
    return to_dtype(lower, input, dtype)


@_lowering
def clone(lower: Lowering, input: Place) -> Place:
    if not is_dense(input.shape, input.strides, input.dtype.itemsize):
        raise NotLowered("a layout that NumPy chooses")
    return lower.map(_identity, input, out=lower.new(input.shape, input.dtype, input.strides))


@_lowering
def contiguous_copy(lower: Lowering, input: Place, order: str = "contiguous_format") -> Place:
    if order != "contiguous_format":
        raise NotLowered("another order")
    return lower.map(_identity, input, out=lower.new(input.shape, input.dtype))


@_lowering
def reshape(lower: Lowering, input: Place, shape: tuple[int, ...]) -> Place:
    """Where no view is possible: copied first."""
    if not is_dense(input.shape, input.strides, 0) and -1 in shape:
        raise NotLowered("an inferred size")
    copy = lower.map(_identity, input, out=lower.new(input.shape, input.dtype))
    return lower.window(copy, lambda array: array.reshape(shape))


unsafe_view = LOWERINGS["unsafe_view"] = reshape


def _filled(lower: Lowering, shape: tuple[int, ...], dtype: Any, value: float) -> Place:
    out = lower.new(tuple(shape), dtype)
    if out.dtype.char not in "fd":
        raise NotLowered("no floating point numbers")
    return lower.map(lambda: Symbol(as_expression(value)), out=out)


@_lowering
def zeros_in_shape(lower: Lowering, input: Place, shape: tuple[int, ...]) -> Place:
    return _filled(lower, shape, input.dtype, 0.0)


@_lowering
def zeros_in_shape_of(lower: Lowering, input: Place) -> Place:
    return _filled(lower, input.shape, input.dtype, 0.0)


def _comparison(name: str, sign: str) -> None:
    def compare(lower: Lowering, input: Place, other: Any) -> Place:
        if isinstance(other, Place) and other.dtype != input.dtype:
            raise NotLowered("several dtypes")
        if not isinstance(other, Place) and (
            isinstance(other, (bool, complex)) or (input.dtype.kind != "f" and not isinstance(other, int))
        ):
            raise NotLowered("numbers of another kind")
        if input.dtype.char == "?":
            raise NotLowered("masks")
        places = [place for place in (input, other) if isinstance(place, Place)]
        shape = np.broadcast_shapes(*[place.shape for place in places])
        strides = _strides_like(shape, 1, places)
        out = lower.new(shape, np.bool_, strides)
        return lower.map(lambda x, y: x.compare(sign, y), input, other, out=out)

    LOWERINGS[name] = compare


for _name, _sign in (("eq", "=="), ("ne", "!="), ("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">=")):
    _comparison(_name, _sign)


def _strides_like(shape: tuple[int, ...], itemsize: int, places: list[Place]) -> tuple[int, ...]:
    """NumPy lays a result out as its operands lie; where that is not row-major, the kernel itself is to say how."""
    plain = row_major(shape, itemsize)
    for place in places:
        if place.size > 1 and place.shape == shape and place.strides != row_major(shape, place.dtype.itemsize):
            raise NotLowered("a layout that NumPy chooses")
    return plain


# Softmaxes ----------------------------------------------------------------------------------------------------------


def _along(input: Place, dim: int) -> tuple[int, ...]:
    if not input.shape or not input.size:
        raise NotLowered("no rows")
    return (dim % len(input.shape),)


@_lowering
def softmax(lower: Lowering, input: Place, dim: int) -> Place:
    _floating(input)
    axes = _along(input, dim)
    powers = lower.map(lambda x, top: apply("exp", x - top), input, lower.reduce("maximum", input, axes))
    return lower.map(lambda x, total: x / total, powers, lower.reduce("sum", powers, axes))


@_lowering
def softmax_grad(lower: Lowering, grad: Place, result: Place, dim: int) -> Place:
    _floating(grad, result)
    product = lower.map(lambda g, y: g * y, grad, result)
    total = lower.reduce("sum", product, _along(result, dim))
    return lower.map(lambda p, y, t: p - y * t, product, result, total)


@_lowering
def log_softmax(lower: Lowering, input: Place, dim: int) -> Place:
    _floating(input)
    axes = _along(input, dim)
    shifted = lower.map(lambda x, top: x - top, input, lower.reduce("maximum", input, axes))
    powers = lower.map(lambda x: apply("exp", x), shifted)
    total = lower.map(lambda x: apply("log", x), lower.reduce("sum", powers, axes))
    return lower.map(lambda x, t: x - t, shifted, total)


@_lowering
def log_softmax_grad(lower: Lowering, grad: Place, result: Place, dim: int) -> Place:
    _floating(grad, result)
    total = lower.reduce("sum", grad, _along(result, dim))
    return lower.map(lambda g, y, t: g - apply("exp", y) * t, grad, result, total)


# Norms --------------------------------------------------------------------------------------------------------------


@_lowering
def native_layer_norm(
    lower: Lowering, input: Place, normalized_shape: Any, weight: Place | None, bias: Place | None, eps: float
) -> tuple[Place, Place, Place]:
    _floating(input, weight, bias)
    lead = len(input.shape) - len(normalized_shape)
    axes = tuple(range(lead, len(input.shape)))
    count = max(math.prod(input.shape[lead:]), 1)
    eps = lower.constant_number(eps)
    average = lower.map(lambda x: x / count, lower.reduce("sum", input, axes))
    centered = lower.map(lambda x, m: x - m, input, average)
    squares = lower.reduce("sum", lower.map(lambda x: x * x, centered), axes)
    # The product with zero is NaN where the variance overflowed.
    variance = lower.map(lambda s: s / count + (s / count) * 0, squares)
    rstd = lower.map(lambda v: 1 / apply("sqrt", v + eps), variance)
    result = lower.map(lambda x, r: x * r, centered, rstd)
    if weight is not None:
        result = lower.map(lambda x, w: x * w, result, weight)
    if bias is not None:
        result = lower.map(lambda x, b: x + b, result, bias)
    return result, average, rstd


@_lowering
def layer_norm_back(
    lower: Lowering, grad: Place, input: Place, mean: Place, rstd: Place, weight: Place | None, normalized_shape: Any,
    eps: float,
) -> tuple[Place, Place | None, Place]:  # fmt: skip
    _floating(grad, input, mean, rstd, weight)
    lead = len(input.shape) - len(normalized_shape)
    axes, rows = tuple(range(lead, len(input.shape))), tuple(range(lead))
    count = max(math.prod(input.shape[lead:]), 1)
    normal = lower.map(lambda x, m, r: (x - m) * r, input, mean, rstd)
    scaled = grad if weight is None else lower.map(lambda g, w: g * w, grad, weight)
    along = lower.reduce("sum", lower.map(lambda h, n: h * n, scaled, normal), axes)
    level = lower.reduce("sum", scaled, axes)
    to_input = lower.map(
        lambda h, n, a, s, r: (h - s / count - n * (a / count)) * r, scaled, normal, along, level, rstd
    )
    to_weight = None
    if weight is not None:
        again = lower.map(lambda g, x, m, r: g * ((x - m) * r), grad, input, mean, rstd)
        to_weight = drop_axes(lower.reduce("sum", again, rows), rows) if rows else again
    to_bias = drop_axes(lower.reduce("sum", grad, rows), rows) if rows else grad
    return to_input, to_weight, to_bias


# Losses -------------------------------------------------------------------------------------------------------------


def _loss(lower: Lowering, values: Place, reduction: int) -> Place:
    if reduction == 0:
        return values
    total: Place = sum(lower, values)
    return total if reduction == 2 else lower.map(lambda x: x / values.size, total)


@_lowering
def mse_loss(lower: Lowering, input: Place, target: Place, reduction: int = 1) -> Place:
    _floating(input, target)
    return _loss(lower, lower.map(lambda d: d * d, lower.map(lambda x, y: x - y, input, target)), reduction)


@_lowering
def mse_loss_grad(lower: Lowering, grad: Place, input: Place, target: Place, reduction: int) -> Place:
    _floating(grad, input, target)
    size = math.prod(np.broadcast_shapes(input.shape, target.shape))
    factor = 2.0 / max(size, 1) if reduction == 1 else 2.0
    return lower.map(lambda g, x, y: (x - y) * factor * g, grad, input, target)


@_lowering
def binary_cross_entropy_with_logits(
    lower: Lowering, input: Place, target: Place, weight: Place | None = None, pos_weight: Place | None = None,
    reduction: int = 1,
) -> Place:  # fmt: skip
    if weight is not None or pos_weight is not None:
        raise NotLowered("weights")
    _floating(input, target)
    values = lower.map(
        lambda x, y: (1 - y) * x + (apply("log1p", apply("exp", -apply("abs", x))) - apply("minimum", x, 0)),
        input,
        target,
    )
    return _loss(lower, values, reduction)


@_lowering
def logits_grad(
    lower: Lowering, grad: Place, input: Place, target: Place, weight: Place | None, pos_weight: Place | None,
    reduction: int,
) -> Place:  # fmt: skip
    if weight is not None or pos_weight is not None:
        raise NotLowered("weights")
    _floating(grad, input, target)
    if reduction == 1:
        grad = lower.map(lambda g: g / input.size, grad)
    return lower.map(lambda g, x, y: g * (1 / (1 + apply("exp", -x)) - y), grad, input, target)


# Products -----------------------------------------------------------------------------------------------------------


def _batched(place: Place) -> Place:
    return place.windowed((1, *place.shape), (0, *place.strides))


def _as_rows(lower: Lowering, place: Place) -> Place:
    """All dimensions but the last as one."""
    if len(place.shape) == 2:
        return place
    return _reshaped(lower, place, (math.prod(place.shape[:-1]), place.shape[-1]))


def _product(lower: Lowering, a: Place, b: Place) -> Place:
    """The product of two matrices."""
    out = lower.new((a.shape[0], b.shape[1]), a.dtype)
    lower.multiply(_batched(a), _batched(b), _batched(out))
    return out


@_lowering
def mm(lower: Lowering, input: Place, mat2: Place) -> Place:
    if len(input.shape) != 2 or len(mat2.shape) != 2 or input.shape[1] != mat2.shape[0]:
        raise NotLowered("no matrices")
    return _product(lower, input, mat2)


@_lowering
def bmm(lower: Lowering, input: Place, mat2: Place) -> Place:
    if len(input.shape) != 3 or len(mat2.shape) != 3:
        raise NotLowered("no batches")
    out = lower.new((*input.shape[:2], mat2.shape[2]), input.dtype)
    return lower.multiply(input, mat2, out)


@_lowering
def mv(lower: Lowering, input: Place, vec: Place) -> Place:
    """As a row times the transposed matrix, which needs no gaps in the result."""
    row = vec.windowed((1, *vec.shape), (0, *vec.strides))
    made = _product(lower, row, input.swapped())
    return made.windowed(made.shape[1:], made.strides[1:])


@_lowering
def dot(lower: Lowering, input: Place, tensor: Place) -> Place:
    _floating(input, tensor)
    made = lower.reduce("sum", lower.map(lambda x, y: x * y, input, tensor), (0,))
    return made.windowed((), ())


@_lowering
def outer(lower: Lowering, input: Place, vec2: Place) -> Place:
    _floating(input, vec2)
    return lower.map(lambda x, y: x * y, input.with_ones([1]), vec2)


def _scaled(lower: Lowering, input: Place, product: Place, beta: Any, alpha: Any) -> Place:
    if any(isinstance(number, Number) for number in (beta, alpha)):
        raise NotLowered("a number that changes")
    if beta == 0:
        return product if alpha == 1 else lower.map(lambda p: p * alpha, product)
    return lower.map(lambda x, p: (p if alpha == 1 else p * alpha) + (x if beta == 1 else x * beta), input, product)


@_lowering
def addmm(lower: Lowering, input: Place, mat1: Place, mat2: Place, *, beta: Any = 1, alpha: Any = 1) -> Place:
    return _scaled(lower, input, mm(lower, mat1, mat2), beta, alpha)


@_lowering
def linear_product(lower: Lowering, input: Place, weight: Place) -> Place:
    if not input.shape or len(weight.shape) != 2:
        raise NotLowered("no matrices")
    rows = _as_rows(lower, input) if len(input.shape) > 1 else _batched(input)
    made = _product(lower, rows, weight.swapped())
    return _reshaped(lower, made, (*input.shape[:-1], weight.shape[0]))


linear_product_folded = LOWERINGS["linear_product_folded"] = linear_product


@_lowering
def linear_bias(lower: Lowering, input: Place, weight: Place, bias: Place) -> Place:
    _floating(input, weight, bias)
    return lower.map(lambda x, b: x + b, linear_product(lower, input, weight), bias)


LOWERINGS["linear_bias_folded"] = LOWERINGS["linear_bias_added"] = linear_bias


@_lowering
def linear_grad_input(lower: Lowering, grad: Place, weight: Place) -> Place:
    rows = _as_rows(lower, grad) if len(grad.shape) > 1 else _batched(grad)
    return _reshaped(lower, _product(lower, rows, weight), (*grad.shape[:-1], weight.shape[1]))


@_lowering
def linear_grad_weight(lower: Lowering, grad: Place, input: Place) -> Place:
    if len(grad.shape) == 1:
        return lower.map(lambda g, x: g * x, grad.with_ones([1]), input)
    return _product(lower, _as_rows(lower, grad).swapped(), _as_rows(lower, input))


@_lowering
def matmul_batched(lower: Lowering, input: Place, other: Place) -> Place:
    if len(input.shape) < 2 or len(other.shape) < 2:
        raise NotLowered("a vector")
    if len(other.shape) == 2:
        made = _product(lower, _as_rows(lower, input), other)
        return _reshaped(lower, made, (*input.shape[:-1], other.shape[1]))
    lead = tuple(np.broadcast_shapes(input.shape[:-2], other.shape[:-2]))
    a, b = (place.broadcast((*lead, *place.shape[-2:])) for place in (input, other))
    return _in_batches(lower, a, b, lead)


def _in_batches(lower: Lowering, a: Place, b: Place, lead: tuple[int, ...]) -> Place:
    count = math.prod(lead)
    out = lower.new((*lead, a.shape[-2], b.shape[-1]), a.dtype)
    flat = [_reshaped(lower, place, (count, *place.shape[-2:])) for place in (a, b, out)]
    lower.multiply(flat[0], flat[1], flat[2])
    return out


LOWERINGS["matmul_flipped"] = matmul_batched


@_lowering
def matmul_grad_input(lower: Lowering, grad: Place, input_shape: tuple[int, ...], other: Place) -> Place:
    if len(other.shape) < 2 or len(input_shape) < 2:
        raise NotLowered("a vector")
    if len(other.shape) == 2:
        made = _product(lower, _as_rows(lower, grad), other.swapped())
        return _reshaped(lower, made, tuple(input_shape))
    lead = grad.shape[:-2]
    made = _in_batches(lower, grad, other.swapped().broadcast((*lead, other.shape[-1], other.shape[-2])), lead)
    return sum_to(lower, made, input_shape)


@_lowering
def matmul_grad_other(lower: Lowering, grad: Place, input: Place, other_shape: tuple[int, ...]) -> Place:
    if len(other_shape) < 2 or len(input.shape) < 2:
        raise NotLowered("a vector")
    if len(other_shape) == 2:
        return _product(lower, _as_rows(lower, input).swapped(), _as_rows(lower, grad))
    lead = grad.shape[:-2]
    made = _in_batches(lower, input.swapped().broadcast((*lead, input.shape[-1], input.shape[-2])), grad, lead)
    return sum_to(lower, made, other_shape)


# Joining and parting ------------------------------------------------------------------------------------------------


def _joined(lower: Lowering, parts: list[Place | None], sizes: list[int], dim: int, out: Place) -> Place:
    """Parts one after another along a dimension; zeros for None."""
    begin = 0
    for part, size in zip(parts, sizes, strict=True):
        shape = (*out.shape[:dim], size, *out.shape[dim + 1 :])
        window = out.storage.piece(out.windowed(shape, out.strides, begin * out.strides[dim]))
        if part is None:
            lower.map(lambda: Symbol(as_expression(0.0)), out=window)
        else:
            lower.map(_identity, part, out=window)
        begin += size
    return out


@_lowering
def cat(lower: Lowering, tensors: Any, dim: int = 0) -> Place:
    parts = list(tensors)
    if len({part.dtype for part in parts}) > 1 or len({len(part.shape) for part in parts}) > 1:
        raise NotLowered("several dtypes or empty parts")
    if any(part.strides != row_major(part.shape, part.dtype.itemsize) and len(part.shape) > 3 for part in parts):
        raise NotLowered("channels last")
    dim %= len(parts[0].shape)
    extent = int(np.sum([part.shape[dim] for part in parts]))
    shape = (*parts[0].shape[:dim], extent, *parts[0].shape[dim + 1 :])
    filled = [part for part in parts if part.size]
    return _joined(lower, list(filled), [part.shape[dim] for part in filled], dim, lower.new(shape, parts[0].dtype))


@_lowering
def stack(lower: Lowering, tensors: Any, dim: int = 0) -> Place:
    if len({part.dtype for part in tensors}) > 1:
        raise NotLowered("several dtypes")
    dim %= len(tensors[0].shape) + 1
    parts = [part.with_ones([dim]) for part in tensors]
    shape = (*parts[0].shape[:dim], len(parts), *parts[0].shape[dim + 1 :])
    return _joined(lower, list(parts), [1] * len(parts), dim, lower.new(shape, parts[0].dtype))


def _slices(input: Place, dim: int, sizes: list[int]) -> tuple[Place, ...]:
    """Windows of these sizes along a dimension."""
    made, begin = [], 0
    for size in sizes:
        shape = (*input.shape[:dim], size, *input.shape[dim + 1 :])
        made.append(input.windowed(shape, input.strides, begin * input.strides[dim]))
        begin += size
    return tuple(made)


@_lowering
def split(lower: Lowering, input: Place, split_size: int, dim: int = 0) -> tuple[Place, ...]:
    return _slices(input, dim % len(input.shape), list(split_sizes_of(input.shape[dim], split_size)))


@_lowering
def split_with_sizes(lower: Lowering, input: Place, split_sizes: Any, dim: int = 0) -> tuple[Place, ...]:
    return _slices(input, dim % len(input.shape), list(split_sizes))


@_lowering
def unbind(lower: Lowering, input: Place, dim: int = 0) -> tuple[Place, ...]:
    dim %= len(input.shape)
    return tuple([drop_axes(part, (dim,)) for part in _slices(input, dim, [1] * input.shape[dim])])


@_lowering
def split_with_sizes_back(lower: Lowering, grads: Any, shape: Any, dtype: Any, split_sizes: Any, dim: int) -> Place:
    _floating(*grads)
    return _joined(lower, list(grads), list(split_sizes), dim % len(shape), lower.new(tuple(shape), dtype))


@_lowering
def split_back(lower: Lowering, grads: Any, shape: Any, dtype: Any, split_size: int, dim: int) -> Place:
    made: Place = split_with_sizes_back(lower, grads, shape, dtype, split_sizes_of(shape[dim], split_size), dim)
    return made


@_lowering
def unbind_back(lower: Lowering, grads: Any, shape: Any, dtype: Any, dim: int) -> Place:
    dim %= len(shape)
    parts = [None if grad is None else grad.with_ones([dim]) for grad in grads]
    made: Place = split_with_sizes_back(lower, parts, shape, dtype, [1] * shape[dim], dim)
    return made


@_lowering
def cat_back(lower: Lowering, grad: Place, shapes: Any, dtypes: Any, dim: int) -> tuple[Place, ...]:
    if any(dtype != grad.dtype for dtype in dtypes) or any(tuple(shape) == (0,) for shape in shapes):
        raise NotLowered("several dtypes or empty parts")
    dim %= len(grad.shape)
    return _slices(grad, dim, [shape[dim] for shape in shapes])


@_lowering
def stack_back(lower: Lowering, grad: Place, dtypes: Any, dim: int) -> tuple[Place, ...]:
    if any(dtype != grad.dtype for dtype in dtypes):
        raise NotLowered("several dtypes")
    made: tuple[Place, ...] = unbind(lower, grad, dim)
    return made


@_lowering
def add_part_on_copies(
    lower: Lowering, whole: Place, part: Place, dim: int, start: int, end: int, step: int, first: bool
) -> tuple[Place]:
    _floating(whole, part)
    out = lower.new(whole.shape, whole.dtype, whole.strides)
    at = (*[slice(None)] * dim, slice(start, end, step) if step else start, ...)
    lower.map((lambda x: x + 0) if first else _identity, whole, out=out)  # zeros take the sign from negative ones
    out.storage.is_pieced = True
    before = lower.window(whole, lambda array: array[at])
    after = lower.window(out, lambda array: array[at])
    lower.map((lambda x, y: x + 0 + y) if first else (lambda x, y: x + y), before, part, out=after)
    return (out,)


@_lowering
def linalg_cross(lower: Lowering, input: Place, other: Place, *, dim: int = -1) -> Place:
    _floating(input, other)
    if input.shape != other.shape:
        raise NotLowered("broadcasting")
    dim %= len(input.shape)
    a, b = _slices(input, dim, [1, 1, 1]), _slices(other, dim, [1, 1, 1])
    out = lower.new(input.shape, input.dtype)
    for n, (i, j) in enumerate(((1, 2), (2, 0), (0, 1))):
        window = out.storage.piece(_slices(out, dim, [1, 1, 1])[n])
        lower.map(lambda p, q, r, s: p * q - r * s, a[i], b[j], a[j], b[i], out=window)
    return out


@_lowering
def logsumexp(lower: Lowering, input: Place, dim: Any, keepdim: bool = False) -> Place:
    _floating(input)
    axes = _axes(input, dim)
    if not input.size or not input.shape:
        raise NotLowered("no rows")
    top = lower.map(
        lambda t: choose(apply("abs", t).compare("==", math.inf), 0.0, t), lower.reduce("maximum", input, axes)
    )
    total = lower.reduce("sum", lower.map(lambda x, t: apply("exp", x - t), input, top), axes)
    made = lower.map(lambda s, t: apply("log", s) + t, total, top)
    return made if keepdim else drop_axes(made, axes)


@_lowering
def place_part(
    lower: Lowering, part: Place, shape: tuple[int, ...], dim: int, start: int, end: int, step: int
) -> Place:
    _floating(part)
    out = _filled(lower, tuple(shape), part.dtype, 0.0)
    out.storage.is_pieced = True
    at = (*[slice(None)] * dim, slice(start, end, step) if step else start, ...)
    window = lower.window(out, lambda array: array[at])
    lower.map(_identity, part, out=window)
    return out


@_lowering
def select_back(lower: Lowering, input: Place, shape: tuple[int, ...], dim: int, index: int) -> Place:
    return place_part(lower, input, shape, dim, index, 0, 0)


@_lowering
def slice_back(
    lower: Lowering, input: Place, shape: tuple[int, ...], dim: int, start: int, end: int, step: int
) -> Place:
    return place_part(lower, input, shape, dim, start, end, step)


@_lowering
def copy(lower: Lowering, input: Place, src: Place) -> Place:
    if input.dtype != src.dtype:
        raise NotLowered("a cast")
    return lower.map(_identity, src, out=lower.new(input.shape, input.dtype))


# Memory, and NumPy's own functions -----------------------------------------------------------------------------------


def _memory_window(
    lower: Lowering, whole: Place, offset: int, shape: Any, strides: Any, dtype: Any, *, strides_of_whole: Any
) -> Place:
    if whole.dtype != dtype or not whole.size or _steps(whole.shape, whole.strides) != _steps(
        whole.shape, strides_of_whole
    ):  # fmt: skip
        raise NotLowered("memory of another form")
    return whole.windowed(tuple(shape), tuple(strides), offset)


def _fits_geometry(place: Place, geometry: Any) -> bool:
    return place.dtype == geometry.dtype and place.shape == tuple(geometry.shape) and is_dense(
        geometry.shape, geometry.strides, geometry.dtype.itemsize
    )  # fmt: skip


@_lowering
def gather_strided(lower: Lowering, grad: Place, base: Any, view: Any) -> Place:
    if not _fits_geometry(grad, base) or base.offset or view.dtype != base.dtype or view.span() > base.span():
        raise NotLowered("memory of another form")
    if _steps(grad.shape, grad.strides) != _steps(base.shape, base.strides):
        grad = _laid_out(lower, grad, grad.shape, base.strides, grad.dtype)
    part = grad.windowed(tuple(view.shape), tuple(view.strides), view.offset)
    if not is_dense(view.shape, view.strides, view.dtype.itemsize):
        return lower.map(_identity, part, out=lower.new(part.shape, part.dtype))
    return lower.map(_identity, part, out=lower.new(part.shape, part.dtype, part.strides))


@_lowering
def overwrite_strided(lower: Lowering, grad: Place, base: Any, view: Any, part: Any) -> Place:
    if not _fits_geometry(grad, base) or base.offset or view.dtype != base.dtype or view.span() > base.span():
        raise NotLowered("memory of another form")
    source = 0.0 if part is None else part
    return _written(
        lower, grad, source, view.offset, view.shape, view.strides, view.dtype, strides_of_whole=base.strides
    )  # fmt: skip


@_lowering
def scatter_strided(lower: Lowering, grad: Place, base: Any, view: Any) -> Place:
    dense = is_dense(base.shape, base.strides, base.dtype.itemsize)
    if not dense or base.offset or view.overlaps() or view.span() > base.span() or grad.dtype != base.dtype:
        raise NotLowered("memory of another form")
    out = lower.new(tuple(base.shape), base.dtype, tuple(base.strides))
    lower.map(lambda: Symbol(as_expression(0.0)), out=out)
    out.storage.is_pieced = True
    lower.map(_identity, grad, out=out.windowed(tuple(view.shape), tuple(view.strides), view.offset))
    return out


def _steps(shape: Any, strides: Any) -> list[int]:
    return [stride for size, stride in zip(shape, strides, strict=True) if size > 1]


def _laid_out(lower: Lowering, source: Any, shape: Any, strides: Any, dtype: Any) -> Place:
    dtype = np.dtype(dtype)
    shape = tuple(shape)
    strides = row_major(shape, dtype.itemsize) if strides is None else tuple(strides)
    if not is_dense(shape, strides, dtype.itemsize):
        raise NotLowered("a layout with gaps")
    out = lower.new(shape, dtype, strides)
    if isinstance(source, Place):
        if source.dtype == dtype:
            return lower.map(_identity, source, out=out)
        if dtype.char == "?" or (source.dtype.kind == "f" and dtype.kind in "iu"):
            raise NotLowered("a cast")
        return lower.map(lambda x: choose(x, 1, 0) if x.expression.kind == tree.MASK else x, source, out=out)
    if dtype.char not in "fd" or type(source) not in (int, float):
        raise NotLowered("no floating point numbers")
    return lower.map(lambda: Symbol(as_expression(source)), out=out)


def _written(
    lower: Lowering,
    whole: Place,
    source: Any,
    offset: int,
    shape: Any,
    strides: Any,
    dtype: Any,
    *,
    strides_of_whole: Any,
) -> Place:
    if whole.dtype != dtype:
        raise NotLowered("memory of another form")
    made = _laid_out(lower, whole, whole.shape, strides_of_whole, whole.dtype)
    made.storage.is_pieced = True
    target = made.windowed(tuple(shape), tuple(strides), offset)
    if isinstance(source, Place) and source.dtype == dtype:
        lower.map(_identity, source, out=target)
    elif type(source) in (int, float) and made.dtype.char in "fd":
        lower.map(lambda: Symbol(as_expression(source)), out=target)
    else:
        raise NotLowered("a cast")
    return made


def _restride(lower: Lowering, array: Place, shape: Any, strides: Any, dtype: Any = None) -> Place:
    if (dtype is not None and array.dtype != dtype) or 0 in shape:
        raise NotLowered("memory of another form")
    return array.windowed(tuple(shape), tuple(strides))


def _full(lower: Lowering, shape: Any, value: Any, dtype: Any) -> Place:
    if type(value) not in (int, float):
        raise NotLowered("no number")
    return _filled(lower, tuple(shape), dtype, value)


BY_FUNCTION: dict[Any, Callable[..., Any]] = {
    memory.window: _memory_window,
    memory.laid_out: _laid_out,
    memory.written: _written,
    array_module.restride: _restride,
    array_module.copy_array: clone,
    array_module.cast_array: to_dtype,
    array_module.zeros: lambda lower, shape, dtype: _full(lower, shape, 0.0, dtype),
    array_module.ones: lambda lower, shape, dtype: _full(lower, shape, 1.0, dtype),
    array_module.full: _full,
    np.add.reduce: lambda lower, array, axis=0, dtype=None, keepdims=False: sum(
        lower, array, axis, keepdims, dtype=dtype
    ),
    np.sum: lambda lower, array, axis=None, dtype=None, keepdims=False: sum(lower, array, axis, keepdims, dtype=dtype),
}
"""What is recorded outside of kernels."""

_OPERATORS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "true_divide": "/"}
_COMPARISONS = {
    "equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=",
}  # fmt: skip


def lower_ufunc(lower: Lowering, name: str, operands: tuple[Any, ...], result: Any) -> Place:
    """A function of NumPy on elements, of floating point numbers of one dtype."""
    places = [place for place in operands if isinstance(place, Place)]
    _floating(*places)
    if not places or any(not isinstance(o, Place) and type(o) not in (int, float) for o in operands):
        raise NotLowered("other arguments")
    if name in _COMPARISONS and len(operands) == 2:
        sign = _COMPARISONS[name]
        return lower.map(lambda x, y: _symbol(x).compare(sign, y), *operands, out=lower.new_for(result))
    if result.dtype != places[0].dtype:
        raise NotLowered("another dtype")
    out = lower.new_for(result)
    if name in _OPERATORS and len(operands) == 2:
        sign = _OPERATORS[name]
        return lower.map(
            lambda x, y: Symbol(tree.Operation(sign, (as_expression(x), as_expression(y)))), *operands, out=out
        )
    if name == "negative":
        return lower.map(lambda x: -x, *operands, out=out)
    if name == "square":
        return lower.map(lambda x: x * x, *operands, out=out)
    if name in ("sin", "cos", "tan") or name not in NUMPY_NAMES:
        raise NotLowered("a function that expressions do not have")
    word = NUMPY_NAMES[name]
    return lower.map(lambda *values: apply(word, *values), *operands, out=out)


def _symbol(value: Any) -> Symbol:
    return value if isinstance(value, Symbol) else Symbol(as_expression(value))
