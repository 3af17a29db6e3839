"""Differences, slopes and integrals of values along a dimension."""

from __future__ import annotations

from typing import Any

import pullback.functions as P
import pullback.generated as G
from pullback.errors import not_a_tensor
from pullback.facts import declare
from pullback.tensor.arguments import plain_number
from pullback.tensor.dims import wrap_dim
from pullback.tensor.tensor import Tensor, TensorBase


@declare(found="torch and method")
def diff(
    input: Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
    *,
    out: Any = None,
    axis: Any = None,
) -> Any:
    """The differences of neighbours along `dim`, taken `n` times.

    The result is smaller by `n` along `dim`. `prepend` and `append` are joined to `input` before. y[i] = input[i + 1] -
    input[i].

    >>> import pullback
    >>> pullback.diff(pullback.tensor([1, 3, 6]))
    tensor([2, 3])
    """
    dim = dim if axis is None else axis
    if input.ndim == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    for position, (name, part) in enumerate((("prepend", prepend), ("append", append)), 4):
        if part is not None and not isinstance(part, TensorBase):
            raise not_a_tensor("diff", name, position, part)
    if n == 0:
        return G.clone(input, out=out)
    parts = [part for part in (prepend, input, append) if part is not None]
    result: Any = P.cat(parts, dim) if len(parts) > 1 else input
    dim = wrap_dim(dim, input.ndim)
    is_bool = not result.is_complex() and result._array.dtype == bool
    for _ in range(min(n, result.shape[dim])):
        size = result.shape[dim] - 1
        upper, lower = P.narrow(result, dim, 1, size), P.narrow(result, dim, 0, size)
        result = P.logical_xor(upper, lower) if is_bool else upper - lower
    return result if out is None else G.clone(result, out=out)


@declare(found="torch")
def trapezoid(y: Tensor, x: Any = None, *, dx: Any = None, dim: int = -1, axis: Any = None) -> Any:
    """The integral along `dim` by the trapezoidal rule, at points `x` or `dx` apart.

    The result lacks `dim`. integral = sum over i of (x[i + 1] - x[i]) * (y[i] + y[i + 1]) / 2.

    >>> import pullback
    >>> pullback.trapezoid(pullback.tensor([1., 2., 3.]))
    tensor(4.)
    """
    dim = dim if axis is None else axis
    _require_dim(y)
    _refuse_bools("trapezoid", y, x)
    given: Any = y
    size = given.shape[wrap_dim(dim, given.ndim)]
    if x is not None:
        if size == 0:
            return P.sum(given.detach(), dim, dtype=given.dtype)
        left, right, steps = _pieces("trapezoid", given, x, dim)
        return _halved(P.sum((left + right) * steps, dim))
    dx = 1 if dx is None else dx
    if size == 0:
        return P.sum(given.detach(), dim, dtype=given.dtype)
    ends = P.select(given, dim, 0) + P.select(given, dim, -1)
    return _scaled(P.sum(given, dim) - _scaled(ends, 0.5), dx)


trapz = trapezoid


@declare(found="torch")
def cumulative_trapezoid(y: Tensor, x: Any = None, *, dx: Any = None, dim: int = -1, axis: Any = None) -> Any:
    """The running integral along `dim` by the trapezoidal rule.

    `x` are the positions of the values, `dx` their distance (1 if neither is given); `dim` is shorter by one.
    y[i] = sum over k <= i of (x[k + 1] - x[k]) * (y[k] + y[k + 1]) / 2.

    >>> import pullback
    >>> pullback.cumulative_trapezoid(pullback.tensor([1.0, 3.0, 5.0]))
    tensor([2., 6.])
    """
    dim = dim if axis is None else axis
    _require_dim(y)
    _refuse_bools("cumulative_trapezoid", y, x)
    given: Any = y
    if x is not None:
        left, right, steps = _pieces("cumulative_trapezoid", given, x, dim)
        return _halved(P.cumsum((left + right) * steps, dim))
    left, right = _neighbours(given, dim)
    return P.cumsum(_scaled(left + right, (1 if dx is None else dx) / 2.0), dim)


def _scaled(tensor: Any, number: Any) -> Any:
    """Multiply; by a number, as a node that saves no tensor."""
    return G.mul_scalar(tensor, number) if _takes_number(tensor, number) else tensor * number


def _halved(tensor: Any) -> Any:
    return G.div_scalar(tensor, 2.0) if _takes_number(tensor, 2.0) else tensor / 2.0


def _takes_number(tensor: Any, number: Any) -> bool:
    """Whether the product has the tensor's dtype."""
    return (tensor.is_floating_point() or tensor.is_complex()) and isinstance(number, (int, float))


def _require_dim(y: Tensor) -> None:
    if y.ndim == 0:
        raise IndexError("Dimension specified as -1 but tensor has no dimensions")


def _refuse_bools(function: str, y: Tensor, x: Any) -> None:
    """Refuse samples and points that cannot be subtracted."""
    if y._array.dtype == bool or (x is not None and x._array.dtype == bool):
        raise RuntimeError(f"{function}: received a bool input for `x` or `y`, but bool is not supported")


def _neighbours(values: Any, dim: int) -> tuple[Any, Any]:
    size = max(values.shape[dim] - 1, 0)
    return P.narrow(values, dim, 0, size), P.narrow(values, dim, min(1, values.shape[dim]), size)


