"""Takes apart the containers that a traced function was given, as far as they are those it was traced with."""

from __future__ import annotations

from typing import Any

from pullback.utils._pytree import TreeSpec, tree_flatten

__all__ = ["tree_flatten_spec"]


def tree_flatten_spec(pytree: Any, spec: TreeSpec) -> list[Any]:
    """The values in nested containers, which must be nested as `spec` says.

    >>> from pullback.utils._pytree import tree_structure
    >>> tree_flatten_spec([{"a": 3}, 4], tree_structure([{"a": 1}, 2]))
    [3, 4]
    """
    values, found = tree_flatten(pytree)
    if found != spec:
        raise ValueError(f"The arguments are nested as {found}, and the function was traced with {spec}")
    return values
