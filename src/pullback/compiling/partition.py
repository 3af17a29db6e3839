"""Cuts a joint program into forward and backward: what to keep, and what to compute again.

# Note [Least traffic]
What the backward needs of the forward is kept, or computed again from what is kept. Elementwise calls and views may be
computed again, since their loops fuse with those that read them; products, reductions and whatever draws random numbers
may not. Among all cuts between the two the one with the least memory to write and read is taken: a smallest cut of
the graph in which every value is an edge that costs its bytes. Inputs and outputs are in memory anyway, and cost less.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import replace
from typing import Any

import numpy as np

from pullback.compiling.lowering import is_elementwise
from pullback.compiling.program import Call, JointProgram, Number, Program, Value
from pullback.compiling.simplification import needed_calls

_PER_VALUE = 4096
"""What a kept array costs beside its bytes: to allocate, hold and check it takes as long as to copy so many."""
_MOST_VALUES = 40000


def split(joint: JointProgram) -> tuple[Program, Program, int]:
    """Cut a joint program: forward, whose last n outputs are kept, and backward, whose first n inputs they are.

    The forward has the outputs, the writes and every ordered call that needs no gradient. Numbers among the inputs may be
    kept too.
    """
    whole = joint.program
    own = len(whole.inputs) - joint.gradient_inputs
    shown = len(whole.outputs) - joint.gradient_outputs
    inputs, gradients = whole.inputs[:own], whole.inputs[own:]
    outputs, results = whole.outputs[:shown], whole.outputs[shown:]
    first = _before_gradients(whole.calls, gradients)
    backward = Program([], [call for call in whole.calls if call not in first], results)
    backward.calls = needed_calls(backward)
    needed = _read_from_outside(backward, gradients)
    forward_calls = [call for call in whole.calls if call in first]
    written = {whole.inputs[place] for place, _ in whole.writes}
    kept = _least_cut(forward_calls, inputs, {*outputs}, needed, written)
    backward.calls = _again(forward_calls, needed, set(kept)) + backward.calls
    kept = _read_from_outside(backward, gradients)
    backward.inputs = [*kept, *gradients]
    forward = Program(inputs, forward_calls, [*outputs, *kept], whole.writes)
    forward.calls = needed_calls(forward)
    return forward, backward, len(kept)


def _before_gradients(calls: list[Call], gradients: list[Value | Number]) -> set[Call]:
    """The calls that do not depend on gradients."""
    later: set[Value | Number] = set(gradients)
    before: set[Call] = set()
    for call in calls:
        if any(value in later for value in call.reads):
            later.update(call.results)
        else:
            before.add(call)
    return before


def _read_from_outside(program: Program, gradients: list[Value | Number]) -> list[Any]:
    """What a program reads and does not make, gradients and constants left out, in order."""
    made = {result for call in program.calls for result in call.results} | set(gradients)
    read = [value for call in program.calls for value in call.reads]
    read += [value for value in program.outputs if value is not None]
    return [v for v in dict.fromkeys(read) if v not in made and getattr(v, "constant", None) is None]


def _again(calls: list[Call], needed: list[Any], kept: set[Any]) -> list[Call]:
    """The calls of the forward that the backward makes again, with results of its own."""
    wanted = {value for value in needed if value not in kept}
    chosen: list[Call] = []
    for call in reversed(calls):
        if any(result in wanted for result in call.results):
            chosen.append(replace(call))
            wanted.update(
                v for v in call.reads if v not in kept and isinstance(v, Value)
            )  # fmt: skip
    return chosen[::-1]


def _weight(value: Value, in_memory: bool) -> int:
    bytes_ = math.prod(value.shape) * np.dtype(value.dtype).itemsize
    return (bytes_ if in_memory else 2 * bytes_) + _PER_VALUE


def _least_cut(
    calls: list[Call], inputs: list[Any], outputs: set[Any], needed: list[Any], written: set[Any]
) -> list[Any]:
    """The values to keep. An input that the forward overwrites is kept by no one, and what reads it is not made again."""
    values = [v for v in needed if isinstance(v, Value)]
    if not values:
        return needed
    graph = _Flow()
    source, sink = graph.node("source"), graph.node("sink")
    makers = {result: call for call in calls for result in call.results}
    in_memory = {*inputs, *outputs}
    stack, seen = list(values), set(values)
    for value in values:
        graph.edge(graph.node((value, 1)), sink, _Flow.ENDLESS)
    while stack:
        value = stack.pop()
        at = graph.node((value, 0))
        graph.edge(at, graph.node((value, 1)), _weight(value, value in in_memory))
        call = makers.get(value)
        if call is None or not _may_be_made_again(call, written) or len(seen) > _MOST_VALUES:
            graph.edge(source, at, _Flow.ENDLESS)
            continue
        for read in call.reads:
            if isinstance(read, Value) and read.constant is None:
                graph.edge(graph.node((read, 1)), at, _Flow.ENDLESS)
                if read not in seen:
                    seen.add(read)
                    stack.append(read)
    reached = graph.cut(source, sink)
    return [
        value for value in seen if graph.node((value, 0)) in reached and graph.node((value, 1)) not in reached
    ] + [v for v in needed if isinstance(v, Number)]  # fmt: skip


def _may_be_made_again(call: Call, written: set[Any]) -> bool:
    if call.is_ordered or not (call.is_view or is_elementwise(call)):
        return False
    sizes = [math.prod(v.shape) for v in call.reads if isinstance(v, Value)]
    if not call.is_view and math.prod(call.results[0].shape) < max(sizes, default=0):  # a loss, reduced
        return False
    return not any(value in written for value in call.reads)


class _Flow:
    """A network of edges with capacities; the smallest cut by Dinic's method, without recursion."""

    ENDLESS = 1 << 60

    def __init__(self) -> None:
        self._nodes: dict[Any, int] = {}
        self._edges: list[list[int]] = []
        self._to: list[int] = []
        self._capacity: list[int] = []

    def node(self, name: Any) -> int:
        if name not in self._nodes:
            self._nodes[name] = len(self._edges)
            self._edges.append([])
        return self._nodes[name]

    def edge(self, start: int, end: int, capacity: int) -> None:
        self._edges[start].append(len(self._to))
        self._to.append(end)
        self._capacity.append(capacity)
        self._edges[end].append(len(self._to))
        self._to.append(start)
        self._capacity.append(0)

    def cut(self, source: int, sink: int) -> set[int]:
        """The nodes before the last of the smallest cuts: what is kept is as near as can be to what needs it."""
        while True:
            depth = self._depths(source)
            if depth[sink] < 0:
                return set(range(len(depth))) - self._leading_to(sink)
            self._block(source, sink, depth)

    def _leading_to(self, sink: int) -> set[int]:
        """The nodes from which something more could be sent to the sink."""
        found, queue = {sink}, deque([sink])
        while queue:
            node = queue.popleft()
            for edge in self._edges[node]:
                source = self._to[edge]
                if self._capacity[edge ^ 1] > 0 and source not in found:
                    found.add(source)
                    queue.append(source)
        return found

    def _depths(self, source: int) -> list[int]:
        depth = [-1] * len(self._edges)
        depth[source] = 0
        queue = deque([source])
        while queue:
            node = queue.popleft()
            for edge in self._edges[node]:
                target = self._to[edge]
                if self._capacity[edge] > 0 and depth[target] < 0:
                    depth[target] = depth[node] + 1
                    queue.append(target)
        return depth

    def _block(self, source: int, sink: int, depth: list[int]) -> None:
        """Send along shortest ways until none is left."""
        turn = [0] * len(self._edges)
        way: list[int] = []
        node = source
        while True:
            if node == sink:
                least = min(self._capacity[edge] for edge in way)
                for edge in way:
                    self._capacity[edge] -= least
                    self._capacity[edge ^ 1] += least
                full = next(n for n, edge in enumerate(way) if not self._capacity[edge])
                node = self._to[way[full] ^ 1]
                del way[full:]
                continue
            while turn[node] < len(self._edges[node]):
                edge = self._edges[node][turn[node]]
                if self._capacity[edge] > 0 and depth[self._to[edge]] == depth[node] + 1:
                    break
                turn[node] += 1
            else:
                if node == source:
                    return
                edge = way.pop()
                node = self._to[edge ^ 1]
                turn[node] += 1
                continue
            way.append(edge)
            node = self._to[edge]
