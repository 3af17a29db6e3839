"""Fully sharded training: PyTorch 2's `fully_shard`, and the older FullyShardedDataParallel."""

from pullback.distributed.fsdp.api import *
from pullback.distributed.fsdp.api import __all__ as _names_of_options
from pullback.distributed.fsdp.fsdp_module import (
    FSDPModule,
    UnshardHandle,
    fully_shard,
    register_fsdp_forward_method,
    share_comm_ctx,
)
from pullback.distributed.fsdp.fully_sharded_data_parallel import FullyShardedDataParallel, OptimStateKeyType
from pullback.distributed.fsdp.policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy

__all__ = [
    "CPUOffloadPolicy", "FSDPModule", "FullyShardedDataParallel", "MixedPrecisionPolicy", "OffloadPolicy",
    "OptimStateKeyType", "UnshardHandle", "fully_shard", "register_fsdp_forward_method", "share_comm_ctx",
]  # fmt: skip
__all__ += _names_of_options
