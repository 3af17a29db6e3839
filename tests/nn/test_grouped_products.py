"""Products of matrices in groups: values and refusals recorded from PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
from pullback.nn import functional as F

ENDS = pullback.tensor([1, 3], dtype=pullback.int32)
STACK = pullback.arange(8.0).reshape(2, 2, 2)


def test_rows_meet_the_matrix_of_their_group() -> None:
    result = F.grouped_mm(pullback.arange(6.0).reshape(3, 2), STACK, offs=ENDS)
    assert result.tolist() == [[2.0, 3.0], [26.0, 31.0], [46.0, 55.0]]


def test_the_summed_dimension_is_cut() -> None:
    matrix = pullback.arange(6.0).reshape(2, 3)
    result = F.grouped_mm(matrix, matrix.reshape(3, 2), offs=ENDS)
    assert result.tolist() == [[[0.0, 0.0], [0.0, 3.0]], [[10.0, 13.0], [28.0, 37.0]]]


def test_gradient_of_unequal_groups() -> None:
    tokens = pullback.ones(3, 2, requires_grad=True)
    experts = STACK.clone().requires_grad_()
    F.grouped_mm(tokens, experts, offs=ENDS).sum().backward()
    assert tokens.grad.tolist() == [[1.0, 5.0], [9.0, 13.0], [9.0, 13.0]]
    assert experts.grad.tolist() == [[[1.0, 1.0], [1.0, 1.0]], [[2.0, 2.0], [2.0, 2.0]]]


@pytest.mark.parametrize(
    ("arguments", "keywords", "message"),
    [
        ((pullback.ones(3, 2), STACK), {}, "Have to provide offsets"),
        ((STACK, STACK), {"offs": ENDS}, "Have to provide offsets"),
        ((pullback.ones(3, 2), STACK), {"offs": ENDS.long()}, "Offsets have to be int32"),
        ((pullback.ones(3, 2), STACK), {"offs": ENDS[:1]}, "matrix batch sizes have to match"),
        ((pullback.ones(3, 3), STACK), {"offs": ENDS}, "contraction dimension of mat_a and mat_b must match"),
        ((pullback.ones(3, 2).double(), STACK), {"offs": ENDS}, "Expected mat_a to be Float32"),
        ((pullback.ones(2), STACK), {"offs": ENDS}, "mat_a has to be 2 or 3d"),
        ((pullback.ones(3, 2), STACK), {"offs": ENDS, "bias": ENDS}, "Bias not supported yet"),
    ],
)
def test_refusals(arguments: Any, keywords: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        F.grouped_mm(*arguments, **keywords)


def test_products_with_scales_are_refused() -> None:
    one, recipe = pullback.tensor(1.0), F.ScalingType.TensorWise
    with pytest.raises(ValueError, match="Invalid scaling configuration"):
        F.scaled_mm(pullback.ones(2, 2), pullback.ones(2, 2), one, recipe, one, recipe)
    with pytest.raises(NotImplementedError, match="Could not run 'aten::_scaled_grouped_mm_v2'"):
        F.scaled_grouped_mm(pullback.ones(2, 2), pullback.ones(2, 2), one, recipe, one, recipe)
