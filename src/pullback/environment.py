"""What programs ask about the process: dtypes' limits, threads, determinism, memory formats, type checks."""

from __future__ import annotations

import builtins
import math
from typing import Any

from pullback.backend.dtype import finfo, iinfo
from pullback.tensor.formatting import set_printoptions
from pullback.tensor.tensor import Tensor

__all__ = ["finfo", "iinfo", "set_printoptions"]

inf, nan, pi, e, newaxis = math.inf, math.nan, math.pi, math.e, None


class layout:
    """How a tensor's elements are stored; only strided ones exist here."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"


strided = layout("strided")
sparse_coo = layout("sparse_coo")
sparse_csr = layout("sparse_csr")


class memory_format:
    """The order of dimensions in memory."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"


contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")


def is_tensor(obj: Any, /) -> bool:
    """Whether `obj` is a Tensor.

    >>> is_tensor([1.0])
    False
    """
    return isinstance(obj, Tensor)


class _Threads:
    count = 1
    interop = 1


def get_num_threads() -> builtins.int:
    """The number of threads that operations may use."""
    return _Threads.count


def set_num_threads(count: builtins.int, /) -> None:
    """Set the number of threads that operations may use."""
    if count < 1:
        raise RuntimeError("set_num_threads expects a positive integer")
    _Threads.count = count


def get_num_interop_threads() -> builtins.int:
    """The number of threads for independent operations; kept for programs that ask."""
    return _Threads.interop


def set_num_interop_threads(count: builtins.int, /) -> None:
    """Accepted and remembered."""
    _Threads.interop = count


class _Determinism:
    enabled = False
    warn_only = False


def use_deterministic_algorithms(mode: builtins.bool, *, warn_only: builtins.bool = False) -> None:
    """Accepted: every operation here is deterministic."""
    _Determinism.enabled, _Determinism.warn_only = mode, warn_only


def are_deterministic_algorithms_enabled() -> builtins.bool:
    """What `use_deterministic_algorithms` was last told."""
    return _Determinism.enabled


def is_deterministic_algorithms_warn_only_enabled() -> builtins.bool:
    """What `use_deterministic_algorithms` was last told."""
    return _Determinism.warn_only
