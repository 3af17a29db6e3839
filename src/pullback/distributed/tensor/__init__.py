"""Tensors that lie on several ranks: as much of PyTorch's `torch.distributed.tensor` as fully sharded training needs."""

from pullback.distributed.device_mesh import DeviceMesh, init_device_mesh
from pullback.distributed.tensor.dtensor import DTensor, distribute_tensor
from pullback.distributed.tensor.placement_types import Placement, Replicate, Shard

__all__ = ["DTensor", "DeviceMesh", "Placement", "Replicate", "Shard", "distribute_tensor", "init_device_mesh"]
