"""Text compiled at run time: its lines are those that tracebacks show."""

from __future__ import annotations

import ast
import traceback
from pathlib import Path

import pytest

import pullback
from pullback.source_text import run_text

PACKAGE = Path(pullback.__file__).parent


def test_a_traceback_shows_the_line_of_the_text() -> None:
    divide = run_text("def divide(a, b):\n    return a / b  # the line\n", "a quotient", {})["divide"]
    with pytest.raises(ZeroDivisionError) as caught:
        divide(1, 0)
    frame = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (frame.name, frame.lineno, frame.line) == ("divide", 2, "return a / b  # the line")
    assert Path(frame.filename) == PACKAGE / "<a quotient>"


def test_backward_on_a_vector_shows_the_call_in_its_traceback() -> None:
    y = pullback.ones(3, requires_grad=True) * 2
    with pytest.raises(RuntimeError) as caught:
        y.backward()
    frames = traceback.extract_tb(caught.value.__traceback__)
    (made,) = [frame for frame in frames if "<" in frame.filename]
    assert made.line is not None
    assert made.line.startswith("return call(input, gradient")


def test_nothing_else_in_the_package_compiles_text() -> None:
    """`__main__` compiles the user's file under its own name; `exec` of an import block runs no line that could fail."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("compile", "eval"):
                found.add(path.relative_to(PACKAGE).as_posix())
    # The two of dispatch compile expressions of declarations, and a function of a generated file under that file's name;
    # devices compile the files of kernels under their names, Tensors those of formulas, segments a user's function under that of its file, where
    # a size in it is looked up as well; others call torch.compile, re.compile and their like.
    assert found == {
        "source_text.py", "__main__.py", "dispatch/templates.py", "dispatch/recording.py", "devices/loading.py",
        "recording/tensor_formulas.py", "devices/cuda/elementwise.py", "inspection/derivative_use.py", "pytorch/compiler/__init__.py", "pytorch/_dynamo/__init__.py", "compiling/function_text.py",
        "compiling/number_flow.py", "nn/modules/module.py",
    }  # fmt: skip
