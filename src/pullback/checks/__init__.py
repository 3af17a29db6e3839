"""Checks of arguments, before a kernel and apart from it: shapes, dtypes and numbers, never the elements.

# Note [Checks]
A kernel takes right arguments. What it asks of them stands in the file of checks/ that has the name of the kernel's file,
in a function of the kernel's name and parameters. It reads shapes, dtypes and numbers alone, so it is one text for every
device, for meta tensors and for compile. The generated function of an operation calls it in front of the kernel, without a
wrapper; one marked `@after_failure` it calls only where the kernel failed, which costs right calls nothing. A kernel that is
compiled, or that others than operations call, is marked `@checked` instead: a compiled kernel declines what it cannot do,
so that its arguments are checked only where it hands a call on, and a device's own kernel of that name is called after the
check too (Note [Kernels by device]). What only the elements tell (a position out of range) the kernel finds itself, and
raises for one of the reasons of checks/elements.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from importlib import import_module
from inspect import unwrap
from typing import Any, TypeVar, cast

_Kernel = TypeVar("_Kernel", bound=Callable[..., Any])


def checked(kernel: _Kernel) -> _Kernel:
    """Check the arguments with the function of checks/ that bears the kernel's name, loaded on first use."""
    check: Any = None

    @wraps(kernel)
    def call(*args: Any, **options: Any) -> Any:
        nonlocal check
        if check is None:
            check = check_of(kernel)
        if options:
            check(*args, **options)
            return kernel(*args, **options)
        check(*args)  # a third faster than with an empty dictionary of options
        return kernel(*args)

    vars(call)["is_checked"] = True
    return cast(_Kernel, call)


def after_failure(check: _Kernel) -> _Kernel:
    """Mark a check of a kernel that fails by itself for wrong arguments: it is asked for the words only then."""
    vars(check)["is_after_failure"] = True
    return check


def explain_failure(kernel: Callable[..., Any] | None, arguments: Sequence[Any], options: Mapping[str, Any]) -> None:
    """Raise what the check of a kernel says of arguments for which the kernel failed, if there is such a check."""
    try:
        check = None if kernel is None else check_of(kernel)
    except (ImportError, AttributeError):
        return
    if check is not None and hasattr(check, "is_after_failure"):
        check(*arguments, **options)


def is_checked(kernel: Callable[..., Any]) -> bool:
    """Whether a kernel's arguments are checked: by a function of checks/."""
    return hasattr(kernel, "is_checked")


def check_of(kernel: Callable[..., Any]) -> Callable[..., None]:
    """The function that checks the arguments of a kernel, or of what compile records in its place."""
    kernel = unwrap(getattr(kernel, "__self__", kernel))  # see Library.maker: what no profiler is told of is a method
    module = import_module(f"pullback.checks.{kernel.__module__.rpartition('.')[2]}")
    found: Callable[..., None] = getattr(module, kernel.__name__)
    return found
