"""The public functions: generated operations re-exported, composite ones written here, a file per family.

`pullback.functions.name` finds a composite function in its family's file, else the generated operation.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from pullback import generated
from pullback.functions.namespace import FILES, TORCH

MODULES = {name: f"pullback.functions.{module}" for module, names in FILES.items() for name in names.split()}


def module_of(name: str) -> str | None:
    """The module that defines the public function `name`."""
    return MODULES.get(name) or generated.MODULES.get(name)


@cache
def public_names() -> frozenset[str]:
    """The functions of the top-level namespace: what is declared as `found` in torch, and not the helpers."""
    return frozenset(TORCH.split())


def __getattr__(name: str) -> Any:
    module = module_of(name)
    if module is None:
        raise AttributeError(f"module 'pullback.functions' has no attribute '{name}'")
    value = getattr(import_module(module) if name in MODULES else generated, name)
    globals()[name] = value
    return value
