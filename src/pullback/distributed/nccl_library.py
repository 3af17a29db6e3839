"""NVIDIA's libnccl by ctypes, under the names that CuPy has for it: for a CuPy that was built without NCCL.

The library is looked for where the loader looks, and in the wheel nvidia-nccl.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib.util
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["NcclCommunicator", "NcclError", "find", "get_unique_id", "groupEnd", "groupStart"]

_ID_BYTES = 128


class NcclError(RuntimeError):
    """What NCCL says went wrong."""


class _UniqueId(ctypes.Structure):
    _fields_ = (("internal", ctypes.c_byte * _ID_BYTES),)


@cache
def find() -> Any:
    """The library, loaded; None where it is not installed."""
    for name in _candidates():
        try:
            found = ctypes.CDLL(name)
            found.ncclGetErrorString.restype = ctypes.c_char_p
        except (OSError, AttributeError):
            continue
        return found
    return None


def _candidates() -> list[str]:
    names = ["libnccl.so.2", *filter(None, [ctypes.util.find_library("nccl")])]
    try:
        spec = importlib.util.find_spec("nvidia.nccl")
    except ModuleNotFoundError:
        spec = None
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        names.append(str(Path(folder) / "lib" / "libnccl.so.2"))
    return names


def _call(name: str, *arguments: Any) -> None:
    library = find()
    status = getattr(library, name)(*arguments)
    if status:
        told = library.ncclGetErrorString(status).decode()
        raise NcclError(f"{name} failed: {told} (NCCL_DEBUG=WARN in the environment lets NCCL say more)")


def get_unique_id() -> bytes:
    """A number that ranks meet by, made by one of them."""
    made = _UniqueId()
    _call("ncclGetUniqueId", ctypes.byref(made))
    return bytes(made.internal)


def groupStart() -> None:
    """Begin a group of calls that NCCL is to see together."""
    _call("ncclGroupStart")


def groupEnd() -> None:
    """End a group of calls."""
    _call("ncclGroupEnd")


class NcclCommunicator:
    """One rank's part of a communicator; buffers and streams are addresses, dtypes and ways of joining NCCL's numbers."""

    def __init__(self, size: int, number: bytes, rank: int) -> None:
        self._handle = ctypes.c_void_p()
        _call("ncclCommInitRank", ctypes.byref(self._handle), size, _UniqueId.from_buffer_copy(number), rank)

    def allReduce(self, source: int, target: int, count: int, dtype: int, op: int, stream: int) -> None:
        """Join the values of all ranks, for all."""
        self._run("AllReduce", _address(source), _address(target), ctypes.c_size_t(count), dtype, op, stream=stream)

    def reduce(self, source: int, target: int, count: int, dtype: int, op: int, root: int, stream: int) -> None:
        """Join the values of all ranks, for one."""
        self._run("Reduce", _address(source), _address(target), ctypes.c_size_t(count), dtype, op, root, stream=stream)

    def broadcast(self, source: int, target: int, count: int, dtype: int, root: int, stream: int) -> None:
        """Give the values of one rank to all."""
        self._run("Broadcast", _address(source), _address(target), ctypes.c_size_t(count), dtype, root, stream=stream)

    def allGather(self, source: int, target: int, count: int, dtype: int, stream: int) -> None:
        """Put the values of all ranks one behind the other, for all."""
        self._run("AllGather", _address(source), _address(target), ctypes.c_size_t(count), dtype, stream=stream)

    def reduceScatter(self, source: int, target: int, count: int, dtype: int, op: int, stream: int) -> None:
        """Join the values of all ranks, and give each its part."""
        self._run("ReduceScatter", _address(source), _address(target), ctypes.c_size_t(count), dtype, op, stream=stream)

    def send(self, source: int, count: int, dtype: int, peer: int, stream: int) -> None:
        """Send values to a rank."""
        self._run("Send", _address(source), ctypes.c_size_t(count), dtype, peer, stream=stream)

    def recv(self, target: int, count: int, dtype: int, peer: int, stream: int) -> None:
        """Get values from a rank."""
        self._run("Recv", _address(target), ctypes.c_size_t(count), dtype, peer, stream=stream)

    def destroy(self) -> None:
        """Let it go."""
        if self._handle:
            _call("ncclCommDestroy", self._handle)
            self._handle = ctypes.c_void_p()

    def _run(self, name: str, *arguments: Any, stream: int) -> None:
        _call(f"nccl{name}", *arguments, self._handle, _address(stream))


def _address(value: int) -> ctypes.c_void_p:
    return ctypes.c_void_p(value)
