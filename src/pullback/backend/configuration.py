"""How this installation was built: what is compiled, which BLAS, how many threads."""

from __future__ import annotations

import os
import platform
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from pullback.backend.blas import describe_arrays, describe_blas
from pullback.native import compiled_kernels, get_num_threads, quickly_compiled
from pullback.version import __version__

__all__ = ["compiled_modules", "describe_config", "show_config"]


def compiled_modules() -> list[str]:
    """The modules of pullback that are compiled; none where it was installed as pure Python."""
    root = Path(__file__).parents[1]
    found = {path for suffix in EXTENSION_SUFFIXES for path in root.rglob(f"*{suffix}")}
    return sorted(
        ".".join(("pullback", *path.parent.relative_to(root).parts, path.name.split(".")[0])) for path in found
    )


def show_config() -> None:
    """Print how pullback was built, what it computes with, and what would make it faster here.

    >>> show_config()
    pullback ...
      compiled: ...
      kernels:  ...
      arrays:   NumPy ...
      BLAS:     ...
      threads:  ...
    """
    print(describe_config())


def describe_config() -> str:
    """What `show_config` prints."""
    compiled, kernels = compiled_modules(), compiled_kernels()
    lines = "\n".join(
        [
            f"pullback {__version__} on Python {platform.python_version()}",
            f"  compiled: {', '.join(compiled) or 'nothing (pure Python)'}",
            f"  kernels:  {describe_kernels(kernels)}",
            f"  arrays:   {describe_arrays()}",
            f"  BLAS:     {describe_blas()}",
            f"  threads:  {get_num_threads()}",
        ]
    )
    missing = _could_be_faster(compiled, kernels)
    return f"{lines}\n  faster:   {missing}" if missing else lines


def describe_kernels(kernels: list[str]) -> str:
    """Which kernels compute: so many in C, compiled for speed or quickly, or those of NumPy."""
    if not kernels:
        return "of NumPy"
    how = ", compiled in little time for tests: slower than installed ones" if quickly_compiled() else ""
    return f"{len(kernels)} in C{how}"


def _could_be_faster(compiled: list[str], kernels: list[str]) -> str:
    """What to do on a machine that could be faster; "" where nothing is left."""
    if os.environ.get("PULLBACK_NATIVE") == "0":
        return "PULLBACK_NATIVE=0 turns the compiled kernels off; leave it out"
    if not kernels:
        return "install it where there is a C compiler: small operations take half of the time, large ones a fraction"
    if all(name.startswith("pullback.native") for name in compiled):
        return "`pip install .` (not editable) also compiles the modules that small operations spend their time in"
    return ""
