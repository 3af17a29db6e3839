"""What the distributions refuse, in PyTorch's key phrases."""

from __future__ import annotations

import numpy as np

from pullback.backend.dtype import cpp_type_name, is_float_or_complex, scalar_type_name
from pullback.typing import DType

_DIGITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}


def is_floating(dtype: DType) -> bool:
    """Whether the dtype is real floating point."""
    return is_float_or_complex(dtype) and dtype.kind != "c"


def digits_of(dtype: DType) -> int:
    """How many binary digits a floating dtype holds exactly."""
    return _DIGITS[dtype.name]


def greatest_of(dtype: DType) -> float:
    """The greatest finite number of a dtype."""
    if dtype.name == "bfloat16":
        return (2 - 2.0**-7) * 2.0**127
    return float(np.finfo(dtype).max) if dtype.kind == "f" else int(np.iinfo(dtype).max) if dtype.kind != "b" else 1


def least_of(dtype: DType) -> float:
    """The least finite number of a dtype."""
    if is_floating(dtype):
        return -greatest_of(dtype)
    return int(np.iinfo(dtype).min) if dtype.kind != "b" else 0


def unsupported(kernel: str, dtype: DType) -> NotImplementedError:
    """A distribution does not exist for a dtype."""
    return NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_type_name(dtype)}'")


def require_floating(count: int, dtype: DType, kernel: str) -> None:
    """Refuse integers, unless there is nothing to draw."""
    if count and not is_floating(dtype):
        raise unsupported(kernel, dtype)


def require_continuous(count: int, dtype: DType, distribution: str) -> None:
    """Refuse integers for a distribution of real numbers, unless there is nothing to draw."""
    if count and not is_floating(dtype):
        # PyTorch names the dtype of the Cauchy distribution as C++ does.
        name = cpp_type_name(dtype) if distribution == "Cauchy" else scalar_type_name(dtype)
        raise RuntimeError(
            f"{distribution} distribution is a continuous probability distribution. dtype must be a floating point "
            f"but you specified {name}"
        )


def require_positive(function: str, name: str, value: float) -> None:
    """Refuse a scale that is not positive."""
    if not value > 0:
        raise RuntimeError(f"{function} expects {name} > 0.0, but found {name}={value:g}")


def require_uniform_bounds(dtype: DType, low: float, high: float) -> None:
    """Refuse an interval that the dtype cannot hold."""
    if not is_floating(dtype):
        raise unsupported("check_uniform_bounds", dtype)
    greatest = greatest_of(dtype)
    for name, value in (("from", low), ("to", high)):
        if not -greatest <= value <= greatest:
            raise RuntimeError(f"{name} is out of bounds for {cpp_type_name(dtype)}: {value:g}")
    if low > high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}")
    if high - low > greatest:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{scalar_type_name(dtype)}>::max(), but found to={high:g} "
            f"and from={low:g} which result in to-from to exceed the limit"
        )


def require_within(dtype: DType, name: str, value: int) -> None:
    """Refuse an integer bound that the dtype cannot hold."""
    if not least_of(dtype) <= value <= greatest_of(dtype):
        raise RuntimeError(f"{name} is out of bounds for {cpp_type_name(dtype)}: {value}")
