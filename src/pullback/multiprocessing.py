"""Python's multiprocessing with tensors: they travel by copy, and those with a history are refused.

Unlike PyTorch's, memory is not shared between processes by sending a tensor; DataLoader moves arrays beside the pickle.
"""

from __future__ import annotations

import multiprocessing as _multiprocessing
from multiprocessing.reduction import ForkingPickler
from typing import Any

from pullback.serialization.pullback_tensors import reduce_tensor
from pullback.tensor.tensor import Tensor


def _reduce(tensor: Tensor) -> Any:
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support crossing "
            "process boundaries.  If you just want to transfer the data, call detach() on the tensor before serializing "
            "(e.g., putting it on the queue)."
        )
    return reduce_tensor(tensor)


ForkingPickler.register(Tensor, _reduce)


def get_all_sharing_strategies() -> set[str]:
    """The ways in which tensors reach another process."""
    return {"file_system"}


def get_sharing_strategy() -> str:
    """The way in which tensors reach another process."""
    return "file_system"


def set_sharing_strategy(new_strategy: str) -> None:
    """Accepted: tensors are always copied."""


def __getattr__(name: str) -> Any:
    return getattr(_multiprocessing, name)
