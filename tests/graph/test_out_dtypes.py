"""Tensors given as `out=` of another dtype than the result's: PyTorch takes some and refuses others."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import pullback

x = pullback.ones(2, 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda out: pullback.mm(x, x, out=out), "Expected out tensor to have dtype float, but got double instead"),
        (lambda out: pullback.linalg.inv(pullback.eye(2), out=out), "to have dtype float, but got double instead"),
        (lambda out: pullback.neg(x, out=out), "Found dtype Double but expected Float"),
        (lambda out: pullback.dot(x[0], x[0], out=out), "result dtype Double does not match input dtype Float"),
        (lambda out: pullback.all(x, out=out), "all only supports bool tensor for result, got: Double"),
        (lambda out: pullback.signbit(x, out=out), "signbit does not support non-boolean outputs"),
        (lambda out: pullback.argmax(x, out=out), "Expected out tensor to have dtype long int, but got double instead"),
    ],
)
def test_another_dtype_is_refused(call: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        call(pullback.zeros(2, 2, dtype=pullback.float64))


def test_a_wider_dtype_is_filled_where_pytorch_does() -> None:
    out = pullback.zeros(2, 2, dtype=pullback.float64)
    assert pullback.add(x, x, out=out) is out
    assert out.tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_cat_refuses_a_dtype_of_a_lower_category_as_a_type() -> None:
    with pytest.raises(TypeError, match="can't be cast to the desired output type Long"):
        pullback.cat([x, x], out=pullback.zeros(4, 2, dtype=pullback.int64))


def test_a_new_tensor_resizes_out_without_a_warning() -> None:
    out = pullback.zeros(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pullback.ones(2, out=out)
    assert out.tolist() == [1.0, 1.0]
