"""Type names that annotations use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from pullback.backend.device import device as _device
from pullback.backend.dtype import dtype as _dtype
from pullback.tensor.size import Size
from pullback.tensor.tensor import Tensor

Number: TypeAlias = int | float | bool
Device: TypeAlias = _device | str | int | None
_int, _float, _bool = int, float, bool
_size: TypeAlias = Size | list[int] | tuple[int, ...]
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
FileLike: TypeAlias = Any
Storage: TypeAlias = Any

__all__ = ["Device", "FileLike", "Number", "Storage", "_bool", "_device", "_dtype", "_float", "_int", "_size"]
