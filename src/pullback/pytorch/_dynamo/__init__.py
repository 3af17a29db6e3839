"""What programs ask of PyTorch's compiler front end."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from pullback.pytorch._dynamo import backends, config, eval_frame, exc, external_utils, testing, utils
from pullback.pytorch._dynamo.backends.registry import list_backends, lookup_backend, register_backend
from pullback.pytorch._dynamo.eval_frame import OptimizedModule
from pullback.pytorch.compiler import (
    allow_in_graph,
    assume_constant_result,
    compile,
    disable,
    is_compiling,
    reset,
    set_stance,
    substitute_in_graph,
)

__all__ = [
    "OptimizedModule", "allow_in_graph", "assume_constant_result", "backends", "config", "disable", "error_on_graph_break",
    "eval_frame", "exc", "explain", "export", "external_utils", "graph_break", "is_compiling", "is_dynamo_supported",
    "list_backends", "lookup_backend", "mark_dynamic", "mark_static", "mark_static_address", "maybe_mark_dynamic",
    "optimize",
    "optimize_assert", "register_backend", "reset", "run", "set_stance", "substitute_in_graph", "testing",
    "utils",
]  # fmt: skip

disallow_in_graph = forbid_in_graph = disable
nonstrict_trace = dont_skip_tracing = allow_in_graph


def graph_break(msg: str = "") -> None:
    """End the program here: a function that calls it runs eagerly."""
    from pullback.compiling.kernel_names import current_recorder  # lazy: above this layer

    recorder = current_recorder()
    if recorder is not None:
        recorder.stop(msg or "graph_break() is called")


def skip_frame(msg: str = "") -> None:
    """End the program here."""
    graph_break(msg or "skip_frame() is called")


def mark_dynamic(t: Any, index: Any, *args: Any, **options: Any) -> None:
    """Accepted: sizes that change become parameters of the program by themselves."""


maybe_mark_dynamic = mark_unbacked = mark_dynamic


def mark_static(t: Any, index: Any = None) -> None:
    """Accepted: sizes that change become parameters of the program by themselves."""


def mark_static_address(t: Any, guard: bool = True) -> None:
    """Accepted: there are no CUDA graphs."""


def optimize(backend: Any = None, *, nopython: bool = False, dynamic: bool | None = None, **options: Any) -> Any:
    """A decorator that compiles, as `compile` does."""
    return compile(backend=backend, fullgraph=nopython, dynamic=dynamic)


def optimize_assert(backend: Any = None, *, dynamic: bool | None = None, **options: Any) -> Any:
    """A decorator that compiles, as `compile(fullgraph=True)` does."""
    return compile(backend=backend, fullgraph=True, dynamic=dynamic)


def explain(f: Any, *extra_args: Any, **extra_kwargs: Any) -> Any:
    """What compile makes of a function: see `compiler.explain`. Arguments of a call may be given at once."""
    from pullback.pytorch.compiler import explain as explain_calls  # the name stands for both

    explained = explain_calls(f)
    return explained(*extra_args, **extra_kwargs) if extra_args or extra_kwargs else explained


def run(fn: Callable[..., Any] | None = None) -> Any:
    """A function that runs programs which are there, and makes no new ones."""
    if fn is None:
        return run
    return set_stance("eager_on_recompile")(fn)  # type: ignore[operator]  # it decorates too


class ExportResult(NamedTuple):
    """What `export` gives: `torch.export.export` gives more."""

    graph_module: Any
    guards: set[Any]


def export(f: Callable[..., Any], *extra_args: Any, **options: Any) -> Callable[..., ExportResult]:
    """A function that takes the arguments of a call and gives the graph of what it computes.

    >>> import pullback
    >>> graph, guards = export(lambda x: x.sin() + 1)(pullback.zeros(1))
    >>> graph(pullback.zeros(1))
    tensor([1.])
    """
    from pullback.fx.experimental.proxy_tensor import make_fx  # lazy: its neighbour

    def trace(*args: Any, **kwargs: Any) -> ExportResult:
        return ExportResult(make_fx(functools.partial(f, **kwargs))(*args), set())

    return trace(*extra_args) if extra_args else trace  # type: ignore[return-value]  # the older spelling


@contextlib.contextmanager
def error_on_graph_break(error_on_graph_break: bool) -> Iterator[None]:
    """Let functions that cannot be one program raise here, or not, whatever `fullgraph` says; also decorates."""
    from pullback.compiling.compiled_function import BreakErrors  # lazy: above this layer

    former, BreakErrors.wanted = BreakErrors.wanted, error_on_graph_break
    try:
        yield
    finally:
        BreakErrors.wanted = former


def is_dynamo_supported() -> bool:
    """Yes: compile works wherever pullback does."""
    return True


reset_code_caches = reset
