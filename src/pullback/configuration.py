"""How this installation was built: what is compiled, which BLAS, how many threads."""

from __future__ import annotations

import platform
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from pullback.backend.blas import describe_arrays, describe_blas
from pullback.native import compiled_kernels
from pullback.version import __version__

__all__ = ["compiled_modules", "show_config"]


def compiled_modules() -> list[str]:
    """The modules of pullback that are compiled; none where it was installed as pure Python."""
    root = Path(__file__).parent
    found = {path for suffix in EXTENSION_SUFFIXES for path in root.rglob(f"*{suffix}")}
    return sorted(
        ".".join(("pullback", *path.parent.relative_to(root).parts, path.name.split(".")[0])) for path in found
    )


def show_config() -> str:
    """Say how pullback was built and what it computes with.

    >>> print(show_config())
    pullback ...
      compiled: ...
      kernels:  ...
      arrays:   NumPy ...
      BLAS:     ...
      threads:  ...
    """
    from pullback.environment import get_num_threads  # lazy: a neighbour, and only asked when this is

    compiled, kernels = compiled_modules(), compiled_kernels()
    return "\n".join(
        [
            f"pullback {__version__} on Python {platform.python_version()}",
            f"  compiled: {', '.join(compiled) or 'nothing (pure Python)'}",
            f"  kernels:  {f'{len(kernels)} in C' if kernels else 'of NumPy'}",
            f"  arrays:   {describe_arrays()}",
            f"  BLAS:     {describe_blas()}",
            f"  threads:  {get_num_threads()}",
        ]
    )
