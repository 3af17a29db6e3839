"""Gradients of sampling at points: sums over the pixels around each point, weighted by polynomials or their slopes."""

from __future__ import annotations

from itertools import product
from typing import Any

import pullback.generated as F
from pullback.typing import Shape


def grid_sample_back_input(
    grad: Any, input_shape: Shape, grid: Any, mode: int, padding_mode: int, align_corners: bool
) -> Any:
    """The gradient with respect to the image."""
    from pullback.kernels.grid_sampling import polynomials_of  # loaded only by those who sample

    sizes = tuple(input_shape[2:])
    points = F.grid_points(grid, sizes, mode, padding_mode, align_corners)
    parts = F.parts_of_points(points, mode)
    total = None
    for corner in product(polynomials_of(mode), repeat=len(sizes)):
        offsets = tuple([offset for offset, _ in corner])
        positions = F.point_positions(points, sizes, offsets, mode, padding_mode, align_corners)
        weighted = F.times_weights(grad, parts, [coefficients for _, coefficients in corner])
        share = F.put_points(weighted, positions, sizes)
        total = share if total is None else F.add(total, share)
    if mode == 1:  # constant between pixels, and on the graph of the grid
        total = F.depending_on(total, grid)
    return F.to_dtype(total, grad.dtype)


def grid_sample_back_grid(grad: Any, input: Any, grid: Any, mode: int, padding_mode: int, align_corners: bool) -> Any:
    """The gradient with respect to the grid."""
    from pullback.kernels.grid_sampling import polynomials_of  # loaded only by those who sample

    sizes = tuple(input.shape[2:])
    if mode == 1:
        return F.zeros_in_shape_of(grid)
    points = F.grid_points(grid, sizes, mode, padding_mode, align_corners)
    parts = F.parts_of_points(points, mode)
    slopes: list[Any] = [None] * len(sizes)
    for corner in product(polynomials_of(mode), repeat=len(sizes)):
        offsets = tuple([offset for offset, _ in corner])
        positions = F.point_positions(points, sizes, offsets, mode, padding_mode, align_corners)
        along = F.sum(F.mul(grad, F.take_points(input, positions)), (1,), True)
        for axis in range(len(sizes)):
            weights = [c if a != axis else F.slope_of(c) for a, (_, c) in enumerate(corner)]
            term = F.times_weights(along, parts, weights)
            slopes[axis] = term if slopes[axis] is None else F.add(slopes[axis], term)
    stacked = F.stack([F.squeeze_dims(s, (1,)) for s in slopes], grid.ndim - 1)
    return F.to_dtype(F.mul(stacked, F.slopes_of_points(grid, sizes, mode, padding_mode, align_corners)), grid.dtype)


def slopes_of_points(grid: Any, sizes: Shape, mode: int, padding_mode: int, align_corners: bool) -> Any:
    """How fast the points move with the grid; reflection turns them around, so there the slopes belong to the grid."""
    slopes = F.reflected_slopes if padding_mode == 2 else F.grid_slopes
    return slopes(grid, sizes, mode, padding_mode, align_corners)


def parts_of_points(points: Any, mode: int) -> Any:
    """For each axis how far a point lies from the pixel below it, shaped to broadcast over channels."""
    below = F.round(points) if mode == 1 else F.floor(points)
    part = F.sub(points, below)
    return [F.unsqueeze(F.select(part, part.ndim - 1, axis), 1) for axis in range(points.shape[-1])]


def times_weights(value: Any, parts: Any, polynomials: Any) -> Any:
    """`value` times the polynomials of the parts."""
    for part, coefficients in zip(parts, polynomials, strict=True):
        value = F.mul(value, F.polynomial_of(part, coefficients))
    return value


def polynomial_of(part: Any, coefficients: Any) -> Any:
    """A polynomial, highest power first, by Horner's rule; a number if it is constant."""
    value = coefficients[0]
    for coefficient in coefficients[1:]:
        value = F.add(F.mul(part, value), coefficient)
    return value


def slope_of(coefficients: Any) -> Any:
    """The coefficients of a polynomial's derivative."""
    degree = len(coefficients) - 1
    return tuple([c * (degree - i) for i, c in enumerate(coefficients[:-1])])
