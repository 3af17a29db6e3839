"""Whether two results are the same: structure, dtype, shape, values (NaN equals NaN), memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import pullback

from .translation import values_of

TOLERANCE = {
    "float64": (1e-6, 1e-8),
    "complex128": (1e-6, 1e-8),
    "float32": (1e-4, 1e-5),
    "complex64": (1e-4, 1e-5),
    "float16": (4e-3, 1e-3),
    "complex32": (4e-3, 1e-3),
    "bfloat16": (3e-2, 1e-2),
}


class Mismatch(Exception):
    """Two results differ; the message says in what."""


def is_tensor(value: Any) -> bool:
    """Whether it is a tensor of either package."""
    return isinstance(value, (torch.Tensor, pullback.Tensor))


def tensors_in(value: Any) -> list[Any]:
    """List the tensors in a tree of results, from left to right."""
    if is_tensor(value):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in tensors_in(item)]
    if isinstance(value, dict):
        return [tensor for item in value.values() for tensor in tensors_in(item)]
    return []


@dataclass(frozen=True)
class Measure:
    """How results are compared.

    With `scaled` the tolerance is relative to the largest expected value: for sums of products, not for elementwise
    functions. Without `values` only dtypes and shapes count (uninitialised memory). `slack` widens the absolute
    tolerance where PyTorch itself is inexact.
    """

    scaled: bool = False
    values: bool = True
    slack: float = 1.0


def compare(expected: Any, actual: Any, measure: Measure = Measure(), where: str = "result") -> None:  # noqa: B008
    """Raise Mismatch unless `actual` (ours) is what `expected` (PyTorch's) is."""
    if isinstance(expected, torch.Tensor):
        _compare_tensors(expected, actual, measure, where)
    elif isinstance(expected, (list, tuple)):
        if not isinstance(actual, (list, tuple)) or len(expected) != len(actual):
            raise Mismatch(f"{where}: expected {_kind(expected)}, got {_kind(actual)}")
        if getattr(expected, "_fields", None) != getattr(actual, "_fields", None):
            raise Mismatch(f"{where}: expected fields {_kind(expected)}, got {_kind(actual)}")
        for position, (left, right) in enumerate(zip(expected, actual, strict=True)):
            compare(left, right, measure, f"{where}[{position}]")
    elif isinstance(expected, (bool, int, float, complex)):
        if type(expected) is not type(actual):
            raise Mismatch(f"{where}: expected {_kind(expected)}, got {_kind(actual)}")
        _compare_arrays(np.asarray(expected), np.asarray(actual), measure, where)
    elif isinstance(expected, torch.dtype):
        if str(expected).split(".")[-1] != str(actual).split(".")[-1]:
            raise Mismatch(f"{where}: expected {expected}, got {actual}")
    elif expected is None and actual is not None:
        raise Mismatch(f"{where}: expected None, got {_kind(actual)}")


def _kind(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__} of {len(value)} {getattr(value, '_fields', '')}"
    return type(value).__name__


def _compare_tensors(expected: Any, actual: Any, measure: Measure, where: str) -> None:
    if not isinstance(actual, pullback.Tensor):
        raise Mismatch(f"{where}: expected a tensor, got {_kind(actual)}")
    expected_dtype, actual_dtype = (str(tensor.dtype).split(".")[-1] for tensor in (expected, actual))
    if expected_dtype != actual_dtype:
        raise Mismatch(f"{where}: expected dtype {expected_dtype}, got {actual_dtype}")
    if tuple(expected.shape) != tuple(actual.shape):
        raise Mismatch(f"{where}: expected shape {tuple(expected.shape)}, got {tuple(actual.shape)}")
    if measure.values:
        _compare_arrays(values_of(expected), values_of(actual), measure, where)


def _compare_arrays(expected: Any, actual: Any, measure: Measure, where: str) -> None:
    if expected.size == 0:
        return
    relative, absolute = TOLERANCE.get(str(expected.dtype), (0.0, 0.0))
    if relative == 0.0:
        if not np.array_equal(expected, actual):
            raise Mismatch(f"{where}: {_first_difference(expected, actual, expected != actual)}")
        return
    absolute *= measure.slack
    exact = np.complex128 if expected.dtype.kind == "c" else np.float64
    expected, actual = expected.astype(exact), actual.astype(exact)
    finite = np.abs(expected[np.isfinite(expected)])
    if measure.scaled and finite.size:
        absolute = max(absolute, absolute * float(finite.max()))
    close = np.isclose(actual, expected, rtol=relative, atol=absolute, equal_nan=True)
    if expected.dtype.kind == "c" and not close.all():
        # An infinite complex number has parts which the multiplication of the platform decides.
        close |= ~np.isfinite(expected) & ~np.isfinite(actual)
    if not close.all():
        raise Mismatch(f"{where}: {_first_difference(expected, actual, ~close)}")


def _first_difference(expected: Any, actual: Any, different: Any) -> str:
    place = tuple(int(index) for index in np.argwhere(different)[0]) if expected.ndim else ()
    count = int(np.count_nonzero(different))
    return f"expected {expected[place]}, got {actual[place]} at {place} ({count} of {expected.size} differ)"


def memory_of(result: Any, inputs: list[Any]) -> list[tuple[Any, ...]]:
    """Say for each tensor of a result which input's memory it shares, with offset and strides if it shares any."""
    described: list[tuple[Any, ...]] = []
    for tensor in tensors_in(result):
        owner = next((position for position, given in enumerate(inputs) if _share(tensor, given)), None)
        if tensor.numel() == 0:
            described.append(("empty", any(tensor is given for given in inputs)))
        elif owner is None:
            described.append(("new",))
        else:
            described.append(("shares", owner, tensor.storage_offset(), _strides(tensor), tensor is inputs[owner]))
    return described


def _strides(tensor: Any) -> tuple[int, ...]:
    """Strides of dimensions of size one say nothing."""
    return tuple(stride for stride, size in zip(tensor.stride(), tensor.shape, strict=True) if size > 1)


def _share(left: Any, right: Any) -> bool:
    if left is right:
        return True
    if left.numel() == 0 or right.numel() == 0:
        return False
    return bool(left.untyped_storage().data_ptr() == right.untyped_storage().data_ptr())
