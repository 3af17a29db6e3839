"""TorchScript, accepted as the identity: scripted functions and modules run as the Python they are."""

from __future__ import annotations

import builtins
import contextlib
import warnings
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin

from pullback.futures import Future

__all__ = [
    "Final",
    "Future",
    "ScriptFunction",
    "ScriptModule",
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
    "trace",
    "trace_module",
    "unused",
    "wait",
]  # fmt: skip


class ScriptModule:
    """A scripted module; none is ever made here."""


class ScriptFunction:
    """A scripted function; none is ever made here."""


_told = False


def _note() -> None:
    global _told
    if not _told:
        _told = True
        warnings.warn(
            "torch.jit is accepted and does nothing: pullback runs the Python itself", UserWarning, stacklevel=3
        )


def script(obj: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the function or module itself."""
    _note()
    return obj


def trace(func: Any, example_inputs: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Return the function or module itself."""
    _note()
    return func


def trace_module(mod: Any, inputs: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Return the module itself."""
    _note()
    return mod


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Return the function itself; also with arguments."""
    return drop if callable(drop) else lambda fn: fn


def unused(fn: Any) -> Any:
    """Return the function itself."""
    return fn


export = script_if_tracing = interface = unused


def freeze(mod: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the module itself."""
    return mod


optimize_for_inference = freeze


def is_scripting() -> bool:
    """Whether this is being scripted: never."""
    return False


def is_tracing() -> bool:
    """Whether this is being traced: never."""
    return False


def fork(func: Any, *args: Any, **kwargs: Any) -> Future[Any]:
    """Call the function at once; what it returns is the value of a future."""
    future: Future[Any] = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future[Any]) -> Any:
    """Return the result of `fork`."""
    return future.wait()


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


def save(m: Any, f: Any, *args: Any, **kwargs: Any) -> None:
    """Not available: there is no scripted module to save."""
    raise NotImplementedError("torch.jit.save needs TorchScript: save module.state_dict() with torch.save instead")


def load(f: Any, *args: Any, **kwargs: Any) -> Any:
    """Not available: TorchScript archives hold compiled programs."""
    raise NotImplementedError("torch.jit.load needs TorchScript: save the state_dict in PyTorch and load that instead")
