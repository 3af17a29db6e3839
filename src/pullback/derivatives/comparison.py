"""Rules of kernels/comparison.py: nothing here has a gradient."""

from __future__ import annotations

from pullback.rules import Tensor, non_differentiable


@non_differentiable(promote="common", structure="elementwise", gives="comparison", complex32=True)
def eq(input: Tensor, other: Tensor) -> None: ...


@non_differentiable(promote="common", structure="elementwise", gives="comparison", complex32=True)
def ne(input: Tensor, other: Tensor) -> None: ...


@non_differentiable(promote="common", structure="elementwise", gives="comparison")
def lt(input: Tensor, other: Tensor) -> None: ...


@non_differentiable(promote="common", structure="elementwise", gives="comparison")
def le(input: Tensor, other: Tensor) -> None: ...


@non_differentiable(promote="common", structure="elementwise", gives="comparison")
def gt(input: Tensor, other: Tensor) -> None: ...


@non_differentiable(promote="common", structure="elementwise", gives="comparison")
def ge(input: Tensor, other: Tensor) -> None: ...


@non_differentiable(out=False, structure="elementwise", exact=True, gives="truth", complex32=True)
def isnan(input: Tensor) -> None: ...


@non_differentiable(out=False, structure="elementwise", gives="truth", complex32=True)
def isinf(input: Tensor) -> None: ...


@non_differentiable(out=False, structure="elementwise", exact=True, gives="truth", complex32=True)
def isfinite(input: Tensor) -> None: ...


@non_differentiable(structure="elementwise", out_dtype="not_bool")
def isposinf(input: Tensor) -> None: ...


@non_differentiable(structure="elementwise", out_dtype="not_bool")
def isneginf(input: Tensor) -> None: ...


@non_differentiable(out=False, structure="elementwise", complex32=True)
def isreal(input: Tensor) -> None: ...


@non_differentiable(structure="elementwise", gives="truth")
def isclose(input: Tensor, other: Tensor) -> None: ...
