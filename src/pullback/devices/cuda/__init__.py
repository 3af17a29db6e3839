"""NVIDIA GPUs through CuPy: `load` makes the device type "cuda" usable where CuPy and a GPU are there."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any


class _State:
    library: Any = None
    missing: str = ""
    was_looked_for: bool = False


def load() -> Any:
    """The library of GPUs, registered; None where there is none to use."""
    if not _State.was_looked_for:
        _State.missing = _look()
        if not _State.missing:
            _State.library = import_module("pullback.devices.cuda.library").registered()
        _State.was_looked_for = True
    return _State.library


def what_is_missing() -> str:
    """What must be there for the GPU to be used, and how to get it."""
    load()
    return _State.missing or "nothing missing"


def _look() -> str:
    if find_spec("cupy") is None:
        return "no CuPy: install it with pip install 'pullback[cuda]'"
    try:
        cupy = import_module("cupy")
    except ImportError as error:
        return f"a CuPy that cannot be imported ({error}): install the one for your version of CUDA"
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"no GPU that CUDA can use ({error}): look at nvidia-smi"
    return "" if count else "no GPU: look at nvidia-smi"
