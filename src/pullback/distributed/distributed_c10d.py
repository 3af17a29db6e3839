"""The names that programs take from PyTorch's `torch.distributed.distributed_c10d`."""

from pullback.distributed import *
from pullback.distributed import __all__ as __all__
from pullback.distributed.coalescing import _coalescing_manager as _coalescing_manager
from pullback.distributed.process_group import _get_default_group as _get_default_group
from pullback.distributed.process_group import _get_process_group_name as _get_process_group_name
from pullback.distributed.process_group import _rank_not_in_group as _rank_not_in_group
from pullback.distributed.process_group import _resolve_process_group as _resolve_process_group
from pullback.distributed.process_group import default_pg_timeout as default_pg_timeout

default_pg_nccl_timeout = default_pg_timeout
