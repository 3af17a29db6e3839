"""Behaviour that the comparison with PyTorch once found to differ."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
from pullback.autograd import forward_ad


def test_the_tangent_of_nansum_leaves_nan_out() -> None:
    with forward_ad.dual_level():
        x = forward_ad.make_dual(pullback.tensor([2.0, float("nan"), -1.0]), pullback.tensor([1.0, 10.0, 100.0]))

        tangent = forward_ad.unpack_dual(pullback.nansum(x)).tangent
        assert tangent is not None
        assert tangent.item() == 101.0


def test_a_tensor_raised_to_a_tensor_by_the_reflected_operator_differentiates_both() -> None:
    exponent, base = (pullback.tensor(v, requires_grad=True) for v in (3.0, 2.0))

    exponent.__rpow__(base).backward()

    assert base.grad is not None
    assert base.grad.item() == 12.0
    assert exponent.grad is not None


def test_the_tangent_of_a_transposed_base_takes_writes_at_the_right_places() -> None:
    with forward_ad.dual_level():
        x = pullback.zeros(3, 2).t().clone()
        x[1] = forward_ad.make_dual(pullback.zeros(3), pullback.tensor([1.0, 2.0, 3.0]))

        tangent = forward_ad.unpack_dual(x).tangent
        assert tangent is not None
        assert tangent.tolist() == [[0.0, 0.0, 0.0], [1.0, 2.0, 3.0]]


def test_numbers_drawn_from_means_keep_a_history_of_zero_gradients() -> None:
    mean, deviation = pullback.zeros(1, 3, requires_grad=True), pullback.ones(2, 3)

    pullback.normal(mean, deviation).sum().backward()

    assert mean.grad is not None
    assert mean.grad.tolist() == [[0.0, 0.0, 0.0]]


def test_out_that_is_read_from_is_refused() -> None:
    x = pullback.tensor([1.0, 2.0, 3.0])

    with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to tensor"):
        pullback.gather(x, 0, pullback.tensor([0, 1, 2]), out=x)


def test_out_of_another_dtype_is_refused_where_pytorch_refuses_it() -> None:
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype float, but got double instead"):
        pullback.gather(pullback.ones(2), 0, pullback.tensor([0]), out=pullback.empty(1, dtype=pullback.float64))


def test_classes_named_twice_count_twice_in_the_multi_label_margin_loss() -> None:
    scores = pullback.tensor([[0.0, 1.0]])

    once = pullback.nn.functional.multilabel_margin_loss(scores, pullback.tensor([[0, -1]]))
    twice = pullback.nn.functional.multilabel_margin_loss(scores, pullback.tensor([[0, 0]]))

    assert twice.item() == 2 * once.item()


def test_output_padding_beyond_the_stride_is_cropped_from_the_gradient() -> None:
    x = pullback.ones(1, 1, 3, requires_grad=True)

    y = pullback.nn.functional.conv_transpose1d(x, pullback.ones(1, 1, 2), stride=2, output_padding=3, dilation=4)
    y.sum().backward()

    assert x.grad is not None
    assert x.grad.tolist() == [[[2.0, 2.0, 2.0]]]


def test_the_index_true_writes_to_the_whole_tensor() -> None:
    x = pullback.zeros(2)

    x[True] = pullback.tensor([[1, 2]])
    x[False] = 9.0

    assert x.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: pullback.diff(x, dim=7),
        lambda x: pullback.trapezoid(x, dim=7),
        lambda x: pullback.tensordot(x, x, dims=([7], [0])),
    ],
)
def test_a_dimension_out_of_range_is_refused(call: Any) -> None:
    with pytest.raises(IndexError, match=r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 7\)"):
        call(pullback.ones(2, 2))


def test_infinity_stays_in_the_windows_of_adaptive_pools_that_read_it() -> None:
    x = pullback.ones(1, 1, 23)
    x[0, 0, 0] = float("inf")
    assert pullback.adaptive_avg_pool1d(x, 5).tolist() == [[[float("inf"), 1.0, 1.0, 1.0, 1.0]]]
    assert pullback.adaptive_avg_pool1d(x, 2)[0, 0, 1].isfinite()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: pullback.nn.functional.pad(x, (-3, 2)), "narrow.*: length must be non-negative"),
        (lambda x: pullback.nn.functional.conv_transpose1d(x[:, :1], x, padding=2), "Output size is too small"),
        (lambda x: pullback.nn.functional.adaptive_avg_pool2d(x[..., :0], 2), "non-zero size for non-batch dimensions"),
        (lambda x: pullback.split(x.sum(), 1), "split expects at least a 1-dimensional tensor"),
        (lambda x: pullback.logical_and(x, pullback.ones(3)), "must match the size of tensor b"),
        (lambda x: pullback.linalg.pinv(x * float("nan")), "because the input matrix contained non-finite"),
        (lambda x: pullback.linalg.matrix_rank(x * float("nan")), "algorithm failed to converge"),
    ],
)  # fmt: skip
def test_what_pytorch_refuses_is_refused(call: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        call(pullback.ones(1, 2, 2))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.index_put((pullback.tensor([0]),), pullback.tensor(1.0)),
        lambda x: x.select_scatter(pullback.ones(5), 0, 0),
        lambda x: x.slice_scatter(pullback.ones(1, 5), 0, 0, 1),
        lambda x: x.diagonal_scatter(pullback.ones(3)),
    ],
)
def test_what_is_written_into_a_copy_keeps_the_order_in_memory(call: Any) -> None:
    assert call(pullback.ones(5, 3).t()).stride() == (1, 3)
