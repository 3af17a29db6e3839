"""Arguments of dtypes that do not go together: refused with PyTorch's words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pullback

F = pullback.nn.functional
x = pullback.full((2, 4), 0.5)
wide = pullback.ones(4, dtype=pullback.float64)
whole = pullback.ones(2, 4, dtype=pullback.int64)
imaginary = pullback.ones(2, 4, dtype=pullback.complex64)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: F.binary_cross_entropy(x, whole), RuntimeError, "Found dtype Long but expected Float"),
        (lambda: F.binary_cross_entropy_with_logits(x, whole), RuntimeError, "result type Float can't be cast to .* Long"),
        (lambda: F.mse_loss(x, imaginary), NotImplementedError, "\"mse_cpu\" not implemented for 'ComplexFloat'"),
        (lambda: F.mse_loss(whole, whole), NotImplementedError, "\"mse_cpu\" not implemented for 'Long'"),
        (lambda: F.huber_loss(whole, x), RuntimeError, "result type Float can't be cast to .* Long"),
        (lambda: F.smooth_l1_loss(whole, whole), NotImplementedError, "\"smooth_l1_cpu\" not implemented for 'Long'"),
        (lambda: F.l1_loss(x, x > 0), RuntimeError, "Subtraction, the `-` operator, with a bool tensor"),
        (lambda: F.kl_div(x, whole, reduction="sum"), RuntimeError, "kl_div: Integral inputs not supported"),
        (lambda: F.kl_div(x, imaginary, reduction="sum"), RuntimeError, "kl_div: Complex inputs not supported"),
        (lambda: F.nll_loss(x, whole[:, 0], wide), RuntimeError, "expected scalar type Float but found Double"),
        (lambda: F.nll_loss(whole, whole[:, 0]), NotImplementedError, "\"nll_loss_out_frame\" not implemented for 'Long'"),
        (lambda: F.prelu(x, wide), RuntimeError, "prelu: Type promoting not supported. Got Float and Double"),
        (lambda: F.linear(x, x, wide[:2]), RuntimeError, "self and mat2 must have the same dtype, but got Double and Float"),
        (lambda: F.batch_norm(x, None, None, wide, wide, True), RuntimeError, "mixed dtype .CPU.: expect parameter"),
        (lambda: F.batch_norm(x, wide, wide, training=True), RuntimeError, "mixed dtype .CPU.: expect parameter"),
        (lambda: F.batch_norm(x, wide, wide), RuntimeError, "mixed dtype .CPU.: expect parameter"),
        (lambda: F.group_norm(x.double(), 2, wide.float()), RuntimeError, "mixed dtype .CPU.: all inputs must share"),
        (lambda: F.batch_norm(imaginary, None, None, training=True), NotImplementedError, "\"batch_norm\" not implemented"),
        (lambda: F.cosine_similarity(x, imaginary), RuntimeError, "expected common dtype to be floating point"),
        (lambda: pullback.cdist(imaginary, imaginary), RuntimeError, "cdist only supports floating-point dtypes"),
        (lambda: F.bilinear(x, x.double(), pullback.ones(1, 4, 4)), RuntimeError, "All tensors must have the same dtype"),
        (lambda: F.max_pool2d(whole[None, None] > 0, 2), NotImplementedError, "\"max_pool2d\" not implemented for 'Bool'"),
        (lambda: F.interpolate(whole[None], 2), NotImplementedError, "not implemented for 'Long'"),
        (lambda: pullback.unique(imaginary), NotImplementedError, "\"unique\" not implemented for 'ComplexFloat'"),
    ],
)  # fmt: skip
def test_mixed_dtypes_are_refused(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_float32_parameters_beside_16_bits_are_taken() -> None:
    result = F.batch_norm(x.half(), None, None, wide.float(), wide.float(), True)
    assert result.dtype is pullback.float16


def test_running_statistics_of_an_instance_norm_may_have_another_dtype() -> None:
    mean, variance = pullback.zeros(4, dtype=pullback.float64), pullback.ones(4, dtype=pullback.float64)
    F.instance_norm(pullback.ones(2, 4, 3), mean, variance)
    assert mean.tolist() == pytest.approx([0.1] * 4)


def test_a_loss_of_logits_has_the_dtype_of_the_target() -> None:
    assert F.binary_cross_entropy_with_logits(x, x.half()).dtype is pullback.float16


def test_huber_loss_has_the_dtype_of_the_input() -> None:
    assert F.huber_loss(x, x.double()).dtype is pullback.float32
