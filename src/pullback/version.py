"""The version of pullback, and the build facts that PyTorch's module of this name offers."""

from __future__ import annotations

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "xpu"]

__version__ = "0.1.0"
debug = False
cuda: str | None = None
git_version = "Unknown"
hip: str | None = None
xpu: str | None = None
