"""Which names users find, and where: what is declared as `found`, and what follows for second names and in-place forms."""

from __future__ import annotations

from collections.abc import Iterable

from pullback.facts import Value
from pullback.rules.model import Operation

Facts = dict[str, dict[Value, str]]


class PublicNames:
    """The places of each name: "torch", "method", both or neither.

    A second name is found where the first is, an in-place form as a method where its operation is one, and in torch if it
    takes nothing but its tensor. `method_x` of functions/ is what users call as the method x, `public_x` is `torch.x`.
    """

    def __init__(self, facts: Facts, aliases: dict[Value, str], operations: list[Operation]) -> None:
        self._declared = _by_name(facts["found"])
        self._in_place = _by_name(facts["found_in_place"])
        self._first_names = {second: str(first) for first, names in aliases.items() for second in names.split()}
        self._operations = {operation.name: operation for operation in operations}

    def found(self, place: str, functions: Iterable[str]) -> list[str]:
        """The names that are found in one place, among functions, operations and their in-place forms."""
        prefix = {"torch": "public_", "method": "method_"}[place]
        given = [name.removeprefix(prefix) for name in functions if name.startswith(prefix)]
        forms = [f"{name}_" for name, operation in self._operations.items() if operation.rule.in_place]
        names = {*functions, *self._operations, *forms, *self._declared}
        return sorted({*given, *(name for name in names if place in self._places(name))})

    def _places(self, name: str) -> set[str]:
        if name in self._declared:
            return self._declared[name]
        if name in self._first_names:
            return self._places(self._first_names[name])
        base = self._operations.get(name.removesuffix("_"))
        if base is None or base.name == name or not base.rule.in_place:
            return set()
        if base.name in self._in_place:
            return self._in_place[base.name]
        return self._places(base.name) - (set() if len(base.kernel.parameters) == 1 else {"torch"})


def _by_name(values: dict[Value, str]) -> dict[str, set[str]]:
    return {name: set(str(value).split()) - {"and"} for value, names in values.items() for name in names.split()}
