"""make_fx: a function runs once, and the ATen calls that it makes, those of backward passes included, become a graph."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple

from pullback.dispatch.overloads import OpOverload, aten
from pullback.func.batched_tensor import innermost
from pullback.fx.experimental.symbolic_sizes import symbols_of, trace_with_symbols
from pullback.fx.graph import Graph
from pullback.fx.graph_module import GraphModule
from pullback.fx.node import Node
from pullback.fx.passes.shape_prop import _extract_tensor_metadata
from pullback.fx.pytree_code import PyTreeCodeGen, PyTreeInfo
from pullback.graph.living_objects import living
from pullback.modes.switches import switches
from pullback.nn.modules.module import Module
from pullback.nn.parameter import Parameter
from pullback.tensor.tensor import Tensor
from pullback.utils._python_dispatch import TorchDispatchMode
from pullback.utils._pytree import TreeSpec, tree_flatten, tree_map, tree_unflatten

__all__ = ["get_proxy_mode", "make_fx"]

_COPIED = {"lift_fresh": "lift_fresh_copy", "lift": "lift_fresh_copy"}
"""Calls that a graph shows as copies: the graph's constant must not change when the result is written to."""


class ProxyTorchDispatchMode(TorchDispatchMode):
    """Records the calls that it sees as nodes of a graph.

    A tensor is known by itself, else by its array: a transform gives a value a tensor of its own.
    """

    def __init__(self, graph: Graph, decomposition_table: Mapping[Any, Callable[..., Any]]) -> None:
        super().__init__()
        self.graph = graph
        self.root = Module()
        self.decomposition_table = decomposition_table
        self._nodes: dict[int, tuple[Any, Node]] = {}
        """What stands for a tensor or an array, by its identity, with the object, so that its identity stays its own."""
        self._inputs: set[int] = set()
        """The memory of inputs, by identity."""
        self._constants: dict[int, str] = {}
        self._before = {id(tensor): tensor for tensor in living(Tensor)}
        self._outside = {id(array): array for array in map(_memory_of, self._before.values())}
        """The memory of tensors that no operation computes: those that are there before, and what is made of data."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in self.decomposition_table:
            with self:
                return self.decomposition_table[func](*args, **kwargs)
        if func is _overload("_local_scalar_dense") and self._known(args[0]) is not None:
            raise RuntimeError(
                f"It appears that you're trying to get value out of a tracing tensor with {func} - erroring out! It's "
                "likely that this is caused by data-dependent control flow or similar. Compute the number outside of the "
                "traced function, or choose with torch.where."
            )
        shown = _overload(_COPIED[func._opname]) if func._opname in _COPIED else func
        inputs = tree_map(self._argument, (tuple(args), dict(kwargs)))
        result = func(*args, **kwargs)
        if not _is_tensor(result) and not isinstance(result, (tuple, list)):
            return result
        self.note(self.graph.call_function(shown, *inputs), result)
        return result

    def _see_data(self, tensor: Any) -> None:
        array = _memory_of(tensor)
        self._outside[id(array)] = array

    def note_input(self, node: Node, value: Any) -> None:
        """Let a node stand for an input: a view of it that is not seen made is no constant."""
        if _is_tensor(value):
            self._inputs.add(id(_memory_of(innermost(value))))
        self.note(node, value)

    def note(self, node: Node, value: Any) -> None:
        """Let a node stand for a value from now on, and a node of its own for each part of it."""
        if isinstance(value, (tuple, list)):
            node.meta["val"] = type(value)([_described(v) for v in value])
            for position, part in enumerate(value):
                self.note(self.graph.call_function(operator.getitem, (node, position)), part)
        elif _is_tensor(value):
            node.meta["val"] = _described(value)
            node.meta["tensor_meta"] = _extract_tensor_metadata(value)
            array = innermost(value)._array
            self._nodes[id(value)] = value, node
            self._nodes.setdefault(id(array), (array, node))

    def node_of(self, value: Any) -> Any:
        """What stands for a result in the graph: a tensor's node, other values as they are."""
        return self._argument(value)

    def _known(self, value: Any) -> Node | None:
        found = self._nodes.get(id(value)) or self._nodes.get(id(innermost(value)._array))
        return None if found is None else found[1]

    def _argument(self, value: Any) -> Any:
        return (self._known(value) or self._constant(value)) if _is_tensor(value) else value

    def _constant(self, value: Any) -> Node:
        """A node that reads a tensor from outside, which becomes an attribute of the module."""
        name = self._constants.get(id(value))
        if name is None:
            memory = id(_memory_of(innermost(value)))
            if memory not in self._outside or (memory in self._inputs and id(value) not in self._before):
                raise NotImplementedError(
                    "make_fx does not see what computes a tensor"
                    f"{_of_node(innermost(value).grad_fn)}: it would be a constant of the graph. Compute it outside of the "
                    "traced function, or by other operations."
                )
            kind = "_param_constant" if isinstance(value, Parameter) else "_tensor_constant"
            name = next(n for i in count() if not hasattr(self.root, n := f"{kind}{i}"))
            self._constants[id(value)] = name
            setattr(self.root, name, value)
        read = self.graph.get_attr(name)
        read.meta["val"] = _described(value)
        return read


def _overload(name: str) -> OpOverload:
    packet = aten(name)
    assert packet is not None
    return packet.overload("default")


def _memory_of(value: Any) -> Any:
    """The array that owns the memory of a tensor."""
    array = value._array
    while getattr(array, "base", None) is not None:
        array = array.base
    return array


def _of_node(node: Any) -> str:
    return "" if node is None else f", {node.name()}'s result"


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor)


