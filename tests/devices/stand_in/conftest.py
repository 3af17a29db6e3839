"""Tests that find the stand-in as `cupy`: tests/devices/test_several_gpus.py runs them in a process of their own."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore_glob = ["cupy*", "nccl_program.py"]
if find_spec("cupy") is None:
    collect_ignore_glob += ["test_*.py", "watch.py"]
