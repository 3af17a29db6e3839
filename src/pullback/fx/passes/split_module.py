"""Cutting a graph into submodules, as a function says of each node."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from pullback.fx.graph import Graph
from pullback.fx.graph_module import GraphModule
from pullback.fx.node import Node, map_arg
from pullback.nn.modules.module import Module

__all__ = ["split_module"]


_NO_PART = "\n"
"""No name of a part."""


class _Partition:
    """The nodes of one submodule, with the values that come in and go out."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.graph = Graph()
        self.inside: dict[Node, Node] = {}
        """Nodes of this graph by those of the whole."""
        self.inputs: dict[Node, None] = {}
        self.outputs: dict[Node, None] = {}
        self.needs: dict[str, None] = {}
        """The partitions whose outputs come in."""


def split_module(
    m: GraphModule, root_m: Module | None, split_callback: Callable[[Node], Any],
    qualname_map: dict[str, str] | None = None, keep_original_order: bool | None = False,
    keep_original_node_name: bool | None = False, **options: Any,
) -> GraphModule:  # fmt: skip
    """A module with a submodule `submod_<part>` for each part that `split_callback` gives nodes.

    `qualname_map` is filled with the former names of what the submodules hold.

    >>> import pullback
    >>> from pullback.fx import symbolic_trace
    >>> traced = symbolic_trace(lambda x: (x + 1).relu() * 2)
    >>> split = split_module(traced, None, lambda node: 0 if node.name in ("add", "relu") else 1)
    >>> print(split.code.strip())
    def forward(self, x):
        submod_0 = self.submod_0(x);  x = None
        submod_1 = self.submod_1(submod_0);  submod_0 = None
        return submod_1
    >>> split(pullback.ones(1))
    tensor([4.])
    """
    part_of: dict[Node, str] = {}
    partitions: dict[str, _Partition] = {}
    for node in m.graph.nodes:
        if node.op not in ("placeholder", "output"):
            part_of[node] = name = str(split_callback(node))
            partitions.setdefault(name, _Partition(name))
    for node in m.graph.nodes:
        for used in node.all_input_nodes:
            if part_of.get(used) != part_of.get(node):
                _connect(used, partitions.get(part_of.get(used, _NO_PART)), partitions.get(part_of.get(node, _NO_PART)))
    order = list(partitions) if keep_original_order else _sorted(partitions)
    for node in m.graph.nodes:
        if node in part_of:
            _put(node, partitions[part_of[node]])
    whole = Graph()
    known: dict[Node, Any] = {node: whole.node_copy(node) for node in m.graph.nodes if node.op == "placeholder"}
    modules: dict[str, Any] = {}
    for name in order:
        partition = partitions[name]
        target = f"submod_{name}"
        modules[target] = _finish(m, partition)
        if qualname_map is not None:
            names = [str(n.target) for n in partition.graph.nodes if n.op in ("call_module", "get_attr")]
            qualname_map.update({f"{target}.{inner}": inner for inner in names})
        made = whole.call_module(target, tuple([known[node] for node in partition.inputs]))
        outputs = list(partition.outputs)
        if len(outputs) == 1:
            known[outputs[0]] = made
            continue
        for place, node in enumerate(outputs):
            known[node] = whole.call_function(operator.getitem, (made, place))
    output = m.graph.output_node()
    whole.output(map_arg(output.args[0], lambda node: known[node]))
    root = Module()
    for target, module in modules.items():
        root.add_module(target, module)
    return GraphModule(root, whole, type(m).__name__)


def _connect(used: Node, maker: _Partition | None, user: _Partition | None) -> None:
    """Note that a value goes from one partition to another; None stands for the graph around them."""
    if maker is not None:
        maker.outputs.setdefault(used)
    if user is not None:
        user.inputs.setdefault(used)
        if maker is not None:
            user.needs.setdefault(maker.name)


def _sorted(partitions: dict[str, _Partition]) -> list[str]:
    """The names of partitions, each after those that it needs."""
    done: dict[str, None] = {}
    while len(done) < len(partitions):
        ready = [name for name, p in partitions.items() if name not in done and p.needs.keys() <= done.keys()]
        if not ready:
            raise RuntimeError(
                "cycle exists between partitions! Let split_callback give nodes between two nodes of a part the same part."
            )
        done.setdefault(ready[0])
    return list(done)


def _put(node: Node, partition: _Partition) -> None:
    """Copy a node into the graph of its partition."""

    def inside(used: Node) -> Node:
        if used not in partition.inside:
            partition.inside[used] = partition.graph.placeholder(used.name, type_expr=used.type)
            partition.inside[used].meta = dict(used.meta)
        return partition.inside[used]

    for used in partition.inputs:
        inside(used)
    partition.inside[node] = partition.graph.node_copy(node, inside)


def _finish(m: GraphModule, partition: _Partition) -> GraphModule:
    outputs = tuple([partition.inside[node] for node in partition.outputs])
    partition.graph.output(outputs[0] if len(outputs) == 1 else outputs)
    return GraphModule(m, partition.graph, f"submod_{partition.name}")
