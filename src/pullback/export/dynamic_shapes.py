"""Sizes that may change in an exported program: how users name them, and the symbols that a trace is made with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from pullback.fx.experimental.symbolic_sizes import Symbol
from pullback.tensor.tensor import Tensor
from pullback.utils._pytree import tree_flatten

__all__ = ["Dim", "dims"]


class _Hint(Enum):
    AUTO = "AUTO"
    DYNAMIC = "DYNAMIC"
    STATIC = "STATIC"

    def __repr__(self) -> str:
        return f"DimHint({self.name})"

    __str__ = __repr__


class Dim:
    """A size with a name, which may lie between `min` and `max`; dimensions of one name have equal sizes."""

    AUTO, DYNAMIC, STATIC = _Hint.AUTO, _Hint.DYNAMIC, _Hint.STATIC

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        if not name.isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        self.min, self.max = 0 if min is None else min, max
        if self.max is not None and self.max <= self.min:
            raise AssertionError(f"Cannot create Dim with inconsistent min={min}, max={max}")
        self.__name__ = name

    def __repr__(self) -> str:
        least = f", min={self.min}" if self.min != 2 else ""  # as PyTorch, for which 2 is the least size that changes
        most = f", max={self.max}" if self.max is not None else ""
        return f"Dim('{self.__name__}'{least}{most})"


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Several sizes with names."""
    return tuple([Dim(name, min=min, max=max) for name in names])


class Ranges:
    """Which sizes of the arguments may change, and within which bounds."""

    def __init__(self, wanted: Any, names: Sequence[str], values: Sequence[Any]) -> None:
        self.symbols: list[Symbol] = []
        self.is_strict = False
        self.bounds: dict[tuple[int, int], Dim | None] = {}
        """By leaf and dimension: the bounds, if there are some."""
        places: dict[Any, list[tuple[int, int]]] = {}
        sizes: dict[Any, int] = {}
        first = 0
        for name, value, told in zip(names, values, _by_argument(wanted, names), strict=True):
            leaves = tree_flatten(value)[0]
            forms = _by_leaf(told, value, len(leaves), name)
            for number, (leaf, form) in enumerate(zip(leaves, forms, strict=True), first):
                for dim, size in _dims_of(form, leaf, name):
                    if size is _Hint.STATIC or size is None or isinstance(size, int):
                        continue
                    key: Any = size if isinstance(size, Dim) else (number, dim)
                    if sizes.setdefault(key, leaf.shape[dim]) != leaf.shape[dim]:
                        raise ValueError(
                            f"{size!r} stands for sizes that differ: {sizes[key]} and {leaf.shape[dim]} of {name!r}"
                        )
                    places.setdefault(key, []).append((number, dim))
                    self.is_strict |= size is not _Hint.AUTO
                    self.bounds[number, dim] = size if isinstance(size, Dim) else None
            first += len(leaves)
        self.symbols = [Symbol(tuple(where), sizes[key]) for key, where in places.items()]


def _by_argument(wanted: Any, names: Sequence[str]) -> list[Any]:
    if wanted is None:
        return [None] * len(names)
    if isinstance(wanted, Mapping):
        unknown = [name for name in wanted if name not in names]
        if unknown:
            raise ValueError(f"dynamic_shapes names {unknown[0]!r}, which is not an argument: there are {list(names)}")
        return [wanted.get(name) for name in names]
    if len(wanted) != len(names):
        raise ValueError(f"dynamic_shapes has {len(wanted)} entries for {len(names)} arguments")
    return list(wanted)


def _by_leaf(told: Any, value: Any, count: int, name: str) -> list[Any]:
    if told is None:
        return [None] * count
    if isinstance(value, Tensor):
        return [told]
    if isinstance(value, Mapping) and isinstance(told, Mapping):
        return [form for key in value for form in _by_leaf(told.get(key), value[key], _count(value[key]), name)]
    if isinstance(value, (list, tuple)) and isinstance(told, (list, tuple)) and len(told) == len(value):
        return [form for v, t in zip(value, told, strict=True) for form in _by_leaf(t, v, _count(v), name)]
    raise ValueError(f"dynamic_shapes for {name!r} must have the structure of the argument, or be None")


def _count(value: Any) -> int:
    return len(tree_flatten(value)[0])


def _dims_of(form: Any, leaf: Any, name: str) -> list[tuple[int, Any]]:
    if form is None:
        return []
    if not isinstance(leaf, Tensor):
        raise ValueError(f"dynamic_shapes for {name!r} tells sizes of something that is not a tensor")
    pairs = list(form.items()) if isinstance(form, Mapping) else list(enumerate(form))
    for dim, _ in pairs:
        if not -leaf.ndim <= dim < leaf.ndim:
            raise ValueError(f"dynamic_shapes for {name!r} names dimension {dim} of a tensor of {leaf.ndim} dimensions")
    return [(dim % leaf.ndim, size) for dim, size in pairs]
