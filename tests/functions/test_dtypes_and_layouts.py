"""What a comparison with PyTorch over all dtypes, strides and empty tensors found; the numbers here are PyTorch's."""

from __future__ import annotations

from typing import Any

import pytest

import pullback


def test_comparison_in_place_in_complex32() -> None:
    pytest.importorskip("ml_dtypes")
    x = pullback.tensor([1 + 2j, 3 - 1j]).to(pullback.complex32)
    assert x.eq_(pullback.tensor([1 + 2j, 0]).to(pullback.complex32)).tolist() == [1 + 0j, 0j]


def test_out_is_written_in_complex32() -> None:
    pytest.importorskip("ml_dtypes")
    x = pullback.tensor([1 + 2j, 3 - 1j]).to(pullback.complex32)
    out = pullback.zeros(2, dtype=pullback.complex32)
    assert pullback.neg(x, out=out) is out
    assert out.tolist() == [-1 - 2j, -3 + 1j]
    size = pullback.zeros(2, dtype=pullback.float16)
    assert pullback.abs(pullback.tensor([3 + 4j, 0]).to(pullback.complex32), out=size).tolist() == [5.0, 0.0]
    assert size.tolist() == [5.0, 0.0]


def test_quotients_of_16_bits_are_rounded_at_every_step() -> None:
    pytest.importorskip("ml_dtypes")
    a = pullback.tensor([17.0, 138.0], dtype=pullback.bfloat16)
    b = pullback.tensor([0.9453125, -0.4453125], dtype=pullback.bfloat16)
    assert pullback.div(a, b, rounding_mode="trunc").tolist() == [18.0, -310.0]  # 17.98 is 18 in bfloat16
    assert pullback.div(a, b, rounding_mode="floor").tolist() == [17.0, -312.0]  # by way of the remainder


