"""export: a module runs once on example arguments, and the ATen calls that it makes become an ExportedProgram.

It is the trace of make_fx: parameters, buffers and constants are inputs of the graph, named after what they are.
"""

from __future__ import annotations

import inspect
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pullback.autograd import no_grad
from pullback.export.dynamic_shapes import Ranges
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
from pullback.func import functional_call
from pullback.fx.experimental.proxy_tensor import trace_leaves
from pullback.fx.experimental.symbolic_sizes import StaticSizeError, trace_with_symbols
from pullback.fx.graph_module import GraphModule
from pullback.fx.interpreter import Interpreter
from pullback.fx.node import Node
from pullback.nn.modules.module import Module
from pullback.tensor.tensor import Tensor
from pullback.utils._pytree import TreeSpec, tree_flatten, tree_flatten_with_path, tree_unflatten

__all__ = ["export"]


def export(
    mod: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None, *, dynamic_shapes: Any = None,
    strict: bool = False, preserve_module_call_signature: tuple[str, ...] = (),
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:  # fmt: skip
    """Run a module on example arguments and keep what it computes as a program without Python.

    Calls are those that dispatch modes see, as after PyTorch's `run_decompositions()`. Writes to buffers stay writes. Values
    that are not tensors are fixed, and so are sizes, unless `dynamic_shapes` says otherwise: a mapping from dimensions to
    `Dim` for each argument. A module whose calls depend on values raises.

    >>> import pullback
    >>> program = export(pullback.nn.Linear(3, 1), (pullback.ones(2, 3),))
    >>> [str(node.target) for node in program.graph.nodes if node.op == "call_function"]
    ['aten.t.default', 'aten.addmm.default']
    >>> tuple(program.module()(pullback.zeros(2, 3)).shape)
    (2, 1)
    """
    if not isinstance(mod, Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if not isinstance(args, tuple):
        raise TypeError(f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}")
    given = dict(kwargs or {})
    names, values = [*_names_of(mod, args), *given], [*args, *given.values()]
    made = _Exporting(mod, args, given, names)
    ranges = Ranges(dynamic_shapes, names, values)
    _now.depth += 1
    try:
        return made.run(ranges)
    finally:
        _now.depth -= 1


class _Now(threading.local):
    depth = 0


_now = _Now()


def is_exporting() -> bool:
    """Whether this thread exports a module."""
    return _now.depth > 0


def _names_of(mod: Module, args: tuple[Any, ...]) -> list[str]:
    """The names of positional arguments; numbered ones where the module takes any number."""
    names: list[str] = []
    for parameter in inspect.signature(mod.forward).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}_{n}" for n in range(len(args) - len(names))]
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
    if len(args) > len(names):
        raise TypeError(f"{type(mod).__name__}.forward takes {len(names)} positional arguments, got {len(args)}")
    return names[: len(args)]


class _Exporting:
    def __init__(self, mod: Module, args: tuple[Any, ...], kwargs: dict[str, Any], names: list[str]) -> None:
        self.mod = mod
        self.example_inputs = args, kwargs
        self.names = names
        self.parameters = dict(mod.named_parameters())
        self.buffers = dict(mod.named_buffers())
        self.leaves, self.spec = tree_flatten((args, kwargs))
        self.leaf_names = _leaf_names(names, [*args, *kwargs.values()])
        self.out_spec: TreeSpec | None = None

    def run(self, ranges: Ranges) -> ExportedProgram:
        lifted = [*self.parameters.values(), *[buffer.detach().clone() for buffer in self.buffers.values()]]
        first = len(lifted)
        symbols = [s._replace(places=tuple([(p + first, dim) for p, dim in s.places])) for s in ranges.symbols]
        try:
            graph = trace_with_symbols(self._trace, [*lifted, *self.leaves], symbols, strict=ranges.is_strict)
        except StaticSizeError as error:
            raise ValueError(
                f"Constraints violated: {error}. Leave it out of dynamic_shapes, or mark it Dim.STATIC."
            ) from None
        constants = self._lift_constants(graph)
        own = _inputs_of(graph)[first + len(constants) :]
        changing = {place for node in graph.graph.nodes for place in _sizes_read(node, own)}
        lifted_names = list(constants)
        graph.graph.lint()
        graph.recompile()
        persistent = self.mod.state_dict(keep_vars=True)
        state = {name: value for name, value in (self.parameters | self.buffers).items() if name in persistent}
        constants |= {name: value for name, value in self.buffers.items() if name not in persistent}
        assert self.out_spec is not None
        args, kwargs = self.example_inputs
        flat = tree_flatten([*args, *kwargs.values()])[1]
        program = ExportedProgram(
            graph, self._signature(graph, set(persistent), lifted_names), state, constants,
            CallSpec(self.names, flat, self.out_spec), self._guards(ranges, changing), self.example_inputs,
        )  # fmt: skip
        program.symbols = ranges.symbols
        return program

    def _trace(self, leaves: Sequence[Any]) -> GraphModule:
        count = len(self.parameters) + len(self.buffers)
        state = dict(zip([*self.parameters, *self.buffers], leaves[:count], strict=True))

        def call(leaves: Sequence[Any]) -> Any:
            args, kwargs = tree_unflatten(leaves[count:], self.spec)
            with no_grad():
                return functional_call(self.mod, state, args, kwargs)

        prefixed = [f"p_{n}" for n in self.parameters] + [f"b_{n}" for n in self.buffers]
        names = [re.sub(r"\W", "_", name) for name in prefixed] + self.leaf_names
        graph, self.out_spec = trace_leaves(call, names, leaves)
        return graph

    def _lift_constants(self, graph_module: GraphModule) -> dict[str, Any]:
        """Make the tensors that a graph reads from itself inputs, before the arguments."""
        graph, found = graph_module.graph, dict[str, Any]()
        inputs = _inputs_of(graph_module)
        rest = [node for node in graph.nodes if node.op != "placeholder"]
        before = [*inputs[len(self.parameters) + len(self.buffers) :], *rest][0]
        known: dict[str, Node] = {}
        for node in [node for node in graph.nodes if node.op == "get_attr"]:
            target = str(node.target)
            if target not in known:
                value = getattr(graph_module, target)
                name = self._name_of(value) or f"lifted_tensor_{len([n for n in found if n.startswith('lifted')])}"
                found[name] = value
                with graph.inserting_before(before):
                    known[target] = graph.create_node("placeholder", f"c_{re.sub(r'[^0-9a-zA-Z_]', '_', name)}")
                known[target].meta.update(node.meta)
                delattr(graph_module, target)
            node.replace_all_uses_with(known[target])
            graph.erase_node(node)
        return found

    def _name_of(self, value: Any) -> str | None:
        """The attribute of the module, or of one in it, that a tensor is."""
        for prefix, module in self.mod.named_modules():
            for name, held in vars(module).items():
                if held is value:
                    return f"{prefix}.{name}" if prefix else name
        return None

    def _signature(self, graph: GraphModule, persistent: set[str], constants: list[str]) -> ExportGraphSignature:
        made = ExportGraphSignature()
        lifted: list[tuple[InputKind, str, bool | None]] = [(InputKind.PARAMETER, n, None) for n in self.parameters]
        lifted += [(InputKind.BUFFER, name, name in persistent) for name in self.buffers]
        lifted += [(InputKind.CONSTANT_TENSOR, name, None) for name in constants]
        inputs = _inputs_of(graph)
        for node, (kind, target, is_persistent) in zip(inputs, lifted, strict=False):
            made.input_specs.append(InputSpec(kind, TensorArgument(node.name), target, is_persistent))
        for node, value in zip(inputs[len(lifted) :], self.leaves, strict=True):
            is_tensor = isinstance(value, Tensor)
            argument: Any = TensorArgument(node.name) if is_tensor else ConstantArgument(node.name, value)
            made.input_specs.append(InputSpec(InputKind.USER_INPUT, argument))
        for number, value in enumerate(_results_of(graph)):
            is_node = isinstance(value, Node)
            argument = TensorArgument(value.name) if is_node else ConstantArgument(f"output_{number}", value)
            made.output_specs.append(OutputSpec(OutputKind.USER_OUTPUT, argument))
        return made

    def _guards(self, ranges: Ranges, changing: set[tuple[int, int]]) -> list[SizeGuard]:
        equal = {place: symbol.places[0] for symbol in ranges.symbols for place in symbol.places}
        made: list[SizeGuard] = []
        for number, leaf in enumerate(self.leaves):
            for dim, size in enumerate(leaf.shape if isinstance(leaf, Tensor) else ()):
                place = (number, dim)
                if place not in ranges.bounds or (not ranges.is_strict and equal[place] not in changing):
                    made.append(SizeGuard(number, dim, size, size))
                    continue
                bounds = ranges.bounds[place]
                made.append(SizeGuard(number, dim, bounds.min if bounds else 0, bounds.max if bounds else None))
        return made


def _inputs_of(graph: GraphModule) -> list[Node]:
    return [node for node in graph.graph.nodes if node.op == "placeholder"]


def _results_of(graph: GraphModule) -> Sequence[Any]:
    return next(iter([node.args[0] for node in graph.graph.nodes if node.op == "output"]))


def _sizes_read(node: Node, inputs: list[Node]) -> list[tuple[int, int]]:
    """The size of an argument that a node reads, as the place of its leaf and the dimension."""
    if getattr(node.target, "_opname", "") != "sym_size" or node.args[0] not in inputs:
        return []
    return [(inputs.index(node.args[0]), node.args[1])]


def _leaf_names(names: Sequence[str], values: Sequence[Any]) -> list[str]:
    """A name for each tensor and value in the arguments: that of the argument, and the way through its containers."""
    made: list[str] = []
    for name, value in zip(names, values, strict=True):
        for path, _ in tree_flatten_with_path(value)[0]:
            made.append(re.sub(r"\W+", "_", name + "".join(f"_{_key(entry)}" for entry in path)))
    return made


def _key(entry: Any) -> Any:
    for name in ("key", "idx", "name"):
        if hasattr(entry, name):
            return getattr(entry, name)
    return entry


def decomposed(program: ExportedProgram, table: Mapping[Any, Callable[..., Any]]) -> ExportedProgram:
    """A program whose calls are taken apart: its graph runs, and is traced again."""
    inputs = _inputs_of(program.graph_module)
    specs = {spec.arg.name: spec for spec in program.graph_signature.input_specs}
    if program.example_inputs is None:
        raise RuntimeError("run_decompositions: a loaded program has no example inputs; call it before saving")
    args, kwargs = program.example_inputs
    own = iter(tree_flatten([*args, *kwargs.values()])[0])
    leaves = []
    for node in inputs:
        target = specs[node.name].target
        held = {**program.constants, **program.state_dict}
        leaves.append(next(own) if target is None else held[target].detach().clone())

    def run(leaves: Sequence[Any]) -> Any:
        with no_grad():
            return Interpreter(program.graph_module).run(*leaves)

    first = len(inputs) - len(program.graph_signature.user_inputs)
    symbols = [s._replace(places=tuple([(p + first, dim) for p, dim in s.places])) for s in program.symbols]
    names = [node.name for node in inputs]
    graph = trace_with_symbols(lambda given: trace_leaves(run, names, given, table)[0], leaves, symbols, strict=False)
    outputs = _results_of(graph)
    signature = ExportGraphSignature(list(program.graph_signature.input_specs))
    for spec, value in zip(program.graph_signature.output_specs, outputs, strict=True):
        argument = TensorArgument(value.name) if isinstance(value, Node) else spec.arg
        signature.output_specs.append(OutputSpec(OutputKind.USER_OUTPUT, argument))
    made = ExportedProgram(
        graph, signature, program.state_dict, program.constants, program.call_spec, program.guards,
        program.example_inputs,
    )  # fmt: skip
    made.symbols = program.symbols
    return made
