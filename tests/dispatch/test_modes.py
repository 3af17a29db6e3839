"""TorchDispatchMode: what a mode sees, and what its answers become."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pullback
from pullback.utils._python_dispatch import TorchDispatchMode

aten = pullback.ops.aten


class Log(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(func)
        return func(*args, **(kwargs or {}))


def test_a_mode_sees_operations_of_forward_and_backward() -> None:
    x = pullback.ones(2, 2, requires_grad=True)
    with Log() as log:
        (x @ x).tanh().sum().backward()
    assert [str(func) for func in log.seen] == [
        "aten.mm.default", "aten.tanh.default", "aten.detach.default", "aten.sum.default",
        "aten.ones_like.default", "aten.expand.default", "aten.detach.default", "aten.tanh_backward.default",
        "aten.t.default", "aten.mm.default", "aten.t.default", "aten.mm.default", "aten.add.Tensor",
        "aten.detach.default",
    ]  # fmt: skip
    assert log.seen[0] is aten.mm.default


def test_gradients_under_a_mode_are_those_without() -> None:
    layer = pullback.nn.Sequential(
        pullback.nn.Linear(3, 4), pullback.nn.LayerNorm(4), pullback.nn.GELU(), pullback.nn.Linear(4, 2)
    )
    x = pullback.randn(5, 3)
    target = pullback.tensor([0, 1, 1, 0, 1])
    parameters = list(layer.parameters())
    expected = pullback.autograd.grad(pullback.nn.functional.cross_entropy(layer(x), target), parameters)
    with Log():
        actual = pullback.autograd.grad(pullback.nn.functional.cross_entropy(layer(x), target), parameters)
    pullback.testing.assert_close(actual, expected)


def test_modes_nest_and_run_the_one_around_them() -> None:
    order: list[str] = []

    class Named(TorchDispatchMode):
        def __init__(self, name: str) -> None:
            self.name = name  # the base's __init__ need not be called

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            order.append(f"{self.name} {func}")
            return func(*args, **(kwargs or {}))

    x = pullback.ones(2)
    with Named("outer"), Named("inner"):
        x + 1
    assert order == ["inner aten.add.Tensor", "outer aten.add.Tensor"]
    x + 1
    assert len(order) == 2


def test_nothing_is_recorded_inside_of_a_mode() -> None:
    states: list[Any] = []

    class Look(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            states.append((pullback.is_grad_enabled(), args[0].requires_grad, result.requires_grad))
            return result

    x = pullback.ones(2, requires_grad=True)
    with Look():
        y = x * 2
    assert states == [(True, True, False)]
    assert type(y.grad_fn).__name__ == "MulBackward0"


def test_what_a_mode_returns_is_the_result_and_gets_the_history() -> None:
    class Negate(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            return result.neg() if func is aten.mul.Tensor else result

    x = pullback.ones(2, requires_grad=True)
    with Negate():
        y = x * 3
    assert y.tolist() == [-3.0, -3.0]
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_a_mode_that_returns_its_argument_does_not_give_it_a_history() -> None:
    class Same(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return args[0]

    x = pullback.ones(2, requires_grad=True)
    with Same():
        y = x.sin()
    assert y is not x
    assert x.is_leaf
    assert type(y.grad_fn).__name__ == "SinBackward0"


def test_writing_in_place_counts_once_and_keeps_the_history() -> None:
    x = pullback.ones(2, requires_grad=True)
    y = x.clone()
    with Log() as log:
        y.mul_(3)
        y[0].add_(1)
    assert [str(f) for f in log.seen] == ["aten.mul_.Tensor", "aten.select.int", "aten.add_.Tensor"]
    assert (y.tolist(), y._version) == ([4.0, 3.0], 2)
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_a_leaf_cannot_be_written_to_under_a_mode_either() -> None:
    x = pullback.ones(2, requires_grad=True)
    with (
        Log() as log,
        pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place"),
    ):
        x.mul_(2)
    assert log.seen == []


def test_views_under_a_mode_share_memory_with_their_base() -> None:
    x = pullback.zeros(2, 3)
    with Log():
        row = x[0]
        row.add_(1)
    assert row._base is x
    assert x.tolist() == [[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]


def test_modes_make_tensors() -> None:
    class OnMeta(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = dict(kwargs or {})
            if "device" in kwargs:
                kwargs["device"] = "meta"
            return func(*args, **kwargs)

    with OnMeta():
        made = [pullback.ones(2, 3), pullback.zeros(2, 3), pullback.randn(2, 3), pullback.full((2, 3), 1.0)]
        product = made[0] @ made[1].t()
    assert {t.device.type for t in [*made, product]} == {"meta"}
    assert product.shape == (2, 2)


def test_numbers_read_out_of_tensors_are_seen() -> None:
    with Log() as log:
        pullback.ones(()).item()
    assert log.seen == [aten.ones.default, aten._local_scalar_dense.default]


@pytest.mark.parametrize(
    "read", [bool, float, int, complex, range, pullback.is_nonzero, lambda x: pullback.full((2,), x)]
)
def test_every_way_to_read_a_number_is_seen(read: Callable[[Any], Any]) -> None:
    x = pullback.tensor(3)
    with Log() as log:
        read(x)
    assert log.seen[0] is aten._local_scalar_dense.default


def test_a_mode_that_does_not_answer_is_named() -> None:
    class Silent(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return NotImplemented

    with (
        Silent(),
        pytest.raises(TypeError, match=r"Multiple dispatch failed for 'torch._ops.aten.ones.default'.*Silent"),
    ):
        pullback.ones(2)


def test_an_error_inside_of_a_mode_leaves_the_modes_in_order() -> None:
    class Fail(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            raise ValueError("no")

    x = pullback.ones(2, requires_grad=True)
    with Log() as log:
        with Fail(), pytest.raises(ValueError, match="no"):
            x * 2
        x * 2
    assert log.seen == [aten.mul.Tensor]
    assert (x * 2).requires_grad


def test_second_derivatives_under_a_mode() -> None:
    x = pullback.tensor(2.0, requires_grad=True)
    with Log():
        (slope,) = pullback.autograd.grad(x**3, x, create_graph=True)
        (curvature,) = pullback.autograd.grad(slope, x)
    assert (slope.item(), curvature.item()) == (12.0, 12.0)


def test_custom_functions_and_operators_are_seen_by_their_operations() -> None:
    @pullback.library.custom_op("dispatch_test::double", mutates_args=())
    def double(x: pullback.Tensor) -> pullback.Tensor:
        return x + x

    double.register_autograd(lambda ctx, grad: grad * 2)
    x = pullback.ones(2, requires_grad=True)
    with Log() as log:
        y = double(x)
    y.sum().backward()
    assert log.seen[0] is pullback.ops.dispatch_test.double.default
    assert x.grad.tolist() == [2.0, 2.0]


def test_autocast_casts_before_a_mode_sees_the_operation() -> None:
    dtypes: list[Any] = []

    class Look(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is aten.mm.default:
                dtypes.append(args[0].dtype)
            return func(*args, **(kwargs or {}))

    x = pullback.ones(2, 2)
    with Look(), pullback.autocast("cpu", dtype=pullback.bfloat16):
        x @ x
    assert dtypes == [pullback.bfloat16]


def test_a_number_is_scattered_in_place_as_a_form_of_its_own() -> None:
    seen: list[str] = []

    class Listing(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    x: Any = pullback.zeros(2, 2)
    with Listing():
        x.scatter_(1, pullback.tensor([[0], [1]]), 1)
    assert x.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert seen[-1] == "aten.scatter_.value"


def test_attention_is_seen_as_one_operation_whatever_its_scale() -> None:
    seen: list[Any] = []

    class Listing(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append((str(func), (kwargs or {}).get("scale")))
            return func(*args, **(kwargs or {}))

    q: Any = pullback.randn(1, 1, 3, 4)
    attend: Any = pullback.nn.functional.scaled_dot_product_attention
    expected = attend(q, q, q, scale=0.25)
    with Listing():
        actual = attend(q, q, q, scale=0.25)
        attend(q, q, q)
    name = "aten._scaled_dot_product_flash_attention_for_cpu.default"
    assert seen == [(name, 0.25), (name, None)]
    assert pullback.equal(actual, expected)


WRITES = {
    "x[0] = 1": ["lift_fresh.default", "select.int", "fill_.Tensor"],
    "x[0] = x[1, 0]": ["select.int", "select.int", "select.int", "fill_.Tensor"],
    "x[:] = pullback.tensor(2.0)": ["lift_fresh.default", "fill_.Tensor"],
    "x[x > 2] = 0": ["gt.Scalar", "lift_fresh.default", "index_put_.default"],
    "x.index_put_((pullback.tensor([0]),), x.exp()[1:])": [
        "lift_fresh.default", "exp.default", "slice.Tensor", "index_put_.default"
    ],
    "x.t_()": ["t_.default"],
    "x.swapaxes_(0, 1)": ["transpose_.default"],
    "x.squeeze_(0)": ["squeeze_.dim"],
    "x.unsqueeze_(0)": ["unsqueeze_.default"],
    "x.as_strided_((2,), (1,))": ["as_strided_.default"],
    "x.uniform_(1, 2)": ["uniform_.default"],
    "x.set_(x.exp())": ["exp.default", "set_.source_Tensor"],
    "x.data": ["detach.default"],
    "pullback.nn.functional.dropout(x, 0.5)": [
        "empty_like.default", "bernoulli_.float", "div_.Scalar", "mul.Tensor"
    ],
}  # fmt: skip


@pytest.mark.parametrize("statement", WRITES)
def test_writes_are_seen_as_what_they_are(statement: str) -> None:
    x = pullback.arange(6.0).reshape(2, 3)
    with Log() as log:
        exec(statement, {"x": x, "pullback": pullback})
    assert [str(func).removeprefix("aten.") for func in log.seen] == WRITES[statement]


def test_a_tensor_that_is_transposed_in_place_under_a_mode_keeps_its_history() -> None:
    w = pullback.arange(6.0).reshape(2, 3).requires_grad_()
    x = w.clone()
    with Log():
        x.t_()
    (x * pullback.arange(6.0).reshape(3, 2)).sum().backward()
    assert x.grad_fn is not None
    assert x.grad_fn.name() == "TBackward1"
    assert w.grad is not None
    assert w.grad.tolist() == [[0.0, 2.0, 4.0], [1.0, 3.0, 5.0]]
