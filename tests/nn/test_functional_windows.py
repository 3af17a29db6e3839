"""Functions that slide a window: convolutions, pooling, unfolding, padding, resizing."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

import pullback
import pullback.nn.functional as F


def image(rows: list[list[float]]) -> Any:
    return pullback.tensor([[rows]])


COUNTING = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]


def test_a_convolution_is_a_sum_of_products_under_the_window() -> None:
    actual = F.conv2d(image(COUNTING), image([[1.0, 0.0], [0.0, -1.0]]))
    assert actual.tolist() == [[[[-4.0, -4.0], [-4.0, -4.0]]]]


def test_same_padding_keeps_the_size() -> None:
    assert F.conv2d(image(COUNTING), pullback.ones(1, 1, 2, 3), padding="same").shape == (1, 1, 3, 3)


def test_a_transposed_convolution_is_the_gradient_of_a_convolution() -> None:
    weight, small = pullback.randn(2, 3, 3, 3), pullback.randn(1, 2, 3, 3)
    large = pullback.zeros(1, 3, 7, 7, requires_grad=True)
    F.conv2d(large, weight, stride=2).backward(small)
    pullback.testing.assert_close(large.grad, F.conv_transpose2d(small, weight, stride=2))


def test_a_batch_of_none_has_a_result_of_none() -> None:
    x = pullback.zeros(0, 3, 8, 8, requires_grad=True)
    weight = pullback.zeros(4, 3, 3, 3, requires_grad=True)
    result = F.conv2d(x, weight)
    result.sum().backward()
    assert result.shape == (0, 4, 6, 6)
    assert weight.grad.abs().sum().item() == 0


def test_a_large_batch_is_the_same_as_its_samples() -> None:
    x, weight = pullback.randn(40, 8, 20, 20), pullback.randn(8, 8, 3, 3)
    one_by_one = pullback.cat([F.conv2d(x[i : i + 1], weight) for i in range(40)])
    pullback.testing.assert_close(F.conv2d(x, weight), one_by_one)


def test_max_pool_gives_values_and_positions() -> None:
    values, indices = F.max_pool2d(image(COUNTING), 2, 1, return_indices=True)
    assert values.tolist() == [[[[5.0, 6.0], [8.0, 9.0]]]]
    assert indices.tolist() == [[[[4, 5], [7, 8]]]]


def test_a_nan_wins_every_window_it_is_in() -> None:
    x = image([[math.nan, 1.0, 2.0, 3.0]])
    assert str(F.max_pool2d(x, (1, 2)).tolist()) == "[[[[nan, 3.0]]]]"


def test_overlapping_windows_add_up_the_gradient_of_a_maximum() -> None:
    x = pullback.tensor([[[0.0, 5.0, 1.0]]], requires_grad=True)
    F.max_pool1d(x, 2, 1).sum().backward()
    assert x.grad.tolist() == [[[0.0, 2.0, 0.0]]]


@pytest.mark.parametrize(("include", "expected"), [(True, 0.5), (False, 1.0)])
def test_padding_counts_in_a_mean_only_if_asked(include: bool, expected: float) -> None:
    x = pullback.tensor([[[1.0, 2.0]]])
    assert F.avg_pool1d(x, 2, 3, 1, count_include_pad=include).tolist() == [[[expected]]]


def test_adaptive_pools_cover_everything() -> None:
    x = pullback.tensor([[[1.0, 2.0, 3.0, 4.0, 5.0]]])
    assert F.adaptive_avg_pool1d(x, 2).tolist() == [[[2.0, 4.0]]]
    assert F.adaptive_max_pool1d(x, 2).tolist() == [[[3.0, 5.0]]]


def test_unpooling_puts_maxima_back() -> None:
    values, indices = F.max_pool2d(image([[1.0, 4.0], [3.0, 2.0]]), 2, return_indices=True)
    assert F.max_unpool2d(values, indices, 2).tolist() == [[[[0.0, 4.0], [0.0, 0.0]]]]


def test_folding_what_was_unfolded_counts_how_often_each_pixel_was_seen() -> None:
    columns = F.unfold(pullback.ones(1, 1, 3, 3), 2)
    assert F.fold(columns, (3, 3), 2).tolist() == [[[[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.0]]]]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("constant", [0.0, 0.0, 1.0, 2.0, 3.0, 0.0]),
        ("reflect", [3.0, 2.0, 1.0, 2.0, 3.0, 2.0]),
        ("replicate", [1.0, 1.0, 1.0, 2.0, 3.0, 3.0]),
        ("circular", [2.0, 3.0, 1.0, 2.0, 3.0, 1.0]),
    ],
)
def test_padding_modes(mode: str, expected: list[float]) -> None:
    assert F.pad(pullback.tensor([[1.0, 2.0, 3.0]]), (2, 1), mode).tolist() == [expected]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("nearest", [0.0, 0.0, 4.0, 4.0]), ("linear", [0.0, 1.0, 3.0, 4.0])],
)
def test_resizing(mode: str, expected: list[float]) -> None:
    assert F.interpolate(pullback.tensor([[[0.0, 4.0]]]), scale_factor=2, mode=mode).tolist() == [[expected]]


def test_resizing_to_the_same_size_is_a_copy() -> None:
    x = pullback.ones(1, 1, 2, 2)
    same = F.interpolate(x, size=2)
    same.add_(1)
    assert x.tolist() == [[[[1.0, 1.0], [1.0, 1.0]]]]


def test_the_grid_of_the_identity_samples_the_image_itself() -> None:
    identity = pullback.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    grid = F.affine_grid(identity, (1, 1, 3, 3), align_corners=False)
    pullback.testing.assert_close(F.grid_sample(image(COUNTING), grid, align_corners=False), image(COUNTING))


def test_second_order_of_sampling_at_points_exists() -> None:
    x, grid = pullback.randn(1, 1, 4, 4), pullback.rand(1, 2, 2, 2, requires_grad=True)
    (first,) = pullback.autograd.grad(
        F.grid_sample(x, grid, "bicubic", align_corners=True).sum(), grid, create_graph=True
    )
    (second,) = pullback.autograd.grad(first.sum(), grid)
    assert second.abs().sum().item() > 0


@pytest.mark.parametrize("sample", [pullback.grid_sampler, pullback.grid_sampler_2d])
def test_a_grid_of_points_in_space_does_not_sample_a_plane(sample: Any) -> None:
    with pytest.raises(
        RuntimeError, match=r"expected grid to have size 2 in last dimension, but got .* \[1, 3, 3, 3\]"
    ):
        sample(image(COUNTING), pullback.zeros(1, 3, 3, 3), 0, 0, False)


def test_the_gradient_of_nearest_sampling_stays_on_the_graph_of_the_grid() -> None:
    x, grid = image(COUNTING).requires_grad_(), pullback.zeros(1, 2, 2, 2, requires_grad=True)
    sampled = F.grid_sample(x, grid, "nearest", align_corners=True)
    (first,) = pullback.autograd.grad(sampled.sum(), x, create_graph=True)
    assert pullback.autograd.grad(first.sum(), grid)[0].tolist() == [[[[0.0, 0.0]] * 2] * 2]


def test_bags_of_no_offsets_are_refused_where_the_last_one_counts() -> None:
    nothing = pullback.zeros(0, dtype=pullback.int64)
    with pytest.raises(RuntimeError, match="include_last_offset: number of offset should be at least 1"):
        F.embedding_bag(nothing, pullback.ones(4, 3), nothing, include_last_offset=True)


def test_a_kernel_larger_than_the_input_is_refused() -> None:
    with pytest.raises(RuntimeError, match="Kernel size can't be greater than actual input size"):
        F.conv2d(image(COUNTING), pullback.ones(1, 1, 5, 5))


def test_what_is_no_tensor_is_refused() -> None:
    with pytest.raises(TypeError, match=r"conv2d\(\)"):
        F.conv2d([[1.0]], pullback.ones(1, 1, 1, 1))


EMPTY = [
    (lambda x: F.max_pool2d(x, 2), (0, 4, 2, 2)),
    (lambda x: F.adaptive_max_pool2d(x, 3), (0, 4, 3, 3)),
    (lambda x: F.adaptive_avg_pool2d(x, 3), (0, 4, 3, 3)),
    (lambda x: F.fractional_max_pool2d(x, 2, 3), (0, 4, 3, 3)),
    (lambda x: F.group_norm(x, 2), (0, 4, 4, 4)),
    (lambda x: F.interpolate(x, size=8, mode="bilinear"), (0, 4, 8, 8)),
    (lambda x: F.grid_sample(x, pullback.zeros(0, 2, 2, 2), align_corners=False), (0, 4, 2, 2)),
    (lambda x: F.pixel_shuffle(x, 2), (0, 1, 8, 8)),
    (lambda x: F.channel_shuffle(x, 2), (0, 4, 4, 4)),
    (lambda x: F.unfold(x, 2), (0, 16, 9)),
    (lambda x: F.pad(x, (1, 1, 0, 0), "replicate"), (0, 4, 4, 6)),
]


@pytest.mark.parametrize(("call", "shape"), EMPTY)
def test_nothing_in_gives_nothing_out_and_a_gradient_of_nothing(call: Any, shape: Any) -> None:
    x = pullback.zeros(0, 4, 4, 4, requires_grad=True)
    result = call(x)
    result.sum().backward()
    assert result.shape == shape
    assert x.grad.shape == x.shape


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.max_pool1d(x, 2),
        lambda x: F.avg_pool1d(x, 2),
        lambda x: F.adaptive_avg_pool1d(x, 2),
        lambda x: F.pad(x, (1, 1), mode="reflect"),
        lambda x: F.nll_loss(x.flatten(1), pullback.tensor([0, 1])),
    ],
)
def test_the_second_derivative_of_piecewise_linear_functions_is_zero_and_not_absent(function: Any) -> None:
    x = pullback.arange(12.0).reshape(2, 2, 3).requires_grad_()
    (gradient,) = pullback.autograd.grad(function(x).sum(), x, create_graph=True)
    (second,) = pullback.autograd.grad(gradient.sum(), x)
    assert second.abs().max().item() == 0.0


@pytest.mark.parametrize(
    ("call", "phrase"),
    [
        (
            lambda: F.pad(pullback.zeros(2, 3, 0), (1, 1), mode="replicate"),
            "Expected 2D or 3D (batch mode) tensor with",
        ),
        (lambda: F.pad(pullback.zeros(0, 4, 4), (1, 1, 1, 1), mode="reflect"), "Expected 3D or 4D (batch mode) tensor"),
        (
            lambda: F.interpolate(pullback.zeros(2, 3, 4, 0), size=(2, 2), mode="area"),
            "adaptive_avg_pool2d(): Expected",
        ),
        (
            lambda: F.fractional_max_pool2d(pullback.zeros(2, 3, 4, 0), 2, output_size=(1, 1)),
            "non-zero size for non-batch",
        ),
        (
            lambda: F.conv1d(pullback.zeros(1, 4, 0), pullback.zeros(2, 4, 1), padding=1),
            "but got input shape: [1, 4, 1, 0]",
        ),
        (lambda: F.conv_transpose2d(pullback.zeros(1, 4, 5, 0), pullback.zeros(4, 2, 3, 3)), "Only zero batch or zero"),
        (lambda: F.fold(pullback.zeros(0, 4), (2, 2), (2, 2)), "possibly 0 batch size and non-zero dimensions"),
        (lambda: F.affine_grid(pullback.zeros(1, 2, 3), [4, 1, 4, 5], False), "to be: [4, 3] but got: [1, 3]"),
    ],
)
def test_images_without_pixels_are_refused(call: Any, phrase: str) -> None:
    with pytest.raises(RuntimeError, match=re.escape(phrase)):
        call()


@pytest.mark.parametrize("pool", [F.adaptive_avg_pool1d, F.adaptive_max_pool1d])
def test_pooling_of_no_channels_gives_none(pool: Any) -> None:
    assert pool(pullback.zeros(0, 4), 2).shape == (0, 2)


@pytest.mark.parametrize("mode", ["reflect", "replicate"])
def test_padding_of_no_images_gives_none(mode: str) -> None:
    assert F.pad(pullback.zeros(0, 3, 4), (1, 1), mode=mode).shape == (0, 3, 6)
