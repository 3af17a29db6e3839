"""What kernels share about dtypes: refusing some, and computing half precision in float32."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from pullback.backend.dtype import scalar_type_name
from pullback.typing import Array

_Kernel = TypeVar("_Kernel", bound=Callable[..., Any])


def _refuse_kinds(input: Array, kinds: str, function: str) -> None:
    """Raise for an input whose dtype is of one of NumPy's `kinds` ("b" bool, "i" and "u" integers, "f", "c")."""
    if input.dtype.kind in kinds:
        raise NotImplementedError(f"\"{function}\" not implemented for '{scalar_type_name(input.dtype)}'")


def _with_number(function: Callable[[Any, Any], Any], input: Array, other: Any) -> Any:
    """Combine with an array of the same dtype, or in float32 with a number that float16 and bfloat16 would round."""
    if hasattr(other, "dtype"):
        return function(input, other)
    return function(input.astype(np.float32), np.float32(other)).astype(input.dtype)


def _in_float32(kernel: _Kernel) -> _Kernel:
    """Compute a kernel of several steps in float32 where its first array is float16 or bfloat16, and round once."""

    @wraps(kernel)
    def computed(input: Array, *args: Any, **kwargs: Any) -> Any:
        dtype = input.dtype
        if dtype.itemsize != 2:
            return kernel(input, *args, **kwargs)
        wide = [a.astype(np.float32) if hasattr(a, "astype") and a.dtype == dtype else a for a in args]
        return kernel(input.astype(np.float32), *wide, **kwargs).astype(dtype)

    return computed  # type: ignore[return-value]  # the same signature
