"""CUDA as programs ask about it. Without CuPy or a GPU there are none of these devices, and what needs one says so."""

from __future__ import annotations

from collections import OrderedDict
from importlib import import_module
from typing import Any

from pullback.backend.device import device as Device
from pullback.backend.device import find_library, usable_device
from pullback.creation import wrap
from pullback.cuda.streams import Event as Event
from pullback.cuda.streams import Stream as Stream
from pullback.cuda.streams import StreamContext as StreamContext
from pullback.cuda.streams import current_stream as current_stream
from pullback.cuda.streams import default_stream as default_stream
from pullback.cuda.streams import set_stream as set_stream
from pullback.cuda.streams import stream as stream
from pullback.errors import OutOfMemoryError as OutOfMemoryError

__all__ = [
    "Event", "OutOfMemoryError", "Stream", "current_device", "current_stream", "default_stream", "device", "device_count",
    "empty_cache", "get_device_capability", "get_device_name", "get_device_properties", "get_rng_state", "get_rng_state_all",
    "is_available", "is_bf16_supported", "is_initialized", "manual_seed", "manual_seed_all", "max_memory_allocated",
    "max_memory_reserved", "mem_get_info", "memory_allocated", "memory_reserved", "memory_summary",
    "reset_peak_memory_stats", "seed", "seed_all", "set_device", "set_rng_state", "set_rng_state_all", "set_stream",
    "stream", "synchronize",
]  # fmt: skip


def _library() -> Any:
    """The library of GPUs; PyTorch's error without one."""
    usable_device("cuda")
    return find_library("cuda")


def _runtime() -> Any:
    return _library().module.cuda.runtime


def _number(device: Any) -> int:
    """The number of the GPU that an argument means: the current one if it is None."""
    library = _library()
    if isinstance(device, int):
        device = Device("cuda", device)
    place = library.place() if device is None else library.checked_place(Device(device))
    return int(place.index)


def is_available() -> bool:
    """Whether there is a GPU to compute on: CuPy is installed and finds one.

    >>> isinstance(is_available(), bool)
    True
    """
    return find_library("cuda") is not None


def is_initialized() -> bool:
    """Whether CUDA was used in this process."""
    from pullback.backend.device import known_libraries

    return any(library.name == "cuda" for library in known_libraries())


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the GPU computes in bfloat16."""
    return is_available() and (including_emulation or get_device_capability()[0] >= 8)


def device_count() -> int:
    """How many GPUs there are."""
    return len(find_library("cuda").places) if is_available() else 0


def init() -> None:
    """Make the GPU ready; it is at first use in any case."""
    _library()


def current_device() -> int:
    """The number of the GPU that new tensors on "cuda" are made on."""
    return _number(None)


def set_device(device: Any) -> None:
    """Make a GPU the current one."""
    _runtime().setDevice(_number(device))


def get_device_properties(device: Any = None) -> Any:
    """What the driver tells of a GPU."""
    number = _number(device)
    told = _runtime().getDeviceProperties(number)
    return _Properties(
        name=told["name"].decode(),
        total_memory=int(told["totalGlobalMem"]),
        major=int(told["major"]),
        minor=int(told["minor"]),
        multi_processor_count=int(told["multiProcessorCount"]),
        L2_cache_size=int(told["l2CacheSize"]),
        warp_size=int(told["warpSize"]),
        max_threads_per_multi_processor=int(told["maxThreadsPerMultiProcessor"]),
    )


class _Properties:
    """A GPU's name, memory and size."""

    def __init__(self, **told: Any) -> None:
        vars(self).update(told)

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"_CudaDeviceProperties({parts})"


def get_device_name(device: Any = None) -> str:
    """The name of a GPU."""
    return str(get_device_properties(device).name)


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The compute capability of a GPU."""
    told = get_device_properties(device)
    return told.major, told.minor


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Whether a GPU reads another's memory."""
    return bool(_runtime().deviceCanAccessPeer(_number(device), _number(peer_device)))


def synchronize(device: Any = None) -> None:
    """Wait for all work on a GPU; what kernels found wrong is raised."""
    library = _library()
    library.pending.flush()
    library.module.cuda.Device(_number(device)).synchronize()
    library.complaints.check()


def utilization(device: Any = None) -> int:
    """How busy a GPU is, of which CuPy does not tell."""
    _library()
    raise ModuleNotFoundError("pynvml does not seem to be installed or it can't be imported: use nvidia-smi")


def get_arch_list() -> list[str]:
    """The GPUs that kernels are compiled for: those that are there, at first use."""
    return ["sm_{}{}".format(*get_device_capability(n)) for n in range(device_count())]


