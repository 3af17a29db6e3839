"""Rules of kernels/bitwise.py: nothing here has a gradient."""

from __future__ import annotations

from pullback.rules import Tensor, non_differentiable

ON_FIRST_USE = True  # see Note [Families on first use]


@non_differentiable(in_place=True, promote="common", structure="elementwise")
def bitwise_and(input: Tensor, other: Tensor) -> None: ...


@non_differentiable(in_place=True, promote="common", structure="elementwise")
def bitwise_or(input: Tensor, other: Tensor) -> None: ...


@non_differentiable(in_place=True, promote="common", structure="elementwise")
def bitwise_xor(input: Tensor, other: Tensor) -> None: ...


@non_differentiable(in_place=True, promote="common", structure="elementwise")
def bitwise_left_shift(input: Tensor, other: Tensor) -> None: ...


@non_differentiable(in_place=True, promote="common", structure="elementwise")
def bitwise_right_shift(input: Tensor, other: Tensor) -> None: ...


@non_differentiable(
    in_place=True, structure="elementwise", out_dtype="found", found="torch and method", found_in_place="method"
)
def bitwise_not(input: Tensor) -> None: ...


@non_differentiable(
    in_place=True,
    structure="elementwise",
    exact=True,
    writes="unrecorded",
    gives="truth",
    found="torch and method",
    found_in_place="method",
)
def logical_not(input: Tensor) -> None: ...


@non_differentiable(
    in_place=True, structure="elementwise", exact=True, writes="unrecorded", gives="truth", found="torch and method"
)
def logical_and(input: Tensor, other: Tensor) -> None: ...


@non_differentiable(
    in_place=True, structure="elementwise", exact=True, writes="unrecorded", gives="truth", found="torch and method"
)
def logical_or(input: Tensor, other: Tensor) -> None: ...


@non_differentiable(
    in_place=True, structure="elementwise", writes="unrecorded", gives="truth", found="torch and method"
)
def logical_xor(input: Tensor, other: Tensor) -> None: ...
