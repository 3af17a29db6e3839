"""autocast for a GPU under its former name."""

from __future__ import annotations

from typing import Any

from pullback import amp
from pullback.amp.former_names import warn_of_former_name
from pullback.backend.dtype import dtype, float16


class autocast(amp.autocast):
    """`torch.amp.autocast("cuda", ...)`."""

    def __init__(self, enabled: bool = True, dtype: dtype = float16, cache_enabled: bool = True) -> None:
        warn_of_former_name("torch.cuda.amp.autocast(args...)", "torch.amp.autocast('cuda', args...)")
        super().__init__("cuda", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


def custom_fwd(fwd: Any = None, *, cast_inputs: dtype | None = None) -> Any:
    """`torch.amp.custom_fwd(..., device_type="cuda")`."""
    warn_of_former_name("torch.cuda.amp.custom_fwd(args...)", "torch.amp.custom_fwd(args..., device_type='cuda')")
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Any) -> Any:
    """`torch.amp.custom_bwd(..., device_type="cuda")`."""
    warn_of_former_name("torch.cuda.amp.custom_bwd(args...)", "torch.amp.custom_bwd(args..., device_type='cuda')")
    return amp.custom_bwd(bwd, device_type="cuda")
