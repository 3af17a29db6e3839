"""Which functions can be overridden, and what they are called: the questions of `torch.overrides` about functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from pullback import functions
from pullback.facts import fact_of, names_with
from pullback.tensor.tensor import Tensor

# Methods that are written in Python, besides those of torch.functional, and name all arguments that have a default.
_METHODS_IN_PYTHON = ("backward", "module_load", "__array__", "__dlpack__", "__repr__", "__array_wrap__")
# Further methods that PyTorch has in Python: function modes are told the type of their tensor, as of all without parameters.
_TOLD_WITH_TYPE = frozenset(
    "__contains__ __deepcopy__ __floordiv__ __format__ __ipow__ __pow__ __rfloordiv__ __rlshift__ __rmatmul__ __rmod__ "
    "__rpow__ __rrshift__ __rsub__ __rtruediv__ dim_order index new new_tensor register_hook resize_as unflatten".split()
)
# Functions of torch that make tensors out of nothing, or ask about something else than tensors.
IGNORED = frozenset(
    "arange as_tensor asarray bartlett_window blackman_window broadcast_shapes can_cast compile empty empty_strided eye "
    "from_numpy frombuffer full hamming_window hann_window is_storage is_tensor kaiser_window linspace logspace manual_seed "
    "ones promote_types rand randint randn randperm range scalar_tensor sparse_coo_tensor tensor tril_indices triu_indices "
    "typename zeros".split()
)
# Of these, those of which function modes are not told.
UNTOLD = frozenset(
    "broadcast_shapes compile from_numpy frombuffer is_storage is_tensor manual_seed range typename".split()
)
_PREFIXED = ("torch.linalg", "torch.fft", "torch.special")
_NAMESPACES = ("torch", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special")
# Of torch.nn.init, those that arguments can override.
_FILLING = ("constant_", "kaiming_uniform_", "normal_", "uniform_")


@cache
def python_functions() -> frozenset[str]:
    """Functions that PyTorch has in Python: they name all arguments that have a default when they pass a call on."""
    names = import_module("pullback.nn.functional").__all__
    functional = [f"torch.nn.functional.{name}" for name in names if not is_built_in(name)]
    methods = [f"torch.Tensor.{name}" for name in (*_METHODS_IN_PYTHON, *_in_functional())]
    return frozenset(
        [*functional, *methods, *[f"torch.functional.{name}" for name in _in_functional()], "torch.lobpcg"]
    )


def _in_functional() -> list[str]:
    """Of torch, the functions that are written in Python: all but `lobpcg` are found in torch.functional."""
    return [name for name, place in names_with("written_in").items() if place == "functional"]


@cache
def is_told_with_type(member: Callable[..., Any], name: str) -> bool:
    """Whether function modes are told the type of the tensor whose member is called, though that is a plain one."""
    name = name.removeprefix("torch.Tensor.")
    if "." in name or not name or name in _TOLD_WITH_TYPE:  # a property has no parameters either
        return True
    return all(parameter == "out" for parameter in list(inspect.signature(member).parameters)[1:])


def is_python_method(name: str) -> bool:
    """Whether PyTorch has a method of several arguments, `torch.Tensor.__rsub__`, in Python."""
    return name.startswith("torch.Tensor.") and name.removeprefix("torch.Tensor.") in _TOLD_WITH_TYPE


def is_built_in(name: str) -> bool:
    """Whether a function of torch.nn.functional is a built-in one of PyTorch."""
    return name.endswith("_") or fact_of(name, "written_in") == "c"


class TensorMethod:
    """A method of Tensor, as `__torch_function__` is given it for an operator."""

    def __init__(self, function: Callable[..., Any], name: str = "") -> None:
        self.function = function
        self.__qualname__ = f"Tensor.{name or function.__name__}"
        is_named = function.__qualname__ == self.__qualname__  # as the operators are, some of which have another name
        self.__name__ = str(function.__name__ if is_named or not name else name)
        self.__signature__ = inspect.signature(function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return other is self.function or (isinstance(other, TensorMethod) and other.function is self.function)

    def __hash__(self) -> int:
        return hash(self.function)

    def __repr__(self) -> str:
        return f"<method '{self.__name__}' of 'torch._C.TensorBase' objects>"


def resolve_name(f: Any) -> str | None:
    """The public name of a function; None for one that cannot be overridden.

    >>> import pullback
    >>> resolve_name(pullback.add), resolve_name(pullback.nn.functional.relu), resolve_name(len)
    ('torch.add', 'torch.nn.functional.relu', None)
    """
    return f"torch.{f.__qualname__}" if isinstance(f, TensorMethod) else _resolved(f)


@cache
def _resolved(f: Any) -> str | None:
    name = getattr(f, "__name__", "")
    module = str(getattr(f, "__module__", "") or "")
    if not module.startswith("pullback"):
        return _name_of_getter(f)
    for namespace in _NAMESPACES:
        short = name.removeprefix(f"{namespace.rpartition('.')[2]}_") if namespace in _PREFIXED else name
        if _public(namespace, short) is f:
            return f"{_last_place(namespace, short, f)}.{short}"
    if module == "pullback.nn.init":
        return f"torch.nn.init.{name}" if name in _FILLING else None
    name = str(getattr(f, "__qualname__", "")).removeprefix("Tensor.")
    return f"torch.Tensor.{name}" if getattr(Tensor, name, None) is f else _name_of_getter(f)


def _last_place(namespace: str, name: str, f: Any) -> str:
    """The namespace that PyTorch names: of several that hold a function, the last one."""
    if namespace != "torch":
        return namespace
    if fact_of(name, "written_in") == "functional":
        return "torch.functional"
    is_shared = is_built_in(name) and getattr(import_module("pullback.nn.functional"), name, None) is f
    return "torch.nn.functional" if is_shared else "torch"


def _public(namespace: str, name: str) -> Any:
    if (
        namespace == "torch"
        and functions.module_of(name) is None
        and not hasattr(import_module("pullback.creation"), name)
    ):
        return None
    return getattr(import_module(namespace.replace("torch", "pullback", 1)), name, None)


def _name_of_getter(f: Any) -> str | None:
    """`torch.Tensor.grad.__get__` for the reader of a property."""
    owner = getattr(f, "__self__", None)
    if getattr(f, "__name__", "") not in ("__get__", "__set__") or owner is None:
        return None
    for name, value in inspect.getmembers_static(Tensor):
        if owner in (value, getattr(value, "member", None)):  # see Note [Asking members]
            return f"torch.Tensor.{name}.{f.__name__}"
    return None


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether `func` is a method of Tensor, or reads or writes one of its properties."""
    if isinstance(func, TensorMethod):
        return True
    name = getattr(func, "__name__", "")
    if name in ("__get__", "__set__", "__delete__"):
        return True
    found = resolve_name(func) or "torch.Tensor."
    return found.startswith("torch.Tensor.") and (found != "torch.Tensor." or getattr(Tensor, name, None) is func)


