"""How a class of tensors answers for operations: by handlers of single ones, then by what is declared of the rest.

MaskedTensor, NestedTensor and QuantizedTensor each have `Handlers`. An operation that somebody adds is served by them if
its declaration says enough (Note [Facts]): that it is elementwise, that it only moves elements, that it compares.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pullback.facts import fact_of
from pullback.generated.registry import OPERATIONS, Operation

_Function = TypeVar("_Function", bound=Callable[..., Any])
KindHandler = Callable[[Any, str, tuple[Any, ...], dict[str, Any]], Any]


class Handlers:
    """What a class of tensors does with each operation; `refuse` makes the error for those that it does not have."""

    def __init__(self, refuse: Callable[[str], Exception]) -> None:
        self._refuse = refuse
        self._by_name: dict[str, Callable[..., Any]] = {}
        self._by_kind: list[tuple[Callable[[str], bool], KindHandler]] = []

    def named(self, names: str) -> Callable[[_Function], _Function]:
        """Decorate what serves the operations of these names: it is called with their arguments."""

        def register(function: _Function) -> _Function:
            self._by_name.update(dict.fromkeys(names.split(), function))
            return function

        return register

    def of_kind(self, holds: Callable[[str], bool]) -> Callable[[KindHandler], KindHandler]:
        """Decorate what serves all operations of a kind: it is called with the operation, its name and its arguments."""

        def register(function: KindHandler) -> KindHandler:
            self._by_kind.append((holds, function))
            return function

        return register

    def operate(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run an operation by the handler of its name, or the first whose kind it is of."""
        name = getattr(func, "__name__", str(func))
        handler = self._by_name.get(name)
        if handler is not None:
            return handler(*args, **kwargs)
        for holds, serve in self._by_kind:
            if holds(name):
                return serve(func, name, args, kwargs)
        raise self._refuse(name)


def plain_name(name: str) -> str:
    """The name of the operation that an in-place form or an operator is: `mul` for `mul_`, `__mul__` and `__rmul__`."""
    plain = name.removesuffix("_").strip("_")
    is_reflected = name.startswith("__r") and fact_of(plain, "structure") is None
    return plain.removeprefix("r") if is_reflected else plain


def record_of(name: str) -> Operation | None:
    """The record of an operation, found under each of its names."""
    plain = plain_name(name)
    return OPERATIONS.get(plain) or OPERATIONS.get(fact_of(plain, "alias") or "")


def is_elementwise(name: str) -> bool:
    """Whether each element of the result comes from the same element of the operands.

    >>> is_elementwise("add_"), is_elementwise("__rmul__"), is_elementwise("sum")
    (True, True, False)
    """
    return fact_of(plain_name(name), "structure") == "elementwise"


def moves(name: str) -> bool:
    """Whether an operation puts elements elsewhere and computes nothing.

    >>> moves("transpose"), moves("cat"), moves("add")
    (True, True, False)
    """
    record = OPERATIONS.get(name)
    return bool(fact_of(name, "moves")) or (record is not None and record.view)


def compares(name: str) -> bool:
    """Whether an operation compares two operands.

    >>> compares("less"), compares("isnan")
    (True, False)
    """
    return bool(fact_of(name, "gives") == "comparison")
