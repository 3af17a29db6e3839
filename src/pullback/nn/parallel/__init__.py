"""Modules on several devices and processes. PyTorch's `torch.nn.parallel`."""

from pullback.nn.parallel.data_parallel import DataParallel, data_parallel
from pullback.nn.parallel.distributed import DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]
