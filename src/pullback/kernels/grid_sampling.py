"""Sampling images at given points: the points in pixels, the pixels around them, and the weighted sum of these.

A grid's last dimension is (x, y) or (x, y, z), from the last spatial dimension on, in the range from -1 to 1.
Interpolation modes are 0 bilinear, 1 nearest, 2 bicubic; padding modes are 0 zeros, 1 border, 2 reflection.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from pullback.backend.array_module import is_at_hand
from pullback.backend.unpromised_bits import note_product
from pullback.kernels.accumulation import widened
from pullback.kernels.embeddings import add_rows
from pullback.native import by_device, native
from pullback.typing import Array, Shape

_A = -0.75
# Weights of the pixels around a point as polynomials, highest power first, of its distance from the pixel below.
_POLYNOMIALS: dict[int, tuple[tuple[int, tuple[float, ...]], ...]] = {
    0: ((0, (-1.0, 1.0)), (1, (1.0, 0.0))),
    1: ((0, (1.0,)),),
    2: (
        (-1, (_A, -2 * _A, _A, 0.0)),
        (0, (_A + 2, -(_A + 3), 0.0, 1.0)),
        (1, (-(_A + 2), 2 * _A + 3, -_A, 0.0)),
        (2, (-_A, _A, 0.0, 0.0)),
    ),
}


def polynomials_of(mode: int) -> tuple[tuple[int, tuple[float, ...]], ...]:
    """For each pixel around a point along one dimension its offset and the coefficients of its weight."""
    return _POLYNOMIALS[mode]


@native
def grid_sampler_2d(
    input: Array, grid: Array, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Array:
    """The values of (N, C, H, W) at the points (N, H_out, W_out, 2)."""
    return _sample(input, grid, interpolation_mode, padding_mode, align_corners)


@native
def grid_sampler_3d(
    input: Array, grid: Array, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Array:
    """The values of (N, C, D, H, W) at the points (N, D_out, H_out, W_out, 3)."""
    return _sample(input, grid, interpolation_mode, padding_mode, align_corners)


def _sample(input: Array, grid: Array, mode: int, padding_mode: int, align_corners: bool) -> Array:
    sizes = input.shape[2:]
    x, points = widened(input), grid_points(widened(grid), sizes, mode, padding_mode, align_corners)
    low = _whole(points, mode)
    part = points - low
    total = np.zeros((points.size // len(sizes), input.shape[1]), x.dtype)
    pixels = _pixels(x)
    for corner in product(polynomials_of(mode), repeat=len(sizes)):
        offsets = tuple([offset for offset, _ in corner])
        positions = point_positions(points, sizes, offsets, mode, padding_mode, align_corners)
        outside = positions.reshape(-1) < 0
        weight = _product_of_weights(part, [coefficients for _, coefficients in corner])
        values = np.take(pixels, _rows(positions, sizes), 0)
        values *= weight.reshape(-1, 1)
        if not is_at_hand(outside) or outside.any():
            np.copyto(
                values, 0, where=outside[:, None]
            )  # not by a weight of zero: the pixel read instead may be infinite
        total += values
    return _images(total, points.shape[:-1]).astype(input.dtype, copy=False)


@native
def grid_sample_back_input(
    grad: Array, input_shape: Shape, grid: Array, mode: int, padding_mode: int, align_corners: bool
) -> Array:
    """The gradient of sampling with respect to the image."""
    sizes = tuple(input_shape[2:])
    g, points = widened(grad), grid_points(widened(grid), sizes, mode, padding_mode, align_corners)
    part = points - _whole(points, mode)
    total = np.zeros(tuple(input_shape), g.dtype)
    for corner in product(polynomials_of(mode), repeat=len(sizes)):
        offsets = tuple([offset for offset, _ in corner])
        positions = point_positions(points, sizes, offsets, mode, padding_mode, align_corners)
        weight = _product_of_weights(part, [coefficients for _, coefficients in corner])
        total += put_points(g * weight[:, None].astype(g.dtype, copy=False), positions, sizes)
    return total.astype(grad.dtype, copy=False)


@native
def grid_sample_back_grid(
    grad: Array, input: Array, grid: Array, mode: int, padding_mode: int, align_corners: bool
) -> Array:
    """The gradient of sampling with respect to the grid."""
    sizes = input.shape[2:]
    if mode == 1:
        return np.zeros_like(grid)
    x, g = widened(input), widened(grad)
    points = grid_points(widened(grid), sizes, mode, padding_mode, align_corners)
    part = points - _whole(points, mode)
    slopes: Array = np.zeros(grid.shape, points.dtype)
    for corner in product(polynomials_of(mode), repeat=len(sizes)):
        offsets = tuple([offset for offset, _ in corner])
        positions = point_positions(points, sizes, offsets, mode, padding_mode, align_corners)
        along = (g * take_points(x, positions)).sum(1)
        for axis in range(len(sizes)):
            weights = [np.polyder(c) if a == axis else c for a, (_, c) in enumerate(corner)]
            slopes[..., axis] += along * _product_of_weights(part, weights)
    slopes *= grid_slopes(widened(grid), sizes, mode, padding_mode, align_corners)
    return slopes.astype(grid.dtype, copy=False)


def _product_of_weights(part: Array, polynomials: Sequence[Any]) -> Array:
    """For each point the product of one polynomial per axis of its distance from the pixel below."""
    weight = np.ones(part.shape[:-1], part.dtype)
    for axis, coefficients in enumerate(polynomials):
        weight = weight * np.polyval(coefficients, part[..., axis])
    return weight.astype(part.dtype, copy=False)


def _pixels(input: Array) -> Array:
    """(N, C, *sizes) as one row of channels per pixel: a point then reads whole rows."""
    flat = input.reshape(*input.shape[:2], math.prod(input.shape[2:]))
    return flat.transpose(0, 2, 1).reshape(len(input) * flat.shape[2], input.shape[1])


def _images(rows: Array, shape: Shape) -> Array:
    """Rows of channels, one per place of (N, *out), as (N, C, *out)."""
    channels = rows.shape[1]
    planes = np.ascontiguousarray(rows.reshape(shape[0], math.prod(shape[1:]), channels).transpose(0, 2, 1))
    return planes.reshape(shape[0], channels, *shape[1:])


def _rows(positions: Array, sizes: Shape) -> Array:
    """Positions in each sample's plane as rows of `_pixels`; those outside name some row."""
    starts: Array = np.arange(len(positions)) * math.prod(sizes)
    return (np.maximum(positions.reshape(len(positions), math.prod(positions.shape[1:])), 0) + starts[:, None]).reshape(
        -1
    )


