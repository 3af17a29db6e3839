"""Context managers and decorators that switch recording on and off."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Self, TypeVar, cast

from pullback.backend.naming import display_namespace
from pullback.errors import wrong_type
from pullback.modes.function_modes import is_told, tell_modes
from pullback.modes.grad_mode import (
    inference_mode_now,
    is_grad_enabled,
    restore_inference_mode,
    set_grad_mode,
    set_inference_mode,
)
from pullback.modes.guards import guarded, undone_by
from pullback.modes.switches import process, switches
from pullback.modes.user_warnings import warn_user

_F = TypeVar("_F", bound=Callable[..., Any])

__all__ = [
    "enable_grad",
    "enforce_grad_layout_policy",
    "inference_mode",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]


class _ContextDecorator:
    """A context manager that also decorates functions, generators and (with a warning) classes."""

    def clone(self) -> Any:
        """A fresh manager for one call of a decorated function."""
        return type(self)()

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, *exception: object) -> None:
        raise NotImplementedError

    def __call__(self, function: _F) -> _F:
        return cast(_F, decorate(self.clone, function))


def decorate(make: Callable[[], Any], function: Any) -> Any:
    """Run `function` inside of a manager that `make` makes for each call."""
    if inspect.isclass(function):
        warn_user(
            "Decorating classes is deprecated and will be disabled in future versions. You should only decorate functions "
            f"or methods. To preserve the current behavior of class decoration, decorate the `__init__` method of "
            f"{function.__name__} instead.",
            FutureWarning,
        )
        setattr(function, "__init__", decorate(make, function.__init__))  # noqa: B010  # mypy: a method
        return function
    if inspect.isgeneratorfunction(function):
        return _decorate_generator(make, function)

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with make():
            return function(*args, **kwargs)

    return wrapped


def _decorate_generator(make: Callable[[], Any], function: Any) -> Any:
    """The mode holds while the generator runs, not while it waits."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        generator = function(*args, **kwargs)
        try:
            with make():
                response = generator.send(None)
            while True:
                try:
                    request = yield response
                except GeneratorExit:
                    with make():
                        generator.close()
                    raise
                except BaseException as error:
                    with make():
                        response = generator.throw(error)
                else:
                    with make():
                        response = generator.send(request)
        except StopIteration as stop:
            return stop.value

    return wrapped


def _set_grad_enabled(mode: bool) -> None:
    """Switch recording on or off, as PyTorch's private function of this name, of which function modes are told."""
    set_grad_mode(mode)


def _switch(mode: bool) -> None:
    """Switch recording on or off."""
    if not process.modes or not is_told():
        set_grad_mode(mode)
    else:
        tell_modes(_set_grad_enabled, (mode,), {})


