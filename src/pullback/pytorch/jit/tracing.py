"""Tracing for `torch.jit.trace`: on stand-ins where that is possible, otherwise by recording one run.

A traced run on stand-ins keeps sizes symbolic. Python that needs a value (an `if`, `int(x)`) stops it; then one run on
the example is recorded, in which such values are constants, with a TracerWarning as in PyTorch.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pullback.fx import Graph, GraphModule, Tracer
from pullback.modes.user_warnings import warn_user
from pullback.nn.modules.module import Module
from pullback.overrides import TorchFunctionMode
from pullback.tensor.tensor import Tensor
from pullback.utils import _pytree as pytree

__all__ = ["TracerWarning", "is_tracing", "trace_program", "trace_symbolically"]


class TracerWarning(Warning):
    """A traced program may not do the same for other inputs."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Accepted: pullback's own code does not cause these warnings."""


class _State:
    tracing = False


def is_tracing() -> bool:
    """Whether a program is being traced right now."""
    return _State.tracing


@contextmanager
def _tracing() -> Iterator[None]:
    before, _State.tracing = _State.tracing, True
    try:
        yield
    finally:
        _State.tracing = before


class _InliningTracer(Tracer):
    """Traces into every module, so that the graph holds nothing but functions, methods and tensors."""

    def __init__(self, follows_buffers: bool) -> None:
        super().__init__()
        self.proxy_buffer_attributes = follows_buffers

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        return False

    def call_module(self, m: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Trace into a module, without its check of the number of dimensions, which a stand-in cannot tell."""
        if not hasattr(m, "_check_input_dim"):
            return super().call_module(m, forward, args, kwargs)
        m.__dict__["_check_input_dim"] = lambda input: None
        try:
            return super().call_module(m, forward, args, kwargs)
        finally:
            del m.__dict__["_check_input_dim"]


def trace_symbolically(function: Any) -> Any:
    """The program of a function or module, traced on stand-ins.

    What is computed of buffers alone is part of the program too, unless Python needs its value.
    """
    try:
        return _trace(_InliningTracer(follows_buffers=True), function)
    except Exception:  # whatever a program does with a stand-in that it cannot be used for
        return _trace(_InliningTracer(follows_buffers=False), function)


def _trace(tracer: Tracer, function: Any) -> Any:
    with _tracing():
        graph = tracer.trace(function)
    return GraphModule(tracer.root, graph)


def trace_program(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The program of a function or module as it runs on these arguments."""
    try:
        program = trace_symbolically(function)
        result = program(*args, **kwargs)
    except Exception as error:  # whatever stand-ins cannot do, the recorded run does
        warn_user(
            "Converting a tensor to a Python value might cause the trace to be incorrect: values that Python reads "
            f"become constants of the trace, whatever other inputs would give. What asked for a value: {error}",
            TracerWarning,
        )
        with _tracing():
            program, result = _record_run(function, args, kwargs)
    _check_output(result)
    return program


def _check_output(result: Any) -> None:
    """Refuse what a trace cannot give back: all but tensors, and lists, tuples and dictionaries of them."""
    if isinstance(result, (list, tuple, Mapping)):
        for part in result.values() if isinstance(result, Mapping) else result:
            _check_output(part)
    elif not isinstance(result, Tensor):
        raise RuntimeError(
            "Only tensors, lists, tuples of tensors, or dictionary of tensors can be output from traced functions, but got "
            f"{type(result).__name__}: make a tensor of it."
        )


class _Recorder(TorchFunctionMode):
    """Records every function of tensors that runs as a node of a graph."""

    def __init__(self, root: Module) -> None:
        super().__init__()
        self.root, self.graph = root, Graph()
        self._nodes: dict[int, Any] = {}
        self._kept: list[Any] = []  # so that no two tensors share an id
        self._paths = {id(t): n for n, t in (*root.named_parameters(), *root.named_buffers())}

    def name(self, tensor: Tensor, node: Any) -> None:
        """Remember which node stands for a tensor."""
        self._nodes[id(tensor)] = node
        self._kept.append(tensor)

    def node_of(self, value: Any) -> Any:
        """The node that stands for a tensor; parameters and tensors from outside become attributes."""
        if not isinstance(value, Tensor):
            return value
        if id(value) not in self._nodes:
            path = self._paths.get(id(value))
            if path is None:
                path = f"_tensor_constant{len(self._kept)}"
                self.root.register_buffer(path, value)
            self.name(value, self.graph.get_attr(path))
        return self._nodes[id(value)]

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        leaves, _ = pytree.tree_flatten(result)
        if any(isinstance(leaf, Tensor) for leaf in leaves):
            node = self.graph.call_function(func, *pytree.tree_map(self.node_of, (args, kwargs)))
            self._name_results(result, node)
        return result

    def _name_results(self, result: Any, node: Any) -> None:
        if isinstance(result, Tensor):
            self.name(result, node)
            return
        for position, part in enumerate(result):
            if isinstance(part, (Tensor, tuple, list)):
                self._name_results(part, self.graph.call_function(operator.getitem, (node, position)))


class _Holder(Module):
    """The root of a recorded run: the modules that it used, and its constants."""


def _record_run(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    root = _Holder()
    if isinstance(function, Module):
        root.__dict__.update(_parameters=dict(function._parameters), _buffers=dict(function._buffers))
        root._modules.update(function._modules)
    recorder = _Recorder(root)
    for number, value in enumerate(args):
        _add_input(recorder, f"arg_{number}", value)
    for name, value in kwargs.items():
        _add_input(recorder, name, value)
    with recorder:
        result = function(*args, **kwargs)
    recorder.graph.output(pytree.tree_map(recorder.node_of, result))
    return GraphModule(root, recorder.graph), result


def _add_input(recorder: _Recorder, name: str, value: Any) -> None:
    node = recorder.graph.placeholder(name)
    if isinstance(value, Tensor):
        recorder.name(value, node)
    elif isinstance(value, (tuple, list)):
        for position, part in enumerate(value):
            recorder.name(part, recorder.graph.call_function(operator.getitem, (node, position)))