def test_floor_division_of_16_bits_goes_by_the_remainder() -> None:
    a = pullback.tensor([-7.0, 7.0, -0.0, 1.0, 5.0], dtype=pullback.float16)
    b = pullback.tensor([2.0, -2.0, 3.0, 0.0, 5.0], dtype=pullback.float16)
    assert (a // b).tolist() == [-4.0, -4.0, -0.0, float("inf"), 1.0]


@pytest.mark.parametrize("value", [0.1, 1 / 3, -7.7])
@pytest.mark.parametrize("size", [3, 7, 1001])
def test_equal_values_vary_by_nothing(value: float, size: int) -> None:
    x = pullback.full((2, size), value, dtype=pullback.float64, requires_grad=True)
    deviation = pullback.std(x, 1)
    assert deviation.tolist() == [0.0, 0.0]
    deviation.sum().backward()
    assert not x.grad.any()


def test_of_nothing_there_is_no_variance() -> None:
    empty = pullback.empty(0, 3)
    assert pullback.var(empty, correction=-1).isnan()
    assert all(part.isnan() for part in pullback.std_mean(empty, correction=-1))


def test_unique_refuses_empty_slices() -> None:
    for function in (pullback.unique, pullback.unique_consecutive):
        with pytest.raises(RuntimeError, match="0 sized dimensions, and they aren't selected"):
            function(pullback.empty(0, 3), dim=1)
        with pytest.raises(RuntimeError, match="zero sized dimensions is more than one"):
            function(pullback.empty(0, 3, 0), dim=0)
    with pytest.raises(NotImplementedError, match="\"unique_dim\" not implemented for 'ComplexFloat'"):
        pullback.unique_consecutive(pullback.ones(2, 2, dtype=pullback.complex64), dim=0)


def test_unique_slices_lie_one_after_the_other() -> None:
    x = pullback.tensor([[1.0, 0.0, 1.0], [2.0, 0.0, 2.0]])
    assert pullback.unique(x, dim=1).stride() == (1, 2)
    assert pullback.unique_consecutive(x, dim=1).stride() == (1, 2)


def test_histograms_by_dtype() -> None:
    x = pullback.tensor([0.5, 1.5, 1.75])
    half = pullback.histogram(x.half(), pullback.tensor([0.0, 1.0, 2.0]).half())
    assert half.hist.dtype == half.bin_edges.dtype == pullback.float16
    assert half.hist.tolist() == [1.0, 2.0]
    with pytest.raises(NotImplementedError, match="\"histogramdd\" not implemented for 'Half'"):
        pullback.histogram(x.half(), 2)
    with pytest.raises(NotImplementedError, match="\"histogram_cpu\" not implemented for 'Long'"):
        pullback.histogram(pullback.tensor([1]), pullback.tensor([0, 1]))
    with pytest.raises(RuntimeError, match="at least 1 element"):
        pullback.histogram(x, pullback.tensor([]))
    with pytest.raises(RuntimeError, match="same dtype"):
        pullback.histogram(x, pullback.tensor([0, 1]))
    with pytest.raises(RuntimeError, match="size of bins must be equal"):
        pullback.histogramdd(pullback.zeros(3, 0), [1])


def test_histc_rounds_at_every_step_in_16_bits() -> None:
    x = pullback.tensor([2.4], dtype=pullback.float16)
    found = pullback.histc(x, 100, -10, 10).nonzero().item()
    assert found == 62


def test_hash_tensor_refuses() -> None:
    with pytest.raises(IndexError, match="reduction dim 0 to have non-zero size"):
        pullback.hash_tensor(pullback.empty(0, 3), 0)
    with pytest.raises(NotImplementedError, match="\"xor_sum_cpu\" not implemented for 'ComplexFloat'"):
        pullback.hash_tensor(pullback.ones(2, dtype=pullback.complex64))


def test_reductions_of_transposed_tensors_are_dense() -> None:
    x = pullback.ones(3, 2, 4).permute(2, 1, 0)
    for function in (pullback.any, pullback.all, pullback.count_nonzero):
        assert function(x, 2).stride() == (2, 1)
    assert pullback.prod(x.to(pullback.complex64), 2).stride() == (2, 1)


def test_views_of_complex32() -> None:
    pytest.importorskip("ml_dtypes")
    x = pullback.tensor([[1 + 2j, 3 - 1j], [0, 1j]]).to(pullback.complex32)
    assert x.diagonal(1).tolist() == [3 - 1j]
    assert x.H.tolist() == [[1 - 2j, 0], [3 + 1j, -1j]]
    assert x.mH.tolist() == x.adjoint().tolist() == x.H.tolist()


def test_views_of_nothing_have_strides() -> None:
    assert pullback.empty(3, 4)[:0].as_strided((0, 2), (7, 3)).stride() == (7, 3)
    assert pullback.empty(4, 5, 5).diagonal(7, 0, 1).stride() == (1, 30)


def test_scattering_refuses_what_has_no_order() -> None:
    x, index = pullback.ones(2, 2, dtype=pullback.complex64), pullback.tensor([0])
    with pytest.raises(NotImplementedError, match="scatter_gather_tensor_cpu_reduce_amax"):
        x.scatter_reduce(0, pullback.zeros(2, 2, dtype=pullback.int64), x, "amax")
    with pytest.raises(NotImplementedError, match="maximum_cpu"):
        x.index_reduce(0, index, x[:1], "amax")
    with pytest.raises(NotImplementedError, match="index_reduce_func_exclude_input_init"):
        x.index_reduce(0, index, x[:1], "prod", include_self=False)
    assert x.index_reduce(0, index, x[:1] * 2, "prod").tolist() == [[2, 2], [1, 1]]
    with pytest.raises(NotImplementedError, match="\"searchsorted_out_cpu\" not implemented for 'Bool'"):
        pullback.searchsorted(pullback.tensor([False, True]), pullback.tensor([True]))
    assert pullback.searchsorted(pullback.tensor([0, 1]), pullback.tensor([True])).tolist() == [1]


def test_items_of_complex32_are_set() -> None:
    pytest.importorskip("ml_dtypes")
    x = pullback.ones(2, 3).to(pullback.complex32)
    x[pullback.tensor([0])] = 5
    x[:, pullback.tensor([0, 2])] = 1j
    assert x.tolist() == [[1j, 5, 1j], [1j, 1, 1j]]
    assert pullback.block_diag(pullback.ones(1, 1), x).dtype == pullback.complex64


@pytest.mark.parametrize(
    "function",
    [lambda x: sum(pullback.aminmax(x)), lambda x: pullback.linalg.vector_norm(x, float("inf"))],
    ids=["aminmax", "vector_norm"],
)
def test_extremes_of_everything_have_tangents_and_graphs(function: Any) -> None:
    x = pullback.tensor([[1.0, -3.0], [2.0, 0.5]], requires_grad=True)
    (gradient,) = pullback.autograd.grad(function(x), x, create_graph=True)
    _, tangent = pullback.func.jvp(function, (x.detach(),), (pullback.ones(2, 2),))
    assert tangent.item() == gradient.sum().item()


def test_operands_that_do_not_broadcast_need_not_be_neighbours() -> None:
    mask = pullback.ones(0, 10, dtype=pullback.bool)
    with pytest.raises(RuntimeError, match="must match the size of tensor b"):
        pullback.where(mask, pullback.ones(0, 1, 10), pullback.ones(0, 10, 1))


@pytest.mark.parametrize("name", ["multi_margin_loss", "multilabel_margin_loss"])
def test_margin_losses_of_no_samples_have_gradients(name: str) -> None:
    x = pullback.rand(0, 5, requires_grad=True)
    shape = (0,) if name == "multi_margin_loss" else (0, 5)
    loss = getattr(pullback.nn.functional, name)(x, pullback.zeros(shape, dtype=pullback.int64), reduction="sum")
    loss.backward()
    assert loss.item() == 0
    assert x.grad.shape == (0, 5)


def test_bilinear_of_no_samples_has_gradients() -> None:
    a, w = pullback.rand(0, 3, 4, requires_grad=True), pullback.rand(2, 4, 4, requires_grad=True)
    pullback.nn.functional.bilinear(a, a, w).sum().backward()
    assert a.grad.shape == (0, 3, 4)
    assert not w.grad.any()


def test_attention_of_no_features() -> None:
    q, k = pullback.rand(4, 3, 0), pullback.rand(4, 6, 0)
    assert pullback.nn.functional.scaled_dot_product_attention(q, k, k, is_causal=True).shape == (4, 3, 0)


def test_gumbel_noise_is_drawn_in_row_major_order() -> None:
    logits = pullback.rand(3, 4)
    pullback.manual_seed(0)
    expected = pullback.nn.functional.gumbel_softmax(logits)
    pullback.manual_seed(0)
    assert pullback.equal(pullback.nn.functional.gumbel_softmax(logits.t().contiguous().t()), expected)


def test_bools_are_clamped_from_one_side_only() -> None:
    x = pullback.tensor([True, False])
    assert pullback.clamp(x, ~x).tolist() == [True, True]
    with pytest.raises(NotImplementedError, match="\"clamp_cpu\" not implemented for 'Bool'"):
        pullback.clamp(x, x, x)


@pytest.mark.parametrize(("count", "r", "repeated"), [(1, 2, False), (0, 2, True), (2, 3, False)])
def test_no_combinations_still_have_a_history(count: int, r: int, repeated: bool) -> None:
    result = pullback.combinations(pullback.ones(count, requires_grad=True), r, repeated)
    assert result.shape == (0, r)
    assert result.requires_grad


def test_integers_of_16_bits_are_no_floats_of_16_bits() -> None:
    x = pullback.tensor([16392, 7, 32767], dtype=pullback.int16)
    y = pullback.tensor([16391, -20003, 2], dtype=pullback.int16)
    assert pullback.addcmul(x, y, y).tolist() == [-16327, 22736, -32765]
    for refused in (
        lambda: x.lerp(y, 2),
        lambda: pullback.nn.functional.gelu(x),
        lambda: pullback.nn.functional.elu(x),
    ):
        with pytest.raises(NotImplementedError, match="not implemented for 'Short'"):
            refused()
