"""Closes the cycle between Tensor and the functions: makes functions methods, and operators out of some of them."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from pullback import functions
from pullback.facts import fact_of
from pullback.functions import module_of
from pullback.functions.namespace import METHODS
from pullback.functions.operators import OPERATORS, PROPERTIES
from pullback.functions.protocols import PROTOCOLS
from pullback.modes.call_site import as_method
from pullback.tensor.foreign_arguments import explain_errors
from pullback.tensor.sparse_tensor import SparseMethods
from pullback.tensor.tensor import Tensor, attach_methods


def attach_all() -> None:
    """Attach every function that PyTorch has as a method; those of families not imported yet as stubs that load them."""
    methods: dict[str, Any] = {}
    for name in METHODS.split():
        if name in Tensor.__dict__:
            continue
        own = f"method_{name}"
        target = own if module_of(own) is not None else name
        module = module_of(target)
        if module is not None:
            loaded = sys.modules.get(module)
            methods[name] = _method(loaded, target, name) if loaded is not None else _Stub(name, module, target)
    attach_methods(methods)
    attach_methods(OPERATORS)
    attach_methods(PROPERTIES)
    attach_methods(PROTOCOLS)
    SparseMethods.attach = _attach_sparse


def _attach_sparse() -> None:
    from pullback.functions.sparse_algebra import attach_sparse_methods  # lazy: few programs have sparse tensors
    from pullback.functions.sparse_joining import attach_sparse_joining  # lazy: as above
    from pullback.functions.sparse_writes import attach_sparse_writes  # lazy: as above

    attach_sparse_methods()
    attach_sparse_joining()
    attach_sparse_writes()


def _method(module: ModuleType, target: str, name: str) -> Any:
    """A function as a method; composite ones explain wrong types, but for those that do so themselves."""
    function = getattr(module, target)
    composite = module.__name__.startswith("pullback.functions.")
    return as_method(
        name, explain_errors(function, name) if composite and fact_of(target, "bare") is None else function
    )


class _Stub:
    """A method that imports its family when it is first looked up, and puts the real function in its place.

    So `torch.Tensor.tril` is one object from the beginning: programs keep methods in tables of what they answer for.
    """

    def __init__(self, name: str, module: str, target: str) -> None:
        self.__name__ = name
        self.__qualname__ = f"Tensor.{name}"
        self._module, self._target = module, target

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        function = _method(import_module(self._module), self._target, self.__name__)
        setattr(Tensor, self.__name__, function)
        return function if instance is None else function.__get__(instance, owner)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__get__(None)(*args, **kwargs)


__all__ = ["attach_all", "functions"]
