"""Warnings that point at the line of the program, however deep inside of pullback they arise."""

from __future__ import annotations

import sys
import warnings

_told: set[str] = set()


def warn_once(message: str) -> None:
    """Warn about the first use in this process, as PyTorch does of what it wants users to leave off."""
    if message not in _told:
        _told.add(message)
        warn_user(message)


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn about the innermost line outside of pullback that led here."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("pullback."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
