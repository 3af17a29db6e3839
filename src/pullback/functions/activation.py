"""Activations: PyTorch's functional signatures, with `inplace`, and those made of others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pullback.generated as G
from pullback.backend.array_module import ones_beside
from pullback.backend.device_array import DeviceArray
from pullback.backend.dtype import float32, float64, scalar_type_name
from pullback.backend.random import uniform, uniform_
from pullback.creation import empty_like
from pullback.facts import declare
from pullback.graph.in_place import in_place
from pullback.modes.function_modes import is_told
from pullback.modes.interception import draws, interceptable, taken_whole
from pullback.modes.switches import process
from pullback.tensor.foreign_arguments import ask_about, ask_foreign, is_foreign
from pullback.tensor.tensor import Tensor, new_tensor

_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


def _apply(function: Callable[..., Any], inplace: bool, input: Tensor, *args: Any) -> Any:
    return in_place(function, input, *args) if inplace else function(input, *args)


@declare(asks=True)
def functional_relu(input: Tensor, inplace: bool = False) -> Any:
    """As `relu`, under the name of torch.nn.functional.

    `input` has any shape, and the result has the same. `inplace` writes it into `input`. y = max(0, input).

    >>> import pullback
    >>> pullback.nn.functional.relu(pullback.tensor([-1., 2.]))
    tensor([0., 2.])
    """
    if (process.modes and is_told(by_itself=True)) or (type(input) is not Tensor and is_foreign(input)):
        return ask_foreign(functional_relu, (input, inplace))
    return G.relu_(input) if inplace else G.relu(input)


functional_relu.__name__ = functional_relu.__qualname__ = "relu"


_METHODS: Any = Tensor


@declare(asks=True)
def functional_sigmoid(input: Tensor) -> Any:
    """The method `sigmoid`.

    `input` has any shape, and the result has the same. y = 1 / (1 + e ** -input).

    >>> import pullback
    >>> pullback.nn.functional.sigmoid(pullback.tensor([0.]))
    tensor([0.5000])
    """
    if (process.modes and is_told(by_itself=True)) or (type(input) is not Tensor and is_foreign(input)):
        return ask_about(_METHODS.sigmoid, input)
    return G.sigmoid(input) if isinstance(input, Tensor) else input.sigmoid()


@declare(asks=True)
def functional_tanh(input: Tensor) -> Any:
    """The method `tanh`."""
    if (process.modes and is_told(by_itself=True)) or (type(input) is not Tensor and is_foreign(input)):
        return ask_about(_METHODS.tanh, input)
    return G.tanh(input) if isinstance(input, Tensor) else input.tanh()


def silu(input: Tensor, inplace: bool = False) -> Any:
    """Compute input * sigmoid(input).

    `input` has any shape, and the result has the same. `inplace` overwrites it. y = x / (1 + exp(-x)).
    """
    return _apply(G.silu, inplace, input)


def mish(input: Tensor, inplace: bool = False) -> Any:
    """Compute input * tanh(softplus(input)).

    Any shape; `inplace` writes the result into the input. y = input * tanh(ln(1 + exp(input))).

    >>> import pullback
    >>> pullback.nn.functional.mish(pullback.tensor([-1., 2.]))
    tensor([-0.3034,  1.9440])
    """
    return _apply(G.mish, inplace, input)


@declare(functional=True)
def relu6(input: Tensor, inplace: bool = False) -> Any:
    """Clamp to [0, 6].

    Any shape; `inplace` writes the result into the input. y = min(max(0, input), 6).

    >>> import pullback
    >>> pullback.nn.functional.relu6(pullback.tensor([-1., 2., 8.]))
    tensor([0., 2., 6.])
    """
    return _apply(G.hardtanh, inplace, input, 0, 6)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Any:
    """Clamp to [min_val, max_val].

    `input` has any shape, and the result has the same. `inplace` writes it into `input`. y = min(max(input, min_val),
    max_val).

    >>> import pullback
    >>> pullback.nn.functional.hardtanh(pullback.tensor([-3., 0.5, 3.]))
    tensor([-1.0000,  0.5000,  1.0000])
    """
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return _apply(G.hardtanh, inplace, input, min_val, max_val)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Any:
    """Compute clamp(input + 3, 0, 6) / 6.

    Any shape; `inplace` writes the result into the input. y = min(max(input + 3, 0), 6) / 6.

    >>> import pullback
    >>> pullback.nn.functional.hardsigmoid(pullback.tensor([-4., 0., 3.]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    return _apply(G.hardsigmoid, inplace, input)


def hardswish(input: Tensor, inplace: bool = False) -> Any:
    """Compute input * clamp(input + 3, 0, 6) / 6.

    Any shape; `inplace` writes the result into the input. y = input * min(max(input + 3, 0), 6) / 6.

    >>> import pullback
    >>> pullback.nn.functional.hardswish(pullback.tensor([-4., 1., 3.]))
    tensor([-0.0000, 0.6667, 3.0000])
    """
    return _apply(G.hardswish, inplace, input)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Any:
    """Positive elements as they are; below zero `alpha * (exp(input) - 1)`.

    `input` has any shape, and the result has the same. `inplace` overwrites it. y = x if x > 0 else alpha * (exp(x) -
    1).
    """
    return _apply(G.elu, inplace, input, alpha)


@declare(functional=True)
def elu_(input: Tensor, alpha: float = 1.0) -> Any:
    """In-place version of elu."""
    return in_place(G.elu, input, alpha)


@declare(functional=True, found="torch")
def selu(input: Tensor) -> Any:
    """ELU with the two constants that keep activations normalised.

    `input` has any shape, and the result has the same. y = 1.0507 * input above 0, else 1.0507 * 1.6733 * (e ** input -
    1).

    >>> import pullback
    >>> pullback.selu(pullback.tensor([0., 1.]))
    tensor([0.0000, 1.0507])
    """
    return G.elu(input, _SELU_ALPHA, _SELU_SCALE)


def functional_selu(input: Tensor, inplace: bool = False) -> Any:
    """As `selu`, in place if that is wanted, under the name of torch.nn.functional."""
    return _apply(G.elu, inplace, input, _SELU_ALPHA, _SELU_SCALE)


functional_selu.__name__ = "selu"


@declare(functional=True, found="torch")
def selu_(input: Tensor) -> Any:
    """In-place version of selu."""
    return in_place(selu, input)


@declare(found="torch")
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Any:
    """Positive elements as they are; below zero `alpha * (exp(input / alpha) - 1)`.

    Elementwise, in the shape of `input`; smooth where `elu` is not if alpha is not 1.

    >>> import pullback
    >>> pullback.nn.functional.celu(pullback.tensor([-1.0, 2.0]), alpha=2.0)
    tensor([-0.7869,  2.0000])
    """
    return _apply(G.celu, inplace, input, alpha)


@declare(functional=True, found="torch")
def celu_(input: Tensor, alpha: float = 1.0) -> Any:
    """In-place version of celu."""
    return in_place(G.celu, input, alpha)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    """Positive elements as they are, the rest times `negative_slope`.

    `input` has any shape, and the result has the same. `inplace` overwrites it. y = x if x > 0 else negative_slope *
    x.
    """
    return _apply(G.leaky_relu, inplace, input, negative_slope)


@declare(found="torch")
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Any:
    """Elements above `threshold` as they are, `value` for the rest.

    Any shape; `inplace` writes the result into the input. y = input where input > threshold, else value.

    >>> import pullback
    >>> pullback.nn.functional.threshold(pullback.tensor([0.5, 2.]), 1.0, 0.0)
    tensor([0., 2.])
    """
    return _apply(G.threshold, inplace, input, threshold, value)


@declare(functional=True, found="torch")
def threshold_(input: Tensor, threshold: float, value: float) -> Any:
    """In-place version of threshold."""
    return in_place(G.threshold, input, threshold, value)


@taken_whole
@declare(autocast="lower", bare=True, functional=True, written_in="c", found="torch and method")
def prelu(input: Tensor, weight: Tensor) -> Any:
    """Positive elements as they are, the rest times `weight`: one number, or one per channel.

    `weight` has one element, or one for each channel (dimension 1). y = input where input > 0, else weight * input.

    >>> import pullback
    >>> pullback.nn.functional.prelu(pullback.tensor([-1., 2.]), pullback.tensor(0.25))
    tensor([-0.2500,  2.0000])
    """
    if type(weight) is not Tensor and is_foreign(weight):
        return ask_foreign(prelu, (input, weight))
    shape = input._array.shape
    if weight._array.size != 1:
        if not shape:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = shape[1] if len(shape) > 1 else 1
        if channels != weight._array.size:
            raise RuntimeError(
                "Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                f"{weight._array.size} and channel size = {channels}."
            )
    if weight._array.ndim > 1:
        raise RuntimeError(
            f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight._array.ndim}"
        )
    if input._array.dtype != weight._array.dtype:
        raise RuntimeError(
            f"prelu: Type promoting not supported. Got {scalar_type_name(input._array.dtype)} and "
            f"{scalar_type_name(weight._array.dtype)}"
        )
    if len(shape) > 1:
        weight = G.reshape(weight, (1, -1, *[1] * (len(shape) - 2)))
    elif weight._array.ndim != min(1, len(shape)):
        weight = G.reshape(weight, (1,) if shape else ())
    return G.prelu_kernel(input, weight)


@draws("slopes")
@interceptable
@declare(functional=True, found="torch")
def rrelu(
    input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False,
    *, generator: Any = None,
) -> Any:  # fmt: skip
    """Positive elements as they are, the rest times a slope drawn from [lower, upper]; its middle when not training.

    Elementwise. When training, each element draws a slope of its own; otherwise all have (lower + upper) / 2.

    >>> import pullback
    >>> pullback.nn.functional.rrelu(pullback.tensor([-4.0, 2.0]), lower=0.25, upper=0.25)
    tensor([-1.,  2.])
    """
    if lower > upper:
        raise RuntimeError(f"Lower bound should be less than or equal to the upper bound, got {lower} and {upper}")
    positive = input._array > 0
    if training and isinstance(input._array, DeviceArray):
        slopes = empty_like(input, requires_grad=False)._array
        uniform_(slopes, lower, upper, generator)
        slopes[...] = slopes + positive * (1 - slopes)
        return _apply(G.rrelu_with_noise, inplace, input, new_tensor(slopes))
    slopes = ones_beside(input._array, input._array.shape, input._array.dtype)
    if training:
        low, high = (b if input.dtype is float64 else float(float32.numpy_dtype.type(b)) for b in (lower, upper))
        # Not by uniform's own bounds, whose arithmetic is fused.
        drawn = uniform((int((~positive).sum()),), float64.numpy_dtype, generator=generator) * (high - low) + low
    else:
        drawn = (lower + upper) / 2
    slopes[~positive] = drawn
    return _apply(G.rrelu_with_noise, inplace, input, new_tensor(slopes))


@declare(functional=True, found="torch")
def rrelu_(
    input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, generator: Any = None
) -> Any:
    """In-place version of rrelu."""
    return rrelu(input, lower, upper, training, inplace=True, generator=generator)


@declare(functional=True)
def tanhshrink(input: Tensor) -> Any:
    """Compute input - tanh(input).

    Any shape. y = input - tanh(input).

    >>> import pullback
    >>> pullback.nn.functional.tanhshrink(pullback.tensor([0., 1.]))
    tensor([0.0000, 0.2384])
    """
    return G.sub(input, G.tanh(input))


@declare(functional=True)
def softsign(input: Tensor) -> Any:
    """Compute input / (1 + |input|).

    Any shape. y = input / (1 + |input|).

    >>> import pullback
    >>> pullback.nn.functional.softsign(pullback.tensor([-1., 3.]))
    tensor([-0.5000,  0.7500])
    """
    return G.div(input, G.add(G.abs(input), 1))
