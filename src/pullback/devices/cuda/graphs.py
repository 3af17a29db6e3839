"""CUDA graphs: launches that the driver takes down and repeats as one. See Note [Replayed graphs]."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from pullback.backend.device_array import DeviceArray
from pullback.devices.cuda.philox import CapturedStream

_WORKSPACE = 32 << 20
"""Bytes that cuBLAS computes with, as NVIDIA recommends for Hopper."""
_COUNTERS = 1 << 18
_MEMCPY = 1
_HOST, _DEVICE, _ANYWHERE = 1, 2, 4
"""The driver's numbers of memory: of the host, of the GPU, and where the address tells."""
_MEMORY_TYPE = 2


class Captured:
    """What a run launched, ready to be launched again."""

    def __init__(self, graph: Any, results: list[Any], memory: Any, stream: CapturedStream) -> None:
        self._graph = graph
        self._stream = stream
        self.results = results
        """What it gave, in memory of the graph."""
        self._memory = memory
        """The pool that everything in between was allocated from: nobody else may."""
        self.nodes = count_nodes(graph)

    def launch(self) -> None:
        """Begin all of it, in the current stream."""
        self._stream.go_on()
        self._graph.launch()


class Capturing:
    """Takes launches down, in a stream of its own, with memory and a cuBLAS handle of its own."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._cupy = library.module
        self._stream = self._cupy.cuda.Stream(non_blocking=True)
        self._blas: Any = None
        self.is_on = False

    def capture(self, run: Callable[[], list[Any]]) -> Captured:
        """Take down what `run` launches; nothing is launched yet."""
        library, cuda = self._library, self._cupy.cuda
        library.pending.flush()
        if self._blas is None:
            self._blas = Blas(self._cupy, self._stream)
        memory = cuda.MemoryPool()
        with self._stream:
            counter = library.counter(_COUNTERS)
            self._stream.synchronize()
        stream = library.sampler.captured = CapturedStream(library.sampler, self._cupy)
        graph = None
        with self._stream, cuda.using_allocator(memory.malloc):
            self._stream.begin_capture()
            self.is_on = True
            try:
                results = run()
                for made in results:
                    if isinstance(made, DeviceArray):
                        made.raw  # noqa: B018  # what was put off belongs to the graph
                library.pending.flush()
            finally:
                self.is_on, library.sampler.captured = False, None
                library.pending.give_up()
                try:
                    graph = self._stream.end_capture()
                except self._cupy.cuda.runtime.CUDARuntimeError:
                    graph = None  # what went wrong was raised before
        if graph is None:
            raise RuntimeError("the driver could not take the launches down")
        refuse_copies_of_the_host(graph)
        with self._stream:
            if library.counter(1) is not counter:
                raise RuntimeError("a kernel counts with more blocks than there are counters")
        return Captured(graph, results, memory, stream)

    def gemm(self, *arguments: Any) -> None:
        """As `cublas.gemmEx`, which CuPy refuses here."""
        self._blas.gemm(*arguments)

    def gemm_batched(self, *arguments: Any) -> None:
        """As `cublas.gemmStridedBatchedEx`, which CuPy refuses here."""
        self._blas.gemm_batched(*arguments)


class Blas:
    """cuBLAS with a handle whose work can be taken down."""

    def __init__(self, cupy: Any, stream: Any) -> None:
        self._library = ctypes.CDLL(_loaded("libcublas.so"))
        handle = ctypes.c_void_p()
        self._check(self._library.cublasCreate_v2(ctypes.byref(handle)))
        self._handle = handle
        self._workspace = cupy.cuda.alloc(_WORKSPACE)
        self._check(self._library.cublasSetStream_v2(handle, ctypes.c_void_p(stream.ptr)))
        size = ctypes.c_size_t(_WORKSPACE)
        self._check(self._library.cublasSetWorkspace_v2(handle, ctypes.c_void_p(self._workspace.ptr), size))

    def gemm(self, *given: Any) -> None:
        """cublasGemmEx; the first argument is CuPy's handle."""
        self._check(self._library.cublasGemmEx(self._handle, *_converted(given[1:], "iiiiippiipiippiiii")))

    def gemm_batched(self, *given: Any) -> None:
        """cublasGemmStridedBatchedEx; the first argument is CuPy's handle."""
        self._check(
            self._library.cublasGemmStridedBatchedEx(self._handle, *_converted(given[1:], "iiiiippiilpiilppiiliii"))
        )

    def _check(self, status: int) -> None:
        if status:
            raise RuntimeError(f"cuBLAS failed with status {status}")


