"""What kernels ask of dtypes, in PyTorch's words."""

from __future__ import annotations

import numpy as np

from pullback.backend.dtype import is_float_or_complex, scalar_type_name, type_in_errors
from pullback.typing import Array, DType

_FLOAT32 = np.dtype(np.float32)


def not_implemented(function: str, input: Array) -> NotImplementedError:
    """A function has no kernel for the dtype of an input."""
    return NotImplementedError(f"\"{function}\" not implemented for '{scalar_type_name(input.dtype)}'")


def refuse_kinds(input: Array, kinds: str, function: str) -> None:
    """Raise for an input whose dtype is of one of NumPy's `kinds` ("b" bool, "i" and "u" integers, "f", "c")."""
    if input.dtype.kind in kinds:
        raise not_implemented(function, input)


def refuse_complex(name: str, input: Array) -> None:
    """Refuse numbers that have no order."""
    refuse_kinds(input, "c", name)


def refuse_unordered(name: str, input: Array) -> None:
    """Refuse bools and complex numbers."""
    refuse_kinds(input, "bc", name)


def require_real_floating(name: str, input: Array) -> None:
    """Refuse integers and complex numbers where PyTorch has no kernel for them."""
    refuse_complex(name, input)
    require_floating(name, input)


def require_floating(name: str, input: Array) -> None:
    """Refuse integers where PyTorch has no kernel for them."""
    if not is_float_or_complex(input.dtype):
        raise not_implemented(name, input)


def refuse_complex_bounds(input: Array) -> None:
    """Refuse complex numbers where a bound is compared with them."""
    if input.dtype.kind == "c":
        raise NotImplementedError("clamp is not supported for complex types")


def require_rows(function: str, indices: Array) -> None:
    """Refuse numbers of rows that are not int32 or int64."""
    if indices.dtype.str[1:] not in ("i4", "i8"):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"{type_in_errors(indices.dtype)} instead (while checking arguments for {function})"
        )


def require_parameter_dtypes(input: Array, *parameters: Array | None) -> None:
    """Refuse parameters of another dtype than the input's, unless all are float32 beside 16 bits."""
    for parameter in parameters:
        if parameter is not None and parameter.dtype is not input.dtype and parameter.dtype != input.dtype:
            _refuse_mixture(input, [given.dtype for given in parameters if given is not None])
            return


def _refuse_mixture(input: Array, found: list[DType]) -> None:
    given = scalar_type_name(input.dtype)
    if found[0] == input.dtype:
        other = next(dtype for dtype in found if dtype != input.dtype)
        raise RuntimeError(f"expected scalar type {given} but found {scalar_type_name(other)}")
    strange = next((dtype for dtype in found if dtype != _FLOAT32), None)
    if strange is not None:
        raise RuntimeError(
            f"mixed dtype (CPU): expect parameter to have scalar type of Float: the input is {given}, a parameter "
            f"{scalar_type_name(strange)}"
        )
    if input.dtype.itemsize != 2:
        raise RuntimeError(
            f"mixed dtype (CPU): all inputs must share same datatype. Here the input is {given}, the parameters Float"
        )
