"""Comparing and making tensors in tests, as in `torch.testing`."""

from __future__ import annotations

from pullback.testing.comparison import assert_allclose, assert_close
from pullback.testing.creation import make_tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]
