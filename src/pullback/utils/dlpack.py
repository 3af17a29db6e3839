"""Exchange of memory with other libraries through DLPack."""

from __future__ import annotations

from pullback.backend.dlpack import DLDeviceType
from pullback.creation import from_dlpack
from pullback.functions.memory import to_dlpack

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]
