"""Collation: a list of samples becomes one batch, by stacking the tensors that sit at the same place in each."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any, TypeAlias

import pullback
from pullback.backend import numpy_objects
from pullback.backend.dtype import float64
from pullback.creation import as_tensor, tensor
from pullback.errors import is_pytorch_tensor, kind_of
from pullback.tensor.tensor import Tensor

__all__ = ["collate", "default_collate", "default_collate_fn_map", "default_convert"]

CollateMap: TypeAlias = dict[type | tuple[type, ...], Callable[..., Any]]

_UNSUPPORTED = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"


def default_convert(data: Any) -> Any:
    """Turn the NumPy arrays and scalars inside `data` into tensors, keep the containers and leave the rest alone.

    >>> default_convert({"a": 1, "b": "text"})
    {'a': 1, 'b': 'text'}
    """
    if isinstance(data, Tensor):
        return data
    if numpy_objects.holds_numbers(data):
        return as_tensor(data)
    if isinstance(data, Mapping):
        return _rebuild_mapping(data, {key: default_convert(value) for key, value in data.items()})
    if _is_namedtuple(data):
        return type(data)(*(default_convert(value) for value in data))
    if isinstance(data, tuple):
        return [default_convert(value) for value in data]
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _rebuild_sequence(data, [default_convert(value) for value in data])
    return data


def collate(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Any:
    """Collate a batch by the function that the map holds for the samples' type; containers are collated memberwise.

    A key of the map is a type or a tuple of types; the exact type wins, then the first entry that is a superclass.
    """
    element = batch[0]
    function = _function_for(element, collate_fn_map or {})
    if function is not None:
        return function(batch, collate_fn_map=collate_fn_map)
    if isinstance(element, Mapping):
        members = {key: collate([sample[key] for sample in batch], collate_fn_map=collate_fn_map) for key in element}
        return _rebuild_mapping(element, members)
    if _is_namedtuple(element):
        return type(element)(*(collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch, strict=False)))
    if isinstance(element, Sequence):
        return _collate_sequences(batch, collate_fn_map)
    raise TypeError(_UNSUPPORTED.format(kind_of(element) if is_pytorch_tensor(element) else type(element)))


def default_collate(batch: Sequence[Any]) -> Any:
    """Collate a list of samples into a batch with a new first dimension.

    >>> default_collate([(1, "a"), (2, "b")])
    [tensor([1, 2]), ('a', 'b')]
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def _function_for(element: Any, collate_fn_map: CollateMap) -> Callable[..., Any] | None:
    exact = collate_fn_map.get(type(element))
    if exact is not None:
        return exact
    matches = (function for kind, function in collate_fn_map.items() if isinstance(element, kind))
    return next(matches, None)


def _collate_sequences(batch: Sequence[Any], collate_fn_map: CollateMap | None) -> Any:
    samples = [list(sample) if isinstance(sample, Iterable) else sample for sample in batch]
    sizes = {len(sample) for sample in samples}
    if len(sizes) > 1:
        raise RuntimeError(
            f"each element in list of batch should be of equal size, but sizes {sorted(sizes)} were found. "
            "Pad the samples or pass a collate_fn that does."
        )
    columns = [collate(column, collate_fn_map=collate_fn_map) for column in zip(*samples, strict=True)]
    return columns if isinstance(batch[0], tuple) else _rebuild_sequence(batch[0], columns)


def _rebuild_mapping(original: Mapping[Any, Any], members: dict[Any, Any]) -> Any:
    """Make a mapping of the type of `original`, or a dict if that type cannot be built this way."""
    try:
        if isinstance(original, MutableMapping):
            # The constructor of a subclass may want other arguments (a defaultdict its factory); a copy has them.
            clone = copy.copy(original)
            clone.update(members)
            return clone
        return type(original)(members)  # type: ignore[call-arg]  # that it takes a dict is what is being tried
    except TypeError:
        return members


def _rebuild_sequence(original: Sequence[Any], members: list[Any]) -> Any:
    """Make a sequence of the type of `original`, or a list if that type cannot be built this way."""
    try:
        if isinstance(original, MutableSequence):
            clone = copy.copy(original)
            for position, member in enumerate(members):
                clone[position] = member
            return clone
        return type(original)(members)  # type: ignore[call-arg]  # that it takes a list is what is being tried
    except TypeError:
        return members


def _is_namedtuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def collate_tensor_fn(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Any:
    """Stack tensors of equal shape."""
    return pullback.stack(list(batch), 0)


def collate_numpy_array_fn(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Any:
    """Stack NumPy arrays as tensors of their dtype."""
    if not numpy_objects.holds_numbers(batch[0]):
        raise TypeError(_UNSUPPORTED.format(batch[0].dtype))
    return collate([as_tensor(array) for array in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Any:
    """Make one tensor of NumPy scalars, of their dtype."""
    return as_tensor(batch)


def collate_float_fn(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Any:
    """Make one float64 tensor: a Python float has that precision."""
    return tensor(batch, dtype=float64)


def collate_int_fn(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Any:
    """Make one tensor of Python integers or booleans."""
    return tensor(batch)


def collate_str_fn(batch: Sequence[Any], *, collate_fn_map: CollateMap | None = None) -> Any:
    """Leave text and bytes as they are."""
    return batch


default_collate_fn_map: CollateMap = {
    Tensor: collate_tensor_fn,
    numpy_objects.ndarray: collate_numpy_array_fn,
    numpy_objects.scalar_types: collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}
"""What `default_collate` does per type; programs may add their own types."""