@cache
def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """The functions that arguments can override, by the namespace they are found in."""
    found: dict[Any, list[Callable[..., Any]]] = {}
    for namespace in _NAMESPACES:
        module = import_module(namespace.replace("torch", "pullback", 1))
        ignored = IGNORED if namespace == "torch" else frozenset()
        names = functions.public_names() if namespace == "torch" else dir(module)
        values = [getattr(module, n) for n in sorted(names) if n not in ignored and hasattr(module, n) and n[0] != "_"]
        found[module] = [v for v in values if callable(v) and not isinstance(v, type)]
    members = inspect.getmembers_static(Tensor)
    found[Tensor] = [v for n, v in members if callable(v) and not isinstance(v, (type, classmethod, staticmethod))]
    return found


@cache
def get_ignored_functions() -> set[Callable[..., Any]]:
    """Functions that cannot be overridden."""
    module = import_module("pullback")
    return {getattr(module, name) for name in IGNORED if hasattr(module, name)}


@cache
def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """For each function that can be overridden, one with its parameters that returns -1."""

    def answering(function: Callable[..., Any]) -> Callable[..., Any]:
        def answer(*args: Any, **kwargs: Any) -> int:
            return -1

        return answer

    return {f: answering(f) for found in get_overridable_functions().values() for f in found}
