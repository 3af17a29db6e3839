"""The memory behind tensors. PyTorch's `torch.storage`."""

from __future__ import annotations

import io
from typing import Any

from pullback.functions.storages import TypedStorage, UntypedStorage
from pullback.serialization import load

__all__ = ["TypedStorage", "UntypedStorage"]


def _load_from_bytes(b: bytes) -> Any:
    """A storage out of a plain pickle: a checkpoint of its own. Who unpickles has already chosen to run its code."""
    return load(io.BytesIO(b), weights_only=False)
