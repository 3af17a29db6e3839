"""Closes the cycle between Tensor and the functions: makes functions methods, and operators out of some of them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from pullback import functions
from pullback.functions import module_of, names_in
from pullback.functions.operators import OPERATORS, PROPERTIES
from pullback.functions.protocols import PROTOCOLS
from pullback.tensor.tensor import Tensor, attach_methods


def attach_all() -> None:
    """Attach every function that PyTorch has as a method; those of families not imported yet as stubs that load them."""
    methods: dict[str, Any] = {}
    for name in names_in("method_names.txt"):
        if name in Tensor.__dict__:
            continue
        own = f"method_{name}"
        target = own if module_of(own) is not None else name
        module = module_of(target)
        if module is not None:
            loaded = sys.modules.get(module)
            methods[name] = getattr(loaded, target) if loaded is not None else _stub(name, module, target)
    attach_methods(methods)
    attach_methods(OPERATORS)
    attach_methods(PROPERTIES)
    attach_methods(PROTOCOLS)


def _stub(name: str, module: str, target: str) -> Callable[..., Any]:
    """A method that imports its family on the first call and puts the real function in its place."""

    def load(self: Any, *args: Any, **kwargs: Any) -> Any:
        function = getattr(import_module(module), target)
        setattr(Tensor, name, function)
        return function(self, *args, **kwargs)

    load.__name__ = name
    load.__qualname__ = f"Tensor.{name}"
    return load


__all__ = ["attach_all", "functions"]
