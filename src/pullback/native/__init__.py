"""Kernels compiled from C, below the operation layer: the decorator that puts them in place.

# Note [Compiled kernels]
A kernel in kernels/ is NumPy and stays the reference. Marked with `@native`, it is replaced by the compiled kernel of
the same name where the extension module `pullback.native.kernels` was built: a callable that serves plain float32 and
float64 arrays and hands every other call (other dtypes, strides it does not know, subclasses, bad arguments) to the
reference, which therefore decides all semantics and all errors. Nothing above the kernels knows of it.
`PULLBACK_NATIVE=0` in the environment turns all of them off.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _load() -> Any:
    """The extension module; None where it was not built or is turned off."""
    if os.environ.get("PULLBACK_NATIVE", "1") == "0":
        return None
    try:
        return import_module("pullback.native.kernels")
    except ModuleNotFoundError:
        return None
    except ImportError as error:
        warnings.warn(
            f"pullback's compiled kernels do not load, NumPy's are used: {error}", RuntimeWarning, stacklevel=2
        )
        return None


extension: Any = _load()


def native(reference: _Function) -> _Function:
    """Replace a NumPy kernel by the compiled one of its name, where there is one."""
    if extension is None:
        return reference
    replaced: _Function = extension.bind(reference.__name__, reference)
    return replaced


def compiled_kernels() -> list[str]:
    """The names of the compiled kernels in use."""
    return sorted(extension.names()) if extension is not None else []


class _Threads:
    count = 1


def usable_threads() -> int:
    """How many threads there are unless a program says otherwise: OMP_NUM_THREADS, or the processors it may run on."""
    wanted = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if wanted.isdigit() and int(wanted):
        return int(wanted)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def get_num_threads() -> int:
    """How many threads one loop of a compiled kernel may use."""
    return _Threads.count


def set_num_threads(count: int) -> None:
    """Set how many threads one loop of a compiled kernel may use."""
    _Threads.count = count
    if extension is not None:
        extension.set_num_threads(count)


set_num_threads(usable_threads())
