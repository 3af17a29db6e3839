"""Stand-ins for values while a program is traced: what is done with them becomes nodes of a graph."""

from __future__ import annotations

import dataclasses
import dis
import inspect
import operator
import traceback
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

from pullback.backend.device import device
from pullback.backend.dtype import dtype
from pullback.fx.code_text import magic_methods, reflectable_magic_methods
from pullback.fx.graph import Graph
from pullback.fx.node import Argument, Node, Target, map_aggregate
from pullback.overrides import is_tensor_method_or_property
from pullback.tensor.tensor import Tensor

__all__ = [
    "Attribute", "GraphAppendingTracer", "ParameterProxy", "Proxy", "Scope", "ScopeContextManager", "TraceError",
    "TracerBase",
]  # fmt: skip

base_types = (str, int, float, bool, complex, dtype, Tensor, device, type(None), type(...), bytes)


class TraceError(ValueError):
    """The program does something with a traced value that a graph cannot hold."""


@dataclasses.dataclass
class Scope:
    """The module in which nodes are recorded."""

    module_path: str
    module_type: Any


class ScopeContextManager:
    """Enters a module, and leaves it again."""

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        self._former = dataclasses.replace(scope)
        scope.module_path, scope.module_type = current_scope.module_path, current_scope.module_type
        self._scope = scope

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(self, *error: object) -> None:
        self._scope.module_path, self._scope.module_type = self._former.module_path, self._former.module_type


