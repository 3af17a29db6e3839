"""The words that the rules in `derivatives/` are written in.

A rule is read as syntax by `tools/codegen` and never run; these definitions give it types and something to navigate to.
docs/adding_an_op.md explains the language.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar, overload

from pullback.typing import Array, Dim, Dims, DType, Scalar, Shape

__all__ = [
    "Array",
    "Arrays",
    "DType",
    "Dim",
    "Dims",
    "F",
    "Pullback",
    "Scalar",
    "Shape",
    "Tensor",
    "elementwise",
    "general",
    "linear",
    "multilinear",
    "non_differentiable",
    "not_implemented",
    "self_adjoint",
    "tangent",
    "wrt",
]  # fmt: skip

Arrays = Any
"""A list of tensors: a rule reads the lists of their shapes and dtypes."""

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


class _Kind:
    """A decorator that stands bare or with options, and leaves the rule as it is."""

    def __init__(self, claim: str) -> None:
        self.claim = claim

    @overload
    def __call__(self, rule: _Rule, /) -> _Rule: ...
    @overload
    def __call__(self, **options: Any) -> Callable[[_Rule], _Rule]: ...
    def __call__(self, *rule: Any, **options: Any) -> Any:
        return rule[0] if rule else lambda later: later


elementwise = _Kind("Each result element depends on one element of each input. Forward mode: the sum of the lines.")
linear = _Kind("Linear in all its tensors together. Forward mode: the operation applied to the tangents.")
multilinear = _Kind("Linear in each of its tensors. Forward mode: the sum over inputs, one replaced by its tangent.")
self_adjoint = _Kind(
    "The Jacobian is symmetric (Hermitian). Forward mode: the line, with the tangent for the gradient."
)
general = _Kind("No special structure. Forward mode: an explicit tangent rule, else the double pullback.")
non_differentiable = _Kind("The result never requires grad.")
tangent = _Kind("The explicit forward-mode rule of the general operation of the same name, with _tangent appended.")
