"""LogicalArray: the array of one example of a batch, which has a shape and a dtype but gives no values away."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from pullback.typing import Array

_MESSAGE = (
    "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow, or in a function that reads "
    "its values while they are batched. We don't support that yet: each example has its own values. Compute with tensor "
    "operations (for example where instead of if), or do this outside of vmap."
)


_GEOMETRIC = {np.may_share_memory, np.shares_memory, np.ndim, np.shape, np.size}


def _refuse(*args: Any, **kwargs: Any) -> NoReturn:
    raise RuntimeError(_MESSAGE)


class LogicalArray(np.ndarray):  # type: ignore[misc]  # NumPy is Any to the checker
    """What `BatchedTensor._array` is: geometry for the functions that ask for it, an error for those that read values."""

    __array_ufunc__ = _refuse

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Questions about memory are answered, all others refused."""
        if function in _GEOMETRIC:
            return function(*[a.view(np.ndarray) if isinstance(a, LogicalArray) else a for a in args], **kwargs)
        _refuse()

    __getitem__ = _refuse
    __setitem__ = _refuse
    __bool__ = _refuse
    __int__ = _refuse
    __float__ = _refuse
    __complex__ = _refuse
    __index__ = _refuse
    __iter__ = _refuse
    item = _refuse
    tolist = _refuse
    astype = _refuse
    copy = _refuse
    sum = _refuse
    tobytes = _refuse


def first_example(batch: Array) -> Array:
    """The geometry of one example of `batch`, whose first dimension counts the examples."""
    if batch.shape[0]:
        return np.ndarray.__getitem__(batch, (0, ...)).view(LogicalArray)
    return np.empty(batch.shape[1:], batch.dtype).view(LogicalArray)


def has_values(array: Array) -> bool:
    """Whether `array` is more than the geometry of an example."""
    return not isinstance(array, LogicalArray)


def require_values(array: Array) -> None:
    """Refuse the geometry of an example where its values are needed."""
    if isinstance(array, LogicalArray):
        _refuse()


def batched_mask() -> RuntimeError:
    """What is wrong with an index that is a mask of truth values of its own for each example."""
    return RuntimeError(
        "vmap: We do not support batching operators that can support dynamic shape. Attempting to batch over indexing with "
        "a boolean mask: each example would give a result of another length. Use where(mask, input, value) instead."
    )
