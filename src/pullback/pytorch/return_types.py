"""The named tuples of functions with several results, by the function's name."""

from __future__ import annotations

from typing import Any

from pullback.tensor.return_types import RETURN_TYPES

all_return_types = tuple(RETURN_TYPES.values())


def __getattr__(name: str) -> Any:
    found = RETURN_TYPES.get(name)
    if found is None:
        raise AttributeError(f"module 'pullback.return_types' has no attribute '{name}'")
    return found


def __dir__() -> list[str]:
    return sorted([*RETURN_TYPES, "all_return_types"])
