"""Modules on several GPUs and processes. PyTorch's `torch.nn.parallel`."""

from pullback.nn.parallel.data_parallel import DataParallel, data_parallel
from pullback.nn.parallel.distributed import DistributedDataParallel
from pullback.nn.parallel.parallel_apply import parallel_apply
from pullback.nn.parallel.replicate import replicate
from pullback.nn.parallel.scatter_gather import gather, scatter

__all__ = [
    "DataParallel", "DistributedDataParallel", "data_parallel", "gather", "parallel_apply", "replicate", "scatter",
]  # fmt: skip
