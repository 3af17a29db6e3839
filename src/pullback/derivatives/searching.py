"""Rules of kernels/searching.py."""

from __future__ import annotations

from pullback.rules import Pullback, Tensor, general, non_differentiable, not_implemented, wrt

ON_FIRST_USE = True  # see Note [Families on first use]


@general(
    outputs=("output", "inverse", "counts"),
    differentiable=(True, False, False),
    node="Unique2Backward0",
    out=False,
    written_in="functional",
    count_of_values=True,
)
def unique(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=not_implemented("_unique2"))


@general(
    outputs=("output", "inverse", "counts"),
    differentiable=(True, False, False),
    out=False,
    written_in="functional",
    count_of_values=True,
)
def unique_consecutive(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=not_implemented("unique_consecutive"))


@non_differentiable(out=False, count_of_values=True)
def bincount(input: Tensor) -> None: ...


@non_differentiable(out_dtype="histogram", found="torch and method")
def histc(input: Tensor) -> None: ...
