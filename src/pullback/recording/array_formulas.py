"""What `F` means on arrays: a kernel, else a formula of formulas/ whose `F` is this module.

A formula is one text with two meanings. `pullback.formulas` runs it on Tensors; here its file is loaded a second time, on
first use, and given this module for `F`.
"""

from __future__ import annotations

import os
import sys
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any

from pullback import kernels
from pullback.native import native

_FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "formulas")
_loaded: dict[str, ModuleType] = {}


def __getattr__(name: str) -> Any:
    value = getattr(kernels, name, None)
    if value is None:
        from pullback.generated import FORMULAS  # lazy: above this layer

        if name not in FORMULAS:
            raise AttributeError(f"no kernel and no formula is named {name}")
        module = _loaded.get(FORMULAS[name]) or _load(FORMULAS[name])
        value = getattr(module, name)
        if hasattr(value, "is_compiled_on_arrays"):
            value = native(value)
    globals()[name] = value
    return value


def _load(name: str) -> ModuleType:
    """The formulas of one file, on arrays."""
    spec = spec_from_file_location(f"{__name__}.{name}", os.path.join(_FOLDER, f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    vars(module)["F"] = sys.modules[__name__]
    _loaded[name] = module
    return module