def _pieces(name: str, y: Any, x: Any, dim: int) -> tuple[Any, Any, Any]:
    """The values left and right of each step, and the steps, shaped to multiply them."""
    if x.ndim == 1:
        if x.shape[0] != y.shape[dim]:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        shape = [1] * y.ndim
        shape[dim] = x.shape[0]
        x = P.reshape(x, tuple(shape))
    elif x.ndim < y.ndim:
        x = P.reshape(x, (*(1,) * (y.ndim - x.ndim), *x.shape))
    before, after = _neighbours(x, dim)
    left, right = _neighbours(y, dim)
    return left, right, after - before


@declare(found="torch")
def gradient(
    input: Tensor, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1, axis: Any = None
) -> tuple[Tensor, ...]:
    """The slopes of values on a grid, by central differences; at the edges of order `edge_order`.

    `spacing` is a distance, one per dimension, or the coordinates along each dimension as tensors.

    >>> import pullback
    >>> pullback.gradient(pullback.tensor([0., 1., 4.]))
    (tensor([1., 2., 3.]),)
    """
    dim = dim if axis is None else axis
    given: Any = input
    if given._array.dtype.name == "uint8":
        raise RuntimeError("torch.gradient does not support uint8 input.")
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    dim = plain_number(dim)
    dims = list(range(given.ndim)) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    spacing = 1 if spacing is None else spacing
    if isinstance(spacing, (list, tuple)) and len(spacing) != len(dims):
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to have the "
            f"same length, but got a spacing argument of length {len(spacing)} and a dim argument of length {len(dims)}."
        )
    dims = [wrap_dim(d, given.ndim) for d in dims]
    if len(set(dims)) != len(dims):
        raise RuntimeError(
            f"dim {next(d for d in dims if dims.count(d) > 1)} appears multiple times in the list of dims"
        )
    for d in dims:
        if given.shape[d] < edge_order + 1:
            raise RuntimeError(
                "torch.gradient expected each dimension size to be at least edge_order+1, but dimension "
                f"{d} has size {given.shape[d]}"
            )
    spacings = list(spacing) if isinstance(spacing, (list, tuple)) else [spacing] * len(dims)
    return tuple([_slopes(given, d, s, edge_order) for d, s in zip(dims, spacings, strict=True)])


def _slopes(values: Any, dim: int, spacing: Any, edge_order: int) -> Any:
    """The slopes along one dimension: at the first position, inside, at the last one."""
    if not (values.is_floating_point() or values.is_complex()):
        values = values * 1.0
    if isinstance(spacing, Tensor) and spacing.ndim:
        return P.cat(_uneven_slopes(values, dim, diff(spacing), edge_order), dim)
    step = spacing.item() if isinstance(spacing, Tensor) else spacing
    first, second, third, last, before, earlier = _ends(values, dim, edge_order)
    if edge_order == 1:
        edges = second - first, last - before
    else:
        edges = (
            G.mul_scalar(first, -1.5) + G.mul_scalar(second, 2) - G.mul_scalar(third, 0.5),
            G.mul_scalar(earlier, 0.5) - G.mul_scalar(before, 2) + G.mul_scalar(last, 1.5),
        )
    inside = G.div_scalar(G.div_scalar(_apart(values, dim, 2, 0) - _apart(values, dim, 0, 2), step), 2)
    return P.cat((G.div_scalar(edges[0], step), inside, G.div_scalar(edges[1], step)), dim)


def _uneven_slopes(values: Any, dim: int, steps: Any, edge_order: int) -> list[Any]:
    """The same where the steps differ: three positions, each with a weight that the steps give."""
    first, second, third, last, before, earlier = _ends(values, dim, edge_order)
    left, right = _apart(steps, 0, 0, 1), _apart(steps, 0, 1, 0)
    weights = (
        -right / (left * (left + right)),
        (right - left) / (left * right),
        left / (right * (left + right)),
    )
    parts = [_along(w, values.ndim, dim) * _apart(values, dim, at, 2 - at) for at, w in enumerate(weights)]
    inside = parts[0] + parts[1] + parts[2]
    if edge_order == 1:
        return [(second - first) / steps[0], inside, (last - before) / steps[-1]]
    s = steps  # the slopes at the ends of the parabolas through three positions
    begin = -(G.mul_scalar(s[0], 2) + s[1]) / (s[0] * (s[0] + s[1])) * first + (s[0] + s[1]) / (s[0] * s[1]) * second
    begin = begin + -s[0] / (s[1] * (s[0] + s[1])) * third
    end = s[-1] / (s[-2] * (s[-2] + s[-1])) * earlier + -(s[-1] + s[-2]) / (s[-2] * s[-1]) * before
    return [begin, inside, end + (G.mul_scalar(s[-1], 2) + s[-2]) / (s[-1] * (s[-2] + s[-1])) * last]


def _along(steps: Any, ndim: int, dim: int) -> Any:
    """Steps in a shape that divides differences along `dim`."""
    return P.reshape(steps, tuple([-1 if d == dim else 1 for d in range(ndim)]))


def _apart(values: Any, dim: int, start: int, without: int) -> Any:
    """The values from `start` on, without the last ones."""
    return P.narrow(values, dim, start, values.shape[dim] - start - without)


def _ends(values: Any, dim: int, edge_order: int) -> list[Any]:
    """The first positions, then the last ones from the end on; the third of each only for the second order."""
    size = values.shape[dim]
    places = (0, 1, 2, size - 1, size - 2, size - 3)
    wanted = (True, True, edge_order == 2) * 2
    return [P.narrow(values, dim, at, 1) if want else None for at, want in zip(places, wanted, strict=True)]
