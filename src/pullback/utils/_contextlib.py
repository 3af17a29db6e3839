"""Context managers that are decorators too, for libraries that write their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.autograd.grad_mode import _ContextDecorator as _DecoratorContextManager
from pullback.autograd.grad_mode import decorate

__all__ = ["_DecoratorContextManager", "_NoParamDecoratorContextManager", "context_decorator"]


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """One that takes no arguments: it decorates without being called first."""

    def __new__(cls, orig_func: Any = None) -> Any:
        return super().__new__(cls) if orig_func is None else cls()(orig_func)


def context_decorator(ctx: Any, func: Callable[..., Any]) -> Any:
    """Run `func` inside of a manager: `ctx`, or what `ctx` makes for each call."""
    if not callable(ctx) and hasattr(ctx, "__enter__"):
        return decorate(lambda: ctx, func)
    return decorate(ctx, func)
