"""Modules on several devices: with one device, the module itself. PyTorch's `torch.nn.parallel`."""

from pullback.nn.parallel.data_parallel import DataParallel, DistributedDataParallel, data_parallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]
