"""The same calls on PyTorch, one per line of the files in calls/: values, dtypes, strides, views, nodes, errors.

A line is an expression in which `torch` is the library; statements before it are separated by `;;`. Lines that begin
with `!` are run before every call of their file. An error must have PyTorch's type and begin with its words.
"""

from __future__ import annotations

import builtins
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback

torch = pytest.importorskip("torch")
pytest.importorskip("ml_dtypes")

FOLDER = Path(__file__).parent / "calls"


def read_calls(name: str) -> tuple[str, list[str]]:
    """What runs before every call of a file, and the calls."""
    lines = (FOLDER / name).read_text().splitlines()
    before = "\n".join(line[1:] for line in lines if line.startswith("!"))
    return before, [line for line in lines if line.strip() and line[0] not in "!#"]


CASES = [
    pytest.param(before, call, id=call)
    for before, calls in map(read_calls, sorted(path.name for path in FOLDER.glob("*.txt")))
    for call in calls
]


def outcome(library: Any, before: str, call: str) -> Any:
    """What the call returns, described without the library, or the exception that it raises."""
    scope: dict[str, Any] = {"torch": library, "np": np}
    *statements, expression = call.split(";;")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(before, scope)
        try:
            for statement in statements:
                exec(statement.strip(), scope)
            return describe(eval(expression.strip(), scope), library)
        except Exception as error:
            return error


def describe(value: Any, library: Any) -> Any:
    """A result as plain data that both libraries share."""
    if isinstance(value, library.Tensor):
        node = value.grad_fn
        facts = {
            "shape": tuple(value.shape), "stride": tuple(value.stride()), "dtype": str(value.dtype).rpartition(".")[2],
            "requires_grad": value.requires_grad, "is view": value._base is not None,
            "node": None if node is None else node.name(), "offset": value.storage_offset() if value.numel() else 0,
        }  # fmt: skip
        return facts, elements(value.detach())
    if isinstance(value, (list, tuple)):
        return [describe(item, library) for item in value]
    return re.sub(r"(torch|pullback)\.", "", str(value))


def elements(tensor: Any) -> Any:
    return tensor.float().numpy() if "bfloat16" in str(tensor.dtype) else tensor.numpy()


def assert_same(actual: Any, expected: Any) -> None:
    """Compare two descriptions; floating-point elements to within rounding."""
    if isinstance(expected, list):
        assert len(actual) == len(expected)
        for a, e in zip(actual, expected, strict=True):
            assert_same(a, e)
    elif isinstance(expected, tuple):
        assert actual[0] == expected[0]
        tolerance = 1e-3 if expected[1].dtype.itemsize == 2 else 1e-6
        np.testing.assert_allclose(actual[1], expected[1], rtol=tolerance, equal_nan=True)
    else:
        assert actual == expected


@pytest.mark.parametrize(("before", "call"), CASES)
def test_call_does_what_pytorch_does(before: str, call: str) -> None:
    expected = outcome(torch, before, call)
    actual = outcome(pullback, before, call)
    if isinstance(expected, Exception):
        assert isinstance(actual, getattr(builtins, type(expected).__name__, Exception)), actual
        words = re.split(r"[.\n]", str(expected).lower())[0][:45]
        assert words in str(actual).lower()
    else:
        assert not isinstance(actual, Exception), actual
        assert_same(actual, expected)
