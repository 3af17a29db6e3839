"""Family: kernels of the GPU's own, written as methods and declared there for the operations that they serve."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])


def serves(*names: str) -> Callable[[_Function], _Function]:
    """Declare a method as the kernel of operations: of those named, or of the one that bears its name."""

    def mark(method: _Function) -> _Function:
        method.serves = names or (method.__name__,)  # type: ignore[attr-defined]  # functions take attributes
        return method

    return mark


class Family:
    """Kernels for one library; each answers NotImplemented to what it does not serve."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._cupy = library.module

    def kernels(self) -> dict[str, Any]:
        """The kernels by the names of the operations."""
        methods = [(attribute, getattr(type(self), attribute)) for attribute in dir(type(self))]
        return {
            name: getattr(self, attribute) for attribute, method in methods for name in getattr(method, "serves", ())
        }