_KINDS = {"i": ctypes.c_int, "p": ctypes.c_void_p, "l": ctypes.c_longlong}


def _converted(given: Any, kinds: str) -> list[Any]:
    return [_KINDS[kind](int(value)) for kind, value in zip(kinds, given, strict=True)]


def _loaded(name: str) -> str:
    """The file of a shared library that this process has loaded."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        for line in maps:
            path = line.rstrip("\n").rpartition(" ")[2]
            if path.rpartition("/")[2].startswith(name):
                return path
    raise RuntimeError(f"{name} is not loaded")


def _driver() -> Any:
    return ctypes.CDLL("libcuda.so.1")


def _nodes(graph: Any) -> list[Any]:
    driver, count = _driver(), ctypes.c_size_t(0)
    handle = ctypes.c_void_p(graph.graph)
    if driver.cuGraphGetNodes(handle, None, ctypes.byref(count)):
        raise RuntimeError("the driver does not say what it took down")
    nodes = (ctypes.c_void_p * max(count.value, 1))()
    driver.cuGraphGetNodes(handle, nodes, ctypes.byref(count))
    return list(nodes[: count.value])


def count_nodes(graph: Any) -> int:
    """How many launches were taken down."""
    return len(_nodes(graph))


class _Copy(ctypes.Structure):
    """The driver's description of a copy."""

    _fields_ = (
        *[(f"source_{name}", ctypes.c_size_t) for name in ("x", "y", "z", "level")], ("source_kind", ctypes.c_int),
        *[(f"source_{n}", ctypes.c_void_p) for n in ("host", "device", "array", "reserved")],
        *[(f"source_{name}", ctypes.c_size_t) for name in ("pitch", "height")],
        *[(f"target_{name}", ctypes.c_size_t) for name in ("x", "y", "z", "level")], ("target_kind", ctypes.c_int),
        *[(f"target_{n}", ctypes.c_void_p) for n in ("host", "device", "array", "reserved")],
        *[(f"target_{name}", ctypes.c_size_t) for name in ("pitch", "height")],
        *[(name, ctypes.c_size_t) for name in ("width", "height", "depth")],
    )  # fmt: skip


def refuse_copies_of_the_host(graph: Any) -> None:
    """Refuse a graph that reads memory of the host, which holds something else when it is repeated."""
    driver = _driver()
    for node in _nodes(graph):
        kind = ctypes.c_int()
        driver.cuGraphNodeGetType(ctypes.c_void_p(node), ctypes.byref(kind))
        if kind.value == _MEMCPY:
            copy = _Copy()
            failed = driver.cuGraphMemcpyNodeGetParams(ctypes.c_void_p(node), ctypes.byref(copy))
            kinds = [
                _kind_at(driver, address) if kind == _ANYWHERE else kind
                for kind, address in ((copy.source_kind, copy.source_device), (copy.target_kind, copy.target_device))
            ]
            if failed or kinds != [_DEVICE, _DEVICE]:
                raise RuntimeError(f"values are copied from or to the memory of the host: kinds {kinds}")


def _kind_at(driver: Any, address: Any) -> int:
    """Whose memory lies at an address."""
    kind = ctypes.c_uint(0)
    failed = driver.cuPointerGetAttribute(ctypes.byref(kind), _MEMORY_TYPE, ctypes.c_void_p(address))
    return _HOST if failed else kind.value
