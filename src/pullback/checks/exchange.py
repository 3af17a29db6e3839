"""What the kernels of kernels/exchange.py ask of their arguments."""

from __future__ import annotations

import os

from pullback.typing import DType


def array_over_file(filename: str, dtype: DType, size: int, shared: bool) -> None:
    if shared:  # made, or made longer, where needed
        return
    try:
        found = os.path.getsize(filename)
    except OSError as error:
        raise RuntimeError(
            f"unable to open file <{filename}> in read-only mode: {error.strerror} ({error.errno})"
        ) from None
    needed = size * dtype.itemsize
    if found < needed:
        raise RuntimeError(f"file <{filename}> size <{found}> is smaller than the required mapping size <{needed}>")
