"""What the kernels of kernels/pooling_to_size.py ask of their arguments."""

from __future__ import annotations

from pullback.checks.dtypes import refuse_kinds
from pullback.typing import Array, Shape


def adaptive_max_pool2d(input: Array, output_size: Shape) -> None:
    refuse_kinds(input, "biuc", "adaptive_max_pool2d")


def adaptive_max_pool3d(input: Array, output_size: Shape) -> None:
    refuse_kinds(input, "biuc", "adaptive_max_pool3d_cpu")


def fractional_max_pool2d(input: Array, kernel_size: Shape, output_size: Shape, random_samples: Array) -> None:
    refuse_kinds(input, "biuc", "fractional_max_pool2d_out_frame")


def fractional_max_pool3d(input: Array, kernel_size: Shape, output_size: Shape, random_samples: Array) -> None:
    refuse_kinds(input, "biuc", "fractional_max_pool3d_out_frame")


def max_unpool2d(input: Array, indices: Array, output_size: Shape) -> None:
    refuse_kinds(input, "biuc", "max_unpool2d")


def max_unpool3d(input: Array, indices: Array, output_size: Shape) -> None:
    refuse_kinds(input, "biuc", "max_unpool3d")


def adaptive_avg_pool3d(input: Array, output_size: Shape) -> None:
    refuse_kinds(input, "biuc", "adaptive_avg_pool3d_cpu")
