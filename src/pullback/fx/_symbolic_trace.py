"""Tracing: a module or function runs once on stand-ins, and what they meet becomes a graph."""

from __future__ import annotations

import builtins
import functools
import inspect
import math
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pullback
from pullback.fx.graph import Graph
from pullback.fx.graph_module import GraphModule
from pullback.fx.node import Argument, map_aggregate
from pullback.fx.proxy import ParameterProxy, Proxy, Scope, ScopeContextManager, TracerBase
from pullback.modes.user_warnings import warn_user
from pullback.nn.modules.container import Sequential
from pullback.nn.modules.module import Module
from pullback.nn.parameter import Parameter
from pullback.overrides.overridable_functions import resolve_name
from pullback.tensor.tensor import Tensor

_wrapped_fns_to_patch: dict[tuple[int, str], dict[str, Any]] = {}
_wrapped_methods_to_patch: list[tuple[type, str]] = []
_is_fx_tracing_flag = False


def is_fx_tracing() -> bool:
    """Whether a program is being traced."""
    return _is_fx_tracing_flag


is_fx_symbolic_tracing = is_fx_tracing


def wrap(fn_or_name: str | Callable[..., Any]) -> Any:
    """Record calls of a function of this module as calls, instead of tracing into it."""
    name = fn_or_name if isinstance(fn_or_name, str) else getattr(fn_or_name, "__name__", None)
    if not isinstance(name, str):
        raise RuntimeError("Unsupported type; wrap() takes a function of this module or its name")
    frame = inspect.currentframe()
    caller = None if frame is None else frame.f_back
    if caller is None or caller.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped_fns_to_patch[(id(caller.f_globals), name)] = caller.f_globals
    return fn_or_name


def _assert_is_none(value: Any, msg: str) -> None:
    if value is not None:
        raise AssertionError(msg)


def _find_proxy(*values: Any) -> Proxy | None:
    found: list[Proxy] = []

    def note(value: Any) -> Any:
        if isinstance(value, Proxy):
            found.append(value)
        return value

    map_aggregate(values, note)
    return found[0] if found else None


