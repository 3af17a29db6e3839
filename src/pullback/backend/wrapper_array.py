"""WrapperArray: the array of a tensor that only wraps others. It has a shape, strides and a dtype, and no values."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from pullback.typing import Array


class WrapperArray(np.ndarray):  # type: ignore[misc]  # NumPy is untyped to the checker
    """An array whose values nobody may read."""

    def __array_ufunc__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise _no_values()

    def __array_function__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise _no_values()

    def item(self, *args: Any) -> NoReturn:
        raise _no_values()

    tolist = item


def _no_values() -> RuntimeError:
    return RuntimeError(
        "Cannot access data pointer of Tensor that doesn't have storage: this tensor wraps others, and has no values of its "
        "own. Its __torch_dispatch__ was not asked for this operation; use the tensors that it holds."
    )


def as_wrapper(array: Array) -> Array:
    """The same memory as an array that has no values."""
    return array.view(WrapperArray)
