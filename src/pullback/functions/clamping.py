"""Clamping with bounds that are numbers, tensors or absent, and other overloads that choose between elements."""

from __future__ import annotations

from typing import Any

import pullback.generated as G
from pullback.backend.array_module import is_number
from pullback.backend.dtype import from_numpy_dtype, result_dtype
from pullback.errors import no_signature_fits
from pullback.facts import declare
from pullback.functions.conversion import convert
from pullback.graph.in_place import in_place
from pullback.graph.overwriting import overwrite
from pullback.kernels import clamping as kernels
from pullback.kernels.overwriting import overwriting
from pullback.tensor.arguments import as_number_argument
from pullback.tensor.tensor import Tensor, TensorBase

_clamp, _raise, _lower = overwriting(kernels.clamp), overwriting(kernels.clamp_min), overwriting(kernels.clamp_max)


@declare(found="torch and method")
def clamp(input: Tensor, min: Any = None, max: Any = None, *, out: Any = None) -> Any:
    """Elements no smaller than `min` and no greater than `max`.

    `min` and `max` are numbers, or tensors that broadcast with `input`; None leaves that side open. y =
    min(max(input, min), max); outside of the limits the gradient is 0.

    >>> import pullback
    >>> pullback.clamp(pullback.tensor([-1.0, 0.5, 2.0]), 0, 1)
    tensor([0.0000, 0.5000, 1.0000])
    """
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if isinstance(min, TensorBase) or isinstance(max, TensorBase):
        if is_number(min) or is_number(max):
            raise no_signature_fits("clamp", [type(min).__name__, type(max).__name__])
        return G.clamp_tensor(input, _bound(min, input), _bound(max, input), out=out)
    return G.clamp(_promoted(input, min, max), min, max, out=out)


@declare(bare=True, found="torch and method")
def clamp_(input: Tensor, min: Any = None, max: Any = None) -> Any:
    """In-place version of clamp."""
    if max is None:
        done = overwrite(_raise, input, min)
    elif min is None:
        done = overwrite(_lower, input, max)
    else:
        done = isinstance(min, TensorBase) is isinstance(max, TensorBase) and overwrite(_clamp, input, min, max)
    if done:
        return input
    return in_place(clamp, input, min, max)


@declare(found="torch and method")
def clamp_min(input: Tensor, min: Any, *, out: Any = None) -> Any:
    """Elements no smaller than `min`.

    `min` is a number or a tensor, which is broadcast. y = maximum(input, min).

    >>> import pullback
    >>> pullback.clamp_min(pullback.tensor([1.0, 5.0]), 3.0)
    tensor([3., 5.])
    """
    if isinstance(min, TensorBase):
        return G.clamp_min_tensor(input, min, out=out)
    if not isinstance(min, (int, float, complex)):
        min = as_number_argument("clamp_min", "min", min)
    return G.clamp_min(_promoted(input, min), min, out=out)


@declare(found="torch and method")
def clamp_min_(input: Tensor, min: Any) -> Any:
    """In-place version of clamp_min."""
    if overwrite(_raise, input, min):
        return input
    return in_place(clamp_min, input, min)


@declare(found="torch and method")
def clamp_max(input: Tensor, max: Any, *, out: Any = None) -> Any:
    """Elements no greater than `max`.

    `max` is a number or a tensor, which is broadcast. y = minimum(input, max).

    >>> import pullback
    >>> pullback.clamp_max(pullback.tensor([1.0, 5.0]), 3.0)
    tensor([1., 3.])
    """
    if isinstance(max, TensorBase):
        return G.clamp_max_tensor(input, max, out=out)
    if not isinstance(max, (int, float, complex)):
        max = as_number_argument("clamp_max", "max", max)
    return G.clamp_max(_promoted(input, max), max, out=out)


@declare(found="torch and method")
def clamp_max_(input: Tensor, max: Any) -> Any:
    """In-place version of clamp_max."""
    if overwrite(_lower, input, max):
        return input
    return in_place(clamp_max, input, max)


clip = clamp
clip_ = clamp_


def _promoted(input: Any, *bounds: Any) -> Any:
    """The input in the dtype that it and its bounds promote to."""
    if not isinstance(input, Tensor):
        return input
    if input._array.dtype.kind == "f" and not any(isinstance(b, complex) for b in bounds):
        return input
    common = result_dtype([input._array, *[b for b in bounds if b is not None]])
    return input if common == input._array.dtype else convert(input, from_numpy_dtype(common))


def _bound(value: Any, input: Tensor) -> Any:
    if value is None or isinstance(value, TensorBase):
        return value
    raise TypeError("clamp(): argument 'min' and 'max' must both be Tensors or both be numbers")
