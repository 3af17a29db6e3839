"""What the processor can do, as NumPy found it."""

from __future__ import annotations

import os

import numpy as np

_WIDEST = ("AVX512F", "AVX512BW", "AVX512DQ", "AVX512VL")


def cpu_capability() -> str:
    """The widest vectors of the processor in PyTorch's words: "AVX512", "AVX2" or "DEFAULT"."""
    chosen = os.environ.get("ATEN_CPU_CAPABILITY", "").upper()
    if chosen in ("DEFAULT", "AVX2", "AVX512"):
        return chosen
    features: dict[str, bool] = getattr(np._core._multiarray_umath, "__cpu_features__", {})
    if not (features.get("AVX2") and features.get("FMA3")):
        return "DEFAULT"
    named = all(features.get(name) for name in _WIDEST) or bool(features.get("AVX512_SKX"))
    return "AVX512" if named else "AVX2"
