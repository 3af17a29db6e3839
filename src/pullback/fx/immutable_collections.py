"""Lists and dicts that do not change: what the arguments of a node are kept in."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["immutable_dict", "immutable_list"]

_CHANGES = (
    "__setitem__ __delitem__ __iadd__ __imul__ __ior__ append clear extend insert pop popitem remove reverse setdefault "
    "sort update".split()
)


def _refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise TypeError(
        f"'{type(self).__name__}' object does not support mutation. The arguments of a Node are fixed: make a changed "
        "copy, and assign that to node.args or node.kwargs."
    )


class immutable_list(list[Any]):
    """A list that cannot be changed."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> Any:
        return immutable_list, (tuple(iter(self)),)


class immutable_dict(dict[Any, Any]):
    """A dict that cannot be changed."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return immutable_dict, (dict(self.items()),)


for _cls in (immutable_list, immutable_dict):
    for _name in _CHANGES:
        if hasattr(_cls, _name):
            setattr(_cls, _name, _refuse)
