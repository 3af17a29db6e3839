"""Runs the code blocks of the documents and prints, as JSON, what each one did.

`python run_blocks.py` uses whatever `torch` is: it records the expectations where PyTorch is installed.
`python run_blocks.py --pullback` lets `torch` mean pullback. A document's blocks share one namespace, in order; each
block starts from seed 0, and an exception ends only its block.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
import warnings
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

FOLDER = Path(__file__).parent
ADDRESS = re.compile(r"0x[0-9a-f]+")


def key_phrase(message: str) -> str:
    """The part of a message that programs match on: its first sentence, in one line."""
    first_line = message.strip().partition("\n")[0]
    return ADDRESS.sub("0x...", first_line.partition(". ")[0])


def run_block(code: str, namespace: dict[str, Any]) -> dict[str, Any]:
    """Run one block and report its output, its warnings and the exception that ended it."""
    output = io.StringIO()
    exception: list[str] | None = None
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(output):
        warnings.simplefilter("always")
        try:
            exec(compile(code, "<block>", "exec"), namespace)
        except Exception as error:
            exception = [type(error).__name__, key_phrase(str(error))]
    return {
        "output": ADDRESS.sub("0x...", output.getvalue()).splitlines(),
        "exception": exception,
        "warnings": sorted({(w.category.__name__, key_phrase(str(w.message))) for w in caught}),
    }


def run_document(document: dict[str, Any], with_setup: bool) -> list[dict[str, Any]]:
    """Run the blocks of a document as they are, or each with the code it takes for granted and a look at its result."""
    import torch

    namespace: dict[str, Any] = {"__name__": "__main__"}
    results = []
    for block in document["blocks"]:
        torch.manual_seed(0)
        code = list(block["code"])
        if with_setup:
            exec("\n".join(block.get("setup", [])), namespace)
            code += block.get("check", [])
        results.append(run_block("\n".join(code), namespace))
    return results


def stand_in_for_torchviz() -> ModuleType:
    """A torchviz that draws nothing, for recording where the real one and its graphviz are not installed."""
    module = ModuleType("torchviz")
    drawing = SimpleNamespace(render=lambda filename, format: f"{filename}.{format}")
    vars(module)["make_dot"] = lambda tensor, params: drawing
    return module


def run_all() -> dict[str, Any]:
    """Run every document both ways."""
    documents = json.loads((FOLDER / "blocks.json").read_text(encoding="utf-8"))
    return {
        name: {
            "as written": run_document(document, with_setup=False),
            "with setup": run_document(document, with_setup=True),
        }
        for name, document in documents.items()
    }


if __name__ == "__main__":
    if "--pullback" in sys.argv:
        import pullback

        pullback.install_as_torch()
    else:
        sys.modules["torchviz"] = stand_in_for_torchviz()
    json.dump(run_all(), sys.stdout, indent=1, ensure_ascii=False)
