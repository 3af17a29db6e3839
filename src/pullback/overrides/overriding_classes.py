"""Methods, operators and properties of Tensor subclasses that override operations: they ask the class as they are called.

# Note [Overriding classes]
`__torch_function__` of a subclass is asked about the call that its user wrote: `Tensor.__getitem__`, not the `select` that
indexing comes down to. Plain tensors must not pay for the question, so the members that ask are put on the subclass
itself, when it is made; those that it defines or inherits from a mixin stay. What the package calls on its way is not
asked about. Public functions ask where they look for foreign arguments: see Note [Foreign arguments].

A class with `_sees_operations = True` is asked about the operations instead: MaskedTensor and quantized tensors know
them, and not the functions that are built of them. So are all classes while an interceptor sees operations before they do.

# Note [Asking members]
Function modes are told of the members of plain tensors too (see Note [Function modes]). So while there is a mode in any
thread, descriptors stand on Tensor in the place of its members. Read from an instance by somebody outside of the package,
a descriptor asks; read from the class, it is the member itself: `torch.Tensor.add` stays the object that handlers know.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

from pullback.errors import UnansweredError
from pullback.modes.call_site import is_operator
from pullback.modes.function_modes import is_outside
from pullback.modes.interception import overrides
from pullback.modes.switches import process, switches
from pullback.overrides.overridable_functions import TensorMethod, resolve_name
from pullback.tensor.foreign_arguments import is_asked_whole
from pullback.tensor.tensor import Tensor, _disabled_torch_function_impl

_UNASKED = frozenset(
    "__new__ __init__ __init_subclass__ __class__ __dict__ __doc__ __hash__ __module__ __weakref__ __torch_function__ "
    "__torch_dispatch__ __delitem__ __getattr__ __setattr__ as_subclass".split()
)
_ASKED_PRIVATE = ("_base", "_version")

_TOLD_AS = {
    "__add__": "add", "__radd__": "add", "__sub__": "sub", "__mul__": "mul", "__rmul__": "mul", "__truediv__": "div",
    "__mod__": "remainder", "__matmul__": "matmul", "__rand__": "bitwise_and", "__ror__": "bitwise_or",
    "__rxor__": "bitwise_xor", "__lt__": "lt", "__le__": "le", "__gt__": "gt", "__ge__": "ge", "__ne__": "ne",
    "__iadd__": "add_", "__isub__": "sub_", "__imul__": "mul_", "__itruediv__": "div_", "__ifloordiv__": "floor_divide_",
    "__imod__": "remainder_", "__neg__": "neg", "__pos__": "positive", "__abs__": "abs", "__div__": "div",
    "__idiv__": "div_", "__rdiv__": "__rtruediv__", "__str__": "__repr__", "ndimension": "dim", "nelement": "numel",
}  # fmt: skip
"""Operators that are other methods by another name."""

_BINARY = frozenset(
    [
        f"__{p}{n}__"
        for n in "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()
        for p in ("", "r")
    ]
    + ["__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"]
)
_IN_PLACE = frozenset([f"__i{n}__" for n in "add sub mul truediv floordiv mod pow and or xor lshift rshift".split()])


def take_over(cls: type) -> None:
    """Let the members that a class inherits from Tensor ask it, if it overrides operations."""
    asked: Any = getattr(cls, "__torch_function__", None)
    if asked is _disabled_torch_function_impl or getattr(cls, "_sees_operations", False):
        return
    overrides.whole.add(cls)
    for name, found in _asked_members():
        if inspect.getattr_static(cls, name, None) is not found:
            continue
        member = found.member if isinstance(found, AskingMember) else found
        if isinstance(member, property):
            setattr(cls, name, _asking_property(name, member))
        elif name == "__iter__":
            setattr(cls, name, _named(_asking_iteration, name))
        elif callable(member) and not isinstance(member, (type, classmethod, staticmethod)):
            setattr(cls, name, _asking_operator(name) if name in _BINARY else _asking_method(name))


def _asked_members() -> list[tuple[str, Any]]:
    """The members of Tensor that are asked about, by name."""
    return [
        (name, member)
        for name, member in vars(Tensor).items()
        if name not in _UNASKED and (name[0] != "_" or name[:2] == "__" or name in _ASKED_PRIVATE)
    ]


def _is_asked(tensor: Any) -> bool:
    """Whether a call of a member is to be asked about: not that of the package itself, but for its modules."""
    if not (is_asked_whole(tensor) or (process.modes and switches.function_modes)):
        return False
    return is_outside(sys._getframe(2))


def told_method(name: str) -> Any:
    """The method that is handed over for the one of that name."""
    name = _TOLD_AS.get(name, name)
    function = getattr(Tensor, name)
    return function if resolve_name(function) == f"torch.Tensor.{name}" else TensorMethod(function, name)


def _ask(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
    assert overrides.ask_exactly is not None
    return overrides.ask_exactly(function, args, kwargs or {})


def _asking_method(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _is_asked(self):
            try:
                return _ask(told_method(name), (self, *args), kwargs)
            except UnansweredError:
                if name in _IN_PLACE:
                    return NotImplemented
                raise
        return getattr(Tensor, name)(self, *args, **kwargs)

    return _named(method, name)


def _asking_operator(name: str) -> Callable[[Any, Any], Any]:
    """A reflected operator of a tensor and an instance comes before the tensor's own, which it stands for."""
    forward = f"__{name[3:]}" if name.startswith("__r") and name != "__rshift__" else ""

    def operator(self: Any, other: Any) -> Any:
        if not _is_asked(self):
            return getattr(Tensor, name)(self, other)
        try:
            if forward and isinstance(other, Tensor) and is_operator():
                return _ask(told_method(forward), (other, self))
            return _ask(told_method(name), (self, other))
        except UnansweredError:
            return NotImplemented
        except TypeError:
            if isinstance(other, (Tensor, int, float, complex)):
                raise
            return getattr(Tensor, name)(self, other)

    return _named(operator, name)


