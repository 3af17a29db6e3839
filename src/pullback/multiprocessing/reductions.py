"""How a tensor goes to another process: its memory is shared with it.

Sending a tensor moves its memory to where both processes see it (Note [Shared memory] in backend/shared_memory.py); those
with a history are refused. As with PyTorch's, the sender must live until the tensor has arrived.
"""

from __future__ import annotations

from multiprocessing.reduction import DupFd, ForkingPickler
from typing import Any

from pullback.backend.shared_memory import can_share, mapping_of, storage_at
from pullback.backend.storage import strided_view, view_of_storage
from pullback.serialization.pullback_tensors import PullbackTensors, reduce_tensor, user_state
from pullback.serialization.rebuild import set_tensor_state
from pullback.tensor.tensor import Tensor


def _reduce(tensor: Tensor) -> Any:
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support crossing "
            "process boundaries.  If you just want to transfer the data, call detach() on the tensor before serializing "
            "(e.g., putting it on the queue)."
        )
    if not can_share() or not tensor.numel() or tensor.is_conj() or tensor.is_neg():
        return reduce_tensor(tensor)
    tensor.share_memory_()
    mapping = mapping_of(tensor._array)
    assert mapping is not None
    view = view_of_storage(tensor._array)
    geometry = (view.offset, tuple(tensor._array.shape), view.stride)
    return _rebuild, (
        type(tensor), DupFd(mapping.descriptor), view.data.size, tensor.dtype, geometry, tensor.requires_grad,
        user_state(tensor) or None,
    )  # fmt: skip


def _rebuild(
    kind: type, descriptor: Any, size: int, dtype: Any, geometry: Any, requires_grad: bool, state: object
) -> Tensor:
    """The tensor over the same memory, in the process that received it."""
    storage = storage_at(descriptor.detach(), size)
    array = strided_view(storage, dtype.numpy_dtype, *geometry)
    access = PullbackTensors()
    if issubclass(kind, access.parameter_type):
        tensor: Tensor = access.parameter_from_tensor(access.tensor_from_array(array, False, None), requires_grad, None)
    else:
        tensor = access.tensor_from_array(array, requires_grad, None)
    return tensor if state is None else set_tensor_state(tensor, state)


def init_reductions() -> None:
    """Let the pickles that processes exchange hold tensors."""
    ForkingPickler.register(Tensor, _reduce)
    ForkingPickler.register(PullbackTensors().parameter_type, _reduce)
