"""Arguments of wrong types: a TypeError in PyTorch's words, whatever the function stumbled over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pullback
from pullback.tensor.refusals import refusal

x = pullback.ones(2, 3)
text: Any = "x"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pullback.diff(text), r"diff\(\): argument 'input' \(position 1\) must be Tensor, not str"),
        (lambda: pullback.cdist(x, text), r"cdist\(\): argument 'x2' \(position 2\) must be Tensor, not str"),
        (lambda: pullback.cov(x, fweights=text), r"cov\(\): argument 'fweights' must be Tensor, not str"),
        (lambda: pullback.diff(x, x), r"diff\(\): argument 'n' \(position 2\) must be int, not Tensor"),
        (lambda: pullback.linalg.norm(text), r"norm\(\): argument 'A' \(position 1\) must be Tensor, not str"),
        (
            lambda: pullback.nn.functional.batch_norm(x, text, text),
            r"batch_norm\(\): argument 'running_mean' \(position 2\) must be Tensor, not str",
        ),
        (lambda: pullback.broadcast_tensors(x, text), r"broadcast_tensors\(\) received an invalid combination .* got \(Tensor, str\)"),
    ],
)  # fmt: skip
def test_a_wrong_type_is_named(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()


def test_errors_that_explain_themselves_stay() -> None:
    with pytest.raises(IndexError, match="Dimension out of range"):
        pullback.diff(x, dim=7)
    with pytest.raises(RuntimeError, match="must match the size"):
        pullback.cosine_similarity(x, pullback.ones(2, 4))


def test_an_attribute_error_of_something_else_stays() -> None:
    def function(input: pullback.Tensor) -> Any:
        raise NotImplementedError

    assert refusal(function, "function", (x,), {}, AttributeError("module 'm' has no attribute 'a'")) is None
