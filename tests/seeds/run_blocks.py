"""Runs the code blocks of the documents and prints, as JSON, what each one did.

`python run_blocks.py` uses whatever `torch` is. `--record` writes what happened under PyTorch to expected.json, each
exception and warning by its class and key phrase.
`python run_blocks.py --pullback` lets `torch` mean pullback. A document's blocks share one namespace, in order; each
block starts from seed 0, and an exception ends only its block.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import re
import sys
import warnings
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

FOLDER = Path(__file__).parent
ADDRESS = re.compile(r"0x[0-9a-f]+")


def run_block(pieces: list[list[str]], namespace: dict[str, Any]) -> dict[str, Any]:
    """Run the pieces of one block and report their output, their warnings and the exception that ended them."""
    output = io.StringIO()
    exception: dict[str, Any] | None = None
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(output):
        warnings.simplefilter("always")
        try:
            for lines in pieces:
                exec(compile("\n".join(lines), "<block>", "exec"), namespace)
        except Exception as error:
            exception = describe(type(error), str(error))
    return {
        "output": ADDRESS.sub("0x...", output.getvalue()).splitlines(),
        "exception": exception,
        "warnings": [describe(warning.category, str(warning.message)) for warning in caught],
    }


def describe(kind: type[BaseException], message: str) -> dict[str, Any]:
    """Tell an exception or a warning by the names of its classes, and by its message without addresses."""
    return {"classes": [base.__name__ for base in kind.__mro__[:-2]], "message": ADDRESS.sub("0x...", message)}


def run_document(document: dict[str, Any], with_setup: bool) -> list[dict[str, Any]]:
    """Run the blocks of a document as they are, or each with the code it takes for granted and a look at its result."""
    import torch

    namespace: dict[str, Any] = {"__name__": "__main__"}
    results = []
    for block in document["blocks"]:
        torch.manual_seed(0)
        parts = ["setup", "code", "check"] if with_setup else ["code"]
        results.append(run_block([block.get(part, []) for part in parts], namespace))
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


def key_phrase(description: dict[str, Any]) -> list[str]:
    """The class, and the part of the message that programs match on: its first sentence."""
    first_line = description["message"].strip().partition("\n")[0]
    return [description["classes"][0], first_line.partition(". ")[0]]


def as_expectations(results: dict[str, Any]) -> dict[str, Any]:
    """Reduce what happened under PyTorch to what is expected of pullback."""
    for variants in results.values():
        for result in itertools.chain(*variants.values()):
            result["exception"] = result["exception"] and key_phrase(result["exception"])
            result["warnings"] = [key_phrase(warning) for warning in result["warnings"]]
    return results


if __name__ == "__main__":
    if "--pullback" in sys.argv:
        import pullback

        pullback.install_as_torch()
    else:
        sys.modules["torchviz"] = stand_in_for_torchviz()
    results = run_all()
    if "--record" in sys.argv:
        text = json.dumps(as_expectations(results), indent=1, ensure_ascii=False)
        (FOLDER / "expected.json").write_text(text + "\n", encoding="utf-8")
    else:
        json.dump(results, sys.stdout)
