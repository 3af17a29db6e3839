"""Forward computation on raw arrays, a file per family. `pullback.kernels.name` finds a kernel in its family's file."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pullback.kernels.namespace import FILES

_MODULES = {name: f"pullback.kernels.{module}" for module, names in FILES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'pullback.kernels' has no attribute '{name}'")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value
