"""torch.compile and its companions. What they do is in pullback/compiling; docs/compile.md is the guide."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable
from typing import Any

from pullback.modes.inside_compiled import is_inside
from pullback.pytorch.compiler import backend_names, config
from pullback.pytorch.compiler.settings import settings_of

__all__ = [
    "allow_in_graph", "assume_constant_result", "compile", "config", "cudagraph_mark_step_begin", "disable", "explain",
    "get_default_backend", "is_compiling", "is_dynamo_compiling", "is_exporting", "keep_portable_guards_unsafe",
    "keep_tensor_guards_unsafe", "list_backends", "load_cache_artifacts", "nested_compile_region", "reset",
    "save_cache_artifacts", "set_default_backend", "set_enable_guard_collectives", "set_stance", "skip_all_guards_unsafe",
    "skip_guard_on_all_nn_modules_unsafe", "skip_guard_on_globals_unsafe", "skip_guard_on_inbuilt_nn_modules_unsafe",
    "substitute_in_graph", "wrap_numpy",
]  # fmt: skip

_MODES = (None, "default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")


class _Default:
    """The backend of calls that name none."""

    backend: Any = "inductor"


def compile(
    model: Any = None, *, fullgraph: bool = False, dynamic: bool | None = None, backend: Any = None,
    mode: str | None = None, options: dict[str, Any] | None = None, name: str | None = None, disable: bool = False,
    recompile_limit: int | None = None, isolate_recompiles: bool = False, shapes_spec: Any = None, check: bool = False,
) -> Any:  # fmt: skip
    """Make one program of what a function or a module does; also decorates.

    The first calls run eagerly and are recorded. Once two of them did the same, later ones run the program and skip the
    function's Python, as long as everything that it depends on is as it was. A statement that cannot be in a program, one
    that reads a value or prints, runs in Python between two compiled pieces: `compiler.explain` tells which, and
    `fullgraph=True` raises there. `check=True` runs each call eagerly too and raises
    at the first operation that differs. The other options are PyTorch's, and most have nothing to choose here;
    `backend="eager"` leaves the function as it is, and a function as backend is given the operations as an `fx.GraphModule`
    with example inputs, and returns what runs instead.

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
    assert dynamic in (None, True, False), f"dynamic must be a bool or None, but got {dynamic!r}"
    if backend is None:
        backend = _Default.backend
    run_graph = backend_names.lookup_backend(backend)
    if options and backend == "inductor":
        _check_options(options)
    if model is None:
        return lambda later: compile(
            later, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, disable=disable,
            check=check,
        )  # fmt: skip
    assert callable(model), f"A callable function is expected, but {type(model)} is provided."
    if disable or isinstance(model, type):
        return model
    if backend == "eager" and fullgraph:  # asked for to find what would break
        backend = run_graph
    elif isinstance(backend, str) and backend in backend_names.registered:
        backend = backend_names.registered[backend]
    from pullback.compiling.compiled_function import CompiledFunction  # lazy: above this layer
    from pullback.nn.modules.module import Module  # lazy: a program may compile functions alone

    if isinstance(model, CompiledFunction) or getattr(model, "is_disabled", False):
        return model
    own = _with_options(backend, mode, options)
    if isinstance(model, Module):
        from pullback.pytorch._dynamo.eval_frame import OptimizedModule  # lazy: above this layer

        if backend == "eager":
            return OptimizedModule(model, None)
        return OptimizedModule(model, fullgraph=fullgraph, check=check, dynamic=dynamic, backend=own)
    if backend == "eager":
        return model
    return CompiledFunction(model, fullgraph=fullgraph, check=check, dynamic=dynamic, backend=own)


def _check_options(options: dict[str, Any]) -> None:
    """Refuse options that PyTorch's own backend does not know."""
    known = settings_of("_inductor")
    for name, value in options.items():
        key = name.replace("-", "_")
        if key in ("guard_filter_fn",):
            continue
        if key not in known:
            raise RuntimeError(f"Unexpected optimization option {name}, known options are {sorted(known)}")
        if type(known[key]) not in (type(None), type(value)):
            wanted, got = type(known[key]).__name__, type(value).__name__
            raise RuntimeError(f"Unexpected type of attr {name}, got {got} should be {wanted}")


def set_default_backend(backend: Any) -> None:
    """Choose the backend of calls of `compile` that name none; None gives the first one back."""
    backend_names.lookup_backend("inductor" if backend is None else backend)
    _Default.backend = "inductor" if backend is None else backend


def get_default_backend() -> Any:
    """The backend of calls of `compile` that name none."""
    return _Default.backend


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
    from pullback.nn.modules.module import Module  # lazy: a program may have functions alone

    if isinstance(fn, Module):
        from pullback.pytorch._dynamo.eval_frame import OptimizedModule  # lazy: above this layer

        return OptimizedModule(fn, lambda call: disabled(call, reason))
    return disabled(fn, reason)


def _identity(fn: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Return the function itself, or a decorator that does: what is recorded is what runs."""
    return fn if callable(fn) else lambda later: later


allow_in_graph = assume_constant_result = substitute_in_graph = nested_compile_region = _identity


def is_compiling() -> bool:
    """Whether a compiled function runs, or `export` traces: always the same inside of one, whether it is recorded or not.

    >>> import pullback
    >>> f = pullback.compile(lambda x: x + (1 if pullback.compiler.is_compiling() else 2))
    >>> f(pullback.zeros(1)), is_compiling()
    (tensor([1.]), False)
    """
    return is_exporting() or is_inside()


def is_dynamo_compiling() -> bool:
    """Whether a compiled function runs."""
    return is_compiling() and not is_exporting()


def is_exporting() -> bool:
    """Whether `export` traces."""
    exporting = sys.modules.get("pullback.export.exporting")
    return exporting is not None and exporting.is_exporting()


def wrap_numpy(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy arrays as one of tensors. It runs in Python, without gradients.

    >>> import numpy, pullback
    >>> wrap_numpy(lambda a: numpy.sort(a))(pullback.tensor([2, 1]))
    tensor([1, 2])
    """
    from pullback.creation import as_tensor
    from pullback.tensor.tensor import Tensor
    from pullback.utils._pytree import tree_map

    @functools.wraps(fn)
    def run(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = tree_map(lambda x: x.numpy() if isinstance(x, Tensor) else x, (args, kwargs))
        return tree_map(lambda x: as_tensor(x) if hasattr(x, "__array_interface__") else x, fn(*args, **kwargs))

    return run


def _all_guards(guard_entries: Any) -> list[bool]:
    """For `options={"guard_filter_fn": ...}`: guards are always evaluated."""
    return [True for _ in guard_entries]


skip_all_guards_unsafe = skip_guard_on_globals_unsafe = skip_guard_on_all_nn_modules_unsafe = _all_guards
skip_guard_on_inbuilt_nn_modules_unsafe = keep_tensor_guards_unsafe = keep_portable_guards_unsafe = _all_guards


def save_cache_artifacts() -> None:
    """None: what was compiled lies in the folder that PULLBACK_CACHE_DIR names, which can be copied."""


def load_cache_artifacts(serialized_artifacts: bytes) -> None:
    """None, as for artifacts of another version: see `save_cache_artifacts`."""


def set_enable_guard_collectives(enabled: bool) -> bool:
    """Accepted: each rank compiles for itself."""
    return False


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


list_backends = backend_names.list_backends


Decorated = Callable[..., Any]
