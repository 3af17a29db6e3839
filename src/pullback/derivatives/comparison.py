"""Rules of kernels/comparison.py: nothing here has a gradient."""

from __future__ import annotations

from pullback.rules import Tensor, non_differentiable


@non_differentiable(promote="common")
def eq(input: Tensor, other: Tensor) -> None: ...


@non_differentiable(promote="common")
def ne(input: Tensor, other: Tensor) -> None: ...


@non_differentiable(promote="common")
def lt(input: Tensor, other: Tensor) -> None: ...


@non_differentiable(promote="common")
def le(input: Tensor, other: Tensor) -> None: ...


@non_differentiable(promote="common")
def gt(input: Tensor, other: Tensor) -> None: ...


@non_differentiable(promote="common")
def ge(input: Tensor, other: Tensor) -> None: ...


@non_differentiable(out=False)
def isnan(input: Tensor) -> None: ...


@non_differentiable(out=False)
def isinf(input: Tensor) -> None: ...


@non_differentiable(out=False)
def isfinite(input: Tensor) -> None: ...


@non_differentiable
def isposinf(input: Tensor) -> None: ...


@non_differentiable
def isneginf(input: Tensor) -> None: ...


@non_differentiable(out=False)
def isreal(input: Tensor) -> None: ...


@non_differentiable
def isclose(input: Tensor, other: Tensor) -> None: ...
