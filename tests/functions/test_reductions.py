"""Sums, means, products: forms, dtypes, precision, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback

torch: Any = pullback


def test_sum_of_everything_and_of_a_dim_are_different_nodes() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    assert x.sum().grad_fn.name() == "SumBackward0"
    assert x.sum(0).grad_fn.name() == "SumBackward1"
    assert x.mean().grad_fn.name() == "MeanBackward0"
    assert x.mean((0, 1)).grad_fn.name() == "MeanBackward1"
    assert x.prod().grad_fn.name() == "ProdBackward0"
    assert x.prod(1).grad_fn.name() == "ProdBackward1"


def test_sum_accepts_numpys_names() -> None:
    x = torch.ones(2, 3)
    assert x.sum(axis=1, keepdims=True).shape == (2, 1)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64"])
def test_integers_sum_to_int64(dtype: str) -> None:
    assert torch.ones(3, dtype=getattr(torch, dtype)).sum().dtype is torch.int64


def test_dtype_is_the_dtype_that_elements_are_added_in() -> None:
    assert torch.tensor([1.7, 2.6]).sum(dtype=torch.int32).item() == 3
    assert torch.tensor([1, 2]).mean(dtype=torch.float64).dtype is torch.float64


def test_mean_of_integers_is_refused() -> None:
    with pytest.raises(RuntimeError, match="could not infer output dtype"):
        torch.tensor([1, 2]).mean()


def test_an_integer_sum_of_a_tensor_that_requires_grad_is_refused() -> None:
    with pytest.raises(RuntimeError, match="Autograd not support dtype: Long"):
        torch.ones(2, requires_grad=True).sum(dtype=torch.int64)


def test_a_repeated_dim_is_refused() -> None:
    with pytest.raises(RuntimeError, match="dim 0 appears multiple times in the list of dims"):
        torch.ones(2, 3).sum((0, -2))


def test_a_dim_out_of_range_is_refused() -> None:
    with pytest.raises(IndexError, match=r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 2\)"):
        torch.ones(2, 3).sum(2)


def test_a_list_in_place_of_a_tensor_is_refused_under_the_public_name() -> None:
    with pytest.raises(TypeError, match=r"sum\(\): argument 'input' \(position 1\) must be Tensor, not list"):
        torch.sum([1, 2])


def test_keepdim_must_be_a_bool() -> None:
    with pytest.raises(TypeError, match="argument 'keepdim' must be bool"):
        torch.ones(2, 3).sum(0, 1)


@pytest.mark.parametrize(("shape", "dim"), [((100_000, 16), 0), ((64, 64, 16), (0, 1)), ((1 << 20,), None)])
def test_float32_sums_lose_little(shape: tuple[int, ...], dim: Any) -> None:
    values = np.random.default_rng(0).uniform(size=shape).astype(np.float32)
    actual = torch.from_numpy(values).sum(dim).numpy()
    expected = values.astype(np.float64).sum(dim)
    np.testing.assert_allclose(actual, expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_sums_in_single(dtype: str) -> None:
    x = torch.ones(5000, dtype=getattr(torch, dtype))
    assert x.sum().item() == pytest.approx(5000, rel=4e-3)
    assert x.mean().item() == 1


@pytest.mark.parametrize(("zeros", "expected"), [(0, [6.0, 3.0, 2.0]), (1, [6.0, 0.0, 0.0]), (2, [0.0, 0.0, 0.0])])
def test_the_gradient_of_a_product_is_right_with_zeros(zeros: int, expected: list[float]) -> None:
    x = torch.tensor([0.0] * zeros + [1.0, 2.0, 3.0][zeros:], requires_grad=True)
    x.prod().backward()
    assert x.grad.tolist() == expected


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("odd", [float("inf"), float("nan")])
def test_the_gradient_of_a_product_with_two_zeros_is_zero_beside_what_is_not_finite(
    odd: float, create_graph: bool
) -> None:
    x = torch.tensor([[0.0, odd], [0.0, 2.0]], requires_grad=True)
    (grad,) = torch.autograd.grad(x.prod(), x, create_graph=create_graph)
    assert grad.tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_nan_counts_as_nothing_in_nansum_and_nanmean() -> None:
    x = torch.tensor([1.0, float("nan"), 3.0], requires_grad=True)
    assert x.nansum().item() == 4
    x.nanmean().backward()
    assert x.grad.tolist() == [0.5, 0.0, 0.5]


def test_any_and_all_keep_uint8() -> None:
    assert torch.tensor([0, 2], dtype=torch.uint8).any().dtype is torch.uint8
    assert torch.tensor([0.0, 2.0]).all().tolist() is False


def test_an_empty_list_of_dims_reduces_nothing_in_any_and_everything_in_sum() -> None:
    assert torch.ones(2, 3).any(()).shape == (2, 3)
    assert torch.ones(2, 3).sum(()).shape == ()


def test_sums_of_nothing_are_neutral() -> None:
    empty = torch.empty(0, 3)
    assert empty.sum().item() == 0
    assert empty.prod().item() == 1
    assert empty.mean().isnan().item()
    assert empty.sum(0).tolist() == [0, 0, 0]


def test_out_is_written_and_resized() -> None:
    out = torch.empty(0)
    result = torch.sum(torch.ones(2, 3), 1, out=out)
    assert result is out
    assert out.tolist() == [3, 3]


def test_reductions_of_transposed_tensors_are_contiguous() -> None:
    x = torch.ones(4, 3, 2).transpose(0, 2)
    for result in (x.sum(0), x.mean(1), x.amax(0), x.var(0), x.logsumexp(0), x.cumsum(0), x.log_softmax(0)):
        assert result.is_contiguous()


@pytest.mark.parametrize("values", [[1e20, 1e20, 1e-20], [2.0, float("nan"), 3.0], [1e-30, 1e-30, 1e30]])
def test_both_paths_of_a_product_that_leaves_the_range_agree(values: list[float]) -> None:
    x = torch.tensor(values, requires_grad=True)
    (on_arrays,) = torch.autograd.grad(x.prod(), x)
    (on_tensors,) = torch.autograd.grad(x.prod(), x, create_graph=True)
    np.testing.assert_allclose(on_arrays.numpy(), on_tensors.detach().numpy(), rtol=1e-6)
