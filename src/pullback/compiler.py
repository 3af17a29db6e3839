"""torch.compile and its companions, accepted: programs run eagerly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.modes.user_warnings import warn_user

__all__ = ["allow_in_graph", "compile", "disable", "is_compiling", "is_dynamo_compiling", "is_exporting", "reset"]

_told = False


def compile(model: Any = None, **options: Any) -> Any:
    """Return `model` as it is, with a note on the first call; also decorates.

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     compile(len)([1, 2])
    2
    """
    global _told
    if not _told:
        _told = True
        warn_user("compile() is accepted and does nothing: pullback runs programs eagerly")
    assert model is None or callable(model), f"A callable function is expected, but {type(model)} is provided."
    return (lambda later: later) if model is None else model


def _identity(fn: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Return the function itself, or a decorator that does."""
    return fn if callable(fn) else lambda later: later


disable = allow_in_graph = assume_constant_result = substitute_in_graph = _identity


def is_compiling() -> bool:
    """Whether a compiler traces this call."""
    return False


is_dynamo_compiling = is_exporting = is_compiling


def reset() -> None:
    """Accepted: nothing is compiled."""


def cudagraph_mark_step_begin() -> None:
    """Accepted: there are no CUDA graphs."""


def list_backends(*args: Any, **kwargs: Any) -> list[str]:
    """The compilers that can be named: none."""
    return []


Decorated = Callable[..., Any]
