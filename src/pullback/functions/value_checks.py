"""Questions about values whose answer decides whether a function refuses its arguments."""

from __future__ import annotations

from typing import Any

from pullback.kernels.reductions import check_all
from pullback.modes.switches import process, switches
from pullback.tensor.tensor import Tensor


def are_all_true(values: Any) -> bool:
    """Whether all elements of a tensor are true. Compiled functions ask again in each call, without a break.

    >>> import pullback
    >>> are_all_true(pullback.tensor([1.0, 2.0]) > 1)
    False
    """
    if type(values) is not Tensor or switches.interceptors or process.modes:  # which are to see what is asked
        return bool(values.all())
    try:
        check_all(values._array)
    except ValueError:
        return False
    return True
