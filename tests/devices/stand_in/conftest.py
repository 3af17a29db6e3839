"""Tests that find the stand-in as `cupy`: tests/devices/test_several_gpus.py runs them in a process of their own."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore_glob = ["cupy*"] if find_spec("cupy") is not None else ["cupy*", "test_*.py", "watch.py"]
