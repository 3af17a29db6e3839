"""LogicalArray: the array of one example of a batch, which has a shape and a dtype but gives no values away."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from pullback.typing import Array

_MESSAGE = (
    "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow, or in a function that reads "
    "its values while they are batched. We don't support that yet: each example has its own values. Compute with tensor "
    "operations (for example where instead of if), or do this outside of vmap."
)

_ESCAPED = (
    "Either your tensor may have escaped from inside a function being vmapped and this is a user error, or it is used where "
    "the vmap does not reach: it stands for all examples of a batch, which only the vmap that made it knows. Return it "
    "from the function instead of keeping it."
)


ITEM = (
    "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a Tensor, please "
    "try to rewrite what you're doing with other operations: every example of the batch has a value of its own."
)

_GEOMETRIC = {np.may_share_memory, np.shares_memory, np.ndim, np.shape, np.size, np.moveaxis}


class _Running:
    """Whether a vmap runs, which `func/vmap_level.py` knows."""

    ask: Callable[[], bool] = staticmethod(lambda: True)


running = _Running


def _refuse(*args: Any, **kwargs: Any) -> NoReturn:
    raise RuntimeError(_MESSAGE if running.ask() else _ESCAPED)


def _refuse_item(*args: Any, **kwargs: Any) -> NoReturn:
    raise RuntimeError(ITEM)


class LogicalArray(np.ndarray):  # type: ignore[misc]  # NumPy is Any to the checker
    """What `BatchedTensor._array` is: geometry for the functions that ask for it, an error for those that read values."""

    __array_ufunc__ = _refuse

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Questions about shape and memory are answered, all others refused."""
        if function in _GEOMETRIC:
            answer = function(*[a.view(np.ndarray) if isinstance(a, LogicalArray) else a for a in args], **kwargs)
            return answer.view(LogicalArray) if isinstance(answer, np.ndarray) else answer
        _refuse()

    __getitem__ = _refuse
    __setitem__ = _refuse
    __bool__ = _refuse
    __int__ = _refuse_item
    __float__ = _refuse_item
    __complex__ = _refuse_item
    __index__ = _refuse_item
    __iter__ = _refuse
    item = _refuse_item
    tolist = _refuse_item
    astype = _refuse
    copy = _refuse
    sum = _refuse
    tobytes = _refuse


def first_example(batch: Array, dim: int = 0) -> Array:
    """The geometry of one example of `batch`, whose dimension `dim` counts the examples."""
    if not isinstance(batch, np.ndarray):
        return _geometry_of(batch, dim)
    if batch.shape[dim]:
        return np.ndarray.__getitem__(batch, (*(slice(None),) * dim, 0, ...)).view(LogicalArray)
    return np.empty((*batch.shape[:dim], *batch.shape[dim + 1 :]), batch.dtype).view(LogicalArray)


def _geometry_of(batch: Any, dim: int) -> Array:
    """The geometry of one example of an array of another device: there is no memory behind it."""
    shape, strides = (*batch.shape[:dim], *batch.shape[dim + 1 :]), (*batch.strides[:dim], *batch.strides[dim + 1 :])
    example = np.lib.stride_tricks.as_strided(np.empty(1, batch.dtype), shape, strides).view(LogicalArray)
    example.place = batch.place
    return example


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
