"""Reductions, norms and losses where arguments are large, small, zero, infinite or missing."""

from __future__ import annotations

import math
from math import inf
from typing import Any

import numpy as np
import pytest

import pullback

F = pullback.nn.functional
torch: Any = pullback


def signs_of(tensor: Any) -> list[bool]:
    return np.signbit(tensor.detach().numpy()).reshape(-1).tolist()


@pytest.mark.parametrize("name", ["sum", "mean", "nansum", "nanmean", "cumsum"])
@pytest.mark.parametrize("count", [1, 2, 40, 700])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_sum_of_negative_zeros_is_the_positive_zero(name: str, count: int, dtype: str) -> None:
    zeros = pullback.full((count, 2), -0.0, dtype=getattr(pullback, dtype))
    assert not any(signs_of(getattr(zeros, name)(0)))
    assert not any(signs_of(getattr(zeros.t().contiguous(), name)(1)))


def test_a_long_product_of_float32_is_accurate_and_so_is_its_gradient() -> None:
    values = np.exp(np.random.default_rng(0).standard_normal((3, 50_000)) * 0.02).astype(np.float32)
    exact = np.prod(values.astype(np.float64), axis=1)
    x = pullback.from_numpy(values).requires_grad_()
    product = x.prod(1)
    product.sum().backward()
    assert np.max(np.abs(product.detach().numpy() / exact - 1)) < 1e-7
    assert np.max(np.abs(x.grad.numpy() * values / exact[:, None] - 1)) < 3e-7


@pytest.mark.parametrize("dim", [0, 1, (0, 1)])
def test_a_small_variance_about_a_large_mean_is_accurate(dim: Any) -> None:
    values = (1000 + 1e-3 * np.random.default_rng(0).standard_normal((64, 500))).astype(np.float32)
    exact = np.var(values.astype(np.float64), axis=dim, ddof=1)
    assert np.max(np.abs(pullback.var(pullback.from_numpy(values), dim).numpy() / exact - 1)) < 1e-6


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_a_standard_deviation_exists_where_its_square_does_not(size: float) -> None:
    x = pullback.tensor([1.0, 2.0, 3.0]) * size
    assert abs(x.std().item() / size - 1) < 1e-6


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_remainder_of_zero_has_the_sign_of_the_dividend(dtype: str) -> None:
    dividends = pullback.tensor([0.0, -0.0, 3.0, -3.0] * 9, dtype=getattr(pullback, dtype))
    expected = [False, True, False, True] * 9
    assert signs_of(pullback.remainder(dividends, 1.5)) == expected
    assert signs_of(pullback.remainder(dividends, -1.5)) == expected
    assert signs_of(pullback.remainder(dividends, pullback.full_like(dividends, -1.5))) == expected


@pytest.mark.parametrize("order", [0.5, 1.5, 2, 2.5])
def test_a_norm_has_the_gradient_zero_at_zero_but_no_second_derivative(order: float) -> None:
    x = pullback.zeros(3, requires_grad=True)
    (gradient,) = pullback.autograd.grad(pullback.linalg.vector_norm(x, order), x, create_graph=True)
    assert gradient.tolist() == [0.0, 0.0, 0.0]
    (second,) = pullback.autograd.grad(gradient.sum(), x)
    assert all(math.isnan(value) for value in second.tolist())


@pytest.mark.parametrize("order", [math.inf, -math.inf])
def test_a_norm_of_infinite_order_has_a_graph_of_its_gradient(order: float) -> None:
    x = pullback.tensor([2.0, -2.0], requires_grad=True)
    (gradient,) = pullback.autograd.grad(pullback.linalg.vector_norm(x, order), x, create_graph=True)
    assert gradient.tolist() == [0.5, -0.5]


def test_the_gradient_of_a_tiny_norm_is_finite() -> None:
    x = pullback.tensor([3e-20, 4e-20], requires_grad=True)  # float32: the square is representable, 1 / norm is large
    (pullback.linalg.vector_norm(x) * 1e20).backward()
    assert np.allclose(x.grad.numpy() / 1e20, [0.6, 0.8], rtol=1e-2)


