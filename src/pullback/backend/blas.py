"""Which library multiplies matrices, for `show_config`."""

from __future__ import annotations

import numpy as np


def describe_blas() -> str:
    """The name and version of the BLAS that NumPy was built with."""
    # NumPy has the dictionaries only since its builds with Meson.
    configuration = np.show_config(mode="dicts") or {}
    blas = configuration.get("Build Dependencies", {}).get("blas", {})
    return f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip()


def describe_arrays() -> str:
    """The array library and its version."""
    return f"NumPy {np.__version__}"
