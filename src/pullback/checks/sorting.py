"""What the kernels of kernels/sorting.py ask of their arguments."""

from __future__ import annotations

from pullback.checks.dtypes import refuse_complex, refuse_unordered
from pullback.checks.shapes import require_elements
from pullback.typing import Array, Dim


def topk(input: Array, k: int, dim: Dim = -1, largest: bool = True, sorted: bool = True) -> None:
    size = input.shape[dim] if input.ndim else 1
    if not 0 <= k <= size:
        raise RuntimeError("selected index k out of range")
    if input.dtype.kind in "bc":
        raise RuntimeError(f"topk does not support {'bool' if input.dtype == bool else 'complex'} dtypes on CPU")


def kthvalue(input: Array, k: int, dim: Dim = -1, keepdim: bool = False) -> None:
    require_elements("kthvalue", input, (dim,))
    size = input.shape[dim] if input.ndim else 1
    if not 1 <= k <= size:
        raise RuntimeError("kthvalue(): selected number k out of range for dimension " + str(dim))
    refuse_unordered("kthvalue_cpu", input)


def median_all(input: Array) -> None:
    refuse_unordered("median_cpu", input)


def nanmedian_all(input: Array) -> None:
    refuse_unordered("median_cpu", input)


def mode(input: Array, dim: Dim = -1, keepdim: bool = False) -> None:
    if input.size:
        refuse_complex("mode", input)
    require_elements("mode", input, (dim,))


def median_dim(input: Array, dim: Dim, keepdim: bool = False) -> None:
    refuse_unordered("median_out", input)
    require_elements("median", input, (dim,))


def nanmedian_dim(input: Array, dim: Dim, keepdim: bool = False) -> None:
    refuse_unordered("median_out", input)
    require_elements("median", input, (dim,))


def sort(input: Array, dim: Dim = -1, descending: bool = False) -> None:
    if input.dtype.kind == "c":
        raise RuntimeError("Sort does not support complex dtypes on CPU")


def sort_stable(input: Array, stable: bool, dim: Dim = -1, descending: bool = False) -> None:
    sort(input)


def argsort(input: Array, dim: Dim = -1, descending: bool = False) -> None:
    sort(input)
