"""Compiled functions beside eager ones: what the tests of compile share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pullback
from pullback import nn
from pullback.compiling.compiled_function import CompiledFunction

F = nn.functional
CALLS = 4
"""Two recordings, and two runs of the program."""


def weights(*shape: int, seed: int = 0) -> Any:
    generator = pullback.Generator().manual_seed(seed)
    return pullback.randn(*shape, generator=generator, requires_grad=True)


def assert_close(actual: Any, expected: Any, rtol: float = 2e-5) -> None:
    """A compiled function may add in another order, and fuse a product with a sum: values agree to rounding."""
    pullback.testing.assert_close(actual.detach(), expected.detach(), rtol=rtol, atol=2e-6, equal_nan=True)


def skipped(function: Any) -> int:
    """How often Python was skipped."""
    assert isinstance(function, CompiledFunction)
    return function.runs - failures(function)


def failures(function: CompiledFunction) -> int:
    """How often a program raised, and the function ran in its place."""
    return sum(getattr(entry, "failures", 0) for kind in function.kinds.values() for entry in kind.entries)


def assert_same(function: Callable[..., Any], *shapes: tuple[int, ...]) -> None:
    """Values and gradients of a function are the same, whether compiled or not, and Python is skipped at last."""
    compiled = pullback.compile(function)
    for call in range(CALLS):
        results = []
        for run in (function, compiled):
            pullback.manual_seed(call)
            inputs = [weights(*shape, seed=call + number) for number, shape in enumerate(shapes)]
            result = run(*inputs)
            result.sum().backward()
            results.append([result.detach(), *[x.grad for x in inputs], pullback.rand(1)])
        for expected, actual in zip(*results, strict=True):
            assert_close(actual, expected)
    assert skipped(compiled) == CALLS - 2
