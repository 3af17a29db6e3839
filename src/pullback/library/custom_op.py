"""Operators of the user's own with a name: `custom_op`, and what can be registered for them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pullback.autograd.function import Function
from pullback.dispatch.calling import show_or_run
from pullback.dispatch.overloads import OpOverloadPacket
from pullback.dispatch.schemas import parse_schema
from pullback.graph.history import bump_version
from pullback.modes.grad_mode import set_grad_mode
from pullback.tensor.tensor import Tensor

__all__ = ["CustomOpDef", "custom_op", "triton_op", "wrap_triton"]

_operators: dict[str, CustomOpDef] = {}
"""The custom operators by their names with namespaces."""


class Registering:
    """What can be registered for an operator in the same words, however it was defined."""

    _vmap: Callable[..., Any] | None = None

    def register_vmap(self, func: Callable[..., Any] | None = None) -> Any:
        """Give the operator a function that computes a batch at once."""
        if func is None:
            return self.register_vmap
        self._vmap = func
        return func

    def register_kernel(self, device_types: Any, fn: Callable[..., Any] | None = None, /) -> Any:
        """Give the operator an implementation for device types."""
        types = (device_types,) if isinstance(device_types, str) or device_types is None else tuple(device_types)

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            for device_type in types:
                self._set_kernel(device_type, function)
            return function

        return register if fn is None else register(fn)

    def _set_kernel(self, device_type: str | None, function: Callable[..., Any]) -> None:
        raise NotImplementedError


class CustomOpDef(Registering):
    """A custom operator: calling it runs its implementation and records one node.

    >>> import pullback
    >>> @custom_op("doc::double", mutates_args=())
    ... def double(x: pullback.Tensor) -> pullback.Tensor:
    ...     return x * 2
    >>> double.register_autograd(lambda ctx, grad: grad * 2)
    >>> x = pullback.ones(1, requires_grad=True)
    >>> double(x).backward()
    >>> x.grad
    tensor([2.])
    """

    def __init__(self, name: str, function: Callable[..., Any], mutates_args: Iterable[str]) -> None:
        namespace, separator, short = name.partition("::")
        if not separator or not namespace or not short:
            raise ValueError(f"custom_op: the name must be 'namespace::name', but got {name!r}")
        self._namespace, self._name = namespace, short
        self._implementation = function
        self._signature = inspect.signature(function)
        self._mutated = tuple(self._signature.parameters) if mutates_args == "unknown" else tuple(mutates_args)
        self._backward: Callable[..., Any] | None = None
        self._setup_context: Callable[..., Any] | None = None
        self._fake: Callable[..., Any] | None = None
        self._kernels: dict[str | None, Callable[..., Any]] = {}
        self._function = make_function(self)
        schemas = {"default": parse_schema(f"{short}{_schema_of(self._signature, self._mutated)}", namespace)}
        self.overload = OpOverloadPacket(namespace, short, schemas, lambda overload: self).overload("default")
        """The operator as `torch.ops` and dispatch modes show it."""
        _operators[name] = self

    @property
    def _qualname(self) -> str:
        return f"{self._namespace}::{self._name}"

    @property
    def overload_name(self) -> str:
        """The operator as messages call it."""
        return f"{self._namespace}.{self._name}.default"

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return self._function.apply(*bound.args, *bound.kwargs.values())

    def run(self, args: Sequence[Any]) -> Any:
        """Call the implementation, and count the modification of what it says it mutates."""
        names = list(self._signature.parameters)
        kernel = self._kernels.get("cpu") or self._kernels.get(None) or self._implementation
        positional, keywords = split_arguments(self._signature, args)
        result = show_or_run(self.overload, kernel, positional, keywords)
        for name, value in zip(names, args, strict=True):
            if name in self._mutated and isinstance(value, Tensor):
                bump_version(value)
        for output in result if isinstance(result, tuple) else (result,):
            if isinstance(output, Tensor) and any(output is a or _shares(output, a) for a in args):
                raise RuntimeError(
                    f"{self._qualname}: The output of this custom operator must not also be an input to this custom "
                    "operator and may not alias any inputs to this custom operator or other returns. Return a clone()."
                )
        return result

    # What can be registered.

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Give the operator a backward, and a function that saves what it needs."""
        self._backward, self._setup_context = backward, setup_context

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Give the operator a function that only makes the outputs' shapes; kept for tools that ask."""
        self._fake = fn
        return fn

    def _set_kernel(self, device_type: str | None, function: Callable[..., Any]) -> None:
        self._kernels[device_type] = function

    def register_autocast(self, device_type: str, cast_inputs: Any, /) -> None:
        """Run the operator on inputs of a given dtype inside of autocast."""
        from pullback.amp.autocast_mode import _cast, is_autocast_enabled  # lazy: only autocast needs it

        inner = self._implementation

        def cast_first(*args: Any, **kwargs: Any) -> Any:
            if not is_autocast_enabled(device_type):
                return inner(*args, **kwargs)
            return inner(*[_cast(a, cast_inputs) for a in args], **kwargs)

        self._implementation = cast_first


