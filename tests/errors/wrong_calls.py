"""Calls with an argument of a wrong type, of every function and method that PyTorch has built in.

`python -m tests.errors.wrong_calls` records what PyTorch says of them (needs PyTorch).
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pullback

RECORDED = Path(__file__).parent / "wrong_calls.json"
NAMESPACES = ("torch", "torch.linalg", "torch.fft", "torch.special")
LEFT_OUT = (
    "set_",
    "is_",
    "autocast",
    "cudnn",
    "mkldnn",
    "miopen",
    "fbgemm",
    "quantize",
    "sym_",
    "init_",
    "apply_",
    "map",
)


DIFFERING: dict[str, str] = {
    **dict.fromkeys(["torch.dsmm(x, 'x')", "torch.spmm(x, 'x')"], "A function of several names bears the one it was called by."),
    "torch.to_dlpack('x')": "The function bears its public name.",
}  # fmt: skip
"""The calls that are refused in other words, and why."""


def calls(torch: Any) -> Iterator[str]:
    """Every call: a text for a tensor, a text after a tensor, a list of floats for a method."""
    for namespace in NAMESPACES:
        module = import_module(namespace)
        for name in sorted(dir(module)):
            built_in = type(getattr(module, name)).__name__ == "builtin_function_or_method"
            if name[0] != "_" and built_in and not name.startswith(LEFT_OUT):
                yield from [f"{namespace}.{name}({given})" for given in ("'x'", "x, 'x'")]
    for name in sorted(dir(torch.Tensor)):
        built_in = type(getattr(torch.Tensor, name)).__name__ == "method_descriptor"
        if name[0] != "_" and built_in and not name.startswith(LEFT_OUT):
            yield from [f"x.{name}({given})" for given in ("'x'", "[1.5]")]


def said(torch: Any, call: str) -> list[str] | None:
    """The exception that a call raises, and what it says; None without one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            eval(call, {"torch": torch, "x": torch.tensor([[1.0, 2.0], [3.0, 4.0]])})
        except Exception as error:
            kind = next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins")
            return [kind, str(error).strip()]
    return None


def is_compiled(call: str) -> bool:
    """Whether the function of a call is of a compiled module: it has no frame from which the call could be told."""
    first, *rest = call.partition("(")[0].split(".")
    found: Any = {"torch": pullback, "x": pullback.Tensor}.get(first)
    for name in rest:
        found = getattr(found, name, None)
    return type(found).__name__ == "cython_function_or_method"


def record() -> dict[str, str]:
    """What PyTorch says of the calls whose arguments it refuses, but for those that a C function refuses itself."""
    torch: Any = import_module("torch")
    found = {call: said(torch, call) for call in calls(torch)}
    return {
        c: s[1] for c, s in found.items() if s is not None and s[0] == "TypeError" and not s[1].startswith("Tensor")
    }


if __name__ == "__main__":
    lines = [f"{json.dumps(call)}: {json.dumps(text)}" for call, text in record().items()]
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
