"""TorchScript, accepted as the identity: scripted functions and modules run as the Python they are."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any, Final

__all__ = [
    "Final",
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


def fork(func: Any, *args: Any, **kwargs: Any) -> Any:
    """Call the function at once."""
    return func(*args, **kwargs)


def wait(future: Any) -> Any:
    """Return the result of `fork`."""
    return future


def annotate(the_type: Any, the_value: Any) -> Any:
    """Return the value."""
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Python's isinstance."""
    import builtins

    return builtins.isinstance(obj, target_type)


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
