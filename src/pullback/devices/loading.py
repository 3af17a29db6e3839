"""Loading the text of the kernels for another array library: `np` means the library's namespace there.

# Note [Kernels by device]
A kernel is one text. Called with arrays of a device, the kernel of the CPU hands over to the same function of a second
copy of its module, in which `np` is the device's library and whatever it imports of kernels/ and of the array functions of
backend/ is the second copy too. The hand-over is the business of `@native`, `@by_device` and `@by_element`
(native/__init__.py): in the extension it is one comparison of a pointer with NULL as long as no such device is in use.
A device may have kernels of its own by name (`Library.kernels`): such a kernel answers NotImplemented to what it does not
serve, and the text does.
Nothing above the kernels knows of devices.
"""

from __future__ import annotations

import builtins
import importlib.util
from collections.abc import Callable
from functools import wraps
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from pullback.checks import check_of, is_checked
from pullback.devices.library import Library
from pullback.native import silent

ON_HOST = {
    "linalg_ldl_factor_ex": "LAPACK's pivoting, which neither CuPy nor NumPy has",
    "linalg_ldl_solve": "solves with what LAPACK's pivoting made",
}
"""Kernels that compute on the CPU and copy, and why. All others stay on the device."""

_PLAIN_NAMES = ("pullback.kernels.overwriting",)
"""Modules whose functions have names of kernels and are none."""
_INDEXING = ("index", "index_put", "index_put_into", "index_back")
_ARRAY_MODULES = ("pullback.backend.array_module", "pullback.backend.halves", "pullback.backend.blocks")
"""Modules of backend/ that are loaded per library, as those of kernels/ are."""


class Loader:
    """The modules that were loaded for one library."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self._modules: dict[str, ModuleType] = {}
        self._native = SimpleNamespace(
            native=self._chosen, by_device=self._chosen, by_element=self._chosen, silent=silent,
            overwriting_form=lambda kernel, reference: silent(reference),
        )  # fmt: skip

    def find(self, reference: Any) -> Callable[..., Any]:
        """The kernel that serves this library in the place of `reference`."""
        module, name = reference.__module__, reference.__name__
        if _is_loaded_anew(module):
            found = getattr(self.module(module), name, None)
            if found is not None:
                kernel: Callable[..., Any] = self._taking_host_positions(found) if name in _INDEXING else found
                return kernel
        if module.startswith("pullback.backend.random."):
            return self._drawn(reference)
        return self._chosen(reference)  # text of arrays' own operators, as the rules in generated/ are

    def module(self, name: str) -> ModuleType:
        """The copy of a module whose `np` is the library."""
        loaded = self._modules.get(name)
        return self._load(name) if loaded is None else loaded

    def _load(self, name: str) -> ModuleType:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        loaded = self._modules[name] = ModuleType(name, f"{name}, on {self.library.name}")
        loaded.__file__ = spec.origin
        vars(loaded)["__builtins__"] = {**vars(builtins), "__import__": self._import}
        with open(spec.origin, encoding="utf-8") as file:
            exec(compile(file.read(), spec.origin, "exec"), vars(loaded))
        for function, ours in self.library.functions.get(name.removeprefix("pullback."), {}).items():
            setattr(loaded, function, ours)
        return loaded

    def _import(
        self, name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> ModuleType | SimpleNamespace:
        if name == "numpy":
            return self.library.namespace
        if name == "pullback.native":
            return self._native
        if _is_loaded_anew(name) and fromlist:
            return self.module(name)
        if name in ("pullback.backend", "pullback.kernels", "pullback") and fromlist:
            found = {part: self._part(f"{name}.{part}") for part in fromlist}
            return SimpleNamespace(**found)
        return builtins.__import__(name, globals, locals, fromlist, level)

    def _part(self, name: str) -> Any:
        if _is_loaded_anew(name):
            return self.module(name)
        return importlib.import_module(name)

    def _chosen(self, reference: Any) -> Any:
        """The library's own kernel of that name, with `reference` for what it declines; else `reference`."""
        name = getattr(reference, "__name__", "")
        if name in ON_HOST:
            return self._on_host(reference)
        own = self.library.kernels.get(name)
        if own is None or isinstance(reference, type) or reference.__module__ in _PLAIN_NAMES:
            return reference

        @wraps(reference)
        def kernel(*args: Any, **options: Any) -> Any:
            result = own(*args, **options)
            return reference(*args, **options) if result is NotImplemented else result

        if not is_checked(reference):
            return kernel
        check = check_of(reference)

        @wraps(reference)
        def checked(*args: Any, **options: Any) -> Any:
            check(*args, **options)
            return kernel(*args, **options)

        return checked

    def _taking_host_positions(self, kernel: Any) -> Any:
        """A kernel that indexes, which also takes positions in the memory of the CPU, as PyTorch does."""

        @wraps(kernel)
        def call(array: Any, indices: Any, *args: Any, **options: Any) -> Any:
            return kernel(array, [_uploaded(self.library, positions) for positions in indices], *args, **options)

        return call

    def _drawn(self, reference: Any) -> Any:
        """The library's own way to draw; else what the CPU draws, copied."""
        own = self.library.kernels.get(reference.__name__)
        if own is not None:
            return own
        if not reference.__name__.endswith("_"):
            return self._on_host(reference)

        def fill(array: Any, *args: Any, **options: Any) -> Any:
            values = np.empty(array.shape, array.dtype)
            reference(values, *[_on_cpu(self.library, a) for a in args], **options)
            array[...] = self.library.wrapper(self.library.upload(values))
            return array

        return fill

    def _on_host(self, reference: Any) -> Any:
        """The CPU's kernel, on copies."""
        kernel = getattr(importlib.import_module(reference.__module__), reference.__name__)

        def call(*args: Any, **options: Any) -> Any:
            library = self.library
            results = kernel(
                *[_on_cpu(library, argument) for argument in args],
                **{name: _on_cpu(library, option) for name, option in options.items()},
            )
            return tuple([_back(library, r) for r in results]) if type(results) is tuple else _back(library, results)

        return call


def _uploaded(library: Library, value: Any) -> Any:
    return library.wrapper(library.upload(value)) if isinstance(value, np.ndarray) and value.ndim else value


def _on_cpu(library: Library, value: Any) -> Any:
    return library.download(value.raw) if isinstance(value, library.wrapper) else value


def _back(library: Library, value: Any) -> Any:
    return library.wrapper(library.upload(np.asarray(value))) if isinstance(value, (np.ndarray, np.generic)) else value


def _is_loaded_anew(module: str) -> bool:
    return module in _ARRAY_MODULES or (module.startswith("pullback.kernels.") and not module.endswith(".namespace"))
