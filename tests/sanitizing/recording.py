"""Notes which calls the kernels' own tests make, as the material that odd calls are made of."""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

MOST = 24
"""So many calls of a kernel are kept, of which no two have arguments of the same kinds."""
Call = tuple[tuple[Any, ...], dict[str, Any]]


class Recorder:
    """Stands in the place of the extension module: what is bound through it notes its calls."""

    def __init__(self, extension: ModuleType) -> None:
        self.extension = extension
        self.kernels: dict[str, Callable[..., Any]] = {}
        self.calls: dict[str, dict[str, Call]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.extension, name)

    def bind(self, name: str, reference: Callable[..., Any], *parameters: Any) -> Callable[..., Any]:
        """The kernel or, as the last parameter says, its overwriting form, with its calls noted."""
        kernel = self.extension.bind(name, reference, *parameters)
        return self._noting(f"{name} (overwriting)" if parameters[-1] else name, kernel, reference)

    def _noting(self, name: str, kernel: Callable[..., Any], reference: Callable[..., Any]) -> Callable[..., Any]:
        if "overwriting" in name or name in self.extension.names():
            # The first reference is the kernel's own; tests bind others, which refuse to be asked.
            self.kernels.setdefault(name, kernel)
        kept = self.calls.setdefault(name, {})

        @wraps(reference)
        def noting(*args: Any, **options: Any) -> Any:
            if len(kept) < MOST:
                kinds = str([describe(value) for value in (*args, *options.values())])
                if kinds not in kept:
                    kept[kinds] = copy.deepcopy(args), copy.deepcopy(options)
            return kernel(*args, **options)

        return noting


def describe(value: Any) -> str:
    """What kind of an argument this is."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype.str}[{value.ndim}]{'C' if value.flags.c_contiguous else 'S'}"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}({','.join(describe(v) for v in value)})"
    return type(value).__name__ if not isinstance(value, (bool, str)) else repr(value)


def load_extension() -> ModuleType:
    """The extension module, before the package that it belongs to."""
    for folder in sys.path:
        spec = PathFinder.find_spec("pullback.native.kernels", [f"{folder}/pullback/native"])
        if spec is not None and spec.loader is not None:
            module = module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    raise SystemExit("there are no compiled kernels on the path")


def start_recording() -> Recorder:
    """Put a recorder in the place of the extension module, before the package is imported."""
    assert "pullback" not in sys.modules
    recorder = Recorder(load_extension())
    sys.modules["pullback.native.kernels"] = recorder  # type: ignore[assignment]  # a module as far as anyone asks
    return recorder


class _Thinned:
    """Lets pytest run every so manieth test alone."""

    def __init__(self, every: int) -> None:
        self._every = every

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Keep some of the tests."""
        items[:] = items[:: self._every]


def run_tests(folders: list[str], every: int) -> int:
    """Run every so manieth of the tests in `folders`; the number of the outcome, 0 for success."""
    import pytest

    # The report of a sanitizer that ends the process must not be captured.
    options = ["-q", "-s", "-p", "no:cacheprovider", "--override-ini", "pythonpath=."]
    options += ["-k", "not one_unit_at_most"]  # sanitized code rounds here and there otherwise
    return int(pytest.main([*options, *folders], plugins=[_Thinned(every)]))


def write_calls(recorder: Recorder, path: Path) -> None:
    """Keep the calls, with the modules in which the kernels are bound."""
    bound = {module for module in sys.modules if module.startswith(("pullback.kernels.", "pullback.generated."))}
    path.write_bytes(pickle.dumps((sorted(bound), recorder.calls)))


def read_calls(recorder: Recorder, path: Path) -> None:
    """Bind the kernels again, with the calls that were kept."""
    modules, calls = pickle.loads(path.read_bytes())
    for module in modules:
        import_module(module)
    recorder.calls = calls
