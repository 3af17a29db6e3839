"""torch.compile and its companions. What they do is in pullback/compiling; docs/compile.md is the guide."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

__all__ = [
    "allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable", "explain",
    "is_compiling", "is_dynamo_compiling", "is_exporting", "list_backends", "nested_compile_region",
    "reset", "set_stance", "substitute_in_graph",
]  # fmt: skip

_BACKENDS = ("inductor", "eager", "aot_eager", "cudagraphs", "pullback")
_MODES = (None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


def compile(
    model: Any = None, *, fullgraph: bool = False, dynamic: bool | None = None, backend: Any = "inductor",
    mode: str | None = None, options: dict[str, Any] | None = None, disable: bool = False, check: bool = False,
) -> Any:  # fmt: skip
    """Make one program of what a function or a module does; also decorates.

    The first calls run eagerly and are recorded. Once two of them did the same, later ones run the program and skip the
    function's Python, as long as everything that it depends on is as it was. A statement that cannot be in a program, one
    that reads a value or prints, runs in Python between two compiled pieces: `compiler.explain` tells which, and
    `fullgraph=True` raises there. `check=True` runs each call eagerly too and raises
    at the first operation that differs. The other options are PyTorch's; `backend="eager"` leaves the function as it is, and
    a function as backend is given the operations as an `fx.GraphModule` with example inputs, and returns what runs instead.

    >>> import pullback
    >>> @pullback.compile
    ... def norm(x):
    ...     return (x * x).sum().sqrt()
    >>> x = pullback.tensor([3.0, 4.0], requires_grad=True)
    >>> norm(x)
    tensor(5., grad_fn=<CompiledFunctionBackward>)
    """
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(map(str, _MODES[1:]))}")
    if isinstance(backend, str) and backend not in _BACKENDS:
        raise ValueError(f"Invalid backend: {backend!r}, see `torch._dynamo.list_backends()` for available backends.")
    if model is None:
        return lambda later: compile(
            later, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, disable=disable,
            check=check,
        )  # fmt: skip
    assert callable(model), f"A callable function is expected, but {type(model)} is provided."
    if disable or backend == "eager" or isinstance(model, type):
        return model
    from pullback.compiling.compiled_function import CompiledFunction  # lazy: above this layer
    from pullback.nn.modules.module import Module  # lazy: a program may compile functions alone

    if isinstance(model, CompiledFunction) or getattr(model, "is_disabled", False):
        return model
    own = _with_options(backend, mode, options)
    if isinstance(model, Module):
        from pullback.pytorch._dynamo.eval_frame import OptimizedModule  # lazy: above this layer

        return OptimizedModule(model, fullgraph=fullgraph, check=check, dynamic=dynamic, backend=own)
    return CompiledFunction(model, fullgraph=fullgraph, check=check, dynamic=dynamic, backend=own)


def _with_options(backend: Any, mode: str | None, options: dict[str, Any] | None) -> Any:
    """A backend of the user's, with the options that it is to be given; None for one of ours."""
    if not callable(backend):
        return None
    given: dict[str, Any] = {} if mode in (None, "default") else {"mode": mode}
    if options:
        given["options"] = options
    return functools.partial(backend, **given) if given else backend


def explain(function: Any) -> Callable[..., Any]:
    """What compile makes of a function: call the result with the arguments of a call, and print what it returns.

    `.save(path)` of what it returns writes a page with the kernels, their texts and their times.

    >>> import pullback
    >>> def f(x):
    ...     y = x.exp()
    ...     return y if y.sum() > 0 else -y
    >>> explanation = explain(f)(pullback.ones(2))
    >>> explanation.graph_break_count
    1
    >>> explanation.break_reasons[0].reason
    'the value of a tensor decides a branch'
    """
    from pullback.compiling.explaining import explain as explain_call  # lazy: above this layer

    return explain_call(function)


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Keep a function out of programs: a compiled function that calls it runs as it is; also decorates.

    >>> @disable
    ... def log(x):
    ...     return x
    >>> log(1)
    1
    """
    if fn is None:
        return lambda later: disable(later, recursive, reason=reason)
    if isinstance(fn, type) or not callable(fn):
        return fn
    from pullback.compiling.compiled_function import disabled  # lazy: above this layer

    return disabled(fn, reason)


def _identity(fn: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Return the function itself, or a decorator that does."""
    return fn if callable(fn) else lambda later: later


allow_in_graph = assume_constant_result = substitute_in_graph = nested_compile_region = _identity


def is_compiling() -> bool:
    """Whether a compiler traces this call: never, since recorded calls run eagerly."""
    return False


is_dynamo_compiling = is_exporting = is_compiling


def reset() -> None:
    """Forget every program: functions are recorded anew."""
    from pullback.compiling.compiled_function import reset_all  # lazy: above this layer

    reset_all()


def set_stance(
    stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: Any = None
) -> contextlib.AbstractContextManager[None]:
    """Change what every compiled function does from now on; as a context or a decorator, for that time alone.

    "force_eager" runs functions as they are, "eager_on_recompile" runs programs that are there and compiles no new ones,
    "fail_on_recompile" raises instead. Guards are always evaluated.

    >>> import pullback
    >>> with set_stance("force_eager"):
    ...     pullback.compile(lambda x: x + 1)(pullback.ones(1))
    tensor([2.])
    """
    from pullback.compiling.stances import SetStance  # lazy: above this layer

    return SetStance(stance, force_backend)


def cudagraph_mark_step_begin() -> None:
    """Accepted: there are no CUDA graphs."""


def list_backends(*args: Any, **kwargs: Any) -> list[str]:
    """The names that `backend` can have: "eager" leaves a function as it is, all others compile it here."""
    return list(_BACKENDS)


Decorated = Callable[..., Any]