# Random numbers.


def _generators() -> list[Any]:
    return [find_library("cuda").sampler.generator(n) for n in range(device_count())]


def manual_seed(seed: int) -> None:
    """Seed the generator of the current GPU; accepted without one."""
    if is_available():
        _generators()[current_device()].manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all GPUs."""
    for generator in _generators():
        generator.manual_seed(int(seed))


def seed() -> None:
    """Seed the generator of the current GPU at random."""
    if is_available():
        _generators()[current_device()].seed()


def seed_all() -> None:
    """Seed the generators of all GPUs at random, alike."""
    for generator in _generators():
        generator.seed()


def initial_seed() -> int:
    """The seed that the generator of the current GPU started from."""
    _library()
    return int(_generators()[current_device()].initial_seed())


def get_rng_state(device: Any = "cuda") -> Any:
    """The state of a GPU's generator: seed and offset, 16 bytes."""
    return wrap(_library().sampler.generator(_number(device)).pack_state())


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Set the state of a GPU's generator."""
    _library().sampler.generator(_number(device)).unpack_state(new_state._array)


def get_rng_state_all() -> list[Any]:
    """The states of the generators of all GPUs."""
    return [get_rng_state(n) for n in range(device_count())]


def set_rng_state_all(new_states: Any) -> None:
    """Set the states of the generators of all GPUs."""
    for number, state in enumerate(new_states):
        set_rng_state(state, number)


# Memory.


def empty_cache() -> None:
    """Give memory that is kept for new tensors back to the driver, on all GPUs."""
    if is_available():
        library = find_library("cuda")
        pool = library.module.get_default_memory_pool()
        for place in library.places:
            library.on(place, pool.free_all_blocks)


def ipc_collect() -> None:
    """Accepted: memory is not shared between processes."""
    _library()


def memory_allocated(device: Any = None) -> int:
    """Bytes in use by tensors."""
    return int(find_library("cuda").memory.used(_number(device))) if is_available() else 0


def memory_reserved(device: Any = None) -> int:
    """Bytes taken from the driver."""
    return int(find_library("cuda").memory.reserved(_number(device))) if is_available() else 0


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that were in use since the start, or since `reset_peak_memory_stats`."""
    return int(find_library("cuda").memory.most_used(_number(device))) if is_available() else 0


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes that were taken from the driver."""
    return int(find_library("cuda").memory.most_reserved(_number(device))) if is_available() else 0


def reset_peak_memory_stats(device: Any = None) -> None:
    """Begin anew to look for the most bytes in use."""
    if is_available():
        find_library("cuda").memory.reset(_number(device))


reset_max_memory_allocated = reset_max_memory_cached = reset_accumulated_memory_stats = reset_peak_memory_stats
memory_cached, max_memory_cached = memory_reserved, max_memory_reserved


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Free and total bytes of the GPU, as the driver sees them."""
    with _library().module.cuda.Device(_number(device)):
        free, total = _runtime().memGetInfo()
    return int(free), int(total)


def memory_stats(device: Any = None) -> dict[str, Any]:
    """What is known of memory in use."""
    if not is_available():
        return OrderedDict()
    return OrderedDict(
        {
            "allocated_bytes.all.current": memory_allocated(device),
            "allocated_bytes.all.peak": max_memory_allocated(device),
            "reserved_bytes.all.current": memory_reserved(device),
            "reserved_bytes.all.peak": max_memory_reserved(device),
        }
    )


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """What is known of memory in use, as lines."""
    _library()
    lines = [f"| {name:32} | {value / 2**20:12.1f} MiB |" for name, value in memory_stats(device).items()]
    return "\n".join([f"memory of cuda:{_number(device)}", *lines])


class device:
    """A block on a GPU; a negative number or None is accepted and does nothing."""

    def __init__(self, device: Any) -> None:
        self.idx = -1 if device is None or device == -1 else _number(device)

    def __enter__(self) -> None:
        if self.idx >= 0:
            self._before = current_device()
            set_device(self.idx)

    def __exit__(self, *exception: object) -> None:
        if self.idx >= 0:
            set_device(self._before)


class device_of(device):
    """A block on the GPU of a tensor; of one on the CPU it does nothing."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if obj.is_cuda else -1)


def __getattr__(name: str) -> Any:
    """`amp` and `default_generators` are made when first used."""
    if name == "amp":
        return import_module("pullback.cuda.amp")
    if name == "default_generators":
        return tuple(_generators())
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
