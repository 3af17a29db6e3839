"""Python's `ctypes`, or None where there is none: in a browser, or where the system forbids it."""

from __future__ import annotations

from typing import Any

ctypes: Any
try:
    import ctypes
except ImportError:
    ctypes = None
