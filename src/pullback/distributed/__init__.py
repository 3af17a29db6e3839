"""Several processes: PyTorch's `torch.distributed` on MPI (mpi4py), and on NCCL (CuPy) for GPUs.

`pullback launch -n 2 script.py` starts them. A process that is alone is a group of one, and needs no MPI. See
docs/distributed.md.
"""

from enum import Enum

from pullback.distributed import (
    backends,
    collectives,
    constants,
    debug,
    errors,
    initialization,
    object_collectives,
    options,
    point_to_point,
    process_group,
    reduce_operation,
    store,
    subgroups,
)
from pullback.distributed.backends import *
from pullback.distributed.coalescing import _broadcast_coalesced as _broadcast_coalesced
from pullback.distributed.coalescing import _coalescing_manager as _coalescing_manager
from pullback.distributed.coalescing import _CoalescingManager as _CoalescingManager
from pullback.distributed.collectives import *
from pullback.distributed.collectives import _all_gather_base as _all_gather_base
from pullback.distributed.collectives import _reduce_scatter_base as _reduce_scatter_base
from pullback.distributed.debug import *
from pullback.distributed.device_mesh import DeviceMesh, init_device_mesh
from pullback.distributed.errors import *
from pullback.distributed.grad_bucket import _DEFAULT_FIRST_BUCKET_BYTES as _DEFAULT_FIRST_BUCKET_BYTES
from pullback.distributed.grad_bucket import GradBucket
from pullback.distributed.initialization import *
from pullback.distributed.object_collectives import *
from pullback.distributed.options import *
from pullback.distributed.point_to_point import *
from pullback.distributed.process_group import *
from pullback.distributed.process_group import _get_process_group_name as _get_process_group_name
from pullback.distributed.process_group import _rank_not_in_group as _rank_not_in_group
from pullback.distributed.process_group import default_pg_timeout as default_pg_timeout
from pullback.distributed.reduce_operation import *
from pullback.distributed.reduce_operation import _make_nccl_premul_sum as _make_nccl_premul_sum
from pullback.distributed.store import *
from pullback.distributed.subgroups import *
from pullback.distributed.work import Work


class BuiltinCommHookType(Enum):
    """The communication hooks that DistributedDataParallel knows by number."""

    ALLREDUCE = 0
    FP16_COMPRESS = 1


__all__ = ["BuiltinCommHookType", "DeviceMesh", "GradBucket", "Work", "constants", "init_device_mesh"]
for _part in (
    backends,
    collectives,
    debug,
    errors,
    initialization,
    object_collectives,
    options,
    point_to_point,
    process_group,
    reduce_operation,
    store,
    subgroups,
):
    __all__ += _part.__all__
