"""autocast for the CPU under its former name."""

from __future__ import annotations

from pullback import amp
from pullback.amp.former_names import warn_of_former_name
from pullback.backend.dtype import bfloat16, dtype


class autocast(amp.autocast):
    """`torch.amp.autocast("cpu", ...)`."""

    def __init__(self, enabled: bool = True, dtype: dtype = bfloat16, cache_enabled: bool = True) -> None:
        warn_of_former_name("torch.cpu.amp.autocast(args...)", "torch.amp.autocast('cpu', args...)")
        super().__init__("cpu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)
