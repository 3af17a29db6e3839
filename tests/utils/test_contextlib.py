"""Context managers that decorate."""

from __future__ import annotations

from pullback.utils._contextlib import _DecoratorContextManager, context_decorator

entered: list[str] = []


class Named(_DecoratorContextManager):
    def __init__(self, name: str) -> None:
        self.name = name

    def clone(self) -> Named:
        return Named(self.name)

    def __enter__(self) -> None:
        entered.append(self.name)

    def __exit__(self, *exception: object) -> None:
        entered.append(f"left {self.name}")


def test_a_manager_of_a_library_decorates() -> None:
    entered.clear()

    @Named("first")
    def function(x: int) -> int:
        return x + 1

    assert function(1) == 2
    assert entered == ["first", "left first"]


def test_a_manager_is_put_around_a_function() -> None:
    entered.clear()
    assert context_decorator(lambda: Named("second"), lambda: 3)() == 3
    assert entered == ["second", "left second"]
