"""Tensor subclasses and modes that take over operations: `__torch_function__` and `TorchFunctionMode`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable
from functools import cache, wraps
from importlib import import_module
from typing import Any

from pullback import functions
from pullback.errors import UnansweredError, is_pytorch_tensor, mixed_libraries
from pullback.functions import half_complex
from pullback.modes.call_site import as_written, method_called
from pullback.modes.guards import guarded
from pullback.modes.interception import set_override_handler
from pullback.modes.switches import process, set_switch, switches
from pullback.overrides.overridable_functions import (
    TensorMethod,
    get_ignored_functions,
    get_overridable_functions,
    get_testing_overrides,
    is_python_method,
    is_tensor_method_or_property,
    is_told_with_type,
    python_functions,
    resolve_name,
)
from pullback.overrides.overriding_classes import leave_members, take_over, told_method, watch_members
from pullback.tensor.foreign_arguments import all_plain, any_foreign
from pullback.tensor.tensor import Tensor, _disabled_torch_function_impl, attach_methods, new_tensor
from pullback.tensor.tensor_base import TensorBase, copy_state
from pullback.tensor.version_counter import VersionCounter

__all__ = [
    "BaseTorchFunctionMode", "TorchFunctionMode", "get_default_nowrap_functions", "get_ignored_functions",
    "get_overridable_functions", "get_testing_overrides", "handle_torch_function", "has_torch_function", "is_tensor_like",
    "is_tensor_method_or_property", "resolve_name", "wrap_torch_function",
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
    if all_plain(args) and (not kwargs or all_plain(kwargs.values())):
        return NotImplemented
    types = _overriding_types((*args, *kwargs.values()))
    if not types:
        return NotImplemented
    if any(not issubclass(found, Tensor) for found in types) or any_foreign((*args, *kwargs.values())):
        return _ask_foreign(function, args, kwargs)
    given = {k: v for k, v in kwargs.items() if v is not None}
    function = public_function(function)
    return _answer(function, types, args, given)


def _ask_foreign(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Offer an operation, under the name and with the arguments that its caller wrote, to foreign arguments."""
    method, operands = method_called() or ("", None)
    if operands is not None:
        return _ask_exactly(told_method("eq" if method == "__eq__" else method), operands, {})
    given = {k: v for k, v in kwargs.items() if v is not None}
    is_method = function.__name__.removeprefix("method_") == method
    public = function if is_method else public_function(function)
    # A method built of other operations is not what is asked about here, nor one with its arguments in another order.
    is_method = is_method or method == getattr(public, "__name__", "")
    told = told_method(method) if is_method else public
    return _ask_exactly(told, *as_written(public, args, given, bool(method)))


