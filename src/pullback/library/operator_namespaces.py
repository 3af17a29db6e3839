"""`torch.ops`: operators by namespace and name, and `Library`, which defines them piece by piece.

Dispatch keys choose among implementations in PyTorch; here the one that would run first on a CPU is the one that runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from inspect import Signature
from typing import Any

from pullback import functions
from pullback.library.custom_op import Registering, find_custom_op, make_function, split_arguments
from pullback.library.schema import signature_of
from pullback.missing_names import is_provided_for
from pullback.nn import functional

__all__ = ["Library", "define", "impl", "ops"]

_ORDER = ("Autograd", "AutogradCPU", "CompositeImplicitAutograd", "CPU", "CompositeExplicitAutograd", "")
"""Dispatch keys, the one that comes first on a CPU first."""

_KEY_OF_DEVICE = {
    "cpu": "CPU",
    "cuda": "CUDA",
    "default": "CompositeExplicitAutograd",
    None: "CompositeExplicitAutograd",
}
"""The dispatch keys that stand for types of devices."""


class OpOverload(Registering):
    """An operator of one name: called like a function; `op.default` and its other overloads are the same object."""

    def __init__(
        self, namespace: str, name: str, implementations: dict[str, Callable[..., Any]],
        signature: Signature | None = None,
    ) -> None:  # fmt: skip
        self._namespace, self._name, self.__name__ = namespace, name, name
        self._implementations = implementations
        self._signature = signature
        self._backward: Callable[..., Any] | None = None
        self._setup_context: Callable[..., Any] | None = None

    @property
    def namespace(self) -> str:
        """The name of the library it belongs to."""
        return self._namespace

    def name(self) -> str:
        """Namespace and name."""
        return f"{self._namespace}::{self.__name__}"

    def overloads(self) -> list[str]:
        """The names of its forms."""
        return ["default"]

    @property
    def op(self) -> Callable[..., Any]:
        """The function that runs."""
        return self._first_of(_ORDER)

    def _first_of(self, keys: Sequence[str]) -> Callable[..., Any]:
        for key in keys:
            if key in self._implementations:
                return self._implementations[key]
        raise NotImplementedError(
            f"Could not run '{self.name()}': it is defined, but has no implementation for the CPU. "
            "Register one with Library.impl()."
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.op(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    # What can be registered, as for a CustomOpDef.

    @property
    def _qualname(self) -> str:
        return self.name()

    @property
    def overload_name(self) -> str:
        """The operator as messages call it."""
        return f"{self._namespace}.{self._name}.default"

    def run(self, args: Sequence[Any]) -> Any:
        """Call the implementation below autograd on all arguments of the schema."""
        assert self._signature is not None
        positional, keywords = split_arguments(self._signature, args)
        return self._first_of(_ORDER[2:])(*positional, **keywords)

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Give the operator a backward, and a function that saves what it needs."""
        self._backward, self._setup_context = backward, setup_context
        signature, function = self._signature, make_function(self)
        if signature is None:
            return

        def record(*args: Any, **kwargs: Any) -> Any:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            return function.apply(*bound.args, *bound.kwargs.values())

        self._implementations["Autograd"] = record

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Give the operator a function that only makes the outputs' shapes; nothing here needs it."""
        return fn

    def _set_kernel(self, device_type: str | None, function: Callable[..., Any]) -> None:
        self._implementations[_KEY_OF_DEVICE.get(device_type, str(device_type))] = function

    def register_autocast(self, device_type: str, cast_inputs: Any, /) -> None:
        """Accepted: operators of libraries get their inputs as they are."""

    def __str__(self) -> str:
        return f"{self._namespace}.{self._name}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self._namespace}.{self.__name__}', overload='default')>"


_defined: dict[str, OpOverload] = {}
"""The operators of libraries, by their names with namespaces."""


def find_defined(name: str) -> OpOverload | None:
    """The operator of this name with its namespace, if a library defined one."""
    return _defined.get(name)


