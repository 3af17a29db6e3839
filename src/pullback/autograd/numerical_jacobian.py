"""Jacobians by finite differences, backward and forward mode: a row for each element of an input, a column per output's.

# Note [Complex Jacobians]
Backward is checked for real outputs only, the parts of a complex one apart. A row for an element x + iy of a complex input
is then the derivative along x plus i times that along y, which is the gradient in PyTorch's convention. Forward mode is
checked along the real and the imaginary axis apart, and its rows are the tangents of the outputs, complex or not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from pullback.autograd import forward_ad
from pullback.autograd.differentiation import grad as _grad
from pullback.creation import zeros, zeros_like
from pullback.progress import track

Function = Callable[[], Sequence[Any]]


def unit_vector(like: Any, index: int, value: Any = 1.0) -> Any:
    """The tensor in the shape of `like` whose element `index` is `value` and whose others are zero."""
    vector = zeros(tuple(like.shape), dtype=like.dtype, device=like.device)
    vector.reshape(-1)[index] = value
    return vector


def central_difference(function: Function, input: Any, direction: Any, eps: float, where: str = "") -> list[Any]:
    """The derivative of each output along `direction`, by moving the memory of `input` there and back.

    `where` says in errors what was moved.
    """
    original, memory = input.detach().clone(), input._array.copy()
    values = []
    try:
        for sign in (-1, 1):
            input.data.copy_(original + direction * (sign * eps))
            values.append([output.detach().clone() for output in function()])
    finally:
        input._array[...] = memory  # one instruction: an interrupt cannot come between
    for low, high in zip(*values, strict=True):
        _check_alike(low, high, f"when inputs are perturbed{where} by {eps}, but got: ")
    return [(high - low) / (2 * eps) for low, high in zip(*values, strict=True)]


def _check_alike(low: Any, high: Any, circumstances: str) -> None:
    expected = "Expected `func` to return outputs with the same"
    if low.shape != high.shape:
        raise AssertionError(f"{expected} shape {circumstances}shapes {low.shape} and {high.shape}.")
    if low.dtype is not high.dtype:
        raise AssertionError(f"{expected} dtype {circumstances}dtypes {low.dtype} and {high.dtype}.")


def numerical_jacobian(function: Function, input: Any, eps: float, axes: Sequence[Any]) -> list[Any]:
    """The Jacobian of each output with respect to `input`, whose elements are moved along `axes` of the complex plane.

    What is found along the axis 1j counts as imaginary where both axes are asked for. See Note [Complex Jacobians].
    """
    from pullback import functions

    rows: list[list[Any]] = []
    for index in track(range(input.numel()), input.numel(), "finite differences"):
        where = f" on index {_position(index, tuple(input.shape))}"
        found = [central_difference(function, input, unit_vector(input, index, axis), eps, where) for axis in axes]
        along = found[0] if len(axes) == 1 else [a + 1j * b for a, b in zip(*found, strict=True)]
        rows.append([change.reshape(-1) for change in along])
    if not rows:
        return [zeros((0, output.numel()), dtype=output.dtype, device=output.device) for output in function()]
    return [functions.stack(list(column)) for column in zip(*rows, strict=True)]


def _position(index: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(index // prod(shape[dim + 1 :]) % shape[dim] for dim in range(len(shape)))


def vector_jacobian(output: Any, inputs: Sequence[Any], vector: Any) -> list[Any]:
    """The gradient of each input for one cotangent."""
    return list(_grad(output, inputs, vector, retain_graph=True, allow_unused=True))


def backward_jacobian(output: Any, inputs: Sequence[Any]) -> list[Any]:
    """The Jacobian of a real output with respect to each input, a pass for each element."""
    from pullback import functions

    indices = track(range(output.numel()), output.numel(), "backward passes")
    rows = [vector_jacobian(output, inputs, unit_vector(output, index)) for index in indices]
    matrices = []
    for number, x in enumerate(inputs):
        columns = [(zeros_like(x) if row[number] is None else row[number]).detach().reshape(-1) for row in rows]
        matrices.append(
            functions.stack(columns, 1) if columns else zeros((x.numel(), 0), dtype=x.dtype, device=x.device)
        )
    return matrices


def tangents_of(
    function: Callable[..., Sequence[Any]], inputs: Sequence[Any], tangents: dict[int, Any]
) -> list[tuple[Any, Any]]:
    """Each output of `function` with its tangent (None without one), for tangents of the inputs at these positions."""
    with forward_ad.dual_level():
        given = [forward_ad.make_dual(x.detach(), tangents[i]) if i in tangents else x for i, x in enumerate(inputs)]
        pairs = [forward_ad.unpack_dual(output) for output in function(*given)]
        return [(pair.primal, pair.tangent) for pair in pairs]


def forward_jacobian(
    function: Callable[..., Sequence[Any]], inputs: Sequence[Any], positions: Sequence[int], position: int, axis: Any
) -> list[Any]:
    """The Jacobian of each output with respect to one input along one axis, a pass for each element.

    The other inputs at `positions` have tangents of zero.
    """
    from pullback import functions

    x = inputs[position]
    rows = []
    for index in track(range(x.numel()), x.numel(), "forward passes"):
        tangents = {i: zeros_like(inputs[i]).detach() for i in positions}
        tangents[position] = unit_vector(x, index, axis)
        pairs = tangents_of(function, inputs, tangents)
        rows.append([(zeros_like(p) if t is None else t).detach().reshape(-1) for p, t in pairs])
    return [functions.stack(list(column)) for column in zip(*rows, strict=True)]
