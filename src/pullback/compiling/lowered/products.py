"""Products of matrices and vectors, and their gradients."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from pullback.compiling.lowered.lowering_table import LOWERINGS, floating, lowering, reshaped
from pullback.compiling.lowered.reductions import sum_to
from pullback.compiling.lowering import Lowering, NotLowered
from pullback.compiling.program import Number
from pullback.compiling.sizes import broadcast_shape
from pullback.compiling.steps import Place
from pullback.kernels.einstein_products import _aligned_to, _folding, _parts_of, _steps_of_three


def _batched(place: Place) -> Place:
    return place.windowed((1, *place.shape), (0, *place.strides))


def _as_rows(lower: Lowering, place: Place) -> Place:
    """All dimensions but the last as one."""
    if len(place.shape) == 2:
        return place
    return reshaped(lower, place, (math.prod(place.shape[:-1]), place.shape[-1]))


def _product(lower: Lowering, a: Place, b: Place) -> Place:
    """The product of two matrices."""
    out = lower.new((a.shape[0], b.shape[1]), a.dtype)
    lower.multiply(_batched(a), _batched(b), _batched(out))
    return out


@lowering
def mm(lower: Lowering, input: Place, mat2: Place) -> Place:
    if len(input.shape) != 2 or len(mat2.shape) != 2 or input.shape[1] != mat2.shape[0]:
        raise NotLowered("no matrices")
    return _product(lower, input, mat2)


@lowering
def bmm(lower: Lowering, input: Place, mat2: Place) -> Place:
    if len(input.shape) != 3 or len(mat2.shape) != 3:
        raise NotLowered("no batches")
    out = lower.new((*input.shape[:2], mat2.shape[2]), input.dtype)
    return lower.multiply(input, mat2, out)


@lowering
def mv(lower: Lowering, input: Place, vec: Place) -> Place:
    """As a row times the transposed matrix, which needs no gaps in the result."""
    row = vec.windowed((1, *vec.shape), (0, *vec.strides))
    made = _product(lower, row, input.swapped())
    return made.windowed(made.shape[1:], made.strides[1:])


@lowering
def dot(lower: Lowering, input: Place, tensor: Place) -> Place:
    floating(input, tensor)
    made = lower.reduce("sum", lower.map(lambda x, y: x * y, input, tensor), (0,))
    return made.windowed((), ())


@lowering
def outer(lower: Lowering, input: Place, vec2: Place) -> Place:
    floating(input, vec2)
    return lower.map(lambda x, y: x * y, input.with_ones([1]), vec2)


def _scaled(lower: Lowering, input: Place, product: Place, beta: Any, alpha: Any) -> Place:
    if any(isinstance(number, Number) for number in (beta, alpha)):
        raise NotLowered("a number that changes")
    if beta == 0:
        return product if alpha == 1 else lower.map(lambda p: p * alpha, product)
    return lower.map(lambda x, p: (p if alpha == 1 else p * alpha) + (x if beta == 1 else x * beta), input, product)


@lowering
def addmm(lower: Lowering, input: Place, mat1: Place, mat2: Place, *, beta: Any = 1, alpha: Any = 1) -> Place:
    return _scaled(lower, input, mm(lower, mat1, mat2), beta, alpha)


@lowering
def linear_product(lower: Lowering, input: Place, weight: Place) -> Place:
    if not input.shape or len(weight.shape) != 2:
        raise NotLowered("no matrices")
    rows = _as_rows(lower, input) if len(input.shape) > 1 else _batched(input)
    made = _product(lower, rows, weight.swapped())
    return reshaped(lower, made, (*input.shape[:-1], weight.shape[0]))


linear_product_folded = LOWERINGS["linear_product_folded"] = linear_product


@lowering
def linear_bias(lower: Lowering, input: Place, weight: Place, bias: Place) -> Place:
    floating(input, weight, bias)
    return lower.map(lambda x, b: x + b, linear_product(lower, input, weight), bias)


LOWERINGS["linear_bias_folded"] = LOWERINGS["linear_bias_added"] = linear_bias


@lowering
def linear_grad_input(lower: Lowering, grad: Place, weight: Place) -> Place:
    rows = _as_rows(lower, grad) if len(grad.shape) > 1 else _batched(grad)
    return reshaped(lower, _product(lower, rows, weight), (*grad.shape[:-1], weight.shape[1]))


@lowering
def linear_grad_weight(lower: Lowering, grad: Place, input: Place) -> Place:
    if len(grad.shape) == 1:
        return lower.map(lambda g, x: g * x, grad.with_ones([1]), input)
    return _product(lower, _as_rows(lower, grad).swapped(), _as_rows(lower, input))


@lowering
def matmul_batched(lower: Lowering, input: Place, other: Place) -> Place:
    if len(input.shape) < 2 or len(other.shape) < 2:
        raise NotLowered("a vector")
    if len(other.shape) == 2:
        made = _product(lower, _as_rows(lower, input), other)
        return reshaped(lower, made, (*input.shape[:-1], other.shape[1]))
    lead = broadcast_shape(input.shape[:-2], other.shape[:-2])
    a, b = (place.broadcast((*lead, *place.shape[-2:])) for place in (input, other))
    return _in_batches(lower, a, b, lead)


def _in_batches(lower: Lowering, a: Place, b: Place, lead: tuple[int, ...]) -> Place:
    count = math.prod(lead)
    out = lower.new((*lead, a.shape[-2], b.shape[-1]), a.dtype)
    flat = [reshaped(lower, place, (count, *place.shape[-2:])) for place in (a, b, out)]
    lower.multiply(flat[0], flat[1], flat[2])
    return out


LOWERINGS["matmul_flipped"] = matmul_batched


@lowering
def matmul_grad_input(lower: Lowering, grad: Place, input_shape: tuple[int, ...], other: Place) -> Place:
    if len(other.shape) < 2 or len(input_shape) < 2:
        raise NotLowered("a vector")
    if len(other.shape) == 2:
        made = _product(lower, _as_rows(lower, grad), other.swapped())
        return reshaped(lower, made, tuple(input_shape))
    lead = grad.shape[:-2]
    made = _in_batches(lower, grad, other.swapped().broadcast((*lead, other.shape[-1], other.shape[-2])), lead)
    return sum_to(lower, made, input_shape)


@lowering
def matmul_grad_other(lower: Lowering, grad: Place, input: Place, other_shape: tuple[int, ...]) -> Place:
    if len(other_shape) < 2 or len(input.shape) < 2:
        raise NotLowered("a vector")
    if len(other_shape) == 2:
        return _product(lower, _as_rows(lower, input).swapped(), _as_rows(lower, grad))
    lead = grad.shape[:-2]
    made = _in_batches(lower, input.swapped().broadcast((*lead, input.shape[-1], input.shape[-2])), grad, lead)
    return sum_to(lower, made, other_shape)


@lowering
def einstein_product(lower: Lowering, input: Place, other: Place, labels: str) -> Place:
    """Factors by labels, as batches of matrices: the same folding as the kernel's."""
    floating(input, other)
    plan = _folding(labels)
    if not plan.summed:
        return einstein_outer(lower, input, other, labels)
    left = lower.window(input, partial(np.transpose, axes=plan.first))
    right = lower.window(other, partial(np.transpose, axes=plan.second))
    lead, inner = left.shape[: plan.batches], right.shape[plan.batches : plan.batches + plan.summed]
    rows, columns = left.shape[plan.batches : len(left.shape) - plan.summed], right.shape[plan.batches + plan.summed :]
    size, height, count, width = (math.prod(sizes) for sizes in (lead, rows, inner, columns))
    out = lower.new((size, height, width), input.dtype)
    lower.multiply(reshaped(lower, left, (size, height, count)), reshaped(lower, right, (size, count, width)), out)
    made = reshaped(lower, out, (*lead, *rows, *columns))
    return lower.window(made, partial(np.transpose, axes=plan.result))


@lowering
def einstein_outer(lower: Lowering, input: Place, other: Place, labels: str) -> Place:
    floating(input, other)
    first, second, wanted = _parts_of(labels)
    left = lower.window(input, lambda array: _aligned_to(array, first, wanted))
    right = lower.window(other, lambda array: _aligned_to(array, second, wanted))
    return lower.map(lambda x, y: x * y, left, right)


@lowering
def einstein_triple(lower: Lowering, input: Place, other: Place, third: Place, labels: str) -> Place:
    factors = (input, other, third)
    (first, second), (left, right), pair, last = _steps_of_three((input.shape, other.shape, third.shape), labels)
    made = (*factors, einstein_product(lower, factors[first], factors[second], pair))
    return einstein_product(lower, made[left], made[right], last)
