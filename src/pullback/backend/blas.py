"""The library that multiplies matrices: what it is, for `show_config`, and how many threads it may use."""

from __future__ import annotations

import functools
import sys
from typing import Any

import numpy as np
from numpy._core import _multiarray_umath

from pullback.backend.c_types import ctypes

# What OpenBLAS calls it, by how NumPy's copy of the library was built.
_THREAD_SETTERS = (
    "scipy_openblas_set_num_threads64_",
    "openblas_set_num_threads64_",
    "scipy_openblas_set_num_threads",
    "openblas_set_num_threads",
)


def describe_blas() -> str:
    """The name and version of the BLAS that NumPy was built with."""
    # NumPy has the dictionaries only since its builds with Meson.
    configuration = np.show_config(mode="dicts") or {}
    blas = configuration.get("Build Dependencies", {}).get("blas", {})
    return f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip()


def describe_arrays() -> str:
    """The array library and its version."""
    return f"NumPy {np.__version__}"


@functools.cache
def numpy_library() -> Any:
    """NumPy's compiled module, in which the symbols of what it is linked with are found, too: where BLAS and LAPACK are
    need not be known. None where symbols are not searched so."""
    try:
        return None if sys.platform == "win32" or ctypes is None else ctypes.CDLL(_multiarray_umath.__file__)
    except OSError:
        return None


def set_blas_threads(count: int) -> bool:
    """Let BLAS use so many threads; say whether it could be told. Only OpenBLAS, which NumPy's wheels bring, can."""
    library = numpy_library()
    for name in _THREAD_SETTERS:
        if library is not None and hasattr(library, name):
            getattr(library, name)(count)
            return True
    return False
