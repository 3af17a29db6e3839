"""Tensor subclasses and modes that take over operations: `__torch_function__` and `TorchFunctionMode`."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from functools import cache
from typing import Any

from pullback import functions
from pullback.functions import half_complex
from pullback.modes.interception import overrides, pop_interceptor, push_interceptor, set_override_handler
from pullback.modes.switches import switches
from pullback.tensor.tensor import Tensor, _disabled_torch_function_impl, attach_methods
from pullback.tensor.tensor_base import TensorBase, copy_state

__all__ = [
    "BaseTorchFunctionMode", "TorchFunctionMode", "get_default_nowrap_functions", "handle_torch_function",
    "has_torch_function", "is_tensor_like", "is_tensor_method_or_property", "resolve_name", "wrap_torch_function",
]  # fmt: skip


def _overriding_types(values: Iterable[Any]) -> list[type]:
    """The types among `values` that override operations, subclasses before their bases."""
    found: list[type] = []
    for value in values:
        if isinstance(value, (list, tuple)):
            candidates = _overriding_types(value)
        else:
            cls = type(value)
            if cls is Tensor or not hasattr(cls, "__torch_function__"):
                continue
            candidates = [] if cls.__torch_function__ is _disabled_torch_function_impl else [cls]
        for candidate in candidates:
            if candidate not in found:
                position = next((i for i, known in enumerate(found) if issubclass(candidate, known)), len(found))
                found.insert(position, candidate)
    return found


def _ask(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Offer an operation to the overriding types among its arguments; NotImplemented if there are none."""
    if switches.overrides_disabled:
        return NotImplemented
    if half_complex.concerns(args, kwargs):
        with DisableTorchFunctionSubclass():
            return half_complex.operate(function, args, kwargs)
    types = _overriding_types((*args, *kwargs.values()))
    if not types:
        return NotImplemented
    given = {k: v for k, v in kwargs.items() if v is not None}
    function = public_function(function)
    for cls in types:
        result = cls.__torch_function__(function, tuple(types), args, given)  # type: ignore[attr-defined]
        if result is not NotImplemented:
            return result
    raise TypeError(
        f"no implementation found for 'torch.{getattr(function, '__name__', function)}' on types that implement "
        f"__torch_function__: {types}"
    )


@cache
def public_function(function: Any) -> Any:
    """The function users know an operation by: `torch.sum` for the operation `sum_all` that one of its forms became."""
    name = getattr(function, "__name__", "")
    if name.endswith("_"):  # an in-place form, which PyTorch has as a method only
        return function
    public = functions.public_names()
    while name and name not in public:
        name = name.rpartition("_")[0]
    if not name or name == getattr(function, "__name__", "") or functions.module_of(name) is None:
        return function
    found = getattr(functions, name)
    return found if _takes_arguments_of(found, function) else function


def _takes_arguments_of(public: Any, function: Any) -> bool:
    """Whether the positional arguments of an operation mean the same to the public function (not so for `pow_base`)."""
    wanted = [name for name in inspect.signature(function).parameters if name not in _KEYWORDS_EVERYWHERE]
    parameters = inspect.signature(public).parameters
    if any(p.kind is p.VAR_POSITIONAL for p in parameters.values()):
        return True
    return [name for name in parameters if name not in _KEYWORDS_EVERYWHERE][: len(wanted)] == wanted


_KEYWORDS_EVERYWHERE = ("axis", "keepdims", "dtype", "out")


class DisableTorchFunctionSubclass:
    """Operations inside of the block are not offered to subclasses."""

    def __enter__(self) -> None:
        self._former = switches.overrides_disabled
        switches.overrides_disabled = True

    def __exit__(self, *exception: object) -> None:
        switches.overrides_disabled = self._former


def _default_torch_function(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """What a subclass inherits: the operation itself, with results of the subclass."""
    if not all(issubclass(cls, t) for t in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        result = func(*args, **(kwargs or {}))
    if func in get_default_nowrap_functions():
        return result
    return _convert(result, cls)


def _convert(result: Any, cls: type) -> Any:
    if cls is Tensor:
        return result
    if isinstance(result, Tensor) and not isinstance(result, cls):
        return as_subclass(result, cls)
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(*[_convert(r, cls) for r in result])
    if isinstance(result, (tuple, list)):
        return type(result)(_convert(r, cls) for r in result)
    return result


def as_subclass(input: Tensor, cls: type) -> Any:
    """The same tensor, at the same place of the graph, as an instance of `cls`."""
    made: Any = TensorBase.__new__(cls)
    copy_state(input, made)
    return made


def get_default_nowrap_functions() -> set[Any]:
    """Functions whose results are never converted to a subclass."""
    return set()


class TorchFunctionMode:
    """A mode that sees every operation inside of a `with` block.

    >>> import pullback
    >>> class Count(TorchFunctionMode):
    ...     calls = 0
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         Count.calls += 1
    ...         return func(*args, **(kwargs or {}))
    >>> with Count():
    ...     _ = pullback.ones(2) * 2
    >>> Count.calls
    1
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Any:
        def interceptor(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            given = {k: v for k, v in kwargs.items() if v is not None}
            function = public_function(function)
            return self.__torch_function__(function, tuple(_overriding_types(args)), args, given)

        push_interceptor(interceptor)
        return self

    def __exit__(self, *exception: object) -> None:
        pop_interceptor()


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether one of the arguments overrides operations."""
    return bool(overrides.types) and bool(_overriding_types(relevant_args))


has_torch_function_unary = has_torch_function_variadic = lambda *args: has_torch_function(args)


def handle_torch_function(public_api: Any, relevant_args: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
    """Let the overriding types among `relevant_args` answer for `public_api`."""
    return _ask(public_api, args, kwargs)


def wrap_torch_function(dispatcher: Any) -> Any:
    """Decorate a function so that overriding arguments, which `dispatcher` names, answer for it."""

    def decorate(function: Any) -> Any:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            if has_torch_function(dispatcher(*args, **kwargs)):
                return handle_torch_function(wrapped, dispatcher(*args, **kwargs), *args, **kwargs)
            return function(*args, **kwargs)

        wrapped.__name__ = function.__name__
        return wrapped

    return decorate


def is_tensor_like(inp: Any) -> bool:
    """Whether `inp` is a Tensor or overrides operations."""
    return isinstance(inp, Tensor) or hasattr(type(inp), "__torch_function__")


def is_tensor_method_or_property(func: Any) -> bool:
    """Whether `func` is a method of Tensor."""
    return getattr(Tensor, getattr(func, "__name__", ""), None) is func or getattr(func, "__name__", "") == "__get__"


def resolve_name(f: Any) -> str | None:
    """The public name of a function."""
    return f"torch.{f.__name__}" if hasattr(f, "__name__") else None


set_override_handler(_ask)
attach_methods({"__torch_function__": classmethod(_default_torch_function), "as_subclass": as_subclass})