def _whole(points: Array, mode: int) -> Array:
    return np.rint(points) if mode == 1 else np.floor(points)


@by_device
def grid_points(input: Array, sizes: Shape, mode: int, padding_mode: int, align_corners: bool) -> Array:
    """Points of a grid in pixels; border and reflection move outer ones inside (cubic moves pixels instead)."""
    axes = []
    for axis, size in enumerate(reversed(sizes)):
        place = input[..., axis]
        place = (place + 1) / 2 * (size - 1) if align_corners else ((place + 1) * size - 1) / 2
        axes.append(place if mode == 2 else _moved_inside(place, size, padding_mode, align_corners))
    return np.stack(axes, -1).astype(input.dtype, copy=False)


def _moved_inside(place: Array, size: int, padding_mode: int, align_corners: bool) -> Array:
    if padding_mode == 0:
        return place
    if padding_mode == 2:
        low, span = (0.0, float(size - 1)) if align_corners else (-0.5, float(size))
        if span == 0:
            return np.zeros_like(place)
        distance = np.abs(place - low)
        flips = np.floor(distance / span)
        rest = distance - flips * span
        place = np.where(flips % 2 == 0, rest + low, span - rest + low)
    return np.clip(place, 0, size - 1)


@by_device
def grid_slopes(input: Array, sizes: Shape, mode: int, padding_mode: int, align_corners: bool) -> Array:
    """How fast each coordinate in pixels moves with the grid's; zero where the border holds it."""
    axes = []
    for axis, size in enumerate(reversed(sizes)):
        place = input[..., axis]
        rate = (size - 1) / 2 if align_corners else size / 2
        pixels = (place + 1) / 2 * (size - 1) if align_corners else ((place + 1) * size - 1) / 2
        axes.append(
            rate * (np.ones_like(place) if mode == 2 else _direction(pixels, size, padding_mode, align_corners))
        )
    return np.stack(axes, -1).astype(input.dtype, copy=False)


