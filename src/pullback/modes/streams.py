"""Stream: a queue of work of a device, and which of them this thread's work goes to.

# Note [Streams]
A node notes the stream on which its operation ran (`NodeExtra.stream`), unless that was the device's default one: then
nothing is noted, and programs without streams pay nothing. In backward (engine/streams.py) a node runs on the stream of its
operation. A gradient that goes to a node of another stream lets that stream wait for the one that it comes from; sums are
computed on the stream of the node that gets them. The first nodes wait for the stream that backward was called on: the
gradients that it was given may come from there. At the end the calling stream waits for the streams on which leaves got
their gradients. A leaf's stream is the one that was chosen when its AccumulateGrad was made. Memory belongs to the stream
that it was made on: what crossed from one to another is held until the pass ends, and its stream waits then.
"""

from __future__ import annotations

from typing import Any

from pullback.modes.switches import process, set_switch, switches


class Stream:
    """What the engine asks of a stream. Two that compare equal are the same queue."""

    def wait_stream(self, stream: Any) -> None:
        """Let later work wait for all work in another stream so far."""
        raise NotImplementedError

    def begin(self) -> None:
        """Let this thread's work on the device go here from now on."""
        raise NotImplementedError

    def default(self) -> Stream:
        """The stream of the same device that work goes to unless another is chosen."""
        raise NotImplementedError

    def settle(self, array: Any) -> None:
        """Make sure that the work that makes an array is in a stream."""


class _Known:
    default: Stream | None = None


def use_stream(stream: Stream) -> None:
    """Choose a stream for this thread."""
    default = stream.default()
    stream.begin()
    set_switch("stream", None if stream == default else stream)
    _Known.default = default
    process.streams = True


def chosen_stream() -> Stream:
    """The stream that this thread's work goes to. Asked only where the process ever chose a stream."""
    chosen: Stream | None = switches.stream
    return default_stream() if chosen is None else chosen


def default_stream() -> Stream:
    """The stream of nodes that noted no stream."""
    assert _Known.default is not None
    return _Known.default
