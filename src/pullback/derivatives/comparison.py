"""Rules of kernels/comparison.py: nothing here has a gradient."""

from __future__ import annotations

from pullback.rules import Tensor, non_differentiable


@non_differentiable(promote="common", structure="elementwise")
def eq(input: Tensor, other: Tensor) -> None: ...


@non_differentiable(promote="common", structure="elementwise")
def ne(input: Tensor, other: Tensor) -> None: ...


@non_differentiable(promote="common", structure="elementwise")
def lt(input: Tensor, other: Tensor) -> None: ...


@non_differentiable(promote="common", structure="elementwise")
def le(input: Tensor, other: Tensor) -> None: ...


@non_differentiable(promote="common", structure="elementwise")
def gt(input: Tensor, other: Tensor) -> None: ...


@non_differentiable(promote="common", structure="elementwise")
def ge(input: Tensor, other: Tensor) -> None: ...


@non_differentiable(out=False, structure="elementwise")
def isnan(input: Tensor) -> None: ...


@non_differentiable(out=False, structure="elementwise")
def isinf(input: Tensor) -> None: ...


@non_differentiable(out=False, structure="elementwise")
def isfinite(input: Tensor) -> None: ...


@non_differentiable(structure="elementwise", out_dtype="not_bool")
def isposinf(input: Tensor) -> None: ...


@non_differentiable(structure="elementwise", out_dtype="not_bool")
def isneginf(input: Tensor) -> None: ...


@non_differentiable(out=False, structure="elementwise")
def isreal(input: Tensor) -> None: ...


@non_differentiable(structure="elementwise")
def isclose(input: Tensor, other: Tensor) -> None: ...
