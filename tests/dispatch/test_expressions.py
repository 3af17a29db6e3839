"""A mode sees the operations that PyTorch's modes see, with PyTorch's arguments, in PyTorch's order."""

from __future__ import annotations

import json

import pytest

import pullback
from pullback.utils._python_dispatch import TorchDispatchMode
from tests.dispatch.differing import DIFFERING
from tests.dispatch.expressions import EXPRESSIONS, seen
from tests.dispatch.record import RECORDED

EXPECTED = json.loads(RECORDED.read_text())
CASES = [(text, shapes) for text, shapes in EXPRESSIONS if f"{text} | {shapes}" in EXPECTED]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("text", "shapes"), CASES, ids=[f"{t} | {s}" for t, s in CASES])
def test_operations_are_those_of_pytorch(text: str, shapes: str, request: pytest.FixtureRequest) -> None:
    name = f"{text} | {shapes}"
    if name in DIFFERING:
        request.applymarker(pytest.mark.xfail(strict=True, reason=DIFFERING[name]))
    assert seen(pullback, TorchDispatchMode, text, shapes) == EXPECTED[name]
