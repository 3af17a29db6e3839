"""A call with an argument of a wrong type raises PyTorch's error word for word, with the list of signatures where it has one."""

from __future__ import annotations

import json
import re

import pytest

import pullback

from .wrong_calls import RECORDED, said

EXPECTED = json.loads(RECORDED.read_text(encoding="utf-8"))
WORDS_OF_PYTHON = re.compile(r"missing \d+ required (positional|keyword-only) argument|takes .*positional argument")
"""Python counts arguments before any code of ours runs. To count them in our own words every call would have to pay."""

DIFFERING = {
    **dict.fromkeys(["torch.dsmm(x, 'x')", "torch.spmm(x, 'x')"], "A function of several names bears the one it was called by."),
    **dict.fromkeys(
        [f"torch.{name}(x, 'x')" for name in "empty empty_permuted empty_strided ones zeros".split()],
        "Sizes are read one after the other, whatever their number.",
    ),
    **dict.fromkeys(
        ["torch.eye(x, 'x')", "torch.from_file(x, 'x')", "torch.scalar_tensor('x')"]
        + [f"torch.{name}_indices(x, 'x')" for name in ("tril", "triu")],
        "Functions that make tensors of numbers say what they stumbled over.",
    ),
    **dict.fromkeys(["torch.relu(x, 'x')", "torch.selu(x, 'x')"], "They take `inplace`, as in torch.nn.functional."),
    "torch.to_dlpack('x')": "The function bears its public name.",
    "x.pin_memory([1.5])": "No memory is pinned, wherever.",
    **dict.fromkeys(
        [f"x.{name}({given})" for name in ("size", "stride") for given in ("'x'", "[1.5]")],
        "The only argument needs no list of signatures.",
    ),
    "x.type([1.5])": "The type is refused as that of `to`.",
    **dict.fromkeys(
        [
            f"x.{name}({given})"
            for name in "bfloat16 bool byte cdouble cfloat char cpu double float half int long short".split()
            for given in ("'x'", "[1.5]")
        ],
        "They take the memory format by position too.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("call", EXPECTED)
def test_a_wrong_call_is_refused_in_the_words_of_pytorch(call: str, request: pytest.FixtureRequest) -> None:
    if call in DIFFERING:
        request.applymarker(pytest.mark.xfail(strict=True, reason=DIFFERING[call]))
    actual = said(pullback, call)
    if actual is not None and actual[0] == "AttributeError" and "has no attribute" in actual[1]:
        pytest.skip("pullback has no function of this name")
    assert actual is not None
    if actual[0] != "TypeError" or not WORDS_OF_PYTHON.search(actual[1]):
        assert actual == ["TypeError", EXPECTED[call].replace("torch.", "pullback.")]
