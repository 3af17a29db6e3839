"""Operations that are declared outside of the package have what built-in ones have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import extension
from pullback.autograd import gradcheck, gradgradcheck
from pullback.extension import (
    Array,
    F,
    Pullback,
    Tensor,
    elementwise,
    general,
    linear,
    non_differentiable,
    operation,
    wrt,
)
from pullback.facts import fact_of
from pullback.func import vmap
from pullback.fx.experimental.proxy_tensor import make_fx
from pullback.rules.model import Refusal
from pullback.utils._python_dispatch import TorchDispatchMode


@operation(elementwise, in_place=True, autocast="float32")
def tame_cube(input: Array) -> Array:
    """x cubed, tamed."""
    return input * input * input / (1 + input * input)


@tame_cube.pullback
def tame_cube_made(grad: Tensor, input: Tensor) -> Pullback:
    square = input * input
    return wrt(input=grad * square * (3 + square) / ((1 + square) * (1 + square)))


@operation(general, outputs=("total", "largest"))
def total_and_largest(input: Array, *, scale: float = 1.0) -> tuple[Array, ...]:
    return scale * input.sum(), input.max()


@total_and_largest.pullback
def total_and_largest_made(
    grad_total: Tensor, grad_largest: Tensor, input: Tensor, scale: float, *, largest: Tensor
) -> Pullback:
    return wrt(
        input=F.expand(grad_total * scale, input.shape) + F.expand(grad_largest, input.shape) * F.eq(input, largest)
    )


@operation(linear)
def doubled_sum(input: Array) -> Array:
    return 2 * input.sum()


@doubled_sum.pullback
def doubled_sum_made(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=F.expand(2 * grad, input.shape))


@operation(linear)
def turned(input: Array) -> Array:
    return input[::-1]


@turned.pullback  # type: ignore[no-redef]
def turned(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=F.flip(grad, (0,)))


@pytest.fixture
def x() -> Any:
    return pullback.tensor([0.5, -1.5, 2.0], dtype=pullback.float64, requires_grad=True)


def test_a_declared_operation_records_a_node_of_its_own(x: Any) -> None:
    y = tame_cube_made(x)
    assert y.grad_fn.name() == "TameCubeBackward0"
    assert y.tolist() == pytest.approx((x**3 / (1 + x**2)).tolist())
    assert tame_cube_made.__doc__ == "x cubed, tamed."


@pytest.mark.parametrize("function", [tame_cube_made, lambda v: total_and_largest_made(v, scale=3.0), doubled_sum_made])
def test_gradients_tangents_and_second_order_hold(function: Callable[..., Any], x: Any) -> None:
    assert gradcheck(function, (x,), check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(function, (x,))


def test_the_in_place_form_is_recorded(x: Any) -> None:
    y = x * 1
    version = y._version
    assert tame_cube_made.in_place(y) is y
    assert y._version == version + 1
    (grad,) = pullback.autograd.grad(y.sum(), x)
    (expected,) = pullback.autograd.grad(tame_cube_made(x).sum(), x)
    assert grad.tolist() == expected.tolist()
    assert doubled_sum_made.in_place is None


def test_vmap_runs_on_whole_batches(x: Any) -> None:
    calls: list[int] = []
    batch = pullback.stack([x.detach(), 2 * x.detach()])

    def one(row: Any) -> Any:
        calls.append(1)
        return tame_cube_made(row)

    assert vmap(one)(batch).tolist() == tame_cube_made(batch).tolist()
    assert len(calls) == 1


def test_autocast_and_half_precision() -> None:
    h = pullback.ones(2, dtype=pullback.bfloat16, requires_grad=True)
    with pullback.autocast("cpu", dtype=pullback.bfloat16):
        assert tame_cube_made(h).dtype is pullback.float32
    tame_cube_made(h).sum().backward()
    assert h.grad.dtype is pullback.bfloat16
    assert h.grad.tolist() == [1.0, 1.0]


def test_out_and_wrong_arguments() -> None:
    out = pullback.empty(2)
    assert tame_cube_made(pullback.ones(2), out=out) is out
    assert out.tolist() == [0.5, 0.5]
    with pytest.raises(TypeError, match=r"tame_cube\(\): argument 'input' \(position 1\) must be Tensor, not str"):
        tame_cube_made("a")


def test_kernels_that_give_parts_of_their_input_make_no_views() -> None:
    x = pullback.tensor([1.0, 2.0, 3.0])
    y = turned(x)
    assert (y.tolist(), y.stride()) == ([3.0, 2.0, 1.0], (1,))
    y.zero_()
    assert x.tolist() == [1.0, 2.0, 3.0]


def test_numpy_does_not_warn_of_infinities_in_a_kernel(recwarn: pytest.WarningsRecorder) -> None:
    assert tame_cube_made(pullback.tensor([1e30])).isnan().item()
    assert not recwarn.list


def test_dispatch_modes_see_the_operation(x: Any) -> None:
    seen: list[str] = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    with Watch():
        y = x + 0
        result = tame_cube_made(y)
        tame_cube_made.in_place(y)
    assert seen == ["aten.add.Tensor", "pullback.tame_cube.default", "pullback.tame_cube_.default"]
    assert result.grad_fn.name() == y.grad_fn.name() == "TameCubeBackward0"
    assert str(pullback.ops.pullback.tame_cube.default._schema) == "pullback::tame_cube(Tensor self) -> Tensor"


def test_graphs_of_a_function_have_the_operation(x: Any) -> None:
    graph = make_fx(lambda v: turned(v) * 2)(x.detach())
    assert "torch.ops.pullback.turned.default(v_1)" in graph.code
    assert graph(x.detach()).tolist() == [4.0, -3.0, 1.0]


def test_compiled_programs_follow_the_kernel() -> None:
    function = pullback.compile(lambda v: (tame_cube_made(v) * 2).sum())
    v = pullback.linspace(-2, 2, 64).requires_grad_()
    for _ in range(3):
        (grad,) = pullback.autograd.grad(function(v), v)
    (expected,) = pullback.autograd.grad((tame_cube_made(v) * 2).sum(), v)
    np.testing.assert_allclose(grad.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)


def test_an_operation_without_gradient_needs_no_rule() -> None:
    @operation(non_differentiable, structure="elementwise", moves=True)
    def is_even_number(input: Array) -> Array:
        return input % 2 == 0

    assert is_even_number(pullback.tensor([1, 2])).tolist() == [False, True]
    assert fact_of("is_even_number", "structure") == "elementwise"
    assert fact_of("is_even_number", "moves") is True
    assert vmap(is_even_number)(pullback.tensor([[1, 2]])).tolist() == [[False, True]]


def test_an_operation_needs_a_new_name() -> None:
    def add(input: Array) -> Array:
        return input

    with pytest.raises(ValueError, match="add is an operation already"):
        operation(elementwise)(add)


def test_what_cannot_be_taken_is_refused_with_the_line() -> None:
    @operation(elementwise)
    def refused_square(input: Array) -> Array:
        return input * input

    with pytest.raises(Refusal, match=r"test_extension.py:\d+: F.no_such_function: no kernel and no formula"):

        @refused_square.pullback
        def refused(grad: Tensor, input: Tensor) -> Pullback:
            return wrt(input=F.no_such_function(grad, input))

    assert "refused_square" not in pullback.generated.MODULES


def test_unknown_kinds_and_options_are_refused() -> None:
    with pytest.raises(TypeError, match="is not a kind: one of elementwise"):
        operation("elementwise")
    with pytest.raises(TypeError, match="unknown option inplace: one of "):
        operation(elementwise, inplace=True)


def test_a_text_that_cannot_be_found_is_refused() -> None:
    scope: dict[str, Any] = {"operation": operation, "elementwise": elementwise, "Array": Array}
    exec("@operation(elementwise)\ndef nowhere(input: Array) -> Array:\n    return input\n", scope)
    with pytest.raises(TypeError, match="nowhere is read as text, and its text cannot be found"):
        scope["nowhere"].pullback(None)


def test_everything_that_is_exported_is_there() -> None:
    assert all(hasattr(extension, name) for name in extension.__all__)