def _asking_iteration(self: Any) -> Any:
    """Iteration is not a call of its own in PyTorch: it asks for the number of dimensions and for the rows."""
    if not _is_asked(self):
        return Tensor.__iter__(self)
    if _ask(told_method("dim"), (self,)) == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(_ask(told_method("unbind"), (self, 0)))


def _named(made: Any, name: str) -> Any:
    made.__name__, made.__qualname__ = name, f"Tensor.{name}"
    made.is_asking = True  # not written by the class itself
    return made


def _asking_property(name: str, member: Any) -> property:
    is_part = name in ("real", "imag")  # PyTorch writes them without a question

    def read(self: Any) -> Any:
        return _ask(member.__get__, (self,)) if _is_asked(self) else member.__get__(self)

    def write(self: Any, value: Any) -> None:
        if _is_asked(self) and not is_part:
            _ask(member.__set__, (self, value))
        else:
            member.__set__(self, value)

    def remove(self: Any) -> None:
        if _is_asked(self):
            _ask(member.__delete__, (self,))
        else:
            member.__delete__(self)

    return property(read, write, remove, member.__doc__)


class AskingMember:
    """Stands for a method of Tensor while there are function modes. See Note [Asking members]."""

    def __init__(self, name: str, member: Any, asking: Any) -> None:
        self.name, self.member, self.asking = name, member, asking

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None or not switches.function_modes or not is_outside(sys._getframe(1)):
            return self._plain(instance, owner)
        return self.asking.__get__(instance, owner)

    def _plain(self, instance: Any, owner: Any) -> Any:
        found = self.member.__get__(instance, owner) if hasattr(self.member, "__get__") else self.member
        standing = vars(Tensor)[self.name]
        if standing is not self and not isinstance(standing, AskingMember):  # a stub has put its function there
            self.member = standing
            setattr(Tensor, self.name, self)
        return found


class AskingProperty(AskingMember):
    """As AskingMember, for what is read, written and deleted."""

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None or not switches.function_modes or not is_outside(sys._getframe(1)):
            return self.member.__get__(instance, owner)
        return _ask(self.member.__get__, (instance,))

    def __set__(self, instance: Any, value: Any) -> None:
        if switches.function_modes and is_outside(sys._getframe(1)) and self.name not in ("real", "imag"):
            _ask(self.member.__set__, (instance, value))
        else:
            self.member.__set__(instance, value)

    def __delete__(self, instance: Any) -> None:
        if switches.function_modes and is_outside(sys._getframe(1)):
            _ask(self.member.__delete__, (instance,))
        else:
            self.member.__delete__(instance)


_watching: dict[str, AskingMember] = {}
"""The descriptors that stood on Tensor before, by the names of their members."""


def watch_members() -> None:
    """Let the members of Tensor ask function modes, while there are any."""
    for name, member in _asked_members():
        if isinstance(member, AskingMember) or name == "__reduce_ex__":  # PyTorch asks classes alone about it
            continue
        found = _watching.get(name)
        if found is None or found.member is not member:
            found = _watching[name] = _descriptor_of(name, member)
        if found.asking is not None:
            setattr(Tensor, name, found)


def _descriptor_of(name: str, member: Any) -> AskingMember:
    if isinstance(member, property):
        return AskingProperty(name, member, member)
    if name == "__iter__":
        return AskingMember(name, member, _asking_iteration)
    if callable(member) and not isinstance(member, (type, classmethod, staticmethod)):
        return AskingMember(name, member, _asking_operator(name) if name in _BINARY else _asking_method(name))
    return AskingMember(name, member, None)  # of which nobody is asked


def leave_members() -> None:
    """Put the members of Tensor back, when there are no function modes any more."""
    for name, found in _watching.items():
        if vars(Tensor).get(name) is found:
            setattr(Tensor, name, found.member)
