"""What kernels share about dtypes: refusing some, and computing half precision in float32."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from pullback.backend.halves import FLOAT32, cast_half
from pullback.typing import Array

_Kernel = TypeVar("_Kernel", bound=Callable[..., Any])


def _with_number(function: Callable[[Any, Any], Any], input: Array, other: Any) -> Any:
    """Combine with an array of the same dtype, or in float32 with a number that float16 and bfloat16 would round."""
    if hasattr(other, "dtype"):
        return function(input, other)
    return cast_half(function(cast_half(input, FLOAT32), np.float32(other)), input.dtype)


def _in_float32(kernel: _Kernel) -> _Kernel:
    """Compute a kernel of several steps in float32 where its first array is float16 or bfloat16, and round once."""

    @wraps(kernel)
    def computed(input: Array, *args: Any, **kwargs: Any) -> Any:
        dtype = input.dtype
        if dtype.itemsize != 2 or dtype.kind in "iu":
            return kernel(input, *args, **kwargs)
        wide = [cast_half(a, FLOAT32) if hasattr(a, "astype") and a.dtype == dtype else a for a in args]
        return cast_half(kernel(cast_half(input, FLOAT32), *wide, **kwargs), dtype)

    return computed  # type: ignore[return-value]  # the same signature
