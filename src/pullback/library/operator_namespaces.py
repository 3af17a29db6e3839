"""`torch.ops`: operators by namespace and name, and `Library`, which defines them piece by piece.

Dispatch keys choose among implementations in PyTorch; here the one that would run first on a CPU is the one that runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from inspect import Signature
from typing import Any

from pullback.dispatch.calling import show_or_run
from pullback.dispatch.overloads import OpOverload, OpOverloadPacket, aten, declared
from pullback.dispatch.running import implementation_of
from pullback.dispatch.schemas import aten_schemas, parse_schema
from pullback.library.custom_op import Registering, find_custom_op, make_function, split_arguments
from pullback.library.schema import signature_of
from pullback.pytorch.missing_names import is_provided_for

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


class LibraryOverload(OpOverload, Registering):
    """The one form of an operator that a library defines: called like a function."""

    def __init__(self, packet: OpOverloadPacket, overload: str, schema: Any) -> None:
        super().__init__(packet, overload, schema)
        self._implementations: dict[str, Callable[..., Any]] = {}
        self._signature: Signature | None = None
        self._backward: Callable[..., Any] | None = None
        self._setup_context: Callable[..., Any] | None = None

    @property
    def _namespace(self) -> str:
        return self.namespace

    @property
    def _name(self) -> str:
        return self._opname

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

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        function = self.op
        if function is self._implementations.get("Autograd"):
            return function(*args, **kwargs)
        return show_or_run(self, function, args, kwargs)

    # What can be registered, as for a CustomOpDef.

    @property
    def _qualname(self) -> str:
        return self.name()

    @property
    def overload_name(self) -> str:
        """The operator as messages call it."""
        return str(self)

    def run(self, args: Sequence[Any]) -> Any:
        """Call the implementation below autograd on all arguments of the schema."""
        assert self._signature is not None
        positional, keywords = split_arguments(self._signature, args)
        return show_or_run(self, self._first_of(_ORDER[2:]), positional, keywords)

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


class LibraryPacket(OpOverloadPacket):
    """An operator that a library defines."""

    overload_class = LibraryOverload


def make_library_operator(namespace: str, name: str, schema: str = "") -> LibraryOverload:
    """An operator without implementations; `schema` has its arguments and results."""
    schemas = {"default": parse_schema(schema or name, namespace)}
    made = LibraryPacket(namespace, name, schemas, lambda overload: overload.op).overload("default")
    assert isinstance(made, LibraryOverload)
    return made


_defined: dict[str, LibraryOverload] = {}
"""The operators of libraries, by their names with namespaces."""


def find_defined(name: str) -> LibraryOverload | None:
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
        operator = _defined.setdefault(f"{self.ns}::{name}", make_library_operator(self.ns, name, schema.strip()))
        operator._signature = operator._signature or signature_of(schema)
        return name

    def impl(
        self, op_name: Any, fn: Callable[..., Any], dispatch_key: str = "", *, with_keyset: bool = False,
        allow_override: bool = False,
    ) -> None:  # fmt: skip
        """Give an operator an implementation for a dispatch key."""
        name = str(op_name).rpartition("::")[2].partition(".")[0]
        if isinstance(op_name, (OpOverload, OpOverloadPacket)):
            name = str(op_name).split(".")[1]
        operator = _defined.setdefault(f"{self.ns}::{name}", make_library_operator(self.ns, name))
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
def _nameless(name: str) -> OpOverloadPacket:
    """An operator of ATen's that nothing here is: it can be named, compared and printed, but not called."""
    return OpOverloadPacket("aten", name, {}, implementation_of)


class _Namespace:
    """The operators of one namespace."""

    def __init__(self, name: str) -> None:
        self._namespace = self.name = name

    def __getattr__(self, name: str) -> Any:
        full_name = f"{self._namespace}::{name}"
        custom = find_custom_op(full_name)
        if custom is not None:
            return custom.overload.overloadpacket
        if full_name in _defined:
            return _defined[full_name].overloadpacket
        packet = declared.get(name) if self._namespace == "pullback" else None
        if self._namespace == "aten" and not name.startswith("__"):
            packet = aten(name)
            if packet is None and not is_provided_for(sys._getframe(1)):
                # See Note [Missing names]: an operator that is named is not yet used.
                packet = _nameless(name)
        if packet is None:
            raise AttributeError(f"'_OpNamespace' '{self._namespace}' object has no attribute '{name}'")
        return packet

    def __dir__(self) -> Iterator[str]:
        if self._namespace == "aten":
            return iter(aten_schemas())
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