def _recorded(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which is recorded instead of called where an argument is traced."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = _find_proxy(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        made = proxy.tracer.create_proxy("call_function", function, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made

    return wrapped


class Tracer(TracerBase):
    """Traces modules; a subclass decides what is a leaf, and how calls are recorded."""

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        functions = [f for m in autowrap_modules for n, f in vars(m).items() if not n.startswith("_") and callable(f)]
        self._autowrap_function_ids = {id(f) for f in (*functions, *autowrap_functions)}
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[Module, str] | None = None
        self.root: Any = None
        self.scope = Scope("", None)
        self.module_stack: dict[str, Any] = OrderedDict()
        self.tensor_attrs: dict[int, str] = {}
        self.num_calls: dict[str, int] = {}

    def create_arg(self, a: Any) -> Argument:
        """What becomes of a value as an argument: parameters, buffers and other tensors become attributes of the root."""
        if isinstance(a, Tensor):
            return self._attribute_node(a)
        if isinstance(a, Module):
            return self.create_node("get_attr", self.path_of_module(a), (), {})
        return super().create_arg(a)

    def _attribute_node(self, tensor: Any) -> Any:
        owned = self.root.named_parameters() if isinstance(tensor, Parameter) else self.root.named_buffers()
        path = next((name for name, value in owned if value is tensor), None)
        if path is None and isinstance(tensor, Parameter):
            raise NameError("parameter is not a member of this module")
        path = path or self.tensor_attrs.get(id(tensor))
        if path is None:
            path = next(name for i in count() if not hasattr(self.root, name := f"_tensor_constant{i}"))
            self.tensor_attrs[id(tensor)] = path
            setattr(self.root, path, tensor)
        return self.create_node("get_attr", path, (), {})

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether a module is recorded as one call: the library's own layers are."""
        return m.__module__.startswith(("pullback.nn", "torch.nn")) and not isinstance(m, Sequential)

    def path_of_module(self, mod: Module) -> str:
        """The name of a submodule of the root."""
        if self.submodule_paths:
            path = self.submodule_paths.get(mod)
        else:
            path = next((name for name, value in self.root.named_modules() if value is mod), None)
        if path is None:
            raise NameError("module is not installed as a submodule")
        return path

    def call_module(self, m: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Record the call of a leaf, or trace into the module."""
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))) as scope:
            calls = self.num_calls.get(path, 0)
            key = f"{path}@{calls}" if calls else path
            self.module_stack[key] = (path, scope.module_type)
            self.num_calls[path] = calls + 1
            try:
                if self.is_leaf_module(m, path):
                    return self.create_proxy("call_module", path, args, kwargs)
                return forward(*args, **kwargs)
            finally:
                self.module_stack.popitem()

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """What a module's attribute is while tracing: parameters are stand-ins."""
        if isinstance(attr_val, Parameter):
            return self._owned(attr_val, self.root.named_parameters(), parameter_proxy_cache)
        if self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            return self._owned(attr_val, self.root.named_buffers(), parameter_proxy_cache)
        return attr_val

    def _owned(self, value: Any, owned: Iterator[tuple[str, Any]], cache: dict[str, Any]) -> Any:
        name = next((name for name, other in owned if other is value), None)
        if name is None:
            return value
        if name not in cache:
            factory = None
            if self.param_shapes_constant:
                factory = functools.partial(_parameter_proxy, self, name, value)
            cache[name] = self.create_proxy("get_attr", name, (), {}, proxy_factory_fn=factory)
        return cache[name]

    def create_args_for_root(
        self, root_fn: Callable[..., Any], is_module: bool, concrete_args: dict[str, Any] | None = None
    ) -> tuple[Callable[..., Any], list[Any]]:
        """The function, and a stand-in for each of its parameters."""
        function: Any = inspect.unwrap(root_fn)
        code: CodeType = function.__code__
        names = list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
        args: list[Any] = [self.root] if is_module else []
        signature = inspect.signature(function)
        counter = 0
        for name in names[1:] if is_module else names:
            default = signature.parameters[name].default
            given = () if default is inspect.Parameter.empty else (default,)
            if concrete_args is not None and name in concrete_args:
                counter += 1
                args.append(self._concrete(name, f"{name}_{counter}", concrete_args[name], given))
            else:
                args.append(self._placeholder(name, given, function))
        rest = code.co_argcount + code.co_kwonlyargcount
        if not code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
            return self._by_name(root_fn, code), args
        flat = root_fn
        if code.co_flags & inspect.CO_VARARGS:
            args.append(self._placeholder(f"*{code.co_varnames[rest]}", (), function))
            rest += 1
        if code.co_flags & inspect.CO_VARKEYWORDS:
            args.append(self._placeholder(f"**{code.co_varnames[rest]}", (), function))
        flat = FunctionType(_without_stars(code), function.__globals__, function.__name__, None, function.__closure__)
        return flat, args

    def _by_name(self, function: Callable[..., Any], code: CodeType) -> Callable[..., Any]:
        """The function, which takes its keyword-only parameters by position."""
        leading = code.co_argcount
        if not code.co_kwonlyargcount:
            return function
        names = code.co_varnames[leading : leading + code.co_kwonlyargcount]
        return lambda *args: function(*args[:leading], **dict(zip(names, args[leading:], strict=True)))

    def _placeholder(self, name: str, default: tuple[Any, ...], function: Any) -> Proxy:
        kind = _annotation(function, name.strip("*"))
        shown = name if not name.startswith("*") else f"_{name.strip('*')}"
        return self.create_proxy(
            "placeholder", name, default, {}, name=shown if name != shown else None, type_expr=kind
        )

    def _concrete(self, name: str, shown: str, value: Any, default: tuple[Any, ...]) -> Any:
        """The value that a parameter was fixed to, after a check in the graph that callers give it."""
        proxy = self.create_proxy("placeholder", shown, default, {})
        message = f"{name} has been specialized to have value {value} but got another value"
        if value is None:
            self.create_proxy("call_function", _assert_is_none, (proxy, message), {})
        elif type(value) in (bool, int, float):
            pullback._assert(proxy == value, message)
        elif type(value) is not str:
            warn_user(
                f"Was not able to add assertion to guarantee correct input {name} to specialized function. It is up to the "
                "user to make sure that your inputs match the inputs you specialized the function with."
            )
        return value

    def trace(self, root: Any, concrete_args: dict[str, Any] | None = None) -> Graph:
        """Run the program on stand-ins and return its graph."""
        if isinstance(root, Module):
            self.root = root
            function = getattr(type(root), self.traced_func_name)
            self.submodule_paths = {module: name for name, module in root.named_modules()}
        else:
            self.root = Module()
            function = root
            self.submodule_paths = None
        self.tensor_attrs = {id(v): n for n, v in self._plain_tensors(self.root, "")}
        self.graph = Graph(tracer_cls=getattr(self, "__class__", None))
        flat, args = self.create_args_for_root(function, isinstance(root, Module), concrete_args)
        with _patched(self, getattr(inspect.unwrap(function), "__globals__", {})):
            returned = flat(*args)
        kind = _annotation(inspect.unwrap(function), "return")
        self.create_node("output", "output", (self.create_arg(returned),), {}, type_expr=kind)
        self.submodule_paths = None
        return self.graph

    def _plain_tensors(self, module: Module, prefix: str) -> Iterator[tuple[str, Any]]:
        for name, value in vars(module).items():
            if isinstance(value, Tensor):
                yield f"{prefix}{name}", value
        for name, child in module.named_children():
            yield from self._plain_tensors(child, f"{prefix}{name}.")


def _parameter_proxy(tracer: TracerBase, name: str, value: Any, node: Any) -> ParameterProxy:
    return ParameterProxy(tracer, node, name, value)


def _annotation(function: Any, name: str) -> Any:
    """The annotation of a parameter; our own modules' are texts, which PyTorch's are not."""
    kind = getattr(function, "__annotations__", {}).get(name)
    if str(getattr(function, "__module__", "")).startswith("pullback."):
        if name == "return" and "Tensor" in function.__annotations__.values():
            return Tensor
        return {"Tensor": Tensor, "int": int, "bool": bool}.get(str(kind))
    return kind


def _without_stars(code: CodeType) -> CodeType:
    """The code of a function that takes its *args and **kwargs as two ordinary arguments."""
    stars = code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    total = code.co_argcount + code.co_kwonlyargcount + bool(stars & inspect.CO_VARARGS)
    total += bool(stars & inspect.CO_VARKEYWORDS)
    return code.replace(co_argcount=total, co_kwonlyargcount=0, co_flags=code.co_flags & ~stars)


@contextmanager
def _patched(tracer: Tracer, scope: dict[str, Any]) -> Iterator[None]:
    """Let modules and wrapped functions answer to the tracer."""
    global _is_fx_tracing_flag
    cache: dict[str, Any] = {}
    read, call = Module.__getattr__, Module.__call__

    def traced_read(module: Module, name: str) -> Any:
        return tracer.getattr(name, read(module, name), cache)

    def traced_call(module: Module, *args: Any, **kwargs: Any) -> Any:
        if _find_proxy(args, kwargs) is None and not _owns(tracer, module):
            return call(module, *args, **kwargs)
        return tracer.call_module(module, functools.partial(call, module), args, kwargs)

    undo: list[tuple[dict[str, Any], str, Any]] = []
    former = _is_fx_tracing_flag
    _is_fx_tracing_flag = True
    Module.__getattr__, Module.__call__ = traced_read, traced_call  # type: ignore[method-assign,assignment]
    try:
        for (_, name), names in list(_wrapped_fns_to_patch.items()):
            _patch(names, name, names.get(name) or getattr(builtins, name), undo)
        for names in [scope, *[vars(m) for m in tracer._autowrap_search]]:
            for name, value in list(names.items()):
                if id(value) in tracer._autowrap_function_ids and resolve_name_or_none(value) is None:
                    _patch(names, name, value, undo)
        yield
    finally:
        Module.__getattr__, Module.__call__ = read, call  # type: ignore[method-assign]
        _is_fx_tracing_flag = former
        for names, name, value in reversed(undo):
            if value is _ABSENT:
                del names[name]
            else:
                names[name] = value


_ABSENT = object()


def resolve_name_or_none(value: Any) -> str | None:
    """The public name of a function that answers to stand-ins by itself."""
    try:
        return resolve_name(value)
    except TypeError:  # not hashable
        return None


def _owns(tracer: Tracer, module: Module) -> bool:
    return tracer.submodule_paths is not None and module in tracer.submodule_paths


def _patch(names: dict[str, Any], name: str, function: Any, undo: list[tuple[dict[str, Any], str, Any]]) -> None:
    undo.append((names, name, names.get(name, _ABSENT)))
    names[name] = _recorded(function)


def symbolic_trace(root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """The module or function as a GraphModule.

    >>> print(symbolic_trace(lambda x: x + 1).code.strip())
    def forward(self, x):
        add = x + 1;  x = None
        return add
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else getattr(root, "__name__", "GraphModule")
    return GraphModule(tracer.root, graph, name)
