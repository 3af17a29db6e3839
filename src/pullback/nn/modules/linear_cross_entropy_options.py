"""LinearCrossEntropyOptions: how `linear_cross_entropy` may cut its work into pieces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pullback.backend.dtype import bfloat16, dtype, float16, float32, float64

_POLICIES = ("accurate", "balanced", "compact", "auto")


@dataclass(frozen=True)
class LinearCrossEntropyOptions:
    """Asks for a loss in chunks of the batch. Here they are checked and change nothing: values do not depend on them.

    >>> LinearCrossEntropyOptions(batch_chunk_size=8).batch_chunk_size
    8
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: Literal["accurate", "balanced", "compact", "auto"] = "auto"
    acc_dtype: dtype | None = None

    def __post_init__(self) -> None:
        if self.acc_policy not in _POLICIES:
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        size = self.batch_chunk_size
        if size is not None and (not isinstance(size, int) or size < 1):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size}")
        method = self.chunking_method
        if method not in (None, "auto") and str(method).partition(":")[0] != "aspect_ratio":
            raise ValueError(f"invalid chunking_method: {method!r}")
        allowed = (None, float16, bfloat16, float32, float64)
        if self.acc_dtype not in allowed:
            raise ValueError(f"acc_dtype must be one of {{{', '.join(map(str, allowed))}}}, got {self.acc_dtype}.")
