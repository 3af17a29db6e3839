"""Streams and events of a GPU, as programs use them: CuPy's, under PyTorch's names."""

from __future__ import annotations

from typing import Any

from pullback.backend.device import find_library, usable_device
from pullback.modes.streams import Stream as StreamBase
from pullback.modes.streams import use_stream


def _cuda() -> Any:
    usable_device("cuda")
    return find_library("cuda").module.cuda


def _begin_pending() -> None:
    """Launch what was put off: it belongs to the stream that is current now. See Note [Deferred work]."""
    usable_device("cuda")
    find_library("cuda").pending.flush()


class Stream(StreamBase):
    """A queue of work on a GPU: what is in one runs in order, beside what is in others."""

    def __init__(self, device: Any = None, priority: int = 0, *, _raw: Any = None) -> None:
        cuda = _cuda()
        self.device = usable_device("cuda" if device is None else device)
        self.priority = priority
        self.raw = cuda.Stream(non_blocking=True) if _raw is None else _raw

    @property
    def cuda_stream(self) -> int:
        """The driver's handle."""
        return int(self.raw.ptr)

    def synchronize(self) -> None:
        """Wait until all its work is done."""
        _begin_pending()
        self.raw.synchronize()

    def query(self) -> bool:
        """Whether all its work is done."""
        _begin_pending()
        return bool(self.raw.done)

    def record_event(self, event: Event | None = None) -> Event:
        """Put an event behind its work."""
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Let later work wait for an event."""
        _begin_pending()
        self.raw.wait_event(event.raw)

    def wait_stream(self, stream: Stream) -> None:
        """Let later work wait for all work in another stream so far."""
        self.wait_event(stream.record_event())

    def begin(self) -> None:
        """Let this thread's work go here from now on."""
        _begin_pending()
        self.raw.use()

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


class Event:
    """A point in a queue of work."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        self.raw = _cuda().Event(block=blocking, disable_timing=not enable_timing, interprocess=interprocess)

    def record(self, stream: Stream | None = None) -> None:
        """Put it behind the work of a stream, the current one if none is given."""
        _begin_pending()
        self.raw.record((stream or current_stream()).raw)

    def wait(self, stream: Stream | None = None) -> None:
        """Let later work of a stream wait for it."""
        (stream or current_stream()).wait_event(self)

    def query(self) -> bool:
        """Whether the work before it is done."""
        return bool(self.raw.done)

    def synchronize(self) -> None:
        """Wait for the work before it."""
        self.raw.synchronize()

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds between two events that keep time."""
        return float(_cuda().get_elapsed_time(self.raw, end_event.raw))


class StreamContext:
    """A block whose work goes to a stream; None does nothing."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            self._before = current_stream(self.stream.device)
            use_stream(self.stream)

    def __exit__(self, *exception: object) -> None:
        if self.stream is not None:
            use_stream(self._before)


def stream(stream: Stream | None) -> StreamContext:
    """A block whose work goes to a stream."""
    return StreamContext(stream)


def set_stream(stream: Stream | None) -> None:
    """Let work from now on go to a stream."""
    if stream is not None:
        use_stream(stream)


def current_stream(device: Any = None) -> Stream:
    """The stream that work goes to."""
    return Stream(device, _raw=_cuda().get_current_stream())


def default_stream(device: Any = None) -> Stream:
    """The stream that work goes to unless another is chosen."""
    return Stream(device, _raw=_cuda().Stream.null)
