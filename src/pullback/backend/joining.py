"""Joining what several processes sent, for dtypes whose sums a library of messages does not know."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.backend.halves import FLOAT32, cast_half
from pullback.typing import Array, DType

_JOINS: dict[str, Callable[[Array, Array], Array]] = {
    "SUM": np.add,
    "PROD": np.multiply,
    "MIN": np.minimum,
    "MAX": np.maximum,
}


def join_buffers(kind: str, dtype: DType, incoming: Any, own: Any) -> None:
    """Replace each number in the memory `own` by its sum (product, ...) with the one in `incoming`, rounded to `dtype`."""
    first, second = np.frombuffer(incoming, dtype), np.frombuffer(own, dtype)
    if dtype.kind == "W":  # complex32: its two halves are added apart
        first, second = first.view(np.float16), second.view(np.float16)
    short = first.dtype
    result = _JOINS[kind](cast_half(first, FLOAT32), cast_half(second, FLOAT32))
    second[...] = cast_half(result, short)
