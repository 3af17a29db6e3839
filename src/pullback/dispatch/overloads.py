"""`torch.ops.aten.add` and `torch.ops.aten.add.Tensor`: an operator, and one of its overloads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from pullback.dispatch.schemas import FunctionSchema, aten_schemas, parse_schema


class OpOverload:
    """One form of an operator, called like a function. There is one object per form, so `is` and `==` compare forms.

    >>> import pullback
    >>> pullback.ops.aten.mm.default
    <OpOverload(op='aten.mm', overload='default')>
    >>> pullback.ops.aten.add.Tensor.name(), str(pullback.ops.aten.add.Tensor)
    ('aten::add.Tensor', 'aten.add.Tensor')
    """

    def __init__(self, packet: OpOverloadPacket, overload: str, schema: FunctionSchema) -> None:
        self._packet = packet
        self._overloadname = overload
        self._schema = schema
        self._opname = packet.__name__
        self.__name__ = f"{packet.__name__}.{overload}"
        self.__qualname__ = self.name()
        self.__module__ = f"torch._ops.{packet.namespace}"
        self._run: Callable[..., Any] | None = None

    @property
    def namespace(self) -> str:
        """The name of the library it belongs to."""
        return self._packet.namespace

    @property
    def overloadpacket(self) -> OpOverloadPacket:
        """The operator this is one form of."""
        return self._packet

    @property
    def op(self) -> Callable[..., Any]:
        """The function that runs."""
        if self._run is None:
            self._run = self._packet.find(self)
        return self._run

    @property
    def is_view(self) -> bool:
        """Whether the result shares memory with an argument."""
        head, _, results = self._schema.text.rpartition(" -> ")
        return "(a)" in head and "(a)" in results

    @property
    def tags(self) -> list[Any]:
        """What PyTorch notes about the operator: nothing here."""
        return []

    def name(self) -> str:
        """Namespace, name and, unless it is the default one, the form."""
        short = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"{self._packet.namespace}::{self._opname}{short}"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.op(*args, **kwargs)

    def __reduce__(self) -> Any:
        return _find, (self.namespace, self._opname, self._overloadname)

    def __deepcopy__(self, memo: Any) -> OpOverload:
        return self

    def __str__(self) -> str:
        return f"{self._packet.namespace}.{self._opname}.{self._overloadname}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self._packet.namespace}.{self._opname}', overload='{self._overloadname}')>"


class OpOverloadPacket:
    """An operator with all its forms; a call takes the form that fits the arguments.

    >>> import pullback
    >>> pullback.ops.aten.mul
    <OpOverloadPacket(op='aten.mul')>
    >>> pullback.ops.aten.mul.overloads()
    ['Scalar', 'Tensor']
    """

    overload_class: type[OpOverload] = OpOverload

    def __init__(
        self,
        namespace: str,
        name: str,
        schemas: dict[str, FunctionSchema],
        find: Callable[[OpOverload], Callable[..., Any]],
    ) -> None:
        self.namespace, self.__name__ = namespace, name
        self._qualified_op_name = f"{namespace}::{name}"
        self.__module__ = f"torch._ops.{namespace}"
        self._schemas = schemas
        self._overloads: dict[str, OpOverload] = {}
        self.find = find

    def overloads(self) -> list[str]:
        """The names of its forms."""
        return list(self._schemas)

    def overload(self, name: str) -> OpOverload:
        """The form of this name."""
        found = self._overloads.get(name)
        if found is None:
            found = self._overloads[name] = self.overload_class(self, name, self._schema_of(name))
        return found

    def _schema_of(self, name: str) -> FunctionSchema:
        if name in self._schemas:
            return self._schemas[name]
        base = self._schemas.get("default" if name == "out" else name.removesuffix("_out")) or self._first()
        if name.endswith("out") and base is not None:
            return _with_out(base, self.__name__, name, self.namespace)
        if not self._schemas:
            return parse_schema(f"{self.__name__}" + ("" if name == "default" else f".{name}"), self.namespace)
        raise AttributeError(f"The underlying op of '{self}' has no overload name '{name}'")

    def _first(self) -> FunctionSchema | None:
        for name in ("Tensor", "default", *self._schemas):
            if name in self._schemas:
                return self._schemas[name]
        return None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self.overload(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.overloads())

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._schemas]

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        from pullback.dispatch.arguments import overload_for  # lazy: it builds on this module

        return overload_for(self, args, kwargs)(*args, **kwargs)

    def __reduce__(self) -> Any:
        return _find, (self.namespace, self.__name__)

    def __deepcopy__(self, memo: Any) -> OpOverloadPacket:
        return self

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self.namespace}.{self.__name__}')>"


def _with_out(schema: FunctionSchema, name: str, overload: str, namespace: str) -> FunctionSchema:
    """The form of an operator that writes into `out`."""
    head, _, results = schema.text.removeprefix(f"{namespace}::").rpartition(") -> ")
    arguments = head.partition("(")[2]
    star = "" if "*" in arguments else "*, "
    return parse_schema(
        f"{name}.{overload}({arguments}, {star}Tensor(a!) out) -> {results.replace('Tensor', 'Tensor(a!)')}", namespace
    )


def _find(namespace: str, name: str, overload: str | None = None) -> Any:
    from pullback.library import ops  # lazy: the namespaces are above this layer

    packet = getattr(getattr(ops, namespace), name)
    return packet if overload is None else getattr(packet, overload)


declared: dict[str, OpOverloadPacket] = {}
"""Operators of operations that users declare (extension.py), by name; their namespace is `pullback`."""


def declare_operator(name: str, schema: str, function: Callable[..., Any]) -> None:
    """Let dispatch modes see an operation as an operator of this name and schema."""
    schemas = {"default": parse_schema(schema, "pullback")}
    declared[name] = OpOverloadPacket("pullback", name, schemas, lambda overload: function)


@cache
def aten(name: str) -> OpOverloadPacket | None:
    """The ATen operator of this name, None if its schema is not known."""
    from pullback.dispatch.running import implementation_of  # lazy: it builds on this module

    schemas = aten_schemas().get(name)
    return None if schemas is None else OpOverloadPacket("aten", name, schemas, implementation_of)
