"""PyTorch's `torch.utils`: data loading, hooks, trees of containers and the like, each loaded on first use."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from pullback.tensor.tensor import Tensor
from pullback.tensor.tensor_base import STATE

__all__ = ["swap_tensors"]


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Exchange all that two tensors are, their classes and attributes included: references to one now mean the other.

    >>> import pullback
    >>> a, b = pullback.ones(1), pullback.zeros(2)
    >>> swap_tensors(a, b)
    >>> a.tolist(), b.tolist()
    ([0.0, 0.0], [1.0])
    """
    for tensor in (t1, t2):
        if tensor._accumulator is not None and tensor._accumulator() is not None:
            raise RuntimeError("Cannot swap a tensor whose graph is still held: drop what was computed from it first.")
    mine, other = _everything(t1), _everything(t2)
    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    for tensor, values in ((t1, other), (t2, mine)):
        tensor.__dict__.clear()
        for name, value in values.items():
            setattr(tensor, name, value)


def _everything(tensor: Tensor) -> dict[str, Any]:
    """The state of a tensor and what users have set on it."""
    return {**{name: getattr(tensor, name) for name in STATE}, **tensor.__dict__}


def __getattr__(name: str) -> ModuleType:
    if name.startswith("__"):
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    try:
        return importlib.import_module(f"{__name__}.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"{__name__}.{name}":
            raise
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'") from None


def __dir__() -> list[str]:
    from pkgutil import iter_modules  # only who lists the package pays for it

    return sorted({*globals(), *(module.name for module in iter_modules(__path__))})
