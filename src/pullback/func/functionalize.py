"""functionalize and debug_unwrap."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from pullback.func.batched_tensor import BatchedTensor, innermost
from pullback.tensor.tensor import Tensor


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """`func` itself: operations here act on arrays at once, so that there is no trace to rid of mutations."""
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. Valid options are: "
            "remove='mutations', remove='mutations_and_views'"
        )

    @functools.wraps(func)
    def same(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    return same


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """The whole batch behind a tensor inside of `vmap`, to look at while debugging."""
    if not isinstance(tensor, BatchedTensor):
        return tensor
    return innermost(tensor) if recurse else tensor._physical