@by_device
def reflected_slopes(input: Array, sizes: Shape, mode: int, padding_mode: int, align_corners: bool) -> Array:
    """As `grid_slopes`, for points that are reflected at the borders: steps of the grid, with a slope of zero."""
    return grid_slopes(input, sizes, mode, padding_mode, align_corners)


def _direction(place: Array, size: int, padding_mode: int, align_corners: bool) -> Array:
    if padding_mode == 0:
        return np.ones_like(place)
    sign = np.ones_like(place)
    if padding_mode == 2:
        low, span = (0.0, float(size - 1)) if align_corners else (-0.5, float(size))
        if span == 0:
            return np.zeros_like(place)
        flips = np.floor(np.abs(place - low) / span)
        sign = np.where(place < low, -1, 1) * np.where(flips % 2 == 0, 1, -1)
        place = _reflected(place, low, span)
    return np.where((place > 0) & (place < size - 1), sign, 0).astype(place.dtype)


def _reflected(place: Array, low: float, span: float) -> Array:
    distance = np.abs(place - low)
    flips = np.floor(distance / span)
    rest = distance - flips * span
    return np.where(flips % 2 == 0, rest + low, span - rest + low)


@by_device
def point_positions(
    input: Array, sizes: Shape, offsets: Shape, mode: int, padding_mode: int, align_corners: bool
) -> Array:
    """The flat position of the pixel `offsets` away from the one below each point; -1 for one outside."""
    low = _whole(input, mode)
    flat = np.zeros(input.shape[:-1], np.int64)
    inside = np.ones(input.shape[:-1], bool)
    for axis in reversed(range(len(sizes))):
        size = sizes[len(sizes) - 1 - axis]
        place = low[..., axis] + offsets[axis]
        if mode == 2:
            place = _moved_inside(place, size, padding_mode, align_corners)
        inside &= (place >= 0) & (place < size)
        flat = flat * size + np.where(np.isfinite(place), place, 0).astype(np.int64)
    return np.where(inside, flat, -1)


@by_device
def take_points(input: Array, positions: Array) -> Array:
    """The values of (N, C, *sizes) at the flat positions (N, *out): (N, C, *out), zero where the position is -1."""
    values = np.take(_pixels(input), _rows(positions, input.shape[2:]), 0)
    np.copyto(values, 0, where=positions.reshape(-1, 1) < 0)
    return _images(values, positions.shape)


@by_device
def put_points(input: Array, positions: Array, sizes: Shape) -> Array:
    """The adjoint of `take_points`: add the values at their positions in planes of `sizes`."""
    values = _pixels(input)
    inside = positions.reshape(-1) >= 0
    rows = _rows(positions, sizes)
    if not is_at_hand(inside):
        values = np.where(inside[:, None], values, 0)
    elif not inside.all():
        values, rows = values[inside], rows[inside]
    total = add_rows(values, rows, len(positions) * math.prod(sizes))
    return _images(total, (len(positions), *sizes))


@by_device
def affine_grid_generator(theta: Array, size: Shape, align_corners: bool) -> Array:
    """The grid of points that affine maps (N, d, d + 1) send the points of an image of `size` to."""
    base = _base_grid(size, align_corners, widened(theta).dtype)
    note_product(base, theta.shape[0])
    result = base @ widened(theta).transpose(0, 2, 1)
    return result.reshape(size[0], *size[2:], len(size) - 2).astype(theta.dtype, copy=False)


@by_device
def affine_grid_back(input: Array, size: Shape, align_corners: bool) -> Array:
    """The adjoint of `affine_grid_generator`."""
    base = _base_grid(size, align_corners, widened(input).dtype)
    rows = widened(input).reshape(size[0], math.prod(size[2:]), len(size) - 2)
    note_product(rows, base.shape[-1])
    return (rows.transpose(0, 2, 1) @ base).astype(input.dtype, copy=False)


def _base_grid(size: Shape, align_corners: bool, dtype: np.dtype[np.floating]) -> Array:
    """Homogeneous coordinates (x, y, [z,] 1) of all pixels, one per row."""
    lines = []
    for n in size[2:]:
        line = np.linspace(-1, 1, n, dtype=dtype) if n > 1 else np.zeros(1, dtype)
        lines.append(line if align_corners else line * ((n - 1) / n))
    axes = np.meshgrid(*lines, indexing="ij")
    ones = np.ones_like(axes[0])
    return np.stack([*reversed(axes), ones], -1).reshape(-1, len(axes) + 1).astype(dtype, copy=False)
