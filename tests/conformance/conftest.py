"""Collect only the tests of the checker: its own modules need PyTorch, and doctests would import them."""

from __future__ import annotations

from pathlib import Path

collect_ignore = [path.name for path in Path(__file__).parent.glob("*.py") if not path.name.startswith("test_")]
