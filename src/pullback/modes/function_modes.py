"""Which calls a TorchFunctionMode sees: those of its users, and not those of the package itself.

# Note [Function modes]
A mode is told what its user calls: a public function, a method, an operator, a property; not what these come down to.
While one runs its `__torch_function__`, it is off. So what is told must be found out at the entrances alone, and only
while `process.modes` says that some thread has a mode:

- public functions look at it where they look for foreign arguments, see Note [Foreign arguments], and generated ones
  where they look for interceptors (`divert`);
- members of Tensor are replaced by descriptors that ask, see Note [Asking members] in overrides/overriding_classes.py.

Most of PyTorch's layers, initializers and optimizers are Python there too, and a mode sees what they call. Here the same
modules count as the user's (`_IN_PYTHON`), and all other files of the package do not.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

from pullback.modes.interception import overrides
from pullback.modes.switches import process, switches

Function = TypeVar("Function", bound=Callable[..., Any])

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def _files(names: str) -> tuple[str, ...]:
    return tuple([_PACKAGE + name.replace("/", os.sep) for name in names.split()])


_IN_PYTHON = _files(
    "nn/modules/ nn/parameter nn/utils/ nn/init.py nn/functional/interpolation optim/ distributions/ func/calling"
)
_ROADS = _files(
    "generated/ recording/ tensor/ modes/ creation/exchange creation/filled creation/from_values creation/options "
    "creation/ranges overrid graph/in_place functions/deprecated_ autograd/grad_mode <"
)


def is_outside(frame: FrameType | None) -> bool:
    """Whether the calls of a frame count as a user's."""
    if frame is None:
        return True
    file = frame.f_code.co_filename
    return not file.startswith(_PACKAGE) or file.startswith(_IN_PYTHON)


def is_told(by_itself: bool = False) -> bool:
    """Whether this thread has modes that must be told of the call that asks.

    A function with a wrapper, a generated one and one that makes tensors are on the roads that are passed over; one that
    asks `by_itself` is not, and has a frame of its own unless it is compiled.
    """
    if not switches.function_modes:
        return False
    frame = _beyond_roads(sys._getframe(1))
    if by_itself and not is_outside(frame):
        assert frame is not None
        frame = _beyond_roads(frame.f_back)
    return is_outside(frame)


def _beyond_roads(frame: FrameType | None) -> FrameType | None:
    while frame is not None and frame.f_code.co_filename.startswith(_ROADS):
        frame = frame.f_back
    return frame


def told_to_modes(function: Function) -> Function:
    """Decorate a public function that makes tensors and takes none: only modes are told of it."""

    @functools.wraps(function)
    def told(*args: Any, **kwargs: Any) -> Any:
        if process.modes and is_told():
            return tell_modes(told, args, kwargs)
        return function(*args, **kwargs)

    return told  # type: ignore[return-value]  # the same signature


def tell_modes(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Tell the modes of a call with exactly these arguments, and return their answer."""
    assert overrides.ask_exactly is not None
    return overrides.ask_exactly(function, args, kwargs)
