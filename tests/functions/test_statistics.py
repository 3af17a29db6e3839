"""Variances, covariances and norms."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import pytest

import pullback

torch: Any = pullback


def test_unbiased_stands_for_a_correction_of_one() -> None:
    x = torch.tensor([1.0, 2.0, 3.0])
    assert x.var().item() == 1
    assert x.var(False).item() == pytest.approx(2 / 3)
    assert x.var(0, unbiased=False).item() == pytest.approx(2 / 3)
    assert x.var(0, correction=2).item() == 2


def test_too_few_elements_give_nan_and_a_warning() -> None:
    with np.errstate(invalid="ignore"), pytest.warns(UserWarning, match="degrees of freedom is <= 0"):
        assert torch.ones(1).var().isnan().item()


def test_variance_of_integers_is_refused() -> None:
    with pytest.raises(RuntimeError, match="std and var only support floating point and complex dtypes"):
        torch.tensor([1, 2]).var()


def test_the_gradient_of_std_at_no_deviation_is_zero() -> None:
    x = torch.ones(3, requires_grad=True)
    x.std().backward()
    assert x.grad.tolist() == [0, 0, 0]


def test_var_mean_gives_both() -> None:
    variance, mean = torch.var_mean(torch.tensor([1.0, 3.0]))
    assert (variance.item(), mean.item()) == (2, 2)


def test_cov_of_rows() -> None:
    x = torch.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]])
    assert x.cov().tolist() == [[1, -1], [-1, 1]]
    assert x.corrcoef().tolist() == [[1, -1], [-1, 1]]


def test_cov_weighs_observations() -> None:
    x = torch.tensor([0.0, 1.0])
    assert torch.cov(x, fweights=torch.tensor([1, 3])).item() == pytest.approx(0.25)
    with pytest.raises(RuntimeError, match="two or fewer dimensions"):
        torch.cov(torch.ones(1, 1, 1))


@pytest.mark.parametrize(("p", "expected"), [(0, 2), (1, 7), (2, 5), (inf, 4), (-inf, 3), ("fro", 5), (None, 5)])
def test_norms_of_a_vector(p: Any, expected: float) -> None:
    assert torch.tensor([3.0, -4.0]).norm(p).item() == pytest.approx(expected)


@pytest.mark.parametrize("p", [0.5, 1, 1.5, 2, 3, inf])
def test_the_gradient_of_a_norm_at_zero_is_zero(p: float) -> None:
    x = torch.zeros(3, requires_grad=True)
    x.norm(p).backward()
    assert x.grad.tolist() == [0, 0, 0]


def test_norm_of_integers_is_refused() -> None:
    with pytest.raises(RuntimeError, match="Expected a floating point or complex tensor as input"):
        torch.tensor([1, 2]).norm()


def test_renorm_scales_down_what_is_too_long() -> None:
    x = torch.tensor([[3.0, 4.0], [0.3, 0.4]])
    assert torch.allclose(x.renorm(2, 0, 1.0), torch.tensor([[0.6, 0.8], [0.3, 0.4]]))
    with pytest.raises(RuntimeError, match="input needs at least 2 dimensions"):
        torch.ones(2).renorm(2, 0, 1.0)


def test_dist_is_the_norm_of_the_difference() -> None:
    assert torch.dist(torch.tensor([4.0, 6.0]), torch.tensor([1.0, 2.0])).item() == 5


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
def test_the_gradient_of_a_mean_does_not_pass_through_the_variance_beside_it() -> None:
    x = pullback.tensor([2.0], requires_grad=True)
    pullback.var_mean(x)[1].backward()
    assert x.grad.tolist() == [1.0]

    y = pullback.tensor([1.0, 3.0], requires_grad=True)
    deviation, mean = pullback.std_mean(y)
    (gradient,) = pullback.autograd.grad(mean, y, create_graph=True)
    assert gradient.tolist() == [0.5, 0.5]
    (deviation + mean).backward()
    assert [round(g, 4) for g in y.grad.tolist()] == [-0.2071, 1.2071]


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
def test_the_gradient_of_a_variance_of_too_few_numbers_is_a_constant(dtype: Any) -> None:
    x = torch.tensor([1.0, 2.0], dtype=dtype, requires_grad=True)
    with pytest.warns(UserWarning, match="degrees of freedom is <= 0"):
        variances = x.var(correction=2), x.var(0, correction=2), x[:1].var()
    (whole,), (along,), (single,) = [torch.autograd.grad(v, x, create_graph=True) for v in variances]
    assert ([complex(v) for v in whole.tolist()], whole.requires_grad) == ([inf, inf], False)
    assert ([v.real for v in along.tolist()], along.requires_grad) == ([-inf, inf], True)
    assert np.isnan(single[0].item().real)
    assert (single[0].item().imag, single[1].item()) == (0, 0)
