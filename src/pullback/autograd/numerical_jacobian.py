"""Jacobians by finite differences and by backward or forward mode, as real matrices.

# Note [Real Jacobians]
A complex number counts as two real ones, its real and imaginary part. So every Jacobian here is a real matrix of
(output numbers) x (input numbers), holomorphic or not, and numerical and analytical ones are compared number by number.
With PyTorch's convention, the gradient g of a real function satisfies dL = Re(conj(g) dz): the parts of g are the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.autograd.differentiation import grad as _grad
from pullback.creation import zeros, zeros_like
from pullback.modes.grad_mode import set_grad_mode

Function = Callable[[], Sequence[Any]]


def real_parts(tensor: Any) -> Any:
    """The numbers of a tensor as a flat real one. See Note [Real Jacobians]."""
    import pullback.functions as F

    flat = tensor.detach().resolve_conj().contiguous()
    return F.view_as_real(flat).reshape(-1) if flat.is_complex() else flat.reshape(-1)


def count(tensor: Any) -> int:
    """How many real numbers a tensor holds."""
    return int(tensor.numel()) * (2 if tensor.is_complex() else 1)


def basis_vector(like: Any, index: int) -> Any:
    """The tensor of the shape of `like` whose real number `index` is one and whose others are zero."""
    vector = zeros(tuple(like.shape), dtype=like.dtype)
    flat = vector.reshape(-1)
    if like.is_complex():
        flat[index // 2] = 1j if index % 2 else 1.0
    else:
        flat[index] = 1.0
    return vector


def numerical_jacobian(function: Function, input: Any, eps: float) -> list[list[Any]]:
    """Central differences: for each number of `input`, the change of each output (a list of flat tensors)."""
    columns: list[list[Any]] = []
    former = set_grad_mode(False)
    try:
        for index in range(count(input)):
            columns.append(directional_difference(function, [input], [basis_vector(input, index)], eps))
    finally:
        set_grad_mode(former)
    return columns


def directional_difference(
    function: Function, inputs: Sequence[Any], directions: Sequence[Any], eps: float
) -> list[Any]:
    """The derivative of each output along `directions`, by moving the inputs' memory there and back."""
    kept = [x.detach().clone() for x in inputs]
    former = set_grad_mode(False)
    try:
        values = []
        for sign in (1, -1):
            for x, original, direction in zip(inputs, kept, directions, strict=True):
                x.data.copy_(original + direction * (sign * eps))
            values.append([real_parts(o).clone() for o in function()])
    finally:
        for x, original in zip(inputs, kept, strict=True):
            x.data.copy_(original)
        set_grad_mode(former)
    return [(high - low) / (2 * eps) for high, low in zip(values[0], values[1], strict=True)]


def analytical_jacobian(output: Any, inputs: Sequence[Any], grad_factory: Any = None) -> list[list[Any]]:
    """Rows by backward: for each number of `output`, the gradient of each input (None where unused)."""
    rows = []
    for index in range(count(output)):
        vector = basis_vector(output, index)
        rows.append(vector_jacobian(output, inputs, vector))
    return rows


def vector_jacobian(output: Any, inputs: Sequence[Any], vector: Any) -> list[Any]:
    """The gradient of each input for one cotangent."""
    return list(_grad(output, inputs, vector, retain_graph=True, allow_unused=True))


def forward_jacobian(function: Callable[..., Sequence[Any]], inputs: Sequence[Any], position: int) -> list[list[Any]]:
    """Columns by forward mode: for each number of one input, the tangent of each output as a flat tensor."""
    columns = []
    for index in range(count(inputs[position])):
        directions: list[Any] = [None] * len(inputs)
        directions[position] = basis_vector(inputs[position], index)
        columns.append(forward_derivative(function, inputs, directions))
    return columns


def forward_derivative(
    function: Callable[..., Sequence[Any]], inputs: Sequence[Any], directions: Sequence[Any]
) -> list[Any]:
    """The tangent of each output for tangents of some inputs."""
    from pullback.autograd import forward_ad

    with forward_ad.dual_level():
        duals = [
            x if d is None else forward_ad.make_dual(x.detach(), d) for x, d in zip(inputs, directions, strict=True)
        ]
        outputs = function(*duals)
        pairs = [forward_ad.unpack_dual(o) for o in outputs]
        return [real_parts(zeros_like(p.primal) if p.tangent is None else p.tangent) for p in pairs]