def _schema_of(signature: inspect.Signature, mutated: tuple[str, ...]) -> str:
    """The arguments and results of a Python function in the notation of schemas, as far as annotations tell."""
    parts: list[str] = []
    for name, parameter in signature.parameters.items():
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        if parameter.annotation is parameter.empty:
            raise _unannotated(f"Parameter {name} must have a type annotation.", signature)
        kind = _kind_of(parameter.annotation)
        kind = kind.replace("Tensor", "Tensor(a!)") if name in mutated else kind
        default = "" if parameter.default is parameter.empty else f"={parameter.default!r}"
        parts.append(f"{kind} {name}{default}")
    result = signature.return_annotation
    if result is signature.empty:
        raise _unannotated("No return type annotation was provided. Please add one.", signature)
    return f"({', '.join(parts)}) -> {'()' if result in (None, 'None') else _kind_of(result)}"


def _unannotated(what: str, signature: inspect.Signature) -> ValueError:
    return ValueError(f"infer_schema(func): {what} Got func with signature {signature})")


def _kind_of(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    kinds = {"int": "SymInt", "float": "float", "bool": "bool", "str": "str"}
    return kinds.get(text.rpartition(".")[2], "Tensor")


def split_arguments(signature: inspect.Signature, args: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Tell positional arguments from those that go by keyword, given all in the order of the signature."""
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    for value, parameter in zip(args, signature.parameters.values(), strict=True):
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            keywords[parameter.name] = value
        else:
            positional.append(value)
    return tuple(positional), keywords


def _count_keywords(signature: inspect.Signature) -> int:
    """How many arguments go by keyword only; they have no gradients."""
    return sum(p.kind is inspect.Parameter.KEYWORD_ONLY for p in signature.parameters.values())


def _shares(output: Tensor, value: Any) -> bool:
    return isinstance(value, Tensor) and output._array is value._array


def make_function(operator: Any) -> Any:
    """The Function that records an operator, a CustomOpDef or one of a Library, under the name PyTorch shows."""

    class Generated(Function):
        """Runs the operator and calls what was registered for it."""

        @staticmethod
        def forward(*args: Any) -> Any:
            return operator.run(args)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            if operator._setup_context is not None:
                positional, keywords = split_arguments(operator._signature, inputs)
                named = {"keyword_only_inputs": keywords} if keywords else {}
                former = set_grad_mode(True)
                try:
                    operator._setup_context(ctx, positional, output=output, **named)
                finally:
                    set_grad_mode(former)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            if operator._backward is None:
                raise RuntimeError(
                    f"Trying to backward through {operator.overload_name} but no autograd formula was registered. Please "
                    "use register_autograd to add one."
                )
            grads = operator._backward(ctx, *grads)
            grads = grads if isinstance(grads, tuple) else (grads,)
            return *grads, *[None] * _count_keywords(operator._signature)

        @staticmethod
        def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
            if operator._vmap is None:
                raise NotImplementedError(f"{operator._qualname} has no batching rule: use register_vmap to add one")
            return operator._vmap(info, in_dims, *args)

    name = f"GeneratedBackwardFor_{operator._namespace}_{operator._name}_default"
    Generated.__name__ = Generated.__qualname__ = name
    Generated._backward_cls.__name__ = Generated._backward_cls.__qualname__ = f"{name}Backward"
    return Generated


def custom_op(
    name: str, fn: Callable[..., Any] | None = None, /, *, mutates_args: Any, device_types: Any = None,
    schema: str | None = None, tags: Any = None,
) -> Any:  # fmt: skip
    """Make a function a named operator; also a decorator."""

    def make(function: Callable[..., Any]) -> CustomOpDef:
        return CustomOpDef(name, function, mutates_args)

    return make if fn is None else make(fn)


triton_op = custom_op


def wrap_triton(kernel: Any, /) -> Any:
    """Not available: there is no Triton here."""
    raise NotImplementedError("wrap_triton needs Triton and a GPU")


def find_custom_op(name: str) -> CustomOpDef | None:
    """The operator of this name with its namespace, if `custom_op` made one."""
    return _operators.get(name)
