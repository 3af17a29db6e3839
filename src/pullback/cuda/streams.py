"""Streams and events of GPUs, as programs use them: CuPy's, under PyTorch's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.backend.device import find_library, usable_device
from pullback.modes.streams import Stream as StreamBase
from pullback.modes.streams import use_stream


def _library() -> Any:
    usable_device("cuda")
    return find_library("cuda")


def _cuda() -> Any:
    return _library().module.cuda


def _begin_pending() -> None:
    """Launch what was put off: it belongs to the stream that is current now. See Note [Deferred work]."""
    _library().pending.flush()


class Stream(StreamBase):
    """A queue of work on a GPU: what is in one runs in order, beside what is in others."""

    def __init__(self, device: Any = None, priority: int = 0, *, _raw: Any = None) -> None:
        self.device = usable_device("cuda" if device is None else device)
        self.priority = priority
        self.raw = self._on_its_gpu(lambda: _cuda().Stream(non_blocking=True)) if _raw is None else _raw

    def _on_its_gpu(self, act: Callable[[], Any]) -> Any:
        """What the driver is to do while the stream's GPU is the current one: its default stream has no other name."""
        return _library().on(self.device, act)

    @property
    def cuda_stream(self) -> int:
        """The driver's handle."""
        return int(self.raw.ptr)

    def synchronize(self) -> None:
        """Wait until all its work is done."""
        _begin_pending()
        self._on_its_gpu(self.raw.synchronize)

    def query(self) -> bool:
        """Whether all its work is done."""
        _begin_pending()
        return bool(self._on_its_gpu(lambda: self.raw.done))

    def record_event(self, event: Event | None = None) -> Event:
        """Put an event behind its work."""
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Let later work wait for an event."""
        _begin_pending()
        if event.raw is not None:
            self._on_its_gpu(lambda: self.raw.wait_event(event.raw))

    def wait_stream(self, stream: Stream) -> None:
        """Let later work wait for all work in another stream so far."""
        self.wait_event(stream.record_event())

    def begin(self) -> None:
        """Let this thread's work go here from now on."""
        _begin_pending()
        self._on_its_gpu(self.raw.use)

    def default(self) -> Stream:
        """The stream that work goes to unless another is chosen."""
        return default_stream(self.device)

    def settle(self, array: Any) -> None:
        """See to it that the work that makes an array is in a stream."""
        array = getattr(array, "_array", array)
        getattr(getattr(array, "part", array), "raw", None)

    def __enter__(self) -> Stream:
        self._block = StreamContext(self)
        self._block.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._block.__exit__(*exception)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.cuda_stream == other.cuda_stream and self.device == other.device

    def __hash__(self) -> int:
        return hash((self.cuda_stream, self.device))

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class StreamsOfGpus(StreamBase):
    """The streams that work goes to on each of several GPUs: what is chosen, and what a node notes. See Note [Streams]."""

    def __init__(self, streams: list[Stream]) -> None:
        self.streams = streams

    def wait_stream(self, stream: StreamsOfGpus) -> None:
        """Let later work of each GPU wait for what that GPU has to do elsewhere; copies between GPUs wait by themselves."""
        for own, other in zip(self.streams, stream.streams, strict=True):
            if own != other:
                own.wait_stream(other)

    def begin(self) -> None:
        """Let this thread's work go here from now on."""
        for stream in self.streams:
            stream.begin()

    def default(self) -> StreamsOfGpus:
        """Those that work goes to unless others are chosen."""
        return StreamsOfGpus([stream.default() for stream in self.streams])

    def settle(self, array: Any) -> None:
        """See to it that the work that makes an array is in a stream."""
        self.streams[0].settle(array)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StreamsOfGpus) and self.streams == other.streams

    def __hash__(self) -> int:
        return hash(tuple(self.streams))

    def __repr__(self) -> str:
        return f"{self.streams}"


class Event:
    """A point in a queue of work. It belongs to the GPU of the stream that first records it."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        self._options = {"block": blocking, "disable_timing": not enable_timing, "interprocess": interprocess}
        self.raw: Any = None
        self.device: Any = None

    def record(self, stream: Stream | None = None) -> None:
        """Put it behind the work of a stream, the current one if none is given."""
        _begin_pending()
        stream = stream or current_stream()
        if self.raw is None:
            self.device = stream.device
            self.raw = stream._on_its_gpu(lambda: _cuda().Event(**self._options))
        elif stream.device != self.device:
            raise RuntimeError(
                f"Event device {self.device.index} does not match recording stream's device {stream.device.index}. Make "
                "an event for each GPU."
            )
        stream._on_its_gpu(lambda: self.raw.record(stream.raw))

    def wait(self, stream: Stream | None = None) -> None:
        """Let later work of a stream wait for it."""
        (stream or current_stream()).wait_event(self)

    def query(self) -> bool:
        """Whether the work before it is done; so it is before it was recorded."""
        return self.raw is None or bool(self.raw.done)

    def synchronize(self) -> None:
        """Wait for the work before it."""
        if self.raw is not None:
            self.raw.synchronize()

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds between two events that keep time."""
        if self.raw is None or end_event.raw is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return float(_cuda().get_elapsed_time(self.raw, end_event.raw))


class StreamContext:
    """A block whose work goes to a stream, on its GPU; None does nothing."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            # The last one to be chosen again is that of the GPU which was current.
            self._before = [current_stream(self.stream.device), current_stream()]
            set_stream(self.stream)

    def __exit__(self, *exception: object) -> None:
        if self.stream is not None:
            for before in dict.fromkeys(self._before):
                set_stream(before)


def stream(stream: Stream | None) -> StreamContext:
    """A block whose work goes to a stream."""
    return StreamContext(stream)


def set_stream(stream: Stream | None) -> None:
    """Let work from now on go to a stream, and make its GPU the current one."""
    if stream is None:
        return
    library = _library()
    if library.is_single():
        use_stream(stream)
        return
    numbers = range(len(library.places))
    use_stream(StreamsOfGpus([stream if n == stream.device.index else current_stream(n) for n in numbers]))
    library.module.cuda.runtime.setDevice(stream.device.index)


def current_stream(device: Any = None) -> Stream:
    """The stream that work goes to, on the GPU that is current or given."""
    place = usable_device("cuda" if device is None else device)
    return Stream(place, _raw=_cuda().get_current_stream(place.index))


def default_stream(device: Any = None) -> Stream:
    """The stream that work goes to unless another is chosen."""
    return Stream(device, _raw=_cuda().Stream.null)
