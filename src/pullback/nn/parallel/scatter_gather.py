"""Arguments and results of modules, spread over GPUs and brought together: tensors in tuples, lists and dictionaries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.nn.parallel._functions import Gather, Scatter
from pullback.tensor.tensor import Tensor

__all__ = ["gather", "scatter", "scatter_kwargs"]


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """For each GPU what it computes with: parts of the tensors, and the same object of everything else.

    >>> scatter(("a", 2), [0, 1])
    [('a', 2), ('a', 2)]
    """
    if isinstance(inputs, Tensor):
        return Scatter.apply(target_gpus, None, dim, inputs)
    if isinstance(inputs, (tuple, list)) and inputs:
        rows = zip(*[scatter(each, target_gpus, dim) for each in inputs], strict=False)
        if hasattr(inputs, "_fields"):
            return [type(inputs)(*row) for row in rows]
        return [row if isinstance(inputs, tuple) else list(row) for row in rows]
    if isinstance(inputs, dict) and inputs:
        rows = zip(*[scatter(each, target_gpus, dim) for each in inputs.values()], strict=False)
        return [type(inputs)(zip(inputs, row, strict=True)) for row in rows]
    return [inputs for _ in target_gpus]


def scatter_kwargs(
    inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, target_gpus: Sequence[Any], dim: int = 0
) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:
    """For each GPU its arguments, and its arguments by name; as many of the one as of the other."""
    rows = list(scatter(inputs, target_gpus, dim)) if inputs else []
    named = list(scatter(kwargs, target_gpus, dim)) if kwargs else []
    rows += [() for _ in range(len(named) - len(rows))]
    named += [{} for _ in range(len(rows) - len(named))]
    return tuple(rows), tuple(named)


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """The results of all GPUs as one, on a device: tensors are joined, in whatever they lie."""
    first = outputs[0]
    if isinstance(first, Tensor):
        return Gather.apply(target_device, dim, *outputs)
    if first is None:
        return None
    if isinstance(first, dict):
        if any(len(each) != len(first) for each in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)({key: gather([each[key] for each in outputs], target_device, dim) for key in first})
    parts = [gather(each, target_device, dim) for each in zip(*outputs, strict=False)]
    return type(first)(*parts) if hasattr(first, "_fields") else type(first)(parts)
