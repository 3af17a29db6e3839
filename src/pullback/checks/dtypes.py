"""What kernels ask of dtypes, in PyTorch's words."""

from __future__ import annotations

from pullback.backend.dtype import is_float_or_complex, scalar_type_name
from pullback.typing import Array


def refuse_kinds(input: Array, kinds: str, function: str) -> None:
    """Raise for an input whose dtype is of one of NumPy's `kinds` ("b" bool, "i" and "u" integers, "f", "c")."""
    if input.dtype.kind in kinds:
        raise NotImplementedError(f"\"{function}\" not implemented for '{scalar_type_name(input.dtype)}'")


def refuse_complex(name: str, input: Array) -> None:
    """Refuse numbers that have no order."""
    if input.dtype.kind == "c":
        raise NotImplementedError(f"\"{name}\" not implemented for '{scalar_type_name(input.dtype)}'")


def refuse_unordered(name: str, input: Array) -> None:
    """Refuse bools and complex numbers."""
    if input.dtype.kind in "bc":
        raise NotImplementedError(f"\"{name}\" not implemented for '{scalar_type_name(input.dtype)}'")


def require_real_floating(name: str, input: Array) -> None:
    """Refuse integers and complex numbers where PyTorch has no kernel for them."""
    refuse_complex(name, input)
    require_floating(name, input)


def require_floating(name: str, input: Array) -> None:
    """Refuse integers where PyTorch has no kernel for them."""
    if not is_float_or_complex(input.dtype):
        raise NotImplementedError(f"\"{name}\" not implemented for '{scalar_type_name(input.dtype)}'")
