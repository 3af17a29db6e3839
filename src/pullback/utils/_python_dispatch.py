"""Modes and classes that see ATen's operations below autograd. PyTorch's `torch.utils._python_dispatch`.

See Note [Dispatch] in pullback/dispatch for how operations get there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from pullback.modes.guards import guarded
from pullback.modes.interception import push_dispatch_mode, set_dispatch_modes
from pullback.modes.switches import switches
from pullback.tensor.tensor import Tensor, _disabled_torch_dispatch_impl

__all__ = [
    "BaseTorchDispatchMode", "TorchDispatchMode", "is_traceable_wrapper_subclass", "is_traceable_wrapper_subclass_type",
    "return_and_correct_aliasing", "transform_subclass",
]  # fmt: skip


class TorchDispatchMode:
    """A mode that sees every ATen operation inside of a `with` block, those of backward passes included.

    While `__torch_dispatch__` runs, nothing is recorded and the mode is off: `func(*args, **kwargs)` goes to the mode
    around it, then to the classes of the arguments, then to the operation itself.

    >>> import pullback
    >>> class Show(TorchDispatchMode):
    ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
    ...         print(func)
    ...         return func(*args, **(kwargs or {}))
    >>> x = pullback.ones(2, 2, requires_grad=True)
    >>> with Show():
    ...     y = (x @ x).tanh()
    aten.mm.default
    aten.tanh.default
    aten.detach.default
    """

    _outer: tuple[tuple[Any, ...], ...] = ()

    def __init__(self, _dispatch_key: Any = None) -> None:
        pass

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define __torch_dispatch__")

    def _see_data(self, tensor: Any) -> None:
        """Hear of a tensor that is made of Python's values, or of memory that others own."""

    def __enter__(self) -> Any:
        outer, modes = self._outer, switches.dispatch_modes
        try:
            self._outer = (*outer, modes)
            push_dispatch_mode(self)
        except BaseException:
            set_dispatch_modes(modes)
            self._outer = outer
            raise
        return self

    @guarded
    def __exit__(self, *exception: object) -> None:
        outer = self._outer
        set_dispatch_modes(outer[-1])
        self._outer = outer[:-1]

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """Make a mode: an older way of writing `cls(...)`."""
        return cls(*args, **kwargs)

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Whether the mode belongs to PyTorch's own machinery."""
        return False


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that changes nothing."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_dispatch_mode() -> Any:
    """The innermost mode, None outside of all."""
    return switches.dispatch_modes[-1] if switches.dispatch_modes else None


def _get_current_dispatch_mode_stack() -> list[Any]:
    """The modes around, the innermost last."""
    return list(switches.dispatch_modes)


def _len_torch_dispatch_stack() -> int:
    return len(switches.dispatch_modes)


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether a mode is on."""
    return bool(switches.dispatch_modes)


def _push_mode(mode: Any) -> None:
    push_dispatch_mode(mode)


def _pop_mode(k: Any = None) -> Any:
    mode = switches.dispatch_modes[-1]
    set_dispatch_modes(switches.dispatch_modes[:-1])
    return mode


@contextlib.contextmanager
def _pop_mode_temporarily(k: Any = None) -> Iterator[Any]:
    """Switch the innermost mode off for the length of a block."""
    mode = _pop_mode()
    try:
        yield mode
    finally:
        _push_mode(mode)


@contextlib.contextmanager
def _disable_current_modes() -> Iterator[list[Any]]:
    """Switch all modes off for the length of a block."""
    former = set_dispatch_modes(())
    try:
        yield list(former)
    finally:
        set_dispatch_modes(former)


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Whether a class is a Tensor that says which tensors it holds: `__tensor_flatten__` and `__tensor_unflatten__`."""
    return (
        issubclass(t, Tensor)
        and t is not Tensor
        and getattr(t, "__torch_dispatch__", None) is not _disabled_torch_dispatch_impl
        and hasattr(t, "__tensor_flatten__")
        and hasattr(t, "__tensor_unflatten__")
    )


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Whether an object is an instance of such a class."""
    return is_traceable_wrapper_subclass_type(type(t))


def transform_subclass(
    t: Any, callback: Callable[[str, Any], Any], outer_size: Any = None, outer_stride: Any = None
) -> Any:
    """Make a wrapper anew around what `callback(attribute, inner)` makes of its inner tensors."""
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    size = t.size() if outer_size is None else outer_size
    stride = t.stride() if outer_stride is None else outer_stride
    made = type(t).__tensor_unflatten__(inner, context, size, stride)
    if made.shape != size:
        raise AssertionError(
            f"Expected return value from {type(t)}__tensor_unflatten__() to have shape equal to {size}, but got: "
            f"{made.shape}"
        )
    return made


def return_and_correct_aliasing(func: Any, args: Any, kwargs: Any, out: Any) -> Any:
    """What a wrapper's `__torch_dispatch__` returns: an operation in place gives back the very object it wrote to."""
    schema = func._schema
    if not schema.is_mutable:
        return out
    written = [
        args[i] if i < len(args) else (kwargs or {}).get(a.name) for i, a in enumerate(schema.arguments) if a.is_write
    ]
    if not schema.returns:
        return out
    return written[0] if len(written) == 1 else tuple(written)
