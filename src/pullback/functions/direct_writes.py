"""When a tensor's memory may be written to directly: nothing records, intercepts or carries a tangent."""

from __future__ import annotations

from typing import Any

from pullback.backend.array_module import has_internal_overlap
from pullback.modes.interception import overrides
from pullback.modes.switches import process, switches
from pullback.tensor.tensor import Tensor


def writes_plainly(target: Tensor, source: Any = None) -> bool:
    """Whether an in-place operation on `target`, reading `source`, leaves no trace but new values and a version."""
    extra = target._extra
    if extra is not None and (extra.tangents or (extra.inference and not switches.inference_mode)):
        return False
    requires_grad = target._requires_grad or (source is not None and source._requires_grad)
    if not process.changed:
        return not requires_grad
    if overrides.types or not switches.plain:
        return False
    return not (requires_grad and switches.records)


def fills_plainly(target: Tensor) -> bool:
    """As `writes_plainly`, for one value: that may be written to memory that is seen several times, too."""
    return writes_plainly(target) or (not target._requires_grad and has_internal_overlap(target._array))
