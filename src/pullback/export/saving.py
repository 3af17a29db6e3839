"""Saves exported programs and loads them again: a zip file with the graph as text and the tensors beside it.

Nothing in such a file is code. A graph names ATen's operators and Python's, and loading looks these names up.
"""

from __future__ import annotations

import io
import json
import operator
import os
import zipfile
from collections.abc import Callable
from typing import IO, Any

from pullback.backend.device import device
from pullback.backend.dtype import dtype
from pullback.backend.layout import layout, memory_format
from pullback.creation.filled import empty_strided
from pullback.dispatch.overloads import OpOverload, aten
from pullback.export.exported_program import CallSpec, ExportedProgram, SizeGuard
from pullback.export.graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from pullback.fx.experimental.symbolic_sizes import Symbol
from pullback.fx.graph import Graph
from pullback.fx.graph_module import GraphModule
from pullback.fx.node import Node
from pullback.nn.modules.module import Module
from pullback.nn.parameter import Parameter
from pullback.serialization import load as load_tensors
from pullback.serialization import save as save_tensors
from pullback.tensor.tensor import Tensor
from pullback.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

__all__ = ["load", "save"]

_VERSION = 1
_PROGRAM, _TENSORS, _EXTRA = "program.json", "tensors.pt", "extra/"
_WORDS: dict[str, type] = {"dtype": dtype, "layout": layout, "memory_format": memory_format}
"""Values that are attributes of `torch`, by what they are."""


def save(
    ep: ExportedProgram, f: str | os.PathLike[str] | IO[bytes], *, extra_files: dict[str, Any] | None = None
) -> None:
    """Write an exported program to a file; `extra_files` are texts or bytes that lie beside it."""
    if not isinstance(ep, ExportedProgram):
        raise TypeError(
            f"The 'ep' parameter must be an instance of 'ExportedProgram', got '{type(ep).__name__}' instead."
        )
    state = {name: _plain(value) for name, value in ep.state_dict.items()}
    told = {
        "version": _VERSION,
        "nodes": [_encoded_node(node) for node in ep.graph.nodes],
        "inputs": [_encoded_input(spec) for spec in ep.graph_signature.input_specs],
        "outputs": [[isinstance(s.arg, TensorArgument), s.arg.name, _encoded(getattr(s.arg, "value", None))]
                    for s in ep.graph_signature.output_specs],
        "names": ep.call_spec.names,
        "arguments": _encoded_spec(ep.call_spec.in_spec),
        "result": _encoded_spec(ep.call_spec.out_spec),
        "guards": [list(guard) for guard in ep.guards],
        "symbols": [[[list(place) for place in s.places], s.size] for s in ep.symbols],
        "requires_grad": [n for n, v in ep.state_dict.items() if isinstance(v, Parameter) and v.requires_grad],
    }  # fmt: skip
    with zipfile.ZipFile(f, "w") as archive:
        archive.writestr(_PROGRAM, json.dumps(told))
        archive.writestr(
            _TENSORS, _bytes_of({"state": state, "constants": {n: _plain(v) for n, v in ep.constants.items()}})
        )
        for name, content in (extra_files or {}).items():
            archive.writestr(_EXTRA + name, content)


def load(f: str | os.PathLike[str] | IO[bytes], *, extra_files: dict[str, Any] | None = None) -> ExportedProgram:
    """Read a program that `save` wrote; the values of `extra_files` are filled in."""
    try:
        with zipfile.ZipFile(f) as archive:
            told = json.loads(archive.read(_PROGRAM))
            tensors = load_tensors(io.BytesIO(archive.read(_TENSORS)), weights_only=True)
            for name in extra_files or {}:
                assert extra_files is not None
                extra_files[name] = archive.read(_EXTRA + name).decode("utf-8")
    except (zipfile.BadZipFile, KeyError) as error:
        raise RuntimeError(f"{f!r} is not an exported program that pullback wrote: {error}") from error
    if told["version"] != _VERSION:
        raise RuntimeError(f"{f!r} is an exported program of version {told['version']}; this pullback reads {_VERSION}")
    inputs = [_decoded_input(row) for row in told["inputs"]]
    parameters = {spec.target for spec in inputs if spec.kind is InputKind.PARAMETER}
    state = {
        name: Parameter(value, requires_grad=name in told["requires_grad"]) if name in parameters else value
        for name, value in tensors["state"].items()
    }
    signature = ExportGraphSignature(inputs, [_decoded_output(*row) for row in told["outputs"]])
    spec = CallSpec(told["names"], _decoded_spec(told["arguments"]), _decoded_spec(told["result"]))
    program = ExportedProgram(
        GraphModule(Module(), _decoded_graph(told["nodes"])), signature, state, tensors["constants"], spec,
        [SizeGuard(*guard) for guard in told["guards"]],
    )  # fmt: skip
    program.symbols = [Symbol(tuple([(p, d) for p, d in places]), size) for places, size in told["symbols"]]
    return program


def _plain(value: Tensor) -> Tensor:
    return value.detach()