@pytest.mark.parametrize("dtype", [pullback.float32, pullback.float64])
def test_the_norm_of_one_large_number_does_not_overflow(dtype: Any) -> None:
    x = pullback.tensor([[pullback.finfo(dtype).max]], dtype=dtype)
    assert pullback.linalg.vector_norm(x, dim=-1).item() == x.item()
    assert F.normalize(x, dim=-1).tolist() == [[1.0]]


def test_a_multi_margin_loss_of_infinite_scores_counts_only_slack() -> None:
    scores = pullback.tensor([[math.inf, 0.0], [0.0, -math.inf]])
    assert F.multi_margin_loss(scores, pullback.tensor([0, 0]), reduction="none").tolist() == [0.0, 0.0]


def test_an_rms_norm_of_empty_rows_is_empty() -> None:
    x = pullback.zeros(2, 0, requires_grad=True)
    y = F.rms_norm(x, (0,))
    y.sum().backward()
    assert y.shape == (2, 0)
    assert x.grad.shape == (2, 0)


def test_distances_that_count_differences_have_no_gradient() -> None:
    x = pullback.ones(3, requires_grad=True)
    distance = pullback.dist(x, pullback.zeros(3), 0)
    assert pullback.autograd.grad(distance, x, allow_unused=True) == (None,)


def test_long_rows_are_normalized_accurately() -> None:
    values = np.random.default_rng(0).standard_normal((2, 60_000)).astype(np.float32)
    wide = values.astype(np.float64)
    layer = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    root = wide / np.sqrt((wide**2).mean(1, keepdims=True) + 1e-5)
    x = pullback.from_numpy(values)
    assert np.max(np.abs(F.layer_norm(x, (60_000,)).numpy() - layer)) < 2e-6
    assert np.max(np.abs(F.rms_norm(x, (60_000,), eps=1e-5).numpy() - root)) < 2e-6
    channels = F.batch_norm(x.t().contiguous(), None, None, training=True).t()
    assert np.max(np.abs(channels.numpy() - layer)) < 4e-6


def test_the_gradient_of_a_long_running_product_is_accurate() -> None:
    values = np.exp(np.random.default_rng(0).standard_normal(20_000) * 0.02).astype(np.float32)
    x = pullback.from_numpy(values).requires_grad_()
    x.cumprod(0).sum().backward()
    wide = values.astype(np.float64)
    exact = np.cumsum(np.cumprod(wide)[::-1])[::-1] / wide
    assert np.max(np.abs(x.grad.numpy() / exact - 1)) < 1e-6


TOO_LARGE: dict[str, Any] = {
    "a list of floats": lambda: torch.tensor([1e10], dtype=torch.int32),
    "a float": lambda: torch.tensor(127.9, dtype=torch.int8),
    "nan": lambda: torch.tensor([float("nan")], dtype=torch.int64),
    "a negative float": lambda: torch.tensor([-0.5], dtype=torch.uint8),
    "padding": lambda: torch.nn.functional.pad(torch.zeros(1, dtype=torch.int8), (1, 0), value=300.0),
    "padding of halves": lambda: torch.nn.functional.pad(torch.zeros(1, dtype=torch.float16), (1, 0), value=1e10),
    "a bound": lambda: torch.zeros(1, dtype=torch.int32).clamp(max=2**31),
    "a mask of halves": lambda: torch.zeros(1, dtype=torch.float16).masked_fill(torch.tensor([True]), -1e9),
    "a complex number": lambda: torch.full((1,), 1e50, dtype=torch.complex64),
    "an exponent": lambda: torch.ones(1, dtype=torch.int32) ** (2**31),
}


@pytest.mark.parametrize("make", TOO_LARGE.values(), ids=TOO_LARGE)
def test_numbers_that_a_dtype_cannot_hold_are_refused(make: Any) -> None:
    with pytest.raises(RuntimeError, match=r"value cannot be converted to type .* without overflow"):
        make()


def test_16_bits_are_filled_with_infinity() -> None:
    x = torch.zeros(2, dtype=torch.float16)
    x[0] = -1e9
    made = [torch.full((1,), 1e10, dtype=torch.float16), x, torch.zeros(1, dtype=torch.float16).fill_(1e50)]
    assert [tensor.tolist() for tensor in made] == [[inf], [-inf, 0.0], [inf]]