class Library:
    """A collection of operators under one namespace, defined and implemented piece by piece.

    >>> library = Library("doc_library", "DEF")
    >>> library.define("twice(Tensor x) -> Tensor")
    'twice'
    >>> library.impl("twice", lambda x: x * 2, "CPU")
    >>> ops.doc_library.twice(3)
    6
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Name an operator by its schema, and return its name."""
        name = schema.partition("(")[0].strip().partition(".")[0]
        operator = _defined.setdefault(f"{self.ns}::{name}", OpOverload(self.ns, name, {}))
        operator._signature = operator._signature or signature_of(schema)
        return name

    def impl(
        self, op_name: Any, fn: Callable[..., Any], dispatch_key: str = "", *, with_keyset: bool = False,
        allow_override: bool = False,
    ) -> None:  # fmt: skip
        """Give an operator an implementation for a dispatch key."""
        name = (
            op_name.__name__ if isinstance(op_name, OpOverload) else str(op_name).rpartition("::")[2].partition(".")[0]
        )
        operator = _defined.setdefault(f"{self.ns}::{name}", OpOverload(self.ns, name, {}))
        operator._implementations[dispatch_key or self.dispatch_key] = fn

    def fallback(self, fn: Callable[..., Any], dispatch_key: str = "", *, with_keyset: bool = False) -> None:
        """Accepted: every operator that exists here has an implementation."""

    def _destroy(self) -> None:
        for name in [name for name in _defined if name.startswith(f"{self.ns}::")]:
            del _defined[name]


def define(qualname: str, schema: Any, *, lib: Any = None, tags: Any = ()) -> None:
    """Name an operator `namespace::name` by the arguments and results of its schema."""
    namespace, _, name = qualname.partition("::")
    Library(namespace, "FRAGMENT").define(f"{name}{schema}")


def impl(qualname: Any, types: Any, func: Any = None, *, lib: Any = None) -> Any:
    """Give an operator an implementation for device types or dispatch keys; also a decorator.

    The older form names a library first: `impl(library, name, dispatch_key)`.
    """
    if isinstance(qualname, Library):
        library, name, key = qualname, types, func or ""

        def register_for_key(function: Callable[..., Any]) -> Callable[..., Any]:
            library.impl(name, function, key)
            return function

        return register_for_key
    namespace = str(qualname).partition("::")[0]
    kinds = [types] if isinstance(types, str) else list(types)

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for kind in kinds:
            Library(namespace, "FRAGMENT").impl(qualname, function, _KEY_OF_DEVICE.get(kind, kind))
        return function

    return register if func is None else register(func)


@cache
def _builtin(name: str) -> OpOverload | None:
    """One of PyTorch's own operators, if a function here has its name."""
    found = getattr(functions, name, None) if functions.module_of(name) is not None else None
    found = found if found is not None else getattr(functional, name, None)
    return None if not callable(found) else OpOverload("aten", name, {"": found})


class _Namespace:
    """The operators of one namespace."""

    def __init__(self, name: str) -> None:
        self._namespace = self.name = name

    def __getattr__(self, name: str) -> Any:
        full_name = f"{self._namespace}::{name}"
        operator: Any = find_custom_op(full_name) or _defined.get(full_name)
        if operator is None and self._namespace == "aten" and not name.startswith("__"):
            operator = _builtin(name)
            if operator is None and not is_provided_for(sys._getframe(1)):
                # See Note [Missing names]: an operator that is named is not yet used.
                operator = OpOverload("aten", name, {})
        if operator is None:
            raise AttributeError(f"'_OpNamespace' '{self._namespace}' object has no attribute '{name}'")
        return operator

    def __dir__(self) -> Iterator[str]:
        return (name.partition("::")[2] for name in _defined if name.startswith(f"{self._namespace}::"))


class _Ops:
    """The namespaces."""

    loaded_libraries: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self.refused_libraries: list[str] = []

    def load_library(self, path: Any) -> None:
        """Refuse compiled operators, which need PyTorch itself."""
        self.refused_libraries.append(str(path))
        raise OSError(
            f"{path}: operators compiled for PyTorch cannot be loaded; libraries that can do without them, do."
        )

    def __getattr__(self, name: str) -> _Namespace:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Namespace(name)


ops = _Ops()
