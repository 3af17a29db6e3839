"""Batches made of a sample's inputs, and the comparison of vmap with a loop over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import pullback
from pullback.func import grad, vmap

SIZE = 3


def batch_of(array: Any, size: int = SIZE) -> Any:
    """Examples that differ a little; whole numbers (positions, classes) are the same in all of them."""
    array = np.asarray(array)
    shifts = np.linspace(-0.01, 0.01, size).reshape((size,) + (1,) * array.ndim) if array.dtype.kind == "f" else 0
    return np.stack([array] * size) + shifts


def as_tensor(array: Any) -> Any:
    return pullback.tensor(np.array(array))


def tensors_of(output: Any) -> tuple[Any, ...]:
    outputs = output if isinstance(output, (tuple, list)) else (output,)
    return tuple(o for o in outputs if isinstance(o, pullback.Tensor))


def example(inputs: Sequence[Any], in_dims: Sequence[Any], position: int) -> list[Any]:
    return [x if dim is None else x.select(dim, position) for x, dim in zip(inputs, in_dims, strict=True)]


def assert_same(actual: Any, expected: Any) -> None:
    np.testing.assert_allclose(actual.detach().numpy(), expected.detach().numpy(), rtol=1e-6, atol=1e-8)


def check_values(call: Callable[..., Any], inputs: Sequence[Any], in_dims: Sequence[Any]) -> None:
    """vmap gives what a loop gives, in the same dtype."""
    actual = vmap(lambda *xs: tensors_of(call(*xs)), in_dims=tuple(in_dims))(*inputs)
    for position in range(SIZE):
        expected = tensors_of(call(*example(inputs, in_dims, position)))
        for a, e in zip(actual, expected, strict=True):
            assert a.dtype is e.dtype
            assert_same(a[position], e)


def loss_of(call: Callable[..., Any]) -> Callable[..., Any]:
    """One real number that depends on every output."""

    def loss(*inputs: Any) -> Any:
        total = pullback.zeros((), dtype=pullback.float64)
        for output in tensors_of(call(*inputs)):
            if output.is_complex():
                total = total + (output.real * 2 + output.imag).sum()
            elif output.is_floating_point():
                total = total + (output * output.detach().cos()).sum()
        return total

    return loss


def check_gradients(call: Callable[..., Any], inputs: Sequence[Any], in_dims: Sequence[Any]) -> None:
    """vmap of the gradient gives each example's gradient."""
    numbers = tuple(i for i, x in enumerate(inputs) if x.is_floating_point() or x.is_complex())
    gradient = grad(loss_of(call), argnums=numbers)
    actual = vmap(gradient, in_dims=tuple(in_dims))(*inputs)
    for position in range(SIZE):
        for a, e in zip(actual, gradient(*example(inputs, in_dims, position)), strict=True):
            assert_same(a[position], e)
