"""make_fx: the graph of what a function calls is PyTorch's, and runs."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import pullback
import pullback.nn.functional as F
from pullback.fx.experimental.proxy_tensor import get_proxy_mode, make_fx
from pullback.tensor.tensor import new_tensor
from pullback.utils._pytree import tree_leaves
from tests.fx.traced_programs import RECORD, programs

EXPECTED = dict(part.split("\n", 1) for part in RECORD.read_text(encoding="utf-8").split("## ")[1:])


@pytest.mark.parametrize("name", programs(pullback))
def test_graph_is_that_of_pytorch(name: str) -> None:
    function, args = programs(pullback)[name]
    assert make_fx(function)(*args).code.strip() == EXPECTED[name].strip()


@pytest.mark.parametrize("name", [n for n in programs(pullback) if n != "writing to an argument"])
def test_graph_computes_the_same(name: str) -> None:
    function, args = programs(pullback)[name]
    traced = make_fx(function)(*args)
    computed, wanted = tree_leaves(traced(*args)), tree_leaves(function(*args))
    assert all(
        pullback.equal(c, w) if isinstance(w, pullback.Tensor) else c == w
        for c, w in zip(computed, wanted, strict=True)
    )


def test_reading_a_value_of_the_trace_is_refused() -> None:
    for read in (lambda x: x.sum().item(), lambda x: x if x.sum() > 0 else -x, lambda x: x * float(x[0])):
        with pytest.raises(RuntimeError, match="trying to get value out of a tracing tensor"):
            make_fx(read)(pullback.ones(2))
    constant = pullback.tensor(2.0)
    assert "mul.Tensor(x_1, 2.0)" in make_fx(lambda x: x * constant.item())(pullback.ones(2)).code
    assert get_proxy_mode() is None


def test_calls_are_taken_apart_by_the_table() -> None:
    table = {pullback.ops.aten.silu.default: lambda x: x * pullback.sigmoid(x)}
    code = make_fx(lambda x: pullback.nn.functional.silu(x), decomposition_table=table)(pullback.ones(2)).code
    assert "sigmoid" in code
    assert "silu" not in code


def test_modes_of_tracing() -> None:
    x = pullback.ones(2)

    def write(x: Any) -> Any:
        return x.add_(1)

    make_fx(write, tracing_mode="fake")(x)
    assert x.tolist() == [1.0, 1.0]
    make_fx(write)(x)
    assert x.tolist() == [2.0, 2.0]
    make_fx(write, tracing_mode="symbolic")(x)
    assert x.tolist() == [2.0, 2.0]
    with pytest.raises(AssertionError, match="tracing_mode must be real/fake/symbolic, got other"):
        make_fx(write, tracing_mode="other")


def test_a_wrong_number_of_arguments_is_refused() -> None:
    with pytest.raises(RuntimeError, match="Tracing expected 2 arguments but got 1 concrete arguments"):
        make_fx(lambda x, y: x)(pullback.ones(2))


def test_nodes_tell_shapes() -> None:
    traced = make_fx(lambda x: x @ x)(pullback.ones(2, 2))
    node = next(n for n in traced.graph.nodes if n.op == "call_function")
    assert node.target is pullback.ops.aten.mm.default
    assert node.meta["val"].shape == (2, 2)
    assert node.meta["val"].is_meta
    assert node.meta["tensor_meta"].dtype is pullback.float32


def test_containers_that_differ_from_the_examples_are_refused() -> None:
    traced = make_fx(lambda d: d["a"] * 2)({"a": pullback.ones(2)})
    assert traced({"a": pullback.ones(3)}).tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(ValueError, match="was traced with"):
        traced([pullback.ones(2)])


SYMBOLIC: dict[str, tuple[Any, Any, str]] = {
    "view": (lambda x: x.view(x.shape[0], -1) * x.shape[0], (4, 3, 2), "view.default(x_1, [sym_size_int, -1])"),
    "half": (lambda x: x[: x.shape[0] // 2], (4, 3), "floordiv = sym_size_int // 2"),
    "zeros": (lambda x: pullback.zeros(x.size(1), x.size(0)) + x.t(), (5, 7), "zeros.default([sym_size_int, sym_size_int_1]"),
    "gradient": (lambda x: pullback.func.grad(lambda x: (x * x).mean())(x), (5,), "expand.default(ones_like, [sym_size_int])"),
    "a size": (lambda x: x.sum() * (2 * x.shape[0] + 1), (5, 6), " + 1;"),
}  # fmt: skip


@pytest.mark.parametrize("name", SYMBOLIC)
def test_symbolic_sizes_are_read_from_the_arguments(name: str) -> None:
    function, shape, text = SYMBOLIC[name]
    traced = make_fx(function, tracing_mode="symbolic")(pullback.ones(shape))
    assert text in traced.code
    other = pullback.rand([size + 3 for size in shape])
    pullback.testing.assert_close(traced(other), function(other))


def test_a_size_that_the_function_fixes_stays_as_it_is() -> None:
    weight = pullback.rand(3, 2)
    traced = make_fx(lambda x: (x @ weight).view(-1, x.shape[1] - 1, 2), tracing_mode="symbolic")(pullback.ones(4, 3))
    assert "view.default(mm, [-1, 2, 2])" in traced.code
    assert traced(pullback.ones(6, 3)).shape == (3, 2, 2)
    pullback.manual_seed(1)
    expected = pullback.rand(1)
    pullback.manual_seed(1)
    make_fx(lambda x: x + pullback.rand(x.shape[0]), tracing_mode="symbolic")(pullback.ones(3))
    assert pullback.equal(pullback.rand(1), expected)


def test_batch_norm_and_attention_are_shown() -> None:
    mean, variance = pullback.zeros(3), pullback.ones(3)
    functions = [
        lambda x: F.batch_norm(x, mean, variance, None, None, False),
        lambda x: F.batch_norm(x, mean.clone(), variance.clone(), None, None, True),
        lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None]),
    ]
    for function, name in zip(functions, ["native_batch_norm", "native_batch_norm", "_safe_softmax"], strict=True):
        x = pullback.arange(6.0).reshape(2, 3)
        traced = make_fx(function)(x)
        assert f"aten.{name}.default" in [str(node.target) for node in traced.graph.nodes]
        pullback.testing.assert_close(traced(x * x), function(x * x))


def test_what_is_not_shown_is_refused_and_not_made_a_constant() -> None:
    with pytest.raises(
        NotImplementedError, match="make_fx does not see what computes a tensor, FftR2CBackward0's result"
    ):
        make_fx(lambda x: pullback.fft.rfft(x).abs())(pullback.ones(4, requires_grad=True))
    with pytest.raises(NotImplementedError, match="make_fx does not see what computes a tensor"):
        make_fx(lambda x: pullback.fft.rfft(x).abs())(pullback.ones(4))


def _of_numpy(values: Any) -> Any:
    return pullback.from_numpy(numpy.array(values, dtype="float32"))


@pytest.mark.parametrize("make", [_of_numpy, pullback.as_tensor, pullback.Tensor, pullback.tensor])
def test_tensors_made_of_data_are_constants(make: Any) -> None:
    traced = make_fx(lambda x: x * make([2.0, 3.0]))(pullback.ones(2))
    pullback.testing.assert_close(traced(pullback.ones(2) * 2), pullback.tensor([4.0, 6.0]))


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    "norm",
    [
        pullback.nn.BatchNorm1d(3), pullback.nn.BatchNorm1d(3, affine=False),
        pullback.nn.BatchNorm1d(3, track_running_stats=False), pullback.nn.InstanceNorm1d(3, affine=True),
    ],
)  # fmt: skip
def test_batch_norm_with_history_is_shown(norm: Any, training: bool) -> None:
    model = pullback.nn.Sequential(pullback.nn.Linear(3, 3), norm, pullback.nn.Tanh()).train(training)

    def slopes(x: Any) -> Any:
        return pullback.autograd.grad((model(x) ** 2).sum(), [x, *model.parameters()])

    x = pullback.linspace(-1, 1, 36).reshape(4, 3, 3).requires_grad_()
    traced = make_fx(slopes)(x)
    pullback.testing.assert_close(traced(x * x), slopes(x * x))


def test_attention_with_a_differentiable_mask_is_shown() -> None:
    def slope(q: Any) -> Any:
        mask = q[..., :1].sum(1, keepdim=True).expand(1, 2, 4, 4)
        mixed = pullback.nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=mask)
        return pullback.autograd.grad(mixed.sin().sum(), q)[0]

    q = pullback.linspace(-1, 1, 24).reshape(1, 2, 4, 3).requires_grad_()
    pullback.testing.assert_close(make_fx(slope)(q)(q * q), slope(q * q))


DRAWING: dict[str, Any] = {
    "dropout": (lambda x: F.dropout(x, 0.5), ["empty_like.default", "bernoulli_.float", "div_.Scalar", "mul.Tensor"]),
    "in place": (
        lambda x: F.dropout(x * 1, 0.5, inplace=True),
        ["mul.Tensor", "empty_like.default", "bernoulli_.float", "div_.Scalar", "mul_.Tensor"],
    ),
    "feature dropout": (
        lambda x: F.dropout1d(x, 0.5),
        ["empty.memory_format", "bernoulli_.float", "div_.Scalar", "mul.Tensor"],
    ),
    "randint": (lambda x: pullback.randint(2, 9, (4,)), ["randint.low"]),
    "randint up to": (lambda x: pullback.randint(high=9, size=(4,)), ["randint.default"]),
    "randint_like": (lambda x: pullback.randint_like(x, 9), ["randint_like.default"]),
    "randint_like from": (lambda x: pullback.randint_like(x, 2, 9), ["randint_like.low_dtype"]),
}


@pytest.mark.parametrize("name", DRAWING)
def test_graph_draws_what_the_function_draws(name: str) -> None:
    function, expected = DRAWING[name]
    graph = make_fx(function)(pullback.ones(2, 3, 4))
    calls = [str(node.target).removeprefix("aten.") for node in graph.graph.nodes if node.op == "call_function"]
    assert calls[-len(expected) :] == expected
    drawn = []
    for run in (function, graph):
        pullback.manual_seed(0)
        drawn.append(run(pullback.ones(2, 3, 4)))
    assert drawn[0].tolist() == drawn[1].tolist()


def test_view_by_strides_is_a_call_and_no_constant() -> None:
    graph = make_fx(lambda x: x.as_strided((2, 2), (1, 2), 1))(pullback.ones(2, 3))
    assert [str(node.target) for node in graph.graph.nodes][1] == "aten.as_strided.default"
    assert graph(pullback.arange(6.0).view(2, 3)).tolist() == [[1.0, 3.0], [2.0, 4.0]]


def test_view_of_an_input_that_is_not_seen_made_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="it would be a constant of the graph"):
        make_fx(lambda x: new_tensor(x._array[1:]))(pullback.ones(3))
