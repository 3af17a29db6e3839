"""Records what PyTorch's dispatch modes see of the expressions: `python -m tests.dispatch.record` (needs PyTorch)."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.dispatch.expressions import EXPRESSIONS, seen

RECORDED = Path(__file__).parent / "recorded.json"


def record() -> dict[str, list[str]]:
    """The lines of every expression, by its text and its shapes."""
    torch: Any = import_module("torch")
    mode = import_module("torch.utils._python_dispatch").TorchDispatchMode
    found: dict[str, list[str]] = {}
    for text, shapes in EXPRESSIONS:
        try:
            found[f"{text} | {shapes}"] = seen(torch, mode, text, shapes)
        except RuntimeError:
            continue  # an operation without a derivative
    return found


if __name__ == "__main__":
    RECORDED.write_text(json.dumps(record(), indent=0) + "\n")