def _bytes_of(value: Any) -> bytes:
    stream = io.BytesIO()
    save_tensors(value, stream)
    return stream.getvalue()


def _encoded_spec(spec: TreeSpec) -> Any:
    return _encoded(tree_unflatten(list(range(spec.num_leaves)), spec))


def _decoded_spec(told: Any) -> TreeSpec:
    return tree_flatten(_decoded(told, {}))[1]


def _encoded_input(spec: InputSpec) -> list[Any]:
    value = _encoded(getattr(spec.arg, "value", None))
    return [spec.kind.name, isinstance(spec.arg, TensorArgument), spec.arg.name, value, spec.target, spec.persistent]


def _decoded_input(row: list[Any]) -> InputSpec:
    kind, is_tensor, name, value, target, persistent = row
    argument = TensorArgument(name) if is_tensor else ConstantArgument(name, _decoded(value, {}))
    return InputSpec(InputKind[kind], argument, target, persistent)


def _decoded_output(is_tensor: bool, name: str, value: Any) -> OutputSpec:
    argument = TensorArgument(name) if is_tensor else ConstantArgument(name, _decoded(value, {}))
    return OutputSpec(OutputKind.USER_OUTPUT, argument)


def _encoded_node(node: Node) -> list[Any]:
    shown = node.meta.get("val")
    meta = None
    if isinstance(shown, Tensor):
        meta = [list(shown.shape), list(shown.stride()), _encoded(shown.dtype)]
    return [node.op, node.name, _encoded_target(node.target), _encoded(node.args), _encoded(dict(node.kwargs)), meta]


def _encoded_target(target: Any) -> str:
    if isinstance(target, str):
        return target
    if isinstance(target, OpOverload) and target.namespace == "aten":
        return str(target)
    name = getattr(target, "__name__", "")
    if name and getattr(operator, name, None) is target:
        return f"operator.{name}"
    raise NotImplementedError(f"save: a file can name ATen's and Python's operators, and not {target}")


def _decoded_target(op: str, text: str) -> Any:
    if op != "call_function":
        return text
    family, name, *rest = text.split(".")
    if family == "operator":
        return getattr(operator, name)
    packet = aten(name) if family == "aten" else None
    if packet is None:
        raise RuntimeError(f"load: {text} is not an operator that pullback has")
    return packet.overload(rest[0] if rest else "default")


def _encoded(value: Any) -> Any:
    """A value as JSON can hold it: plain ones as they are, others as a mapping of one entry that says what it is."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Node):
        return {"node": value.name}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if isinstance(value, dict):
        return {"dict": [[_encoded(key), _encoded(part)] for key, part in value.items()]}
    if isinstance(value, slice):
        return {"slice": [_encoded(part) for part in (value.start, value.stop, value.step)]}
    if type(value) is tuple or isinstance(value, list):
        return {"tuple" if isinstance(value, tuple) else "list": [_encoded(part) for part in value]}
    if isinstance(value, tuple):  # a size, or what an operation returns
        if hasattr(value, "_fields"):
            raise NotImplementedError(f"save: a file cannot hold a {type(value).__name__}; use tuples and dictionaries")
        return {"list": [_encoded(part) for part in value]}
    if isinstance(value, device):
        return {"device": str(value)}
    for word, kind in _WORDS.items():
        if isinstance(value, kind):
            return {word: str(value).rpartition(".")[2]}
    raise NotImplementedError(f"save: a file cannot hold a {type(value).__name__} among the arguments of a call")


def _decoded(told: Any, nodes: dict[str, Node]) -> Any:
    if not isinstance(told, dict):
        return told
    ((word, content),) = told.items()
    made: dict[str, Callable[[], Any]] = {
        "node": lambda: nodes[content],
        "complex": lambda: complex(*content),
        "dict": lambda: {_decoded(key, nodes): _decoded(part, nodes) for key, part in content},
        "slice": lambda: slice(*[_decoded(part, nodes) for part in content]),
        "tuple": lambda: tuple([_decoded(part, nodes) for part in content]),
        "list": lambda: [_decoded(part, nodes) for part in content],
        "device": lambda: device(content),
    }
    return made[word]() if word in made else _named(word, content)


def _named(word: str, name: str) -> Any:
    import pullback  # lazy: the package imports this module

    found = getattr(pullback, name, None)
    if word not in _WORDS or not isinstance(found, _WORDS[word]):
        raise RuntimeError(f"load: {name!r} is not a {word}")
    return found


def _decoded_graph(rows: list[Any]) -> Graph:
    graph, nodes = Graph(), dict[str, Node]()
    for op, name, target, args, kwargs, meta in rows:
        given = _decoded(args, nodes), _decoded(kwargs, nodes)
        node = nodes[name] = graph.create_node(op, _decoded_target(op, target), *given, name=name)
        if meta is not None:
            shape, strides, kind = meta
            node.meta["val"] = empty_strided(shape, strides, dtype=_decoded(kind, nodes), device="meta")
    return graph
