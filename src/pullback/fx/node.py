"""The nodes of a traced graph: one operation each, linked to the nodes whose results it takes."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from pullback.fx.immutable_collections import immutable_dict, immutable_list
from pullback.fx.qualified_names import qualified_name, type_name

if TYPE_CHECKING:
    from pullback.fx.graph import Graph

__all__ = ["Node", "has_side_effect", "map_aggregate", "map_arg"]

Argument = Any
Target = Callable[..., Any] | str
_legal_ops = ("placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root")
_side_effectful_functions: set[Callable[..., Any]] = set()
_get_qualified_name = qualified_name
_type_repr = type_name
Function = TypeVar("Function", bound=Callable[..., Any])


def has_side_effect(fn: Function) -> Function:
    """Keep calls of this function, even if nobody uses what they return."""
    _side_effectful_functions.add(fn)
    return fn


def map_aggregate(a: Argument, fn: Callable[[Argument], Argument]) -> Argument:
    """The argument with `fn` applied to everything in its tuples, lists, dicts and slices."""
    if isinstance(a, tuple):
        mapped = [map_aggregate(element, fn) for element in a]
        return type(a)(*mapped) if hasattr(a, "_fields") else tuple(mapped)
    if isinstance(a, list):
        return immutable_list([map_aggregate(element, fn) for element in a])
    if isinstance(a, dict):
        return immutable_dict((k, map_aggregate(v, fn)) for k, v in a.items())
    if isinstance(a, slice):
        return slice(*[map_aggregate(part, fn) for part in (a.start, a.stop, a.step)])
    return fn(a)


def map_arg(a: Argument, fn: Callable[[Node], Argument]) -> Argument:
    """The argument with `fn` applied to every node in it."""
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def format_argument(value: Any) -> str:
    """An argument in the text of a graph, where nodes are shown as %name."""
    if isinstance(value, list):
        return f"[{', '.join(format_argument(v) for v in value)}]"
    if isinstance(value, tuple):
        inner = ", ".join(format_argument(v) for v in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {format_argument(v)}" for k, v in value.items()) + "}"
    return f"%{value.name}" if isinstance(value, Node) else str(value)


class Node:
    """One step of a graph: an input, an attribute, a call, or the output."""

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        return_type: Any = None,
    ) -> None:
        if op not in _legal_ops:
            raise AssertionError(f"op {op!r} is not in _legal_ops")
        if op == "call_function" and not callable(target):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target).__name__} but a Callable "
                "is expected"
            )
        if op != "call_function" and not isinstance(target, str):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target).__name__} but a str is "
                "expected"
            )
        self.graph = graph
        self.name = name
        self.op = op
        self.target = target
        self.type = return_type
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._input_nodes: dict[Node, None] = {}
        self._args: tuple[Argument, ...] = ()
        self._kwargs: dict[str, Argument] = immutable_dict()
        self._prev = self._next = self
        self._erased = False
        self._repr_fn: Callable[[Node], str] | None = None
        self._set(args, kwargs)

    @property
    def next(self) -> Node:
        """The node after this one in the graph's order."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before this one in the graph's order."""
        return self._prev

    @property
    def args(self) -> tuple[Argument, ...]:
        """The positional arguments; nodes among them are this node's inputs."""
        return self._args

    @args.setter
    def args(self, value: tuple[Argument, ...]) -> None:
        self._set(value, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Argument]:
        """The keyword arguments."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, value: dict[str, Argument]) -> None:
        self._set(self._args, value)

    def _set(self, args: Any, kwargs: Any) -> None:
        """Take new arguments, and tell the nodes in them."""
        for former in self._input_nodes:
            former.users.pop(self, None)
        self._input_nodes = {}
        self._args = map_arg(args, self._use)
        self._kwargs = map_arg(kwargs, self._use)

    def _use(self, node: Node) -> Node:
        self._input_nodes.setdefault(node)
        node.users.setdefault(self)
        return node

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments, each once."""
        return list(self._input_nodes)

    @property
    def stack_trace(self) -> str | None:
        """Where the node was recorded, if that was asked for."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def prepend(self, x: Node) -> None:
        """Move `x` to the place before this node."""
        if x.graph is not self.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if x is self:
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x

    def append(self, x: Node) -> None:
        """Move `x` to the place after this node."""
        self._next.prepend(x)

    def _remove_from_list(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Replace one positional argument."""
        self.args = (*self.args[:idx], arg, *self.args[idx + 1 :])

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Insert one positional argument."""
        if not 0 <= idx <= len(self.args):
            raise AssertionError("insert_args index must be between 0 and len(self.args)")
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Set one keyword argument."""
        self.kwargs = {**self.kwargs, key: arg}

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] | None = None,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Let the users of this node (those that `delete_user_cb` allows) use another; returns the former users."""
        if propagate_meta:
            replace_with.meta.update({k: v for k, v in self.meta.items() if k not in replace_with.meta})
        users = list(self.users)
        for user in users:
            if delete_user_cb is None or delete_user_cb(user):
                user.replace_input_with(self, replace_with)
        return users

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Take `new_input` wherever `old_input` was an argument."""

        def replaced(node: Node) -> Node:
            return new_input if node is old_input else node

        self._set(map_arg(self.args, replaced), map_arg(self.kwargs, replaced))

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether the node must stay even if nobody uses its result."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            return self.target in _side_effectful_functions
        if self.op == "call_module" and self.graph.owning_module is not None:
            module = self.graph.owning_module.get_submodule(str(self.target))
            return bool(getattr(module, "_is_impure", False))
        return False

    def format_node(
        self, placeholder_names: list[str] | None = None, maybe_return_typename: list[str] | None = None, **options: Any
    ) -> str | None:
        """The node's line in the text of its graph."""
        kind = f"{type_name(self.type)} " if self.type else ""
        head = f"%{self.name} : {kind}[num_users={len(self.users)}] = {self.op}[target={self._shown_target()}]"
        if self.op == "placeholder":
            if placeholder_names is not None:
                placeholder_names.append(str(self.target))
            return head + (f"(default={self.args[0]})" if self.args else "")
        if self.op == "get_attr":
            return head
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {type_name(self.type)}"
            return f"return {self.args[0]}"
        return f"{head}(args = {format_argument(self.args)}, kwargs = {format_argument(self.kwargs)})"

    def _shown_target(self) -> str:
        return self.target if isinstance(self.target, str) else qualified_name(self.target)

    _pretty_print_target = staticmethod(qualified_name)

    def __repr__(self) -> str:
        return self.name if self._repr_fn is None else self._repr_fn(self)

    def __lt__(self, other: Node) -> bool:
        return self._place() < other._place()

    def __gt__(self, other: Node) -> bool:
        return self._place() > other._place()

    def _place(self) -> int:
        return next(i for i, node in enumerate(self.graph.nodes) if node is self)


def nodes_in(arguments: Iterable[Argument]) -> list[Node]:
    """The nodes in arguments, in order, as often as they occur."""
    found: list[Node] = []

    def note(node: Node) -> Node:
        found.append(node)
        return node

    for argument in arguments:
        map_arg(argument, note)
    return found


base_types = (str, int, float, bool, complex, type(None), type(...), bytes, builtins.range)
