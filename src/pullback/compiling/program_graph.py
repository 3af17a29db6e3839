"""A program as an `fx.Graph`: the same calls as nodes, for those who know graphs. It takes and gives arrays."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

from pullback.compiling.program import Program, Value
from pullback.compiling.sizes import without_sizes
from pullback.fx.graph import Graph
from pullback.fx.graph_module import GraphModule
from pullback.fx.node import Node


class Kernel:
    """A kernel as the target of a node, under its name: it is called with arrays."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.__name__ = self.__qualname__ = re.sub(r"\W", "_", name)
        self.__module__ = "kernels"
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"kernels.{self.__name__}"


class ArrayForm:
    """What is known of an array without its values."""

    def __init__(self, value: Value) -> None:
        self.shape, self.dtype = tuple(map(int, value.shape)), value.dtype


def copy_into(target: Any, source: Any) -> None:
    """What the program writes to an input."""
    target[...] = source


def graph_of(program: Program) -> GraphModule:
    """The calls of a program as a GraphModule: its inputs are those of the program, it gives a tuple of its outputs.

    Nodes are named after kernels. Their `meta` has the form of the result, and the line of the user's program as `source`.
    """
    graph = Graph()
    known: dict[Any, Any] = {}
    constants: dict[str, Any] = {}
    kernels: dict[str, dict[Any, Kernel]] = {}

    def node_of(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: node_of(inner) for key, inner in part.items()}
        if isinstance(part, (tuple, list)):
            return type(part)([node_of(inner) for inner in part])
        if isinstance(part, Value) and part not in known:
            name = f"_constant_{len(constants)}"
            constants[name] = part.constant
            known[part] = _described(graph.create_node("get_attr", name), part)
        try:
            return known.get(part, part)
        except TypeError:  # it is not hashable, and no value
            return part

    for number, value in enumerate(program.inputs):
        known[value] = _described(graph.placeholder(f"input_{number}"), value)
    for call in program.calls:
        arguments, options = node_of(without_sizes(call.arguments)), node_of(without_sizes(call.options))
        kernel = kernels.setdefault(call.kernel, {}).setdefault(call.function, Kernel(call.kernel, call.function))
        name = re.sub(r"\W", "_", call.kernel.rpartition(".")[2])
        node = graph.create_node("call_function", kernel, arguments, options, name=name)
        node.meta["source"] = call.source
        if call.is_single:
            known[call.results[0]] = _described(node, call.results[0])
            continue
        for place, result in enumerate(call.results):
            known[result] = _described(graph.call_function(operator.getitem, (node, place)), result)
    outputs = tuple([None if value is None else node_of(value) for value in program.outputs])
    for place, value in program.writes:
        graph.call_function(copy_into, (known[program.inputs[place]], node_of(value)))
    graph.output(outputs)
    return GraphModule(constants, graph, "Program")


def _described(node: Node, value: Any) -> Node:
    if isinstance(value, Value):
        node.meta["val"] = ArrayForm(value)
    return node
