"""Packages that a few functions need and that pullback can do without."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def import_scipy(module: str, what: str) -> Any:
    """A module of SciPy, needed by `what`."""
    try:
        return import_module(f"scipy.{module}")
    except ImportError as error:
        raise ImportError(f"{what} needs the package scipy: install pullback[scipy]") from error
