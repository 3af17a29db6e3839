"""Checks of positions on the GPU: what is wrong is told when a value is next read on the host."""

from __future__ import annotations

from typing import Any

import numpy as np

_TYPES = {"int64": "long long", "int32": "int", "int16": "short", "int8": "signed char", "uint8": "unsigned char"}
_BLOCK = 256
_MOST_BLOCKS = 1056
_SOURCE = """
extern "C" __global__ void run(const T *index, const long long count, const long long low, const long long size,
                               const long long dim, long long *wrong)
{
    const long long turn = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < count; i += turn) {
        const long long at = index[i];
        if (at < low || at >= size) {
            wrong[1] = at;
            wrong[2] = size;
            wrong[3] = dim;
            wrong[0] = 3;
        }
    }
}
"""


class PositionChecks:
    """Stands for `check_index` of kernels/index_arrays.py, which would have the host wait for the device."""

    def __init__(self, library: Any, reference: Any) -> None:
        self._library = library
        self._reference = reference
        self._kernels: dict[str, Any] = {}

    def check_index(
        self, index: Any, size: int, dim: int | None, *, negative: bool = False, error: type[Exception] = IndexError
    ) -> None:
        """Look for positions outside of a dimension of `size`."""
        name = index.dtype.name
        if type(index) is not self._library.wrapper or name not in _TYPES:
            self._reference(index, size, dim, negative=negative, error=error)
            return
        raw = self._library.module.ascontiguousarray(index.raw)
        if not raw.size:
            return
        kernel = self._kernels.get(name)
        if kernel is None:
            kernel = self._kernels[name] = self._library.compiled(_SOURCE.replace("T *", f"{_TYPES[name]} *"))
        i = np.int64
        blocks = min(-(-raw.size // _BLOCK), _MOST_BLOCKS)
        wrong = self._library.complaints.address
        arguments = (raw, i(raw.size), i(-size if negative else 0), i(size), i(-1 if dim is None else dim), wrong)
        kernel((blocks, 1, 1), (_BLOCK, 1, 1), arguments)
