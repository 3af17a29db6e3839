"""CUDA as programs ask about it: this build computes on the CPU, and says so."""

from __future__ import annotations

from collections import OrderedDict
from importlib import import_module
from typing import Any

from pullback.backend.device import usable_device

__all__ = [
    "Event", "Stream", "current_device", "current_stream", "device", "device_count", "empty_cache", "get_device_capability",
    "get_device_name", "get_device_properties", "get_rng_state", "get_rng_state_all", "is_available", "is_bf16_supported",
    "is_initialized", "manual_seed", "manual_seed_all", "max_memory_allocated", "max_memory_reserved", "memory_allocated",
    "memory_reserved", "reset_peak_memory_stats", "set_device", "set_rng_state_all", "stream", "synchronize",
]  # fmt: skip


def is_available() -> bool:
    """Whether there is a GPU to compute on.

    >>> is_available()
    False
    """
    return False


def is_initialized() -> bool:
    """Whether CUDA was used in this process."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the GPU computes in bfloat16."""
    return False


def device_count() -> int:
    """How many GPUs there are."""
    return 0


def _refuse(*args: Any, **kwargs: Any) -> Any:
    """What needs a GPU raises the error that PyTorch without CUDA raises."""
    return usable_device("cuda")


current_device = get_device_name = get_device_capability = get_device_properties = set_device = _refuse
current_stream = default_stream = synchronize = get_rng_state = set_rng_state = _refuse
init = ipc_collect = mem_get_info = memory_summary = can_device_access_peer = utilization = _refuse


def manual_seed(seed: int) -> None:
    """Accepted: there is no generator on a GPU."""


manual_seed_all = manual_seed


def seed_all() -> None:
    """Accepted: there is no generator on a GPU."""


def get_rng_state_all() -> list[Any]:
    """The states of the generators on all GPUs: none."""
    return []


def set_rng_state_all(new_states: Any) -> None:
    """Accepted: there is no generator on a GPU."""


def empty_cache() -> None:
    """Accepted: no memory is kept on a GPU."""


def reset_peak_memory_stats(device: Any = None) -> None:
    """Accepted: no memory is used on a GPU."""


def get_arch_list() -> list[str]:
    """The GPUs that this build is made for: none."""
    return []


def memory_stats(device: Any = None) -> dict[str, Any]:
    """What is known of memory in use on a GPU: nothing."""
    return OrderedDict()


def memory_allocated(device: Any = None) -> int:
    """Bytes in use on a GPU: none."""
    return 0


memory_reserved = max_memory_allocated = max_memory_reserved = memory_allocated


class _NeedsGPU:
    """An object that only makes sense with a GPU."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse()


class Stream(_NeedsGPU):
    """A queue of work on a GPU."""


class Event(_NeedsGPU):
    """A point in a queue of work on a GPU."""


class stream:
    """A block on a stream; None is accepted and does nothing."""

    def __init__(self, stream: Any) -> None:
        if stream is not None:
            _refuse()

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        pass


class device(stream):
    """A block on a GPU; a negative number or None is accepted and does nothing."""

    def __init__(self, device: Any) -> None:
        super().__init__(None if device is None or device == -1 else device)


def __getattr__(name: str) -> Any:
    """`amp` is imported when first used."""
    if name == "amp":
        return import_module("pullback.cuda.amp")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
