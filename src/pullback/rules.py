"""The words that the rules in `derivatives/` are written in.

A rule is read as syntax by `tools/codegen` and never run; these definitions give it types and something to navigate to.
docs/adding_an_op.md explains the language.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from pullback.typing import Array, Arrays, Dim, Dims, DType, Scalar, Shape

__all__ = [
    "F", "Array", "Arrays", "DType", "Dim", "Dims", "Pullback", "Scalar", "Shape", "Tensor", "elementwise", "general",
    "linear", "multilinear", "non_differentiable", "not_implemented", "self_adjoint", "tangent", "wrt",
]  # fmt: skip

Tensor = Any
"""A tensor argument; in a rule it stands for an array or a Tensor, whichever path is generated."""

F: Any = None
"""Operations: kernels on the array path, generated functions and formulas on the differentiable path."""

_Rule = TypeVar("_Rule", bound=Callable[..., Any])


class Pullback:
    """What a rule returns: one expression per differentiable input."""


def wrt(**gradients: Any) -> Pullback:
    """Name the gradient of each input: `wrt(input=..., other=...)`."""
    raise AssertionError("rules are read, not run")


def not_implemented(reason: str) -> NoReturn:
    """As a line: this derivative does not exist, and asking for it raises."""
    raise AssertionError("rules are read, not run")


def _kind(*args: Any, **options: Any) -> Any:
    """Every kind can stand bare or with options."""
    if args:
        return args[0]
    return lambda rule: rule


def elementwise(*args: Any, **options: Any) -> Any:
    """Each result element depends on one element of each input. Forward mode: the sum of the lines."""
    return _kind(*args, **options)


def linear(*args: Any, **options: Any) -> Any:
    """Linear in all its tensors together. Forward mode: the operation applied to the tangents."""
    return _kind(*args, **options)


def multilinear(*args: Any, **options: Any) -> Any:
    """Linear in each of its tensors. Forward mode: the sum over inputs with one replaced by its tangent."""
    return _kind(*args, **options)


def self_adjoint(*args: Any, **options: Any) -> Any:
    """The Jacobian is symmetric (Hermitian). Forward mode: the line with the tangent for the gradient."""
    return _kind(*args, **options)


def general(*args: Any, **options: Any) -> Any:
    """No special structure. Forward mode: an explicit `@tangent`, else the double pullback."""
    return _kind(*args, **options)


def non_differentiable(*args: Any, **options: Any) -> Any:
    """An operation whose result never requires grad."""
    return _kind(*args, **options)


def tangent(*args: Any, **options: Any) -> Any:
    """The explicit forward-mode rule of a `@general` operation of the same name plus `_tangent`."""
    return _kind(*args, **options)
