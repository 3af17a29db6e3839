"""Ways of averaging gradients that DistributedDataParallel can be given."""

from enum import Enum
from functools import partial
from typing import Any

from pullback.distributed.algorithms.ddp_comm_hooks import debugging_hooks as debugging
from pullback.distributed.algorithms.ddp_comm_hooks import default_hooks as default_hooks
from pullback.distributed.algorithms.ddp_comm_hooks import post_localSGD_hook as post_localSGD
from pullback.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as powerSGD

__all__ = ["DDPCommHookType", "register_ddp_comm_hook"]


class DDPCommHookType(Enum):
    """The hooks by name."""

    ALLREDUCE = partial(default_hooks.allreduce_hook)
    FP16_COMPRESS = partial(default_hooks.fp16_compress_hook)
    BF16_COMPRESS = partial(default_hooks.bf16_compress_hook)
    POWER_SGD = partial(powerSGD.powerSGD_hook)
    BATCHED_POWER_SGD = partial(powerSGD.batched_powerSGD_hook)
    POST_LOCAL_SGD = partial(post_localSGD.post_localSGD_hook)
    NOOP = partial(debugging.noop_hook)


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Give a DistributedDataParallel one of the hooks above."""
    model.register_comm_hook(state, comm_hook_type.value)