class no_grad(_ContextDecorator):
    """Switch recording off.

    >>> import pullback
    >>> x = pullback.ones(2, requires_grad=True)
    >>> with no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    def __new__(cls, orig_func: Any = None) -> Any:
        if orig_func is None:
            return super().__new__(cls)
        return cls()(orig_func)

    @guarded
    def __exit__(self, *exception: object) -> None:
        _switch(self._former)

    @undone_by(__exit__)
    def __enter__(self) -> None:
        self._former = switches.grad_mode
        _switch(False)


class enable_grad(_ContextDecorator):
    """Switch recording on, inside of no_grad.

    >>> import pullback
    >>> with no_grad(), enable_grad():
    ...     pullback.is_grad_enabled()
    True
    """

    def __new__(cls, orig_func: Any = None) -> Any:
        if orig_func is None:
            return super().__new__(cls)
        return cls()(orig_func)

    @guarded
    def __exit__(self, *exception: object) -> None:
        _switch(self._former)

    @undone_by(__exit__)
    def __enter__(self) -> None:
        self._former = switches.grad_mode
        _switch(True)


class set_grad_enabled(_ContextDecorator):
    """Switch recording on or off: at once, until the end of a `with` block, or for a decorated function.

    >>> import pullback
    >>> with set_grad_enabled(False):
    ...     pullback.is_grad_enabled()
    False
    """

    def _undo(self, mode: bool) -> None:
        _switch(self._former)

    @undone_by(_undo)
    def __init__(self, mode: bool) -> None:
        self._former = is_grad_enabled()
        if not isinstance(mode, bool):
            raise wrong_type("set_grad_enabled", "enabled", 1, "bool", mode)
        self.mode = mode
        _switch(mode)

    def __call__(self, function: _F) -> _F:
        _switch(self._former)
        return super().__call__(function)

    @guarded
    def __exit__(self, *exception: object) -> None:
        _switch(self._former)

    @undone_by(__exit__)
    def __enter__(self) -> None:
        _switch(self.mode)

    def clone(self) -> set_grad_enabled:
        return type(self)(self.mode)

    def __repr__(self) -> str:
        return f"{display_namespace()}.autograd.grad_mode.{type(self).__name__}(mode={self.mode})"


class inference_mode(_ContextDecorator):
    """Switch off recording, views and version counters: tensors made here can never take part in autograd.

    >>> import pullback
    >>> with inference_mode():
    ...     y = pullback.ones(2)
    >>> y.is_inference()
    True
    """

    def __new__(cls, mode: Any = True) -> Any:
        if isinstance(mode, bool):
            return super().__new__(cls)
        return cls()(mode)

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode

    @guarded
    def __exit__(self, *exception: object) -> None:
        restore_inference_mode(self._former)

    @undone_by(__exit__)
    def __enter__(self) -> None:
        self._former = inference_mode_now()
        set_inference_mode(self.mode)

    def clone(self) -> inference_mode:
        return type(self)(self.mode)


view_tracking = SimpleNamespace(is_forced=False)


class _SwitchAtOnce(_ContextDecorator):
    """Sets an attribute of an object when it is made, and puts it back at the end of a block. See Note [Guards]."""

    _owner: Any = switches
    _name: str
    _setter: str
    """PyTorch's private function that sets it, which its errors name."""

    def _set(self, value: Any) -> None:
        setattr(self._owner, self._name, value)

    def _refusal(self, mode: object) -> Exception:
        """What is raised for a mode that is not a bool."""
        return wrong_type(self._setter, "enabled", 1, "bool", mode)

    def _undo(self, mode: bool) -> None:
        self._set(self._former)

    @undone_by(_undo)
    def __init__(self, mode: bool) -> None:
        self._former = getattr(self._owner, self._name)
        if not isinstance(mode, bool):
            raise self._refusal(mode)
        self.mode = mode
        self._set(mode)

    @guarded
    def __exit__(self, *exception: object) -> None:
        self._set(self._former)

    @undone_by(__exit__)
    def __enter__(self) -> None:
        pass

    def clone(self) -> Self:
        return type(self)(self.mode)


class set_multithreading_enabled(_SwitchAtOnce):
    """Whether backward may use threads of its own; CPU work never does."""

    _name = "multithreading"
    _setter = "set_multithreading_enabled"


class enforce_grad_layout_policy(_SwitchAtOnce):
    """Whether a leaf's `.grad` must have the leaf's memory order."""

    _name = "layout_policy"
    _setter = "set_grad_layout_enforcement_enabled"


class _force_original_view_tracking(_SwitchAtOnce):
    """Ask for views to be made anew operation by operation. What views show does not depend on it here."""

    _owner = view_tracking
    _name = "is_forced"
    _setter = "set_view_replay_enabled"


class _unsafe_preserve_version_counter(_ContextDecorator):
    """Put back the version counters of tensors at the end of a block, as if nothing had modified them."""

    def __init__(self, tensors: Any) -> None:
        self.tensors = (tensors,) if hasattr(tensors, "_version") else tuple(tensors)
        self._versions = [t._version for t in self.tensors]

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        for tensor, version in zip(self.tensors, self._versions, strict=True):
            if tensor._counter is not None:
                tensor._counter.value = version
