"""Rules of kernels/comparison.py: nothing here has a gradient."""

from __future__ import annotations

from pullback.rules import Tensor, non_differentiable


@non_differentiable(
    promote="common", structure="elementwise", gives="comparison", complex32=True, found="torch and method"
)
def eq(input: Tensor, other: Tensor) -> None: ...


@non_differentiable(
    promote="common", structure="elementwise", gives="comparison", complex32=True, found="torch and method"
)
def ne(input: Tensor, other: Tensor) -> None: ...


@non_differentiable(promote="common", structure="elementwise", gives="comparison", found="torch and method")
def lt(input: Tensor, other: Tensor) -> None: ...


@non_differentiable(promote="common", structure="elementwise", gives="comparison", found="torch and method")
def le(input: Tensor, other: Tensor) -> None: ...


@non_differentiable(promote="common", structure="elementwise", gives="comparison", found="torch and method")
def gt(input: Tensor, other: Tensor) -> None: ...


@non_differentiable(promote="common", structure="elementwise", gives="comparison", found="torch and method")
def ge(input: Tensor, other: Tensor) -> None: ...


@non_differentiable(
    out=False, structure="elementwise", exact=True, gives="truth", complex32=True, found="torch and method"
)
def isnan(input: Tensor) -> None: ...


@non_differentiable(out=False, structure="elementwise", gives="truth", complex32=True, found="torch and method")
def isinf(input: Tensor) -> None: ...


@non_differentiable(
    out=False, structure="elementwise", exact=True, gives="truth", complex32=True, found="torch and method"
)
def isfinite(input: Tensor) -> None: ...


@non_differentiable(structure="elementwise", out_dtype="not_bool", found="torch and method")
def isposinf(input: Tensor) -> None: ...


@non_differentiable(structure="elementwise", out_dtype="not_bool", found="torch and method")
def isneginf(input: Tensor) -> None: ...


@non_differentiable(out=False, structure="elementwise", complex32=True, found="torch and method")
def isreal(input: Tensor) -> None: ...


@non_differentiable(structure="elementwise", gives="truth", found="torch and method")
def isclose(input: Tensor, other: Tensor) -> None: ...
