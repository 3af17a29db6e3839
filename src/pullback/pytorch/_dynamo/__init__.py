"""What programs ask of PyTorch's compiler front end."""

from __future__ import annotations

from typing import Any

from pullback.pytorch._dynamo import config, eval_frame, external_utils
from pullback.pytorch._dynamo.eval_frame import OptimizedModule
from pullback.pytorch.compiler import (
    allow_in_graph,
    assume_constant_result,
    compile,
    disable,
    explain,
    is_compiling,
    list_backends,
    reset,
    substitute_in_graph,
)

__all__ = [
    "OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable", "eval_frame", "explain",
    "external_utils", "graph_break", "is_compiling", "list_backends", "mark_dynamic", "mark_static", "mark_static_address",
    "maybe_mark_dynamic", "optimize", "reset", "substitute_in_graph",
]  # fmt: skip

disallow_in_graph = forbid_in_graph = nonstrict_trace = dont_skip_tracing = disable


def graph_break(msg: str = "") -> None:
    """End the program here: a function that calls it runs eagerly."""
    from pullback.compiling.kernel_names import current_recorder  # lazy: above this layer

    recorder = current_recorder()
    if recorder is not None:
        recorder.stop(msg or "graph_break() is called")


def mark_dynamic(t: Any, index: Any, *args: Any, **options: Any) -> None:
    """Accepted: each size that a function meets is recorded for itself."""


maybe_mark_dynamic = mark_unbacked = mark_dynamic


def mark_static(t: Any, index: Any = None) -> None:
    """Accepted: each size that a function meets is recorded for itself."""


def mark_static_address(t: Any, guard: bool = True) -> None:
    """Accepted: there are no CUDA graphs."""


def optimize(*args: Any, **options: Any) -> Any:
    """A decorator that compiles, as `compile` does."""
    return compile


reset_code_caches = reset
