"""In which dtypes a fully sharded module computes and communicates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["CPUOffloadPolicy", "MixedPrecisionPolicy", "OffloadPolicy"]


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """Dtypes of gathered parameters, of reduced gradients and of outputs; None leaves them as they are.

    >>> import pullback
    >>> MixedPrecisionPolicy(param_dtype=pullback.bfloat16).reduce_dtype is None
    True
    """

    param_dtype: Any = None
    reduce_dtype: Any = None
    output_dtype: Any = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Keep parts where they are computed with."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Keep parts in main memory, where pullback has them anyway."""

    pin_memory: bool = True
