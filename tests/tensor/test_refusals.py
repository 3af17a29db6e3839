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
        (lambda: pullback.linalg.norm(text), r"norm\(\): argument '(A|input)' \(position 1\) must be Tensor, not str"),
        (
            lambda: pullback.nn.functional.batch_norm(x, text, text),
            r"batch_norm\(\): argument 'running_mean' \(position 2\) must be Tensor, not str",
        ),
        (lambda: pullback.broadcast_tensors(x, text), r"expected Tensor as element 1 in argument 0, but got str"),
    ],
)  # fmt: skip
def test_a_wrong_type_is_named(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()


def test_an_unknown_keyword_is_named() -> None:
    with pytest.raises(TypeError, match=r"permute\(\) (got an unexpected keyword argument 'order'|missing 1 required)"):
        pullback.permute(x, order=(1, 0))


def test_a_missing_argument_is_no_stop_iteration() -> None:
    with pytest.raises(TypeError, match="tensor_split"):
        pullback.tensor_split(x, None)


def test_elements_of_lists_are_looked_at() -> None:
    with pytest.raises(
        TypeError,
        match=r"hstack\(\) received an invalid combination|expected Tensor as element 0 in argument 0, but got float",
    ):
        pullback.hstack([1.5, 2.5])


def test_a_device_by_number_is_refused() -> None:
    with pytest.raises(RuntimeError, match="Cannot access accelerator device"):
        pullback.zeros(1, device=2)


def test_errors_that_explain_themselves_stay() -> None:
    with pytest.raises(IndexError, match="Dimension out of range"):
        pullback.diff(x, dim=7)
    with pytest.raises(RuntimeError, match="must match the size"):
        pullback.cosine_similarity(x, pullback.ones(2, 4))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: x.sum(0, keepdim=text), "argument 'keepdim' must be bool, not str"),
        (lambda: pullback.amax(x, 0, keepdim=1), "argument 'keepdim' must be bool, not int"),
        (lambda: pullback.unique(x, sorted=1), "argument 'sorted' must be bool, not int"),
        (lambda: pullback.linalg.svd(x, 1), r"argument 'full_matrices'( \(position 2\))? must be bool, not int"),
        (lambda: pullback.zeros(2, requires_grad=1), "argument 'requires_grad' must be bool, not int"),
        (lambda: x.topk(1, largest=text), "argument 'largest' must be bool, not str"),
    ],
)
def test_a_switch_is_true_or_false(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: pullback.diagonal(x, offset=text),
            r"diagonal\(\): argument 'offset'( \(position 2\))? must be int, not str",
        ),
        (
            lambda: pullback.addmm(x, x, x, beta=text),
            "argument 'beta' must be Number, not str|got .Tensor, Tensor, Tensor, beta=str.",
        ),
        (lambda: pullback.amax(x, (0, text)), "must be tuple of ints, but found element of type str at pos 1"),
        (
            lambda: pullback.cumsum(x, None),
            r'missing 1 required positional arguments: "dim"|argument .dim. \(position 2\) must be int, not NoneType',
        ),
        (lambda: x.sum(text), r"sum\(\) received an invalid combination of arguments"),
        (lambda: x.diff(text), r"diff\(\): argument 'n' \(position [12]\) must be int, not str"),
    ],
)
def test_what_a_kernel_stumbled_over_is_told_as_a_wrong_type(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()


def test_shapes_that_do_not_broadcast_are_told_by_operations_without_promotion() -> None:
    with pytest.raises(RuntimeError, match="must match the size of tensor b"):
        pullback.masked_select(x, pullback.tensor([True] * 4))


def test_an_attribute_error_of_something_else_stays() -> None:
    def function(input: pullback.Tensor) -> Any:
        raise NotImplementedError

    assert refusal(function, "function", (x,), {}, AttributeError("module 'm' has no attribute 'a'")) is None