class TracerBase:
    """Makes nodes and their stand-ins."""

    graph: Graph
    record_stack_traces: bool = False
    check_mutable_operations: bool = False
    trace_asserts: bool = False
    proxy_buffer_attributes: bool = False
    traced_func_name: str = "forward"
    scope: Scope
    module_stack: dict[str, Any]

    def create_node(
        self,
        kind: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a node to the graph."""
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        stack = getattr(self, "module_stack", None)
        if stack:
            node.meta["nn_module_stack"] = OrderedDict(stack)
        return node

    def proxy(self, node: Node) -> Proxy:
        """The stand-in for a node's value."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """Add a node whose arguments may hold stand-ins, and return the stand-in for its value."""
        given, named = self.create_arg(args), self.create_arg(kwargs)
        node = self.create_node(kind, target, given, named, name, type_expr)
        if self.record_stack_traces:
            frames = [f for f in traceback.extract_stack() if "pullback/fx/" not in f.filename]
            node.stack_trace = "".join(traceback.format_list(frames[-1:]))
        return self.proxy(node) if proxy_factory_fn is None else proxy_factory_fn(node)

    def create_arg(self, a: Any) -> Argument:
        """What becomes of a value as an argument of a node."""
        if isinstance(a, Proxy):
            return a.node
        if isinstance(a, tuple):
            made = [self.create_arg(element) for element in a]
            return type(a)(*made) if hasattr(a, "_fields") else tuple(made)
        if isinstance(a, list):
            return [self.create_arg(element) for element in a]
        if isinstance(a, dict):
            return {self._key(k): self.create_arg(v) for k, v in a.items()}
        if isinstance(a, slice):
            return slice(*[self.create_arg(part) for part in (a.start, a.stop, a.step)])
        if isinstance(a, range):
            return range(*[self.create_arg(part) for part in (a.start, a.stop, a.step)])
        if dataclasses.is_dataclass(a) and not isinstance(a, type):
            fields = {f.name: self.create_arg(getattr(a, f.name)) for f in dataclasses.fields(a)}
            return self.create_node("call_function", type(a), (), fields)
        if isinstance(a, (*base_types, type)) or _is_plain(a):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _key(self, key: Any) -> Any:
        made = self.create_arg(key)
        if isinstance(made, Node):
            raise RuntimeError(f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {key}")
        return made

    def to_bool(self, obj: Proxy) -> bool:
        """Whether a traced value is true: unknown, so an error."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """The elements of a traced value: unknown, so an error."""
        raise TraceError(
            "Proxy object cannot be iterated: its length is not known while tracing. It is iterated when it is looped over, "
            "or given as *args or **kwargs; wrap() the function that does so, or make its module a leaf."
        )

    def keys(self, obj: Proxy) -> Any:
        """The keys of a traced value, as a traced value."""
        return Attribute(obj, "keys")()


def _is_plain(value: Any) -> bool:
    """A memory format, a layout, an enumeration's member or a function."""
    return type(value).__module__.startswith("pullback") or callable(value) or hasattr(value, "_value_")


class GraphAppendingTracer(TracerBase):
    """Adds to an existing graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.scope = Scope("", None)
        self.module_stack = {}


class Proxy:
    """The stand-in for a node's value: functions, methods and operators on it are recorded."""

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Any:
        if k in ("__deepcopy__", "__setstate__", "__getstate__", "tracer", "node"):
            raise AttributeError(k)
        return Attribute(self, k)

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        count = _unpacked_count()
        return (
            self.tracer.iter(self) if count is None else iter([operator.getitem(_any(self), i) for i in range(count)])
        )

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call "
            "torch.fx.wrap('len') at module scope"
        )

    def keys(self) -> Any:
        """The keys of the value."""
        return self.tracer.keys(self)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found: list[Proxy] = []

        def note(value: Any) -> Any:
            if isinstance(value, Proxy):
                found.append(value)
            return value

        map_aggregate((args, kwargs or {}), note)
        tracer = found[0].tracer
        if any(proxy.tracer is not tracer for proxy in found):
            raise RuntimeError(
                f"Found multiple different tracers {[p.tracer for p in found]} while trying to trace {func}"
            )
        if is_tensor_method_or_property(func):
            return tracer.create_proxy("call_method", func.__name__, args, kwargs or {})
        name = tracer.graph._target_to_str(func.__name__)
        return tracer.create_proxy("call_function", func, args, kwargs or {}, name=name)

    __hash__ = object.__hash__


def _any(value: Any) -> Any:
    """The value, as one whose operators the type checker need not know: they are added below."""
    return value


def _unpacked_count() -> int | None:
    """How many values the caller's statement `a, b = proxy` wants; None for another kind of iteration."""
    frame = inspect.currentframe()
    for _ in range(2):
        frame = None if frame is None else frame.f_back
    if frame is None:
        return None
    place = frame.f_lasti
    for instruction in dis.get_instructions(frame.f_code):
        if instruction.offset == place:
            return instruction.arg if instruction.opname == "UNPACK_SEQUENCE" else None
    return None


class Attribute(Proxy):
    """An attribute of a traced value: a method if it is called, else read where it is used."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root = root
        self.attr = attr
        self.tracer = root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The node that reads the attribute, made when it is first asked for."""
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """The stand-in for a parameter, whose shape is known."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Any) -> None:
        super().__init__(node, tracer)
        self.param = param
        self.name = name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        """The parameter's shape."""
        return self.param.shape

    def size(self) -> Any:
        """The parameter's shape."""
        return self.param.size()

    def dim(self) -> int:
        """The parameter's number of dimensions."""
        return int(self.param.dim())

    @property
    def ndim(self) -> int:
        """The parameter's number of dimensions."""
        return int(self.param.ndim)

    def numel(self) -> int:
        """The parameter's number of elements."""
        return int(self.param.numel())

    def nelement(self) -> int:
        """The parameter's number of elements."""
        return int(self.param.nelement())


def _magic(name: str) -> Callable[..., Any]:
    target = getattr(operator, name)

    def recorded(*args: Any, **kwargs: Any) -> Any:
        return args[0].tracer.create_proxy("call_function", target, args, kwargs)

    return recorded


def _reflected(name: str) -> Callable[..., Any]:
    target = getattr(operator, name)

    def recorded(self: Proxy, left: Any) -> Any:
        return self.tracer.create_proxy("call_function", target, (left, self), {})

    return recorded


for _name in [*magic_methods, "abs"]:
    if hasattr(operator, _name):
        setattr(Proxy, f"__{_name.strip('_')}__", _magic(_name))
for _name in reflectable_magic_methods:
    if hasattr(operator, _name) and _name != "getitem":
        setattr(Proxy, f"__r{_name.strip('_')}__", _reflected(_name))
