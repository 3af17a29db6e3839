"""The public functions: generated operations re-exported, composite ones written here, a file per family.

`pullback.functions.name` finds a composite function in its family's file, else the generated operation.
"""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from typing import Any

from pullback import generated
from pullback.functions.namespace import FILES

MODULES = {name: f"pullback.functions.{module}" for module, names in FILES.items() for name in names.split()}


def module_of(name: str) -> str | None:
    """The module that defines the public function `name`."""
    return MODULES.get(name) or generated.MODULES.get(name)


@cache
def public_names() -> frozenset[str]:
    """The functions that PyTorch's top-level namespace has: those of ours are public there too, helpers are not."""
    return frozenset(names_in("public_names.txt"))


def names_in(file: str) -> list[str]:
    """The words of a text file of this folder. (`importlib.resources` would take a tenth of the whole import.)"""
    assert __spec__ is not None
    loader: Any = __spec__.loader
    return str(loader.get_data(os.path.join(os.path.dirname(__file__), file)), "utf-8").split()


def __getattr__(name: str) -> Any:
    module = module_of(name)
    if module is None:
        raise AttributeError(f"module 'pullback.functions' has no attribute '{name}'")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value
