"""Writes `compiler/settings.json`: the names and defaults of the settings of PyTorch's compiler.

Run as `python -m tools.compiler_settings`, with PyTorch installed. Defaults that are paths, or no plain values, are null.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parent.parent / "src" / "pullback" / "pytorch" / "compiler" / "settings.json"
MODULES = ("_dynamo", "_inductor", "_functorch", "compiler")


def collect() -> dict[str, dict[str, Any]]:
    """The settings of each module, those of groups with dots."""
    found = {}
    for name in MODULES:
        settings = importlib.import_module(f"torch.{name}.config").get_config_copy()
        found[name] = {key: _plain(value) for key, value in sorted(settings.items()) if not key.startswith("_")}
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, str) and "/" in value:
        return None
    return value if isinstance(value, (bool, int, float, str)) else None


if __name__ == "__main__":
    TARGET.write_text(json.dumps(collect(), separators=(",", ":")) + "\n", encoding="utf-8")
