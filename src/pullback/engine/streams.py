"""PassStreams: on which stream each node of a backward pass runs, and who waits for whom. See Note [Streams]."""

from __future__ import annotations

from typing import Any

from pullback.graph.accumulate_grad import AccumulateGrad
from pullback.graph.node import Node
from pullback.modes.streams import Stream, chosen_stream, default_stream, use_stream
from pullback.modes.user_warnings import warn_once


class Warnings:
    """Whether users are told that a leaf's stream differs from that of its gradient."""

    is_on = True


class PassStreams:
    """The streams of one backward pass."""

    def __init__(self, root: Node) -> None:
        self.calling = chosen_stream()
        self._root = root
        self._default = default_stream()
        self._leaves: list[Stream] = []
        self._held: list[tuple[Any, Stream, Stream]] = []

    def stream_of(self, node: Node) -> Stream:
        """Where a node runs."""
        if node is self._root:
            return self.calling
        noted: Stream | None = None if node.extra is None else node.extra.stream
        return self._default if noted is None else noted

    def enter(self, node: Node, ends: bool) -> None:
        """Go to the node's stream for what is computed from now on; `ends`: its gradients are given out."""
        stream = self.stream_of(node)
        self._use(stream)
        if ends and stream not in self._leaves:
            self._leaves.append(stream)

    def send(self, node: Node, following: Node, grad: Any) -> None:
        """Send a gradient from one node to another: what is computed from now on is the other's work."""
        source, target = self.stream_of(node), self.stream_of(following)
        if source != target and grad is not None:
            source.settle(grad)
            target.wait_stream(source)
            self._held.append((grad, source, target))
            if Warnings.is_on and type(following) is AccumulateGrad and node is not self._root:
                _tell(source, target)
        self.enter(following, type(following) is AccumulateGrad)

    def end(self) -> None:
        """Let the calling stream wait for the gradients, and let memory that crossed streams go."""
        for leaf in self._leaves:
            if leaf != self.calling:
                self.calling.wait_stream(leaf)
        for source, target in {(source, target) for _, source, target in self._held}:
            source.wait_stream(target)
        self.leave()

    def leave(self) -> None:
        """End the pass, on the stream of the caller."""
        self._held.clear()
        self.pause()

    def pause(self) -> None:
        """Go back to the stream of the caller."""
        self._use(self.calling)

    def _use(self, stream: Stream) -> None:
        if stream != chosen_stream():
            use_stream(stream)


def _tell(source: Stream, target: Stream) -> None:
    warn_once(
        "The AccumulateGrad node's stream does not match the stream of the node that produced the incoming gradient: "
        f"{target} waits for {source}. The leaf was first used on the former, which became the stream of its gradient. "
        "Use it first on the stream of the computation, or drop the graph that still holds its AccumulateGrad. "
        "torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False) turns this warning off."
    )
