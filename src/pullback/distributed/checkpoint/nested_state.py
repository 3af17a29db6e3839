"""States as flat names: `{"model": {"weight": w}}` holds `model.weight`.

Mappings are always taken apart, lists where a tensor or a mapping is in them; everything else is one value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pullback.tensor.tensor import Tensor

__all__ = ["Path", "flatten", "put", "value_at"]

Path = tuple[str | int, ...]


def flatten(state: Mapping[str, Any]) -> dict[str, tuple[Path, Any]]:
    """Every value by its flat name, with its path.

    >>> {name: path for name, (path, _) in flatten({"a": {"b": 1}, "c": [{"d": 2}], "e": [3, 4]}).items()}
    {'a.b': ('a', 'b'), 'c.0.d': ('c', 0, 'd'), 'e': ('e',)}
    """
    found: dict[str, tuple[Path, Any]] = {}
    for path, value in _leaves((), state):
        name = ".".join(map(str, path))
        if name in found:
            raise ValueError(f"duplicated flatten key {name}: two entries of the state have the same name when joined")
        found[name] = (path, value)
    return found


def _leaves(path: Path, value: Any) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _leaves((*path, str(key)), part)
    elif isinstance(value, list) and _has_parts(value):
        for index, part in enumerate(value):
            yield from _leaves((*path, index), part)
    else:
        yield path, value


def _has_parts(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_has_parts, value))
    return isinstance(value, Mapping | Tensor)


def put(state: Any, path: Path, value: Any) -> None:
    """Replace the value at a path; the containers on the way are there already."""
    for key in path[:-1]:
        state = state[_own_key(state, key)]
    state[_own_key(state, path[-1])] = value


def _own_key(state: Any, key: str | int) -> Any:
    """The key of a mapping that has this text: a path holds texts, an optimizer's state numbers."""
    if isinstance(state, Mapping) and key not in state:
        return next(known for known in state if str(known) == key)
    return key


def value_at(entries: Mapping[str, tuple[Path, Any]]) -> dict[str, Any]:
    """The nested state that flat names with their paths describe.

    >>> value_at({"a.0.b": (("a", 0, "b"), 1), "a.1.b": (("a", 1, "b"), 2)})
    {'a': [{'b': 1}, {'b': 2}]}
    """
    root: dict[str, Any] = {}
    for path, value in entries.values():
        here: Any = root
        for key, following in zip(path, [*path[1:], None], strict=True):
            made = value if following is None else [] if isinstance(following, int) else {}
            if isinstance(here, list):
                here.extend([None] * (int(key) + 1 - len(here)))
                here[int(key)] = made if here[int(key)] is None else here[int(key)]
            else:
                here.setdefault(key, made)
            here = here[key]
    return root
