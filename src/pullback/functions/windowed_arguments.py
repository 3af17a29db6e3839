"""Arguments of functions that slide a window: one number for all dimensions, or one for each."""

from __future__ import annotations

from typing import Any

from pullback.tensor.arguments import as_int, as_shape
from pullback.typing import Shape


def each_dim(function: str, name: str, value: Any, dims: int) -> Shape:
    """`value` as one int per dimension."""
    if not isinstance(value, (tuple, list)):
        return (as_int(value),) * dims
    if len(value) == 1:
        return as_shape(value) * dims
    if len(value) != dims:
        words = {1: "one int", 2: "two ints", 3: "three ints"}
        raise RuntimeError(f"{function}: {name} must either be a single int, or a tuple of {words[dims]}")
    return as_shape(value)
