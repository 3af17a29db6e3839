"""ExportedProgram: the graph of a module, its parameters and buffers, and what its inputs and outputs stand for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from pullback.export.graph_signature import ConstantArgument, ExportGraphSignature, InputKind
from pullback.fx.experimental.symbolic_sizes import Symbol
from pullback.fx.graph import Graph
from pullback.fx.graph_module import GraphModule, _assign_attr
from pullback.fx.node import Node
from pullback.fx.pytree_code import PyTreeCodeGen, PyTreeInfo
from pullback.nn.modules.module import Module
from pullback.nn.parameter import Parameter
from pullback.tensor.tensor import Tensor
from pullback.utils._pytree import TreeSpec

__all__ = ["ExportedProgram"]


class SizeGuard(NamedTuple):
    """What must hold for one dimension of an argument: a size, or bounds of one."""

    leaf: int
    dim: int
    low: int
    high: int | None


class CallSpec(NamedTuple):
    """The names of the arguments, their structure, and that of the result."""

    names: list[str]
    in_spec: TreeSpec
    out_spec: TreeSpec


class _Guards(Module):
    """Refuses arguments that the program was not exported for."""

    def __init__(self, names: list[str], constants: dict[int, Any], sizes: list[SizeGuard]) -> None:
        super().__init__()
        self.names, self.constants, self.sizes = names, constants, sizes

    def forward(self, *leaves: Any) -> None:
        for place, value in self.constants.items():
            if leaves[place] != value:
                raise AssertionError(
                    f"Guard failed: {self.names[place]} == {value!r}: got {leaves[place]!r}. Values other than tensors are "
                    "part of an exported program: export it again for another one."
                )
        for place, dim, low, high in self.sizes:
            size = leaves[place].shape[dim] if dim < leaves[place].ndim else None
            if size is None or size < low or (high is not None and size > high):
                wanted = f"== {low}" if low == high else f">= {low}" if high is None else f"in [{low}, {high}]"
                raise AssertionError(
                    f"Guard failed: {self.names[place]}.size()[{dim}] {wanted}: got {size}. Export the module with "
                    "dynamic_shapes= where sizes change."
                )


class ExportedProgram:
    """What `export` returns; `module()` gives it as a module that can be called and trained."""

    def __init__(
        self, graph_module: GraphModule, graph_signature: ExportGraphSignature, state_dict: dict[str, Any],
        constants: dict[str, Any], call_spec: CallSpec, guards: list[SizeGuard], example_inputs: Any = None,
    ) -> None:  # fmt: skip
        self.graph_module = graph_module
        self.graph_signature = graph_signature
        self.state_dict = state_dict
        self.constants = constants
        self.call_spec = call_spec
        self.guards = guards
        self.example_inputs = example_inputs
        self.symbols: list[Symbol] = []
        """The sizes that may change, by their places among the arguments."""

    @property
    def graph(self) -> Graph:
        """The nodes: parameters, buffers and constants are inputs, before the arguments."""
        return self.graph_module.graph

    @property
    def range_constraints(self) -> dict[str, tuple[int, int | None]]:
        """The bounds of the sizes that may change."""
        names = [s.arg.name for s in self.graph_signature.input_specs if s.kind is InputKind.USER_INPUT]
        return {f"{names[g.leaf]}.size()[{g.dim}]": (g.low, g.high) for g in self.guards if g.low != g.high}

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """The parameters with their names."""
        for name in self.graph_signature.parameters:
            yield name, self.state_dict[name]

    def parameters(self) -> Iterator[Parameter]:
        """The parameters."""
        for _, parameter in self.named_parameters():
            yield parameter

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """The buffers with their names."""
        for name in self.graph_signature.buffers:
            yield name, self.state_dict[name] if name in self.state_dict else self.constants[name]

    def buffers(self) -> Iterator[Tensor]:
        """The buffers."""
        for _, buffer in self.named_buffers():
            yield buffer

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Unable to call ExportedProgram directly. You should use `exported_program.module()` instead."
        )

    def module(self, check_guards: bool = True) -> GraphModule:
        """A module of its own that takes and returns what the exported one did; it shares parameters and buffers."""
        root, graph, known = Module(), Graph(), dict[Node, Node]()
        specs = {spec.arg.name: spec for spec in self.graph_signature.input_specs}
        inputs = [node for node in self.graph.nodes if node.op == "placeholder"]
        own = [node for node in inputs if specs[node.name].kind is InputKind.USER_INPUT]
        for node in own:
            known[node] = graph.node_copy(node, lambda n: known[n])
        for node in inputs:
            target = specs[node.name].target
            if target is not None:
                value = self.state_dict[target] if target in self.state_dict else self.constants[target]
                _assign_attr(value, root, target)
                known[node] = graph.create_node("get_attr", target, name=target.replace(".", "_"))
                known[node].meta.update(node.meta)
        if check_guards:
            root.add_module("_guards_fn", self._guards(own, specs))
            graph.create_node("call_module", "_guards_fn", tuple([known[node] for node in own]))
        for node in self.graph.nodes:
            if node.op != "placeholder":
                known[node] = graph.node_copy(node, lambda n: known[n])
        graph._codegen = PyTreeCodeGen(PyTreeInfo(*self.call_spec))
        return GraphModule(root, graph, "GraphModule")

    def _guards(self, own: list[Node], specs: Mapping[str, Any]) -> _Guards:
        arguments = [specs[node.name].arg for node in own]
        constants = {n: arg.value for n, arg in enumerate(arguments) if isinstance(arg, ConstantArgument)}
        return _Guards([node.name for node in own], constants, self.guards)

    def run_decompositions(
        self, decomp_table: Mapping[Any, Callable[..., Any]] | None = None, decompose_custom_triton_ops: bool = False
    ) -> ExportedProgram:
        """The same program with calls taken apart as the table says."""
        from pullback.export.exporting import decomposed  # lazy: it makes programs

        return decomposed(self, decomp_table or {})

    def __str__(self) -> str:
        body = self.graph_module.print_readable(print_output=False).replace("\n", "\n    ")
        signature = str(self.graph_signature).replace("\n", "\n    ")
        return (
            f"ExportedProgram:\n    {body}\nGraph signature: {signature}\nRange constraints: {self.range_constraints}\n"
        )

    __repr__ = __str__
