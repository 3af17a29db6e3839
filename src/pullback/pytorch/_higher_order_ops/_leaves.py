"""Nestings of tensors, slice by slice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.utils._pytree import tree_flatten, tree_unflatten


def slices_of(xs: Any, dim: int) -> list[Any]:
    """The slices of all tensors of a nesting along a dimension, each in the same nesting."""
    leaves, spec = tree_flatten(xs)
    return [tree_unflatten(list(parts), spec) for parts in zip(*[leaf.unbind(dim) for leaf in leaves], strict=True)]


def pick_each(join: Callable[[list[Any]], Any], parts: Sequence[Any]) -> Any:
    """Join equal nestings, leaf by leaf."""
    flat = [tree_flatten(part) for part in parts]
    columns = zip(*[leaves for leaves, _ in flat], strict=True)
    return tree_unflatten([join(list(column)) for column in columns], flat[0][1])
