"""Arithmetic on numbers that rules need."""

from __future__ import annotations

from typing import Any

import pullback.generated as F
from pullback.facts import declare
from pullback.tensor.tensor import Tensor
from pullback.typing import Scalar


@declare(exact=True)
def scaled_by(grad: Any, value: Scalar) -> Any:
    """Multiply by the conjugate of a number: the gradient of an argument scaled by it."""
    return grad * value.conjugate()


@declare(twin="recorded")
def exactly(shown: Any, exact: Any) -> Any:
    """`exact`, recorded as `shown`: the chain that PyTorch records, which loses digits where numbers nearly cancel.

    So a gradient is the same number whether it is recorded or not. On arrays the kernel of this name gives `exact`.
    """
    if type(shown) is not Tensor or not shown._requires_grad or shown._bottom is not shown:
        return exact
    shown._array = exact._array
    return shown


@declare(twin="recorded")
def conj(input: Any) -> Any:
    """The complex conjugate; a real tensor itself, so that nothing is recorded."""
    return F.conjugated(input) if F.is_complex_value(input) else input


@declare(exact=True)
def conj_number(value: Scalar) -> Scalar:
    """The complex conjugate of a Python number."""
    return value.conjugate()