def _described(value: Any) -> Any:
    """A tensor without values, of the same shape, strides and dtype."""
    if not _is_tensor(value):
        return value
    made = value.new_empty_strided(value.shape, value.stride(), device="meta")
    return made.requires_grad_() if value.requires_grad else made


class _Parameters(NamedTuple):
    """The parameters of a traced function: their names, and the default values of those that have one."""

    names: list[str]
    defaults: dict[str, Any]


def _parameters_of(function: Callable[..., Any], given: int) -> _Parameters:
    """The parameters by their names; numbered ones for a function that takes any number of arguments."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        return _Parameters([f"arg{i}" for i in range(given)], {})
    parameters = inspect.signature(inspect.unwrap(function)).parameters.values()
    if len(parameters) != given:
        raise RuntimeError(f"Tracing expected {len(parameters)} arguments but got {given} concrete arguments")
    names = [p.name for p in parameters]
    return _Parameters(names, {p.name: p.default for p in parameters if p.default is not p.empty})


def make_fx(
    f: Callable[..., Any],
    decomposition_table: Mapping[Any, Callable[..., Any]] | None = None,
    tracing_mode: str = "real",
    _allow_non_fake_inputs: bool = False,
    *,
    pre_dispatch: bool = False,
    record_module_stack: bool = False,
    _allow_fake_constant: bool = False,
    _error_on_data_dependent_ops: bool = True,
    record_stack_traces: bool = False,
    proxy_module_inputs: bool = False,
) -> Callable[..., GraphModule]:
    """A function that runs `f` on example arguments and returns the ATen calls that it made as a GraphModule.

    Gradients that `f` computes are part of it. `decomposition_table` says how to take calls apart. With
    `tracing_mode="fake"` the examples are copied first, so that what `f` writes to them is not seen outside. Sizes are
    those of the examples; with `tracing_mode="symbolic"` they are read from the arguments, as far as `f` does the same for
    other sizes, which it is run with.

    >>> import pullback
    >>> def slope(x):
    ...     return pullback.func.grad(lambda x: (x * 3).sum())(x) + 1
    >>> [str(node.target) for node in make_fx(slope)(pullback.ones(2)).graph.nodes][1:4]
    ['aten.mul.Tensor', 'aten.sum.default', 'aten.ones_like.default']
    >>> print(make_fx(lambda x: x.sin() * 2)(pullback.ones(2)).code.strip())
    def forward(self, x_1):
        sin = torch.ops.aten.sin.default(x_1);  x_1 = None
        mul = torch.ops.aten.mul.Tensor(sin, 2);  sin = None
        return mul
    """
    if tracing_mode not in ("real", "fake", "symbolic"):
        raise AssertionError(f"tracing_mode must be real/fake/symbolic, got {tracing_mode}")

    def traced(*args: Any) -> GraphModule:
        if tracing_mode == "symbolic":
            leaves, spec = tree_flatten(args)
            return trace_with_symbols(
                lambda leaves: _trace(f, tree_unflatten(leaves, spec), decomposition_table or {}),
                leaves, symbols_of(leaves), strict=False,
            )  # fmt: skip
        values = tree_map(_copied, args) if tracing_mode == "fake" else args
        return _trace(f, values, decomposition_table or {})

    return traced


def _copied(value: Any) -> Any:
    return value.detach().clone().requires_grad_(value.requires_grad) if _is_tensor(value) else value


def _trace(
    f: Callable[..., Any], args: tuple[Any, ...], decompositions: Mapping[Any, Callable[..., Any]]
) -> GraphModule:
    parameters = _parameters_of(f, len(args))
    mode = ProxyTorchDispatchMode(Graph(), decompositions)
    nested = False
    for name, value in zip(parameters.names, args, strict=True):
        leaves, spec = tree_flatten(value)
        nested |= not spec.is_leaf()
        default = (parameters.defaults[name],) if name in parameters.defaults and spec.is_leaf() else ()
        for number, leaf in enumerate(leaves, 1):
            mode.note_input(mode.graph.create_node("placeholder", f"{name}_{number}", default), leaf)
    inputs = tree_unflatten(*tree_flatten(args))
    with mode:
        returned = f(*inputs)
    leaves, spec = tree_flatten(returned)
    outputs = [mode.node_of(leaf) for leaf in leaves]
    if nested:
        mode.graph._codegen = PyTreeCodeGen(PyTreeInfo(parameters.names, tree_flatten(list(args))[1], spec))
    annotation = None if nested else getattr(inspect.unwrap(f), "__annotations__", {}).get("return")
    result = outputs if nested else tree_unflatten(outputs, spec)
    mode.graph.create_node("output", "output", (result,), type_expr=annotation)
    return GraphModule(mode.root, mode.graph, getattr(f, "__name__", type(f).__name__))


def trace_leaves(
    f: Callable[[Sequence[Any]], Any], names: Sequence[str], leaves: Sequence[Any],
    decompositions: Mapping[Any, Callable[..., Any]] | None = None,
) -> tuple[GraphModule, TreeSpec]:  # fmt: skip
    """The graph of a function of some values, which are its inputs under these names, and the structure of its result."""
    mode = ProxyTorchDispatchMode(Graph(), decompositions or {})
    for name, leaf in zip(names, leaves, strict=True):
        mode.note_input(mode.graph.create_node("placeholder", name), leaf)
    with mode:
        returned = f(leaves)
    results, spec = tree_flatten(returned)
    mode.graph.create_node("output", "output", (tuple([mode.node_of(leaf) for leaf in results]),))
    return GraphModule(mode.root, mode.graph), spec


def get_proxy_mode() -> ProxyTorchDispatchMode | None:
    """The mode that traces at the moment, None if nothing is traced.

    >>> get_proxy_mode() is None
    True
    """
    return next((m for m in reversed(switches.dispatch_modes) if isinstance(m, ProxyTorchDispatchMode)), None)
