"""The table of batching rules, and the words rules are written in.

A rule is called as rule(level, function, args, kwargs) when an argument is a tensor of `level`, with only the levels
further out switched on. It runs `function`, or others, on whole batches and returns tensors of the level.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pullback.generated as G
from pullback.func.batched_tensor import BatchedTensor
from pullback.func.vmap_level import VmapLevel
from pullback.generated.registry import OPERATIONS
from pullback.tensor.tensor import Tensor

Rule = Callable[[VmapLevel, Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]

RULES: dict[str, Rule] = {}


def rule(names: str) -> Callable[[Rule], Rule]:
    """Make the decorated function the rule of the operations `names`."""

    def register(function: Rule) -> Rule:
        for name in names.split():
            RULES[name] = function
        return function

    return register


def bind(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of an operation by their names."""
    names = [parameter[0] for parameter in OPERATIONS[name].parameters]
    return {**dict(zip(names, args, strict=False)), **kwargs}


def keyword_names(name: str) -> set[str]:
    """The parameters of an operation that must be given by name."""
    return {parameter[0] for parameter in OPERATIONS[name].parameters if parameter[2]}


def call(function: Callable[..., Any], name: str, bound: dict[str, Any]) -> Any:
    """Call an operation with arguments by their names."""
    keywords = keyword_names(name)
    return function(
        *[value for key, value in bound.items() if key not in keywords],
        **{key: value for key, value in bound.items() if key in keywords},
    )


def ndim_of(value: Any) -> int:
    """The number of dimensions that the function under vmap sees."""
    return int(value._array.ndim)


def shape_of(value: Any) -> tuple[int, ...]:
    """The shape that the function under vmap sees."""
    return tuple(value._array.shape)


def physical_of(level: VmapLevel, value: Any) -> Any:
    """The whole batch of a tensor of the level; anything else as it is."""
    return value._physical if isinstance(value, BatchedTensor) and value._level is level else value


def aligned(level: VmapLevel, value: Any, rank: int) -> Any:
    """A batch with dimensions of size 1 inserted after the examples, so that `rank` logical dimensions broadcast."""
    if not level.owns(value):
        return value
    missing = rank - ndim_of(value)
    if missing <= 0:
        return value._physical
    return G.view(value._physical, (level.batch_size, *[1] * missing, *shape_of(value)))


def expanded(level: VmapLevel, value: Any) -> Any:
    """The whole batch, also of a tensor that is the same for all examples; None stays None."""
    return level.to_physical(value) if isinstance(value, Tensor) else value


def tensors_among(values: Sequence[Any]) -> list[Any]:
    """The tensors among `values`."""
    return [value for value in values if isinstance(value, Tensor)]


def fold(tensor: Any) -> Any:
    """The first two dimensions as one."""
    shape = tensor._array.shape
    return G.reshape(tensor, (shape[0] * shape[1], *shape[2:]))


def unfold_batch(level: VmapLevel, tensor: Any) -> Any:
    """The first dimension as two, of which the first counts the examples."""
    shape = tensor._array.shape
    size = level.batch_size
    return G.reshape(tensor, (size, shape[0] // size if size else 0, *shape[1:]))
