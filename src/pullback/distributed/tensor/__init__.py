"""Tensors that lie on several ranks: PyTorch's `torch.distributed.tensor`."""

from pullback.distributed.device_mesh import DeviceMesh, init_device_mesh
from pullback.distributed.tensor.dtensor import DTensor, distribute_tensor
from pullback.distributed.tensor.factories import distribute_module, empty, full, ones, rand, randn, zeros
from pullback.distributed.tensor.operations import watch_first_use
from pullback.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard

watch_first_use()

__all__ = [
    "DTensor", "DeviceMesh", "Partial", "Placement", "Replicate", "Shard", "distribute_module", "distribute_tensor",
    "empty", "full", "init_device_mesh", "ones", "rand", "randn", "zeros",
]  # fmt: skip
