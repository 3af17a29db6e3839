"""Ways of averaging gradients that DistributedDataParallel can be given."""

from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Any

from pullback.distributed.algorithms.ddp_comm_hooks import debugging_hooks as debugging
from pullback.distributed.algorithms.ddp_comm_hooks import default_hooks as default_hooks
from pullback.distributed.algorithms.ddp_comm_hooks import post_localSGD_hook as post_localSGD
from pullback.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as powerSGD

__all__ = ["DDPCommHookType", "register_ddp_comm_hook"]


def _register(hook: Callable[..., Any], model: Any, state: Any) -> None:
    model.register_comm_hook(state, hook)


def _register_with_state(hook: Callable[..., Any], rank: int, model: Any, state: Any) -> None:
    """Make the state of PowerSGD for a process group, unless the program has made it."""
    made = state if isinstance(state, powerSGD.PowerSGDState) else powerSGD.PowerSGDState(state, rank)
    model.register_comm_hook(made, hook)


class DDPCommHookType(Enum):
    """The hooks by name."""

    ALLREDUCE = partial(_register, default_hooks.allreduce_hook)
    FP16_COMPRESS = partial(_register, default_hooks.fp16_compress_hook)
    BF16_COMPRESS = partial(_register, default_hooks.bf16_compress_hook)
    POWER_SGD = partial(_register_with_state, powerSGD.powerSGD_hook, 1)
    POWER_SGD_RANK2 = partial(_register_with_state, powerSGD.powerSGD_hook, 2)
    BATCHED_POWER_SGD = partial(_register_with_state, powerSGD.batched_powerSGD_hook, 1)
    BATCHED_POWER_SGD_RANK2 = partial(_register_with_state, powerSGD.batched_powerSGD_hook, 2)
    POST_LOCAL_SGD = partial(_register, post_localSGD.post_localSGD_hook)
    NOOP = partial(_register, debugging.noop_hook)


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Give a DistributedDataParallel one of the hooks above; `state` is a process group, None for that of all ranks."""
    comm_hook_type.value(model=model, state=state)
