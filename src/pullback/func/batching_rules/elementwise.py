"""Elementwise operations: ranks are aligned, so that the examples stay along the first dimension."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.backend.dtype import from_numpy_dtype, result_dtype
from pullback.func.batching_rules.table import aligned, bind, ndim_of, tensors_among
from pullback.func.vmap_level import VmapLevel
from pullback.functions.conversion import convert
from pullback.generated.registry import OPERATIONS
from pullback.tensor.tensor import Tensor

_NOT_PROMOTED = ("condition", "mask")


def is_elementwise(name: str) -> bool:
    """Whether an operation works element by element, by its declaration."""
    operation = OPERATIONS.get(name)
    return operation is not None and operation.structure == "elementwise"


def elementwise(level: VmapLevel, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Align the ranks, after promoting as the examples' numbers of dimensions demand."""
    tensors = tensors_among((*args, *kwargs.values()))
    if len(tensors) == 1:
        return _of_one(level, function, args, kwargs, tensors[0])
    rank = max([ndim_of(t) for t in tensors])
    common = promoted_dtype(tensors)
    if common is not None:
        common, tensors = _promoted(function.__name__, args, kwargs)

    def prepare(value: Any) -> Any:
        physical = aligned(level, value, rank)
        if common is None or not any(value is t for t in tensors):
            return physical
        return convert(physical, common)

    result = function(*[prepare(a) for a in args], **{k: prepare(v) for k, v in kwargs.items()})
    return level.wrap(result)


def _of_one(
    level: VmapLevel, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], tensor: Any
) -> Any:
    """An operation on one tensor leaves the examples where they are, unless a number stands for a second tensor."""
    dim = tensor._dim
    if dim and _has_number_for_tensor(function.__name__, args):
        dim = 0
    given = tensor._value if dim else tensor._physical
    result = function(
        *[given if a is tensor else a for a in args], **{k: given if v is tensor else v for k, v in kwargs.items()}
    )
    return level.wrap_at(result, dim) if dim else level.wrap(result)


def _has_number_for_tensor(name: str, args: tuple[Any, ...]) -> bool:
    operation = OPERATIONS.get(name)
    if operation is None:
        return False
    return any(
        p[1] == "tensor or number" and p[0] in operation.differentiable_inputs and not isinstance(a, Tensor)
        for p, a in zip(operation.parameters, args, strict=False)
    )


def _promoted(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, list[Any]]:
    """The common dtype of those tensors that are promoted, and these."""
    operation = OPERATIONS.get(name)
    if operation is None or operation.promote == "none":
        return None, []
    bound = bind(name, args, kwargs)
    tensors = tensors_among([value for key, value in bound.items() if key not in _NOT_PROMOTED])
    return promoted_dtype(tensors), tensors


def promoted_dtype(tensors: list[Any]) -> Any:
    """The common dtype of the examples where the batches' would differ: numbers of dimensions decide. None if the same."""
    arrays = [t._array for t in tensors]
    if len({a.dtype for a in arrays}) == 1 or all(a.ndim for a in arrays):
        return None
    return from_numpy_dtype(result_dtype(arrays))
