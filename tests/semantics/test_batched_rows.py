"""Rows of a Jacobian are computed together, and stay apart wherever somebody could tell. See Note [Batched rows]."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pullback
from pullback.autograd import batched_rows, functional
from pullback.utils.checkpoint import checkpoint

ROWS = 8
EXPECTED = [[2.0 * (i + 1) if i == j else 0.0 for j in range(ROWS)] for i in range(ROWS)]


@pytest.fixture
def together(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each output whose Jacobian was asked for, whether its rows were computed together."""
    seen: list[bool] = []

    def watched(*args: Any, **options: Any) -> Any:
        result = batched_rows.rows_at_once(*args, **options)
        seen.append(result is not None)
        return result

    monkeypatch.setattr(functional, "rows_at_once", watched)
    return seen


def vector() -> Any:
    return pullback.arange(1.0, ROWS + 1)


def hooked_on_tensor(seen: list[Any]) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        square = x * x
        square.register_hook(seen.append)
        return square * 1.0

    return function


def hooked_on_input(seen: list[Any]) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        x.register_hook(seen.append)
        return x * x

    return function


def hooked_on_node(seen: list[Any]) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        square = x * x
        square.grad_fn.register_hook(lambda inputs, outputs: seen.append(inputs))
        return square

    return function


def with_custom_function(seen: list[Any]) -> Callable[[Any], Any]:
    class Square(pullback.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            seen.append(grads)
            return 2 * ctx.saved_tensors[0] * grads[0]

    return lambda x: Square.apply(x)


def with_unpack_hook(seen: list[Any]) -> Callable[[Any], Any]:
    def unpack(value: Any) -> Any:
        seen.append(value)
        return value

    def function(x: Any) -> Any:
        with pullback.autograd.graph.saved_tensors_hooks(lambda value: value, unpack):
            return x.square()

    return function


@pytest.mark.parametrize(
    "make", [hooked_on_tensor, hooked_on_input, hooked_on_node, with_custom_function, with_unpack_hook]
)
def test_user_code_in_the_graph_is_called_for_every_row(
    make: Callable[[list[Any]], Callable[[Any], Any]], together: list[bool]
) -> None:
    seen: list[Any] = []
    actual = functional.jacobian(make(seen), vector())
    assert actual.tolist() == EXPECTED
    assert len(seen) == ROWS
    assert together == [False]


def test_checkpointed_functions_run_row_by_row(together: list[bool]) -> None:
    actual = functional.jacobian(lambda x: checkpoint(lambda y: y * y, x, use_reentrant=False), vector())
    assert actual.tolist() == EXPECTED
    assert together == [False]


def test_anomaly_mode_sees_every_row(together: list[bool]) -> None:
    with pullback.autograd.set_detect_anomaly(True):
        actual = functional.jacobian(lambda x: x * x, vector())
    assert actual.tolist() == EXPECTED
    assert together == [False]


def test_few_rows_are_computed_one_by_one(together: list[bool]) -> None:
    functional.jacobian(lambda x: (x * x)[:3], vector())
    assert together == [False]


def test_rows_are_computed_together(together: list[bool]) -> None:
    actual = functional.jacobian(lambda x: x * x, vector())
    assert actual.tolist() == EXPECTED
    assert together == [True]


def test_a_hessian_is_computed_by_one_batch(together: list[bool]) -> None:
    actual = functional.hessian(lambda x: (x**3).sum() / 3, vector())
    assert actual.tolist() == EXPECTED
    assert together == [True]


def test_hooks_elsewhere_in_the_graph_do_not_matter(together: list[bool]) -> None:
    weight = pullback.ones(ROWS, requires_grad=True)
    weight.register_hook(lambda grad: pytest.fail("not on the way to the input"))
    functional.jacobian(lambda x: x * weight, vector())
    assert together == [True]


def test_rows_come_in_chunks(together: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    batched_gradients = batched_rows._batched_gradients

    def watched(output: Any, inputs: Any, basis: Any, create_graph: bool) -> Any:
        sizes.append(len(basis))
        return batched_gradients(output, inputs, basis, create_graph)

    monkeypatch.setattr(batched_rows, "_batched_gradients", watched)
    monkeypatch.setattr(batched_rows, "CHUNK_ELEMENTS", 7 * ROWS)
    assert functional.jacobian(lambda x: x * x, vector()).tolist() == EXPECTED
    assert sizes == [7, 1]


def test_jacobians_of_two_inputs_share_no_memory(together: list[bool]) -> None:
    first, second = functional.jacobian(lambda x, y: x + y, (vector(), vector()))
    first.zero_()
    assert second.tolist() == pullback.eye(ROWS).tolist()
    assert together == [True]


def test_results_are_contiguous_and_writable(together: list[bool]) -> None:
    actual = functional.jacobian(lambda x: x.sum() + pullback.zeros(ROWS), vector())
    assert actual.stride() == (ROWS, 1)
    actual[0, 0] = 5.0
    assert actual[1, 0].item() == 1.0
    assert together == [True]


def test_an_unused_input_has_zeros_or_is_refused(together: list[bool]) -> None:
    integers = pullback.ones(3, dtype=pullback.float64)
    blocks = functional.jacobian(lambda x, y: x * x, (vector(), integers))
    assert blocks[1].dtype is pullback.float64
    assert blocks[1].tolist() == [[0.0] * 3] * ROWS
    with pytest.raises(RuntimeError, match="Output 0 of the user-provided function is independent of input 1"):
        functional.jacobian(lambda x, y: x * x, (vector(), integers), strict=True)
    with pytest.raises(RuntimeError, match="jacobian of the user-provided function is independent of input 0"):
        functional.jacobian(lambda x: x * 2, vector(), strict=True, create_graph=True)
    assert together == [True] * 3


def test_an_error_of_a_node_is_raised_as_ever(together: list[bool]) -> None:
    def modified(x: Any) -> Any:
        result = x.exp()
        square = result * result
        result.add_(1)
        return square

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        functional.jacobian(modified, vector())
    assert together == [False]


def test_writes_into_parts_are_followed(together: list[bool]) -> None:
    def function(x: Any) -> Any:
        result = pullback.zeros(ROWS)
        result[:4] = x[:4] * x[:4]
        result[4:] = x[4:].square()
        return result

    assert functional.jacobian(function, vector()).tolist() == EXPECTED
    assert together == [True]
