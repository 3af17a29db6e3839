"""Writes src/pullback/dispatch/python_signatures.txt: what PyTorch's functions and methods say that they take.

Needs PyTorch. A function of several signatures lists them when arguments fit none. A function of one signature is left out:
it takes what its operator takes (aten_schemas.txt). A line that begins with `!` is of a function with older signatures too,
which PyTorch does not list; one that begins with `-` is of a function that PyTorch has in Python, without a parser. Run as
`python -m tools.record_python_signatures`.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

TARGET = Path(__file__).resolve().parents[1] / "src" / "pullback" / "dispatch" / "python_signatures.txt"
NAMESPACES = ("torch", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special")


def functions() -> Iterator[tuple[str, Any]]:
    """Every built-in function under the name that its errors tell, and every method as `Tensor.name`."""
    torch: Any = import_module("torch")
    for namespace in NAMESPACES:
        module = import_module(namespace)
        for name in sorted(dir(module)):
            function = getattr(module, name)
            if name[0] != "_" and type(function).__name__ == "builtin_function_or_method":
                yield str(function.__name__), function
    for name in sorted(dir(torch.Tensor)):
        if name[0] != "_" and type(getattr(torch.Tensor, name)).__name__ == "method_descriptor":
            yield f"Tensor.{name}", getattr(torch.ones(2, 2), name)


def in_python() -> Iterator[str]:
    """The names of functions and methods that PyTorch has in Python, or reads without its operator's signature."""
    torch: Any = import_module("torch")
    yield from ("-nonzero", "-Tensor.nonzero", "-Tensor.size", "-Tensor.stride")
    for name in sorted(dir(torch)):
        if name[0] != "_" and type(getattr(torch, name)).__name__ == "function":
            yield f"-{name}"
    for name in sorted(dir(torch.Tensor)):
        if name[0] != "_" and type(getattr(torch.Tensor, name)).__name__ == "function":
            yield f"-Tensor.{name}"


def said(function: Any) -> str:
    """What a function says of arguments that it cannot take."""
    try:
        function(*[object()] * 40)
    except TypeError as error:
        return str(error)
    except Exception:
        return ""
    return ""


def line(name: str, text: str) -> str | None:
    """The line of a function, by its complaint."""
    if "but expected one of:" in text:
        return f"{name}({' | '.join([found.removesuffix(')') for found in re.findall(r'^ [*] [(](.*)', text, re.M)])})"
    if found := re.search(r", but expected \((.*)\)", text):
        return f"!{name}({found[1]})"
    return None


def record() -> str:
    """The text of the file."""
    warnings.simplefilter("ignore")
    lines = {made for name, function in functions() if (made := line(name, said(function))) is not None}
    known = set(import_module("pullback.dispatch.schemas").aten_schemas())
    lines |= {name for name in in_python() if name.removeprefix("-").removeprefix("Tensor.") in known}
    return "\n".join(sorted(lines, key=lambda made: made.lstrip("!-"))) + "\n"


if __name__ == "__main__":
    TARGET.write_text(record(), encoding="utf-8")
