"""What kernels of linear algebra ask of their matrices, in PyTorch's words."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.checks.elements import failed_factorization
from pullback.checks.shapes import check_broadcastable
from pullback.typing import Array, Shape


def _broadcast_batches(A: Array, B: Array) -> Shape:
    """The common batch shape of two batches of matrices."""
    check_broadcastable(A.shape[:-2], B.shape[:-2])
    return np.broadcast_shapes(A.shape[:-2], B.shape[:-2])


def _raise_for_info(function: str, info: Array, message: str) -> None:
    """Raise LinAlgError if a factorization says by `info` that it failed; `{info}` in the message is its value."""
    infos = np.asarray(info).reshape(-1)
    failed = np.flatnonzero(infos)
    if failed.size:
        first = int(failed[0])
        batch = f"(Batch element {first}): " if np.ndim(info) else ""
        raise failed_factorization(f"{function}: {batch}{message.format(info=int(infos[first]))}")


def _as_info(infos: Any, batch: Shape) -> Array:
    return np.asarray(infos, np.int32).reshape(batch)


def _by_columns(matrices: Array) -> Array:
    """The same matrices with columns contiguous in memory, as LAPACK leaves what PyTorch returns."""
    return np.ascontiguousarray(matrices.swapaxes(-1, -2)).swapaxes(-1, -2)
