"""What the kernels of kernels/trigonometric.py ask of their arguments."""

from __future__ import annotations

from pullback.checks.dtypes import refuse_kinds
from pullback.typing import Array


def atan2(input: Array, other: Array) -> None:
    refuse_kinds(input, "c", "atan2_cpu")


def hypot(input: Array, other: Array) -> None:
    refuse_kinds(input, "biuc", "hypot_cpu")


def deg2rad(input: Array) -> None:
    refuse_kinds(input, "c", "deg2rad")


def rad2deg(input: Array) -> None:
    refuse_kinds(input, "c", "rad2deg")
