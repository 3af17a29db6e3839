"""What is asked of the Python values and NumPy arrays that a tensor is made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.checks.numbers import overflow
from pullback.typing import Array, DType


def require_number_array(array: Array) -> None:
    """Refuse an array of NumPy's whose elements are not numbers."""
    if array.dtype.kind in "USOMm":
        raise TypeError(
            f"can't convert np.ndarray of type numpy.{array.dtype.type.__name__}. The only supported types are: float64, "
            "float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, "
            "and bool."
        )


def read_values(data: Any) -> Array:
    """NumPy's array of nested sequences, which must be rectangular and hold numbers."""
    try:
        array = np.array(data)
    except ValueError as error:
        raise _ragged(data) from error
    if array.dtype == object:
        raise _unsupported(data)
    if array.dtype.kind in "US":
        raise TypeError(f"new(): invalid data type '{_first_text(data)}'")
    return array


def refuse_long_integers(array: Array, kinds: set[Any]) -> None:
    """Refuse Python's integers that int64 cannot hold."""
    if array.dtype.kind == "u" and kinds == {int}:
        raise ValueError("Overflow when unpacking long long")


def require_fit(array: Array, dtype: DType) -> None:
    """Refuse values that a dtype cannot hold."""
    if array.dtype.kind == "c" and dtype.kind not in "bcW":
        raise TypeError("must be real number, not complex")
    if dtype.kind not in "iu" or not array.size:
        return
    info = np.iinfo(dtype)
    if array.dtype.kind == "f":
        least, largest = float(array.min()), float(array.max())
        if not info.min <= least <= largest <= info.max:  # nan is not
            raise overflow(dtype, is_element=True)
    least_taken = info.min if dtype.kind == "i" else -info.max  # -1 wraps around in an unsigned type
    if array.dtype.kind in "iu" and not (least_taken <= array.min() and array.max() <= info.max):
        raise overflow(dtype, is_element=True)


def _first_text(data: Any) -> str:
    items = [data]
    while items:
        item = items.pop()
        if isinstance(item, (str, bytes)):
            return type(item).__name__
        items += item if isinstance(item, (list, tuple)) else []
    return "str"


def _ragged(data: Any) -> Exception:
    depth, sequence = 0, data
    while isinstance(sequence, (list, tuple)) and sequence:
        lengths = [len(row) if isinstance(row, (list, tuple)) else None for row in sequence]
        if any(n != lengths[0] for n in lengths):
            at = next(i for i, n in enumerate(lengths) if n != lengths[0])
            if lengths[0] is None:
                return TypeError(f"must be real number, not {type(sequence[at]).__name__}")
            if lengths[at] is None:
                return TypeError("not a sequence")
            return ValueError(f"expected sequence of length {lengths[0]} at dim {depth + 1} (got {lengths[at]})")
        sequence, depth = sequence[0], depth + 1
    return ValueError("the nested sequence is not rectangular")


def _unsupported(data: Any) -> Exception:
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    if isinstance(data, (list, tuple)):
        return ValueError("the nested sequence is not rectangular")
    if data is None:
        return RuntimeError("Could not infer dtype of NoneType")
    if isinstance(data, int):
        return ValueError("Overflow when unpacking long long")
    return RuntimeError(f"Could not infer dtype of {type(data).__name__}")
