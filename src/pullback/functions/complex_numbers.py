"""Complex numbers from parts, which must be of one floating dtype, and their conjugates."""

from __future__ import annotations

from typing import Any

import pullback.generated as G
from pullback.backend.dtype import scalar_type_name
from pullback.facts import declare
from pullback.tensor.tensor import Tensor


@declare(found="torch")
def complex(real: Tensor, imag: Tensor, *, out: Any = None) -> Any:
    """Complex numbers from their real and imaginary parts.

    >>> import pullback
    >>> pullback.complex(pullback.tensor([1.0]), pullback.tensor([2.0]))
    tensor([1.+2.j])
    """
    _require_same_float(real, imag)
    return G.complex(real, imag, out=out)


@declare(found="torch")
def polar(abs: Tensor, angle: Tensor, *, out: Any = None) -> Any:
    """Complex numbers from magnitudes and angles.

    Both have one shape, that of the result, and one real dtype. y = abs * cos(angle) + 1j * abs * sin(angle).

    >>> import pullback
    >>> pullback.polar(pullback.tensor([2.]), pullback.tensor([0.]))
    tensor([2.+0.j])
    """
    _require_same_float(abs, angle)
    return G.polar(abs, angle, out=out)


@declare(found="torch and method")
def conj_physical(input: Tensor, *, out: Any = None) -> Any:
    """The complex conjugate in new memory; a real tensor itself."""
    return input if out is None and not input.dtype.is_complex else G.conj_physical(input, out=out)


def _require_same_float(first: Any, second: Any) -> None:
    if not (isinstance(first, Tensor) and isinstance(second, Tensor)):
        return
    names = [scalar_type_name(tensor._array.dtype) for tensor in (first, second)]
    if not all(name in ("Half", "Float", "Double") for name in names):
        raise RuntimeError(
            f"Expected both inputs to be Half, Float or Double tensors but got {names[0]} and {names[1]}"
        )
    if names[0] != names[1]:
        raise RuntimeError(
            f"Expected object of scalar type {names[0]} but got scalar type {names[1]} for second argument"
        )
