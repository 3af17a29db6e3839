"""The names of `torch.jit`: scripted and traced programs. Scripted ones run as the Python they are.

PyTorch 2.13 has deprecated all of it, with the warnings that are given here too.
"""

from __future__ import annotations

import builtins
import contextlib
import inspect
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin

from pullback.modes.user_warnings import warn_user
from pullback.nn.modules.module import Module as _Module
from pullback.pytorch.futures import Future
from pullback.pytorch.jit import archive as _archive
from pullback.pytorch.jit.script_module import RecursiveScriptModule, ScriptFunction, ScriptModule, TopLevelTracedModule
from pullback.pytorch.jit.tracing import TracerWarning, is_tracing
from pullback.pytorch.jit.tracing import trace_program as _trace_program
from pullback.random import fork_rng as _fork_rng

__all__ = [
    "Error",
    "Final",
    "Future",
    "RecursiveScriptModule",
    "ScriptFunction",
    "ScriptModule",
    "TopLevelTracedModule",
    "TracerWarning",
    "export",
    "fork",
    "freeze",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "load",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "trace",
    "trace_module",
    "unused",
    "wait",
]  # fmt: skip


class Error(Exception):
    """An error of a scripted program. None is raised here: the Python's own come through."""


def _deprecated(name: str, instead: str = "Please switch to `torch.compile` or `torch.export`.") -> None:
    warn_user(f"`torch.jit.{name}` is deprecated. {instead}", DeprecationWarning)


def script(obj: Any, *args: Any, **kwargs: Any) -> Any:
    """A function or module as a scripted one, which runs as the Python it is; a class is returned as it is.

    >>> import pullback
    >>> import warnings
    >>> warnings.simplefilter("ignore")
    >>> script(pullback.nn.Linear(1, 1))
    RecursiveScriptModule(original_name=Linear)
    """
    _deprecated("script")
    if builtins.isinstance(obj, (ScriptFunction, ScriptModule)) or inspect.isclass(obj):
        return obj
    if builtins.isinstance(obj, _Module):
        return RecursiveScriptModule(obj)
    if not callable(obj):
        return obj
    return ScriptFunction(obj, getattr(obj, "__name__", "forward"))


def trace(
    func: Any, example_inputs: Any = None, optimize: Any = None, check_trace: bool = True, *args: Any,
    example_kwarg_inputs: dict[str, Any] | None = None, **kwargs: Any,
) -> Any:  # fmt: skip
    """The program of a function or module as it runs on example inputs.

    >>> import pullback
    >>> import warnings
    >>> warnings.simplefilter("ignore")
    >>> trace(lambda x: x.relu() + 1, pullback.ones(2))(pullback.tensor([-1.0, 2.0]))
    tensor([1., 3.])
    """
    _deprecated("trace")
    if builtins.isinstance(func, (ScriptFunction, RecursiveScriptModule)):
        return func
    given = () if example_inputs is None else example_inputs
    inputs = tuple(given) if builtins.isinstance(given, (tuple, list)) else (given,)
    keywords: dict[str, Any] = example_kwarg_inputs or {}
    if builtins.isinstance(given, dict):
        inputs, keywords = (), given
    with _fork_rng():
        program = _trace_program(func, inputs, keywords)
    if builtins.isinstance(func, _Module):
        return TopLevelTracedModule(func, program)
    return ScriptFunction(program, getattr(func, "__name__", "forward"), program.graph)


def trace_module(mod: Any, inputs: Any = None, *args: Any, **kwargs: Any) -> Any:
    """As `trace`, with the example inputs of each method by name; `forward` is traced, others run as Python."""
    return trace(mod, inputs["forward"]) if "forward" in inputs else RecursiveScriptModule(mod)


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Return the function itself; also with arguments."""
    return drop if callable(drop) else lambda fn: fn


def unused(fn: Any) -> Any:
    """Return the function itself."""
    return fn


export = script_if_tracing = interface = script_method = unused


def freeze(mod: Any, *args: Any, **kwargs: Any) -> Any:
    """Return a scripted module in evaluation mode as it is."""
    _deprecated("freeze", "Please use `torch.compile` instead.")
    if not builtins.isinstance(mod, ScriptModule):
        raise RuntimeError(
            "Freezing expects a ScriptModule as input. Please use torch.jit.script or torch.jit.trace to script your "
            "'nn.Module'."
        )
    if mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module before "
            "freezing."
        )
    return mod


def optimize_for_inference(mod: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the module itself."""
    return mod


def is_scripting() -> bool:
    """Whether this is being scripted: never."""
    return False


def fork(func: Any, *args: Any, **kwargs: Any) -> Future[Any]:
    """Call the function at once; what it returns is the value of a future."""
    future: Future[Any] = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future[Any]) -> Any:
    """Return the result of `fork`."""
    return future.wait()


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """Write a scripted or traced program to a file of pullback's own."""
    _deprecated("save", "Please switch to `torch.export`.")
    _archive.save(m, f)


def load(f: Any, map_location: Any = None, _extra_files: Any = None, _restore_shapes: bool = False) -> Any:
    """Read a program that `save` wrote."""
    _deprecated("load", "Please switch to `torch.export`.")
    return _archive.load(f, map_location)


def _unwrap_optional(x: Any) -> Any:
    """The value, which must not be None."""
    if x is None:
        raise AssertionError("Unwrapping null optional")
    return x


def annotate(the_type: Any, the_value: Any) -> Any:
    """Return the value."""
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Python's isinstance, which also looks into containers: `list[int]`, `dict[str, Tensor]`, `tuple[int, float]`.

    >>> isinstance([1, 2], list[int]), isinstance([1, "a"], list[int]), isinstance(None, int | None)
    (True, False, True)
    """
    origin, inner = get_origin(target_type), get_args(target_type)
    if builtins.isinstance(target_type, tuple) or origin in (Union, UnionType):
        return any(isinstance(obj, one) for one in inner or target_type)
    if origin is None:
        return builtins.isinstance(obj, type(None) if target_type is None else target_type)
    if not builtins.isinstance(obj, origin):
        return False
    if origin is tuple:
        return len(obj) == len(inner) and all(map(isinstance, obj, inner))
    if origin is dict:
        return all(isinstance(k, inner[0]) and isinstance(v, inner[1]) for k, v in obj.items())
    return all(isinstance(element, inner[0]) for element in obj)


@contextlib.contextmanager
def fuser(name: str) -> Any:
    """Accepted: nothing is fused."""
    yield
