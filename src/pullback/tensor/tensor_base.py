"""TensorBase: the state that autograd keeps in a tensor, apart from `Tensor` so that it can be compiled.

# Note [Compiled classes]
Classes named in tools/native_sources.py become extension types where pullback is compiled: their annotated attributes
are then fields of a C struct. So they are declared with a type and a default, set on instances only, and not overridden
by a subclass at class level; an instance is made by `new(cls)`, which serves both forms (in compiled operations it is
`TensorBase.__new__(cls)`, which Cython knows; elsewhere native/tensors.c takes half the time of that). Python classes
derived from them stay open: users set attributes on tensors, and on the `ctx` of their Functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pullback.native import extension
from pullback.tensor.autograd_extra import AutogradExtra
from pullback.tensor.version_counter import VersionCounter
from pullback.typing import Array

_Kind = TypeVar("_Kind")


class TensorBase:
    """The state of a tensor; `Tensor` adds what users may extend."""

    _array: Array
    _requires_grad: bool = False
    _edge: tuple[Any, int] | None = None
    _counter: VersionCounter | None = None
    _grad: Any = None
    _accumulator: Any = None
    _extra: AutogradExtra | None = None
    _made_in: Any = None


def _bound_new() -> Any:
    """The function of native/tensors.c; None where it was not built."""
    if not hasattr(extension, "bind_tensor_base"):
        return None
    extension.bind_tensor_base(TensorBase)
    return extension.new_instance


new: Callable[[type[_Kind]], _Kind] = _bound_new() or TensorBase.__new__
"""A tensor of the class without any state. See Note [Compiled classes]."""

STATE = ("_array", "_requires_grad", "_edge", "_counter", "_grad", "_accumulator", "_extra", "_made_in")


def copy_state(source: TensorBase, target: TensorBase) -> None:
    """Give `target` the state of `source`: the same memory, the same history."""
    for name in STATE:
        setattr(target, name, getattr(source, name))
