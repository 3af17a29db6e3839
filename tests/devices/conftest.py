"""The tests of devices need kernels that look out for them: see `by_device` in pullback/native/__init__.py."""

from __future__ import annotations

import os

from pullback.native import extension

collect_ignore_glob = ["test_*.py"] if extension is None and os.environ.get("PULLBACK_DEVICES") != "1" else []
