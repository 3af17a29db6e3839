"""Running a graph node by node, and rebuilding it on the way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pullback.fx.graph import Graph
from pullback.fx.graph_module import GraphModule
from pullback.fx.node import Node, Target, map_arg
from pullback.fx.proxy import Proxy, TracerBase

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs a GraphModule; a subclass overrides what happens to each kind of node."""

    def __init__(self, module: Any, garbage_collect_values: bool = True, graph: Graph | None = None) -> None:
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph = module.graph if graph is None else graph
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self._last_uses = self._find_last_uses() if garbage_collect_values else {}

    def _find_last_uses(self) -> dict[Node, list[Node]]:
        seen: set[Node] = set()
        last: dict[Node, list[Node]] = {}
        for user in reversed(list(self.graph.nodes)):
            for node in user.all_input_nodes:
                if node not in seen:
                    seen.add(node)
                    last.setdefault(user, []).append(node)
        return last

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True) -> Any:
        """Run the graph on these arguments."""
        self.env = {} if initial_env is None else initial_env
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter: Iterator[Any] = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback:
                    error.add_note(f"While executing {node.format_node()}")
                raise
            for used in self._last_uses.get(node, ()):
                del self.env[used]
            if node.op == "output":
                result = self.env[node]
                return self.graph.process_outputs(result) if enable_io_processing else result
        return None

    def boxed_run(self, args_list: list[Any]) -> Any:
        """As `run`, of a list that is emptied, so that inputs can be freed."""
        args = tuple(args_list)
        args_list.clear()
        return self.run(*args)

    def run_node(self, n: Node) -> Any:
        """Run one node."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The next argument, or the default."""
        if isinstance(target, str) and target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from None

    def get_attr(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """An attribute of the module."""
        return self.fetch_attr(str(target))

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function."""
        return target(*args, **kwargs)

    def call_method(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a method of the first argument."""
        receiver, *rest = args
        return getattr(receiver, str(target))(*rest, **kwargs)

    def call_module(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a submodule."""
        return self.fetch_attr(str(target))(*args, **kwargs)

    def output(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the graph returns."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """An attribute of the module, by its path."""
        value = self.module
        for i, part in enumerate(target.split(".")):
            if not hasattr(value, part):
                path = ".".join(target.split(".")[: i + 1])
                raise RuntimeError(f"Node referenced nonexistent target {path}; the module has no such attribute")
            value = getattr(value, part)
        return value

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The values of a node's arguments."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """The argument with nodes replaced by their values."""

        def value_of(node: Node) -> Any:
            if node not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {node}! Run Graph.lint() to diagnose such issues"
                )
            return self.env[node]

        return map_arg(args, value_of)


class _TransformerTracer(TracerBase):
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.module_stack = {}
        self.tensor_attrs: dict[Any, str] = {}

    def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
        return True


class Transformer(Interpreter):
    """Makes a new GraphModule; what the methods do with stand-ins becomes its graph."""

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)
        self.tracer = _TransformerTracer(self.new_graph)
        self.tracer.root = module  # type: ignore[attr-defined]

    def placeholder(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy:
        """A new input."""
        return Proxy(self.new_graph.placeholder(str(target), None, *args[:1]), self.tracer)

    def get_attr(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy:
        """A new reading of an attribute."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A new call of a submodule."""
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A new call of a function."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The new module."""
        result = super().run(enable_io_processing=False)
        if result is not None:
            former = self.graph.output_node()
            made = map_proxies(result)
            self.new_graph.output(made, former.type).meta = dict(former.meta)
        return GraphModule(self.module, self.new_graph)


def map_proxies(value: Any) -> Any:
    """The value with stand-ins replaced by their nodes."""
    from pullback.fx.node import map_aggregate

    return map_aggregate(value, lambda x: x.node if isinstance(x, Proxy) else x)