def _ask_exactly(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Offer a function to the overriding types among its arguments, foreign ones included."""
    if switches.overrides_disabled and not switches.function_modes:
        raise TypeError(f"{function.__name__}(): no argument may override operations here")
    name = resolve_name(function)
    if (
        name == "torch.functional.einsum"
        and not switches.function_modes
        and len(args) == 2
        and isinstance(args[1], (list, tuple))
    ):
        args = (args[0], *args[1])
    elif name in python_functions():
        args, kwargs = _required_first(function, args, kwargs)
        args, kwargs = _without_extras(name, args, kwargs)
    types = _overriding_types((*args, *kwargs.values()))
    return _answer(function, types, args, kwargs)


def _shown_types(function: Any, types: list[type], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[type, ...]:
    """The types that an overriding class is told: functions that PyTorch has in Python also tell of plain tensors."""
    name = resolve_name(function) or ""
    if Tensor in types or not (_is_in_python(function, name) or is_python_method(name)):
        return tuple(types)
    values: Iterable[Any] = (*args, *kwargs.values())
    given = [type(value) for value in (values if name else _leaves(values))]
    if Tensor not in given:
        return tuple(types)
    before = [
        cls for cls in types if issubclass(cls, Tensor) or (cls in given and given.index(cls) < given.index(Tensor))
    ]
    return (*before, Tensor, *[cls for cls in types if cls not in before])


def _is_in_python(function: Any, name: str) -> bool:
    """Whether PyTorch has a function, not a method, in Python."""
    return name in python_functions() or name.startswith("torch.nn.init.") or function.__name__ in ("grad", "backward")


def _without_extras(
    name: str | None, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What newer NumPy hands over to `__array__` and `__array_wrap__` is not told, unless it asks for something."""
    if name == "torch.Tensor.__array__" and kwargs.get("copy") is None:
        return args, {n: value for n, value in kwargs.items() if n != "copy"}
    if name == "torch.Tensor.__array_wrap__":
        return args[:1], {"array": args[1] if len(args) > 1 else kwargs["array"]}
    return args, kwargs


def _required_first(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments as the functions tell them that PyTorch has in Python: all of them, those with a default by name."""
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    parameters = bound.signature.parameters
    by_name = [n for n, p in parameters.items() if p.default is not p.empty or p.kind is p.KEYWORD_ONLY]
    by_name = [n for n in by_name if n != "split_size_or_sections"]  # required, under one of two names
    values = bound.arguments
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters.values()):
        return args, {**{n: values[n] for n in by_name if n not in _KEYWORDS_EVERYWHERE}, **kwargs}
    told = ("dtype",) if (resolve_name(function) or "").startswith("torch.Tensor") else ("dtype", "out")
    by_name = [n for n in by_name if n not in _KEYWORDS_EVERYWHERE or n in told]
    positional = [n for n in values if n not in by_name and n not in _KEYWORDS_EVERYWHERE]
    return tuple([values[n] for n in positional]), {n: values[n] for n in by_name}


def _answer(
    function: Any, types: list[type], args: tuple[Any, ...], kwargs: dict[str, Any], relevant: Iterable[Any] = ()
) -> Any:
    if switches.function_modes:
        result = _answer_of_mode(function, types, args, kwargs)
        if result is not NotImplemented:
            return result
    shown = _shown_types(function, types, args, kwargs)
    for value in _values_of(types, (*relevant, *args, *kwargs.values())):
        if is_pytorch_tensor(value):
            raise mixed_libraries(getattr(function, "__name__", str(function)))
        result = value.__torch_function__(function, shown, args, kwargs)
        if result is not NotImplemented:
            return result
    raise _nobody_answered(function, types)


def _nobody_answered(function: Any, types: list[type]) -> UnansweredError:
    """The error where every mode and class that was asked returned NotImplemented."""
    name = resolve_name(function) or function
    mode = switches.function_modes[-1] if switches.function_modes else None
    remedy = "For what it does not handle, a __torch_function__ returns func(*args, **kwargs)."
    if name in python_functions():
        also = "" if mode is None else f" nor in mode {mode}"
        words = f"no implementation found for '{name}' on types that implement __torch_function__: {types}{also}"
        return UnansweredError(f"{words}\n{remedy}")
    asked = [f"  - tensor subclass {cls}" for cls in types]
    if mode is not None:
        asked.insert(0, f"  - mode object {mode}")
    return UnansweredError(
        f"Multiple dispatch failed for '{name}'; all __torch_function__ handlers returned NotImplemented:\n\n"
        + "\n".join(asked)
        + f"\n\n{remedy}"
    )


def _answer_of_mode(function: Any, types: list[type], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the innermost function mode answers, which is off meanwhile."""
    modes = switches.function_modes
    shown = tuple(types or _plain_types(function, args, kwargs))
    set_switch("function_modes", modes[:-1])
    try:
        return modes[-1].__torch_function__(_asking_again(function, args), shown, args, kwargs)
    finally:
        set_switch("function_modes", modes)


def _plain_types(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[type]:
    """The types of plain tensors, which PyTorch tells of functions in Python and of methods without arguments."""
    name = resolve_name(function) or ""
    given: Iterable[Any] = (*args, *kwargs.values())
    if _is_in_python(function, name):
        given = given if name else _leaves(given)
        return list(dict.fromkeys(type(value) for value in given if type(value) is Tensor))
    if is_tensor_method_or_property(function) and is_told_with_type(function, name):
        return [type(args[0])]
    return []


def _asking_again(function: Any, args: tuple[Any, ...]) -> Any:
    """What a mode is handed for a function: a member of Tensor that somebody else is to be asked about must ask itself."""
    if not is_tensor_method_or_property(function) or not (switches.function_modes or any_foreign(args)):
        return function
    return _AskedAgain(function)


class _AskedAgain(TensorMethod):
    """A member of Tensor that asks the next mode, or the classes of its arguments, when it is called."""

    def __init__(self, told: Any) -> None:
        super().__init__(told.function if isinstance(told, TensorMethod) else told)
        self.told = told
        self.__qualname__ = (resolve_name(told) or told.__qualname__).removeprefix("torch.")
        self.__name__ = told.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if switches.function_modes or any_foreign(args):
            return _ask_exactly(self.told, args, kwargs)
        return self.function(*args, **kwargs)


def _values_of(types: list[type], values: Iterable[Any]) -> list[Any]:
    """An instance of each type: its method need not be a class method."""
    found: dict[type, Any] = {}
    stack = list(values)[::-1]
    while stack:
        value = stack.pop()
        if isinstance(value, (list, tuple)) and type(value) not in types:
            stack += value[::-1]
        elif type(value) in types:
            found.setdefault(type(value), value)
    return [found[cls] for cls in types]


@cache
def public_function(function: Any) -> Any:
    """The function users know an operation by: `torch.sum` for the operation `sum_all` that one of its forms became."""
    name = getattr(function, "__name__", "")
    if name.endswith("_"):  # an in-place form, which PyTorch has as a method only
        return function
    public = functions.public_names()
    while name and name not in public:
        name = name.rpartition("_")[0]
    if not name or functions.module_of(name) is None:
        return function
    known = resolve_name(function)
    if known is not None and not known.startswith("torch.Tensor."):  # a method's name, once the method has been used
        return function
    found = getattr(import_module("pullback"), name)
    return found if _takes_arguments_of(found, function) else function


def _takes_arguments_of(public: Any, function: Any) -> bool:
    """Whether the positional arguments of an operation mean the same to the public function (not so for `pow_base`)."""
    wanted = [name for name in inspect.signature(function).parameters if name not in _KEYWORDS_EVERYWHERE]
    parameters = inspect.signature(public).parameters
    if any(p.kind is p.VAR_POSITIONAL for p in parameters.values()):
        return True
    return [name for name in parameters if name not in _KEYWORDS_EVERYWHERE][: len(wanted)] == wanted


_KEYWORDS_EVERYWHERE = ("axis", "keepdims", "dtype", "out", "split_size", "generator")


class DisableTorchFunctionSubclass:
    """Operations inside of the block are not offered to subclasses."""

    def __enter__(self) -> None:
        self._former = switches.overrides_disabled
        switches.overrides_disabled = True

    def __exit__(self, *exception: object) -> None:
        switches.overrides_disabled = self._former


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """Operations inside of the block are offered neither to subclasses nor to function modes."""

    def __enter__(self) -> None:
        super().__enter__()
        self._modes = _set_function_modes(())

    def __exit__(self, *exception: object) -> None:
        _set_function_modes(self._modes)
        super().__exit__(*exception)


def _default_torch_function(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """What a subclass inherits: the operation itself, with results of the subclass."""
    if any(is_pytorch_tensor(value) for value in _leaves((*args, *(kwargs or {}).values()))):
        raise mixed_libraries(getattr(func, "__name__", str(func)))
    if _is_pytorch_function(func):
        raise TypeError(
            f"{getattr(func, '__name__', func)}(): argument 'input' must be torch.Tensor (of the installed PyTorch), not "
            "pullback.Tensor. Call pullback's function of that name, or convert the tensor."
        )
    if not all(issubclass(cls, t) for t in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        result = func(*args, **(kwargs or {}))
    if func in get_default_nowrap_functions():
        return result
    return _convert(result, cls)


def _leaves(values: Iterable[Any]) -> Iterable[Any]:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _leaves(value)
        else:
            yield value


def _is_pytorch_function(func: Any) -> bool:
    """Whether PyTorch asks about a function of its own: it would ask again, and so without end."""
    if type(func).__name__ in ("method_descriptor", "getset_descriptor"):
        return True
    is_of_torch = str(getattr(func, "__module__", "") or "").partition(".")[0] == "torch"
    return is_of_torch and sys.modules.get("torch") is not sys.modules["pullback"]


def _convert(result: Any, cls: type) -> Any:
    if cls is Tensor:
        return result
    if isinstance(result, Tensor) and not isinstance(result, cls):
        return functions.as_subclass(result, cls)
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(*[_convert(r, cls) for r in result])
    if isinstance(result, (tuple, list)):
        return type(result)(_convert(r, cls) for r in result)
    return result


def as_subclass(input: Tensor, cls: type) -> Any:
    """The same tensor, at the same place of the graph, as an instance of `cls`: for a tensor that nobody else has."""
    made: Any = TensorBase.__new__(cls)
    copy_state(input, made)
    return made


def make_subclass(cls: type, data: Tensor, require_grad: bool = False, **options: Any) -> Any:
    """A leaf of class `cls` that shares memory with `data`."""
    alias = new_tensor(data._array)  # not detach(), which a class may answer for
    if data._counter is None:
        data._counter = VersionCounter()
    alias._counter = data._counter
    return as_subclass(alias, cls).requires_grad_(require_grad)


def get_default_nowrap_functions() -> set[Any]:
    """Functions whose results are never converted to a subclass."""
    return {Tensor._base.__get__, Tensor.grad.__get__}


def _get_current_function_mode_stack() -> list[TorchFunctionMode]:
    """The function modes of this thread, innermost last."""
    return list(switches.function_modes)


def _get_current_function_mode() -> TorchFunctionMode | None:
    """The innermost function mode of this thread."""
    return switches.function_modes[-1] if switches.function_modes else None


def _len_torch_function_stack() -> int:
    """How many function modes there are in this thread."""
    return len(switches.function_modes)


def _set_function_modes(modes: tuple[TorchFunctionMode, ...]) -> tuple[TorchFunctionMode, ...]:
    """Set the function modes of this thread, and let the members of Tensor ask while there are any in some thread."""
    former: tuple[TorchFunctionMode, ...] = set_switch("function_modes", modes)
    if modes and not former:
        watch_members()
    elif not process.modes:
        leave_members()
    return former


class TorchFunctionMode:
    """A mode that is told every call of its user inside of a `with` block: functions, methods, operators, properties.

    >>> import pullback
    >>> class Count(TorchFunctionMode):
    ...     calls = 0
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         Count.calls += 1
    ...         return func(*args, **(kwargs or {}))
    >>> with Count():
    ...     _ = pullback.ones(2) * 2
    >>> Count.calls
    2
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    _depths: tuple[int, ...] = ()

    def __enter__(self) -> Any:
        depths, modes = self._depths, switches.function_modes
        try:
            self._depths = (*depths, len(modes))
            _set_function_modes((*modes, self))
        except BaseException:
            _set_function_modes(modes)
            self._depths = depths
            raise
        return self

    @guarded
    def __exit__(self, *exception: object) -> None:
        depths = self._depths
        _set_function_modes(switches.function_modes[: depths[-1]])
        self._depths = depths[:-1]


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether one of the arguments overrides operations."""
    if switches.function_modes:
        return True
    return not switches.overrides_disabled and bool(_overriding_types(relevant_args))


def has_torch_function_variadic(*args: Any) -> bool:
    """As `has_torch_function`, of the arguments themselves."""
    return has_torch_function(args)


has_torch_function_unary = has_torch_function_variadic


def handle_torch_function(public_api: Any, relevant_args: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
    """Let the overriding types among `relevant_args` answer for `public_api`."""
    relevant = tuple(relevant_args)
    return _answer(public_api, _overriding_types(relevant), args, kwargs, relevant)


def wrap_torch_function(dispatcher: Any) -> Any:
    """Decorate a function so that overriding arguments, which `dispatcher` names, answer for it."""

    def decorate(function: Any) -> Any:
        @wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return decorate


def is_tensor_like(inp: Any) -> bool:
    """Whether `inp` is a Tensor or overrides operations."""
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


set_override_handler(_ask, _ask_foreign, _ask_exactly, take_over)
attach_methods({"__torch_function__": classmethod(_default_torch_function)})
attach_methods({"_make_subclass": staticmethod(make_subclass)})
