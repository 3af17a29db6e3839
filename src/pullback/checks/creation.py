"""What the kernels of kernels/creation.py ask of their arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.backend.dtype import scalar_type_name
from pullback.typing import DType


def arange_array(start: Any, end: Any, step: Any, dtype: DType | None) -> None:
    if dtype is not None and dtype.kind in "cb":
        raise NotImplementedError(f'"arange_cpu" not implemented for {scalar_type_name(dtype)!r}')
    if dtype is not None and dtype == np.int64 and int(step) == 0:
        raise ValueError("step must be nonzero")
