"""Backends that count or keep the graphs that they are given: for tests of programs that compile."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from pullback.creation import empty
from pullback.pytorch.compiler.backend_names import lookup_backend
from pullback.testing import assert_close

__all__ = [
    "AotEagerAndRecordGraphs", "CompileCounter", "CompileCounterWithBackend", "EagerAndRecordGraphs", "rand_strided", "same",
]  # fmt: skip


class CompileCounterWithBackend:
    """Counts the graphs and their operations, keeps them, and hands them on to a backend.

    >>> import pullback
    >>> counter = CompileCounterWithBackend("eager")
    >>> f = pullback.compile(lambda x: x.sin() + 1, backend=counter)
    >>> f(pullback.zeros(1)), counter.frame_count, counter.op_count
    (tensor([1.]), 1, 2)
    """

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.clear()

    def __call__(self, gm: Any, example_inputs: list[Any]) -> Callable[..., Any]:
        self.frame_count += 1
        self.op_count += sum(node.op.startswith("call") for node in gm.graph.nodes)
        self.graphs.append(gm)
        made: Callable[..., Any] = lookup_backend(self.backend)(gm, example_inputs)
        return made

    def clear(self) -> None:
        """Forget what was counted."""
        self.frame_count = self.op_count = 0
        self.graphs: list[Any] = []


CompileCounter = functools.partial(CompileCounterWithBackend, "eager")


class EagerAndRecordGraphs:
    """Keeps the graphs and runs them."""

    def __init__(self) -> None:
        self.graphs: list[Any] = []

    def __call__(self, gm: Any, example_inputs: list[Any]) -> Any:
        self.graphs.append(gm)
        return gm.forward


AotEagerAndRecordGraphs = EagerAndRecordGraphs


def same(a: Any, b: Any, *args: Any, tol: float = 1e-4, equal_nan: bool = False, **options: Any) -> bool:
    """Whether two nestings of tensors and values are equal, tensors to a tolerance."""
    try:
        assert_close(a, b, rtol=tol, atol=tol, equal_nan=equal_nan)
    except (AssertionError, TypeError, ValueError):
        return bool(a == b) if not hasattr(a, "dtype") and not isinstance(a, (list, tuple, dict)) else False
    return True


def rand_strided(
    size: Any, stride: Any, dtype: Any = None, device: Any = "cpu", extra_size: int = 0, memory_format: Any = None
) -> Any:
    """Random numbers with these strides."""
    room = 1 + sum((length - 1) * step for length, step in zip(size, stride, strict=True)) + extra_size
    memory = empty(room, dtype=dtype, device=device)
    memory.normal_() if memory.is_floating_point() or memory.is_complex() else memory.random_(0, 2)
    return memory.as_strided(size, stride)
