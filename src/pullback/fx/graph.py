"""A program as a list of nodes, to be read, changed and turned back into Python."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterator
from typing import Any

from pullback.dispatch.overloads import OpOverload
from pullback.fx.code_text import (
    CodeGen,
    PythonCode,
    inplace_methods,
    magic_methods,
    reflectable_magic_methods,
    write_code,
)
from pullback.fx.name_space import Namespace as _Namespace
from pullback.fx.name_space import snake_case as _snake_case
from pullback.fx.node import Argument, Node, Target, map_arg, nodes_in
from pullback.fx.qualified_names import is_from_torch as _is_from_torch  # noqa: F401  # libraries look here

__all__ = ["CodeGen", "Graph", "PythonCode", "inplace_methods", "magic_methods", "reflectable_magic_methods"]


class _node_list:
    """The nodes of a graph in order; nodes may be inserted and erased while one goes through them."""

    def __init__(self, graph: Graph, direction: str = "_next") -> None:
        self.graph = graph
        self.direction = direction

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Node]:
        node = getattr(self.graph._root, self.direction)
        while node is not self.graph._root:
            if not node._erased:
                yield node
            node = getattr(node, self.direction)

    def __reversed__(self) -> _node_list:
        return _node_list(self.graph, "_prev" if self.direction == "_next" else "_next")


class _InsertPoint:
    """Where new nodes go: for good, or for a `with` block."""

    def __init__(self, graph: Graph, insert: Callable[[Node], None]) -> None:
        self.graph = graph
        self.former, graph._insert = graph._insert, insert

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        self.graph._insert = self.former


class Graph:
    """The nodes of a program.

    >>> graph = Graph()
    >>> x = graph.placeholder("x")
    >>> _ = graph.output(graph.call_function(operator.add, (x, 1)))
    >>> print(graph)
    graph():
        %x : [num_users=1] = placeholder[target=x]
        %add : [num_users=1] = call_function[target=operator.add](args = (%x, 1), kwargs = {})
        return add
    """

    def __init__(self, owning_module: Any = None, tracer_cls: type | None = None, tracer_extras: Any = None) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._used_names = None
        self._insert: Callable[[Node], None] = self._root.prepend
        self._len = 0
        self._graph_namespace = _Namespace()
        self.owning_module = owning_module
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras
        self._codegen = CodeGen()

    @property
    def nodes(self) -> _node_list:
        """The nodes in the order in which they run."""
        return _node_list(self)

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[Node]:
        """The nodes of one kind, and of one target if that is given."""
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    def output_node(self) -> Node:
        """The node that returns."""
        return next(iter(reversed(self.nodes)))

    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """A new node at the place where nodes are inserted."""
        candidate = name if name is not None else self._target_to_str(target)
        node = Node(self, self._graph_namespace.create_name(candidate), op, target, args or (), kwargs or {}, type_expr)
        self._graph_namespace._by_object[id(node)] = node, node.name
        self._insert(node)
        self._len += 1
        return node

    def _target_to_str(self, target: Any) -> str:
        if isinstance(target, OpOverload):
            return _snake_case(target._opname)
        name = target if isinstance(target, str) else getattr(target, "__name__", type(target).__name__)
        if not isinstance(target, str) and name.startswith("__") and name.endswith("__"):
            name = name[2:-2]
        return _snake_case(name.replace("*", "_") if isinstance(target, str) else name)

    def erase_node(self, to_erase: Node) -> None:
        """Take a node that nobody uses out of the graph."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: "
                f"{to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            return
        to_erase._remove_from_list()
        to_erase._erased = True
        self._len -= 1
        to_erase._set((), {})

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """Insert new nodes before `n`, at the start if it is None."""
        if n is None:
            return self.inserting_after(self._root)
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """Insert new nodes after `n`, at the end if it is None."""
        if n is None:
            return self.inserting_before(self._root)
        return _InsertPoint(self, n.append)

    def placeholder(self, name: str, type_expr: Any = None, *default: Any, default_value: Any = ...) -> Node:
        """An input of the graph."""
        args = () if default_value is ... and not default else (default[0] if default else default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """An attribute of the module."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(self, module_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None) -> Node:
        """A call of a submodule."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(self, method_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None) -> Node:
        """A call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: Any = None,
        kwargs: Any = None,
        type_expr: Any = None,
        name: Any = None,
    ) -> Node:
        """A call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    def output(self, result: Argument, type_expr: Any = None) -> Node:
        """What the graph returns."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Argument] = lambda x: x) -> Node:
        """A copy of a node of another graph, whose inputs are translated."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        copied = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        copied.meta = dict(node.meta)
        return copied

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Copy the nodes of `g`, but for its output, whose value is returned."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: Any = None) -> Graph:
        copied = Graph(tracer_cls=self._tracer_cls)
        found = copied.graph_copy(self, {}, return_output_node=True)
        if found is not None:
            result, output = found
            made = copied.output(result, type_expr=output.type)
            made.meta = dict(output.meta)
        copied._codegen = self._codegen
        return copied

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Erase nodes that nobody uses; returns whether there were some."""
        keep = is_impure_node or Node.is_impure
        changed = False
        for node in reversed(self.nodes):
            if not keep(node) and not node.users:
                self.erase_node(node)
                changed = True
        return changed

    def lint(self) -> None:
        """Raise if the graph is not well formed: names taken twice, arguments that are not computed before."""
        seen_names: set[str] = set()
        seen: set[Node] = set()
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for used in nodes_in((node.args, node.kwargs)):
                self._check_input(used, node, seen)
            seen.add(node)
            if node.name in seen_names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            seen_names.add(node.name)
        if self.owning_module is not None:
            self._check_targets()

    def _check_input(self, used: Node, node: Node, seen: set[Node]) -> None:
        if used.graph is not self:
            raise RuntimeError(
                f"Argument '{used}' of Node '{node}' does not belong to this Graph, but was used as an argument! If you "
                "are copying nodes from another graph, make sure to use ``arg_transform`` on node_copy() to remap values\n"
                f"{self}"
            )
        if used not in seen:
            raise RuntimeError(
                f"Argument '{used}' of Node '{node}' was used before it has been defined! Please check that Nodes in the "
                f"graph are topologically ordered\n{self}"
            )

    def _check_targets(self) -> None:
        for node in self.nodes:
            if node.op not in ("get_attr", "call_module"):
                continue
            try:
                operator.attrgetter(str(node.target))(self.owning_module)
            except AttributeError:
                raise RuntimeError(
                    f"Node {node} target {node.target} references nonexistent attribute {node.target} of the owning module"
                ) from None

    def python_code(self, root_module: str, **options: Any) -> PythonCode:
        """The graph as Python text, with attributes read from `root_module`."""
        namespace = _Namespace()
        for node in self.nodes:
            namespace.reserve(node.name)
        return write_code(self, root_module, namespace, **options)

    def set_codegen(self, codegen: CodeGen) -> None:
        """Let another object write the text."""
        self._codegen = codegen

    @contextlib.contextmanager
    def on_generate_code(self, make_transformer: Any) -> Iterator[None]:
        """Accepted: texts are not transformed."""
        yield

    def process_inputs(self, *args: Any) -> Any:
        """The inputs of the graph from those of the function."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """What the function returns from the graph's outputs."""
        return self._codegen.process_outputs(out)

    def print_tabular(self) -> None:
        """Print the nodes as a table."""
        rows = [["opcode", "name", "target", "args", "kwargs"]]
        rows += [[n.op, n.name, str(n.target), str(n.args), str(n.kwargs)] for n in self.nodes]
        widths = [max(len(rows[0][i]) + 2, *[len(row[i]) for row in rows[1:]]) for i in range(5)]
        rows.insert(1, ["-" * width for width in widths])
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        print("\n".join(line.rstrip() for line in lines))

    def __str__(self) -> str:
        placeholders: list[str] = []
        returns = [""]
        lines = [node.format_node(placeholders, returns) for node in self.nodes]
        return "\n    ".join([f"graph():{returns[0]}", *[line for line in lines if line]])
