"""Checks of arguments, before a kernel and apart from it: shapes, dtypes and numbers, never the elements.

# Note [Checks]
A kernel takes right arguments. What it asks of them stands in the file of checks/ that has the name of the kernel's file, in
a function of the kernel's name and parameters, which `@checked` calls first. It reads shapes, dtypes and numbers alone, so
it is one text for every device: a library's own kernel of that name (Note [Kernels by device]) is called after it too. A
compiled kernel declines what it does not know, and so has its own arguments checked only where it hands a call on: no
check stands between an operation and its C. What only the elements tell (a position out of range) the kernel finds itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
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
        check(*args, **options)
        return kernel(*args, **options)

    vars(call)["is_checked"] = True
    return cast(_Kernel, call)


def is_checked(kernel: Callable[..., Any]) -> bool:
    """Whether a kernel's arguments are checked: by a function of checks/."""
    return hasattr(kernel, "is_checked")


def check_of(kernel: Callable[..., Any]) -> Callable[..., None]:
    """The function that checks the arguments of a kernel."""
    module = import_module(f"pullback.checks.{kernel.__module__.rpartition('.')[2]}")
    found: Callable[..., None] = getattr(module, kernel.__name__)
    return found
