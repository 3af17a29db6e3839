"""One argument said in all the ways that PyTorch takes: NumPy's numbers, 0-dim tensors, other names, complex numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback

torch: Any = pullback
X = torch.arange(9.0).reshape(3, 3)
FIRST = torch.zeros(3, 3, dtype=torch.int64)


@pytest.mark.parametrize("k", [2, np.int64(2), np.int32(2), torch.tensor(2)], ids=repr)
def test_an_int_may_be_numpys_or_a_tensor(k: Any) -> None:
    assert torch.kthvalue(X, k).values.tolist() == [1.0, 4.0, 7.0]
    assert torch.hann_window(k).tolist() == [0.0, 1.0]
    assert len(torch.hsplit(torch.ones(2, 4), np.int64(2))) == 2


@pytest.mark.parametrize("p", [np.float64(0.5), np.float32(0.5), torch.tensor(0.5)], ids=repr)
def test_a_float_may_be_numpys_or_a_tensor(p: Any) -> None:
    torch.manual_seed(0)
    expected = torch.dropout(X, 0.5, True), torch.bernoulli(X, 0.5)
    torch.manual_seed(0)
    actual = torch.dropout(X, p, True), torch.bernoulli(X, p)
    assert [t.tolist() for t in actual] == [t.tolist() for t in expected]
    assert torch.allclose(X, X + 0.25, rtol=0.0, atol=p)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: torch.gather(X, axis=1, index=FIRST), X[:, :1].expand(3, 3)),
        (lambda: torch.index_select(X, axis=0, index=FIRST[0]), X[:1].expand(3, 3)),
        (lambda: X.gather(axis=0, index=FIRST), X[:1].expand(3, 3)),
        (lambda: torch.select(X, axis=0, index=1), X[1]),
        (lambda: torch.narrow(X, axis=1, start=0, length=1), X[:, :1]),
        (lambda: X.select(axis=0, index=1), X[1]),
        (lambda: X.narrow(axis=1, start=0, length=1), X[:, :1]),
        (lambda: torch.tensor([X.size(axis=0), X.stride(axis=0)]), torch.tensor([3, 3])),
        (lambda: X.index_fill(axis=0, index=torch.tensor([0, 1, 2]), value=2.0), torch.full((3, 3), 2.0)),
        (lambda: X.clone().scatter_(axis=0, index=FIRST[:1], src=X + 9), torch.cat([X[:1] + 9, X[1:]])),
    ],
)
def test_axis_stands_for_a_required_dim(call: Any, expected: Any) -> None:
    assert call().tolist() == expected.tolist()


@pytest.mark.parametrize("call", [lambda: torch.gather(X, 1), lambda: torch.scatter(X), lambda: torch.narrow(X, 0)])
def test_what_must_follow_dim_is_still_required(call: Any) -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        call()


def test_a_complex_number_without_imaginary_part_is_a_real_one() -> None:
    assert torch.addmm(X, X, X, beta=2 + 0j).tolist() == torch.addmm(X, X, X, beta=2).tolist()
    assert torch.full((1,), 2 + 0j, dtype=torch.int64).tolist() == [2]
    with pytest.raises(RuntimeError, match="without overflow"):
        torch.full((1,), 2 + 1j, dtype=torch.float32)


def test_names_of_arguments_are_pytorchs() -> None:
    assert torch.scalar_tensor(s=2.0).item() == 2.0
    assert torch.zeros(3, 3).copy_(other=X).tolist() == X.tolist()
    assert X.sum_to_size(size=(1, 3)).tolist() == [[9.0, 12.0, 15.0]]
    assert torch.ones(4).resize_(size=(2, 2)).shape == (2, 2)
    assert torch.repeat_interleave(repeats=torch.tensor([1, 2])).tolist() == [0, 1, 1]


def test_the_fill_value_of_full_has_no_dtype() -> None:
    assert torch.full((1,), torch.tensor(1, dtype=torch.uint8)).dtype is torch.int64
    assert torch.full((1,), torch.tensor(1.0, dtype=torch.float64)).dtype is torch.float32


def test_nansum_counts_nan_as_zero_before_it_converts() -> None:
    assert torch.tensor([1.0, float("nan")]).nansum(dtype=torch.int64).item() == 1
    assert torch.nanmean(X, dtype=float).dtype is torch.float64


@pytest.mark.parametrize(
    ("call", "strides"),
    [
        (lambda x: x.triu(), (12, 4, 1)),
        (lambda x: x.tile((1,)), (12, 4, 1)),
        (lambda x: x.rot90(0), (12, 4, 1)),
        (lambda x: x.argsort(), (1, 2, 6)),
        (lambda x: x.index_fill(0, torch.tensor([0]), 1.0), (1, 2, 6)),
        (lambda x: x.topk(2).indices, (6, 2, 1)),
    ],
)
def test_results_lie_in_memory_as_pytorchs(call: Any, strides: tuple[int, ...]) -> None:
    transposed = torch.arange(24.0).reshape(4, 3, 2).transpose(0, 2)
    assert call(transposed).stride() == strides


@pytest.mark.parametrize(
    ("name", "older", "newer"),
    [
        ("add", lambda x: torch.add(x, 2, x), lambda x: x + 2 * x),
        ("add", lambda x: x.add(2, x), lambda x: x + 2 * x),
        ("add_", lambda x: x.clone().add_(-2, x), lambda x: x - 2 * x),
        ("sub", lambda x: torch.sub(x, 2, x), lambda x: x - 2 * x),
        ("sub_", lambda x: x.clone().sub_(2, x), lambda x: x - 2 * x),
        ("addcmul", lambda x: torch.addcmul(x, 2, x, x), lambda x: x + 2 * x * x),
        ("addcmul_", lambda x: x.clone().addcmul_(2, x, x), lambda x: x + 2 * x * x),
        ("addcdiv", lambda x: torch.addcdiv(x, 2, x, x + 1), lambda x: x + 2 * x / (x + 1)),
        ("addcdiv_", lambda x: x.clone().addcdiv_(-2, x, x + 1), lambda x: x - 2 * x / (x + 1)),
        ("addmm", lambda x: torch.addmm(3, x, 2, x, x), lambda x: 3 * x + 2 * (x @ x)),
        ("addmm", lambda x: torch.addmm(3, x, x, x), lambda x: 3 * x + x @ x),
        ("addmm", lambda x: x.addmm(3, 2, x, x), lambda x: 3 * x + 2 * (x @ x)),
        ("addmm_", lambda x: x.clone().addmm_(3, 2, x, x), lambda x: 3 * x + 2 * (x @ x)),
        ("addmm_", lambda x: x.clone().addmm_(3, x, x), lambda x: 3 * x + x @ x),
        ("addmv", lambda x: torch.addmv(3, x[0], 2, x, x[1]), lambda x: 3 * x[0] + 2 * (x @ x[1])),
        ("addmv_", lambda x: x[0].clone().addmv_(3, 2, x, x[1]), lambda x: 3 * x[0] + 2 * (x @ x[1])),
        ("addr", lambda x: torch.addr(3, x, 2, x[0], x[1]), lambda x: 3 * x + 2 * torch.outer(x[0], x[1])),
        ("addr_", lambda x: x.clone().addr_(3, x[0], x[1]), lambda x: 3 * x + torch.outer(x[0], x[1])),
        ("addbmm", lambda x: torch.addbmm(3, x, 2, x[None], x[None]), lambda x: 3 * x + 2 * (x @ x)),
        ("baddbmm", lambda x: torch.baddbmm(3, x[None], 2, x[None], x[None])[0], lambda x: 3 * x + 2 * (x @ x)),
    ],
)
def test_factors_before_tensors_are_taken_with_a_warning(name: str, older: Any, newer: Any) -> None:
    with pytest.warns(UserWarning, match=f"This overload of {name} is deprecated") as caught:
        result = older(X)
    assert result.tolist() == newer(X).tolist()
    assert caught[0].filename == __file__


@pytest.mark.parametrize("call", [lambda: torch.add(X, X, 2), lambda: X.add(X, 2), lambda: torch.addmm(X, 1, X, X)])
def test_a_factor_elsewhere_is_refused(call: Any) -> None:
    with pytest.raises(TypeError):
        call()


@pytest.mark.parametrize("function", [torch.add, torch.sub, torch.mul, torch.floor_divide])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "int64", "float16", "float32", "complex64"])
def test_a_number_before_a_0_dim_tensor_does_not_widen_it(function: Any, dtype: str) -> None:
    other = torch.tensor(2, dtype=getattr(torch, dtype))
    if other.is_complex() and function is torch.floor_divide:
        return
    assert function(5, other).dtype is other.dtype
    assert function(5, other).item() == function(torch.tensor(5, dtype=other.dtype), other).item()


def test_a_number_before_a_0_dim_tensor_widens_to_its_own_category() -> None:
    assert torch.add(300, torch.tensor(2, dtype=torch.uint8)).item() == 46
    assert torch.add(2.5, torch.tensor(2, dtype=torch.uint8)).dtype is torch.float32
    assert torch.div(300, torch.tensor(2, dtype=torch.uint8)).item() == 150.0
    assert torch.div(2.5, torch.tensor(2, dtype=torch.float16)).dtype is torch.float16
    assert torch.xlogy(torch.tensor([2], dtype=torch.uint8), -2).isnan().item()
    with pytest.raises(RuntimeError, match="bool tensor is not supported"):
        torch.sub(True, torch.tensor(2))


def test_float_power_of_half_precision_and_a_complex_tensor_is_complex() -> None:
    assert torch.float_power(torch.ones(2, dtype=torch.float16), torch.tensor(2j)).dtype is torch.complex128


SIGN = torch.tensor([1.0, -1.0, 1.0])


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("binary_cross_entropy_with_logits", (X, X / 9)),
        ("kl_div", (X, X / 9)),
        ("hinge_embedding_loss", (X, SIGN.expand(3, 3))),
        ("margin_ranking_loss", (X[0], X[1], SIGN)),
        ("triplet_margin_loss", (X, X + 1, X + 2)),
        ("cosine_embedding_loss", (X, X + 1, SIGN)),
    ],
)
@pytest.mark.filterwarnings("ignore:reduction")
def test_losses_of_the_top_level_take_numbers_for_reductions(name: str, given: Any) -> None:
    loss, named = getattr(torch, name), getattr(torch.nn.functional, name)
    for number, reduction in enumerate(["none", "mean", "sum"]):
        assert loss(*given, reduction=number).tolist() == named(*given, reduction=reduction).tolist()
    assert loss(*given).tolist() == loss(*given, reduction=0).tolist()
    with pytest.raises(TypeError, match="must be int"):
        loss(*given, reduction="mean")


def test_losses_of_the_top_level_have_their_own_order_of_arguments() -> None:
    weight = torch.arange(3.0) + 1
    logits = torch.binary_cross_entropy_with_logits(X, X / 9, None, weight, 1)
    assert logits.item() == torch.nn.functional.binary_cross_entropy_with_logits(X, X / 9, pos_weight=weight).item()
    counts = torch.poisson_nll_loss(X, X, True, False, 1e-8, 2)
    assert counts.item() == torch.nn.functional.poisson_nll_loss(X, X, reduction="sum").item()
    assert torch.margin_ranking_loss(X, X + 1, SIGN, 0.0, 2).item() == 6.0
    lengths = torch.tensor([3])
    chances = torch.log_softmax(X, 1)[:, None]
    assert torch.ctc_loss(chances, FIRST[:1, :1] + 1, lengths, lengths // 3).shape == (1,)


def test_methods_take_several_ints_without_a_tuple() -> None:
    assert X.count_nonzero(0, 1).item() == X.count_nonzero((0, 1)).item() == X.count_nonzero().item() == 8
    assert X.count_nonzero(dim=0).tolist() == X.count_nonzero(0).tolist() == [2, 3, 3]
    assert [part.tolist() for part in X.hsplit(1, 2)] == [part.tolist() for part in torch.hsplit(X, (1, 2))]
    assert [len(X.vsplit(1, 2)), len(X.vsplit(3)), len(X[None].dsplit(indices=(1,)))] == [3, 3, 2]


def test_factors_of_solutions_go_by_their_position() -> None:
    right, factor = torch.ones(2, 1), torch.tensor([[2.0, 0.0], [1.0, 3.0]])
    assert torch.cholesky_solve(right, input2=factor).tolist() == right.cholesky_solve(factor).tolist()
    reflectors, scales = torch.geqrf(factor)
    product = torch.ormqr(reflectors, input2=scales, input3=right)
    assert product.tolist() == reflectors.ormqr(scales, right).tolist()


@pytest.mark.parametrize("call", [lambda: X.select(0), lambda: X.narrow(0, 1), lambda: X.select(), lambda: X.hsplit()])
def test_methods_still_need_their_arguments(call: Any) -> None:
    with pytest.raises(TypeError):
        call()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.complex64, torch.int32])
def test_bytes_read_as_another_type_have_no_gradient(dtype: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    read = x.view(dtype)
    assert (read.requires_grad, read._is_view()) == (False, False)
    assert read.data_ptr() == x.data_ptr()


@pytest.mark.parametrize("q", [0.3, torch.tensor([0.3, 0.5])])
@pytest.mark.parametrize("function", [torch.quantile, torch.nanquantile])
def test_quantiles_are_no_views(function: Any, q: Any) -> None:
    x = X.clone().requires_grad_()
    result = function(x, q, dim=1)
    assert (result._is_view(), result.grad_fn.name()) == (False, "SqueezeBackward4")
    result.mul_(2).sum().backward()
    assert x.grad.sum().item() == pytest.approx(2 * result.numel())


def test_nodes_tell_which_argument_was_a_number() -> None:
    x = torch.ones(2, requires_grad=True)
    calls = [torch.xlogy(x, x), torch.xlogy(2.0, x), torch.xlogy(x, 2.0), torch.special.xlog1py(2.0, x)]
    names = [result.grad_fn.name() for result in calls]
    assert names == ["XlogyBackward0", "XlogyBackward1", "XlogyBackward2", "SpecialXlog1PyBackward1"]
    calls[2].sum().backward()
    assert x.grad.tolist() == pytest.approx([0.6931472, 0.6931472])
