"""What kernels ask of dtypes, in PyTorch's words."""

from __future__ import annotations

from pullback.backend.dtype import is_float_or_complex, scalar_type_name
from pullback.typing import Array


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
            f"torch.{scalar_type_name(indices.dtype)}Tensor instead (while checking arguments for {function})"
        )
