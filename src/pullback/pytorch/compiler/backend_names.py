"""Names of backends: pullback's own, and those that users register."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.errors import InvalidBackend

__all__ = ["list_backends", "lookup_backend", "register_backend"]

OWN = ("inductor", "eager", "aot_eager", "cudagraphs", "pullback")
"""Those that compile knows: "eager" leaves a function as it is, all others compile it here."""
registered: dict[str, Callable[..., Any]] = {}
"""Those of users."""


def register_backend(
    compiler_fn: Callable[..., Any] | None = None, name: str | None = None, tags: Sequence[str] = ()
) -> Callable[..., Any]:
    """Let `compile(backend=name)` call a function; also decorates. The name is the function's own unless one is given.

    >>> import pullback
    >>> @pullback._dynamo.register_backend
    ... def as_it_is(graph, examples):
    ...     return graph.forward
    >>> pullback.compile(lambda x: x + 1, backend="as_it_is")(pullback.zeros(1))
    tensor([1.])
    """
    if compiler_fn is None:
        return lambda later: register_backend(later, name, tags)
    assert callable(compiler_fn), "register_backend: a backend is a function of a graph and example inputs"
    registered[name or compiler_fn.__name__] = compiler_fn
    return compiler_fn


def _run_graph(gm: Any, example_inputs: Any) -> Any:
    return gm.forward


def lookup_backend(compiler_fn: Any) -> Callable[..., Any]:
    """The function of a name. Those of pullback's own run a graph as it is: what they make faster is no graph."""
    if callable(compiler_fn):
        return compiler_fn
    if compiler_fn in registered:
        return registered[compiler_fn]
    if compiler_fn not in OWN:
        raise InvalidBackend(
            f"Invalid backend: {compiler_fn!r}, see `torch._dynamo.list_backends()` for available backends. There are "
            f"{', '.join([*OWN, *registered])}."
        )
    return _run_graph


def list_backends(exclude_tags: Sequence[str] | None = ("debug", "experimental")) -> list[str]:
    """The names that `backend` can have."""
    return [*OWN, *registered]
