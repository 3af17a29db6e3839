"""torch.masked: operations over the elements that a mask selects."""

from __future__ import annotations

import math

import pytest

import pullback
from pullback import Tensor, masked

X = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
MASK = [[True, False, True], [False, False, False]]


def _pair() -> tuple[Tensor, Tensor]:
    return pullback.tensor(X), pullback.tensor(MASK)


def test_sums_count_only_what_is_selected() -> None:
    x, mask = _pair()

    assert masked.sum(x, 1, mask=mask).tolist() == [4.0, 0.0]
    assert masked.prod(x, 1, mask=mask).tolist() == [3.0, 1.0]
    assert masked.cumsum(x, 1, mask=mask).tolist() == [[1.0, 1.0, 4.0], [0.0, 0.0, 0.0]]


def test_extrema_of_nothing_are_infinite() -> None:
    x, mask = _pair()

    assert masked.amax(x, 1, mask=mask).tolist() == [3.0, -math.inf]
    assert masked.amin(x, 1, mask=mask).tolist() == [1.0, math.inf]


def test_the_mean_of_nothing_is_not_a_number() -> None:
    x, mask = _pair()

    means = masked.mean(x, 1, mask=mask)

    assert means[0].item() == 2.0
    assert math.isnan(means[1].item())


def test_a_mask_is_broadcast_to_the_input() -> None:
    x = pullback.tensor(X)

    assert masked.sum(x, mask=pullback.tensor([True, False, False])).item() == 5.0


def test_a_mask_of_more_dimensions_is_refused() -> None:
    with pytest.raises(IndexError, match="expected broadcastable mask"):
        masked.sum(pullback.ones(2), mask=pullback.ones(1, 2, dtype=pullback.bool))


def test_the_mean_of_integers_is_refused() -> None:
    with pytest.raises(ValueError, match="Could not infer output dtype"):
        masked.mean(pullback.tensor([1, 2]))


def test_gradients_are_zero_outside_of_the_mask() -> None:
    x, mask = _pair()
    x.requires_grad_()

    masked.softmax(x[:1], 1, mask=mask[:1])[0, 0].backward()

    assert x.grad is not None
    assert x.grad[0, 1].item() == 0.0
    assert x.grad[0, 0].item() == pytest.approx(-x.grad[0, 2].item())
