"""Warnings that point at the line of the program, however deep inside of pullback they arise."""

from __future__ import annotations

import sys
import warnings

_told: set[str] = set()
_always = False


def set_warn_always(b: bool, /) -> None:
    """Set whether warnings that come once per process come each time."""
    global _always
    _always = b


def is_warn_always_enabled() -> bool:
    """What `set_warn_always` was last told."""
    return _always


def warn_once(message: str) -> None:
    """Warn about the first use in this process, as PyTorch does about what users should not use any more."""
    if _always or message not in _told:
        _told.add(message)
        warn_user(message)


def warn_of_former_function(name: str, replacement: str) -> None:
    """Warn, once, about a function that PyTorch keeps for old programs only."""
    warn_once(
        f"torch.{name} is deprecated in favor of {replacement} and will be removed in a future PyTorch release: use that."
    )


def warn_of_lost_parts() -> None:
    """Warn, once, where complex numbers become real ones."""
    warn_once("Casting complex values to real discards the imaginary part: `x.real` says that it is meant.")


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn about the innermost line outside of pullback that led here.

    A DeprecationWarning is about a line of pullback, as PyTorch's are about its own: Python shows them on request alone.
    """
    level, frame = 2, sys._getframe(1)
    is_about_users = not issubclass(category, DeprecationWarning)
    while is_about_users and frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("pullback."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
