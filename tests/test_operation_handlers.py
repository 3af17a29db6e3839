"""Masked, nested and quantized tensors serve operations by what is declared of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pullback
from pullback.overrides.operation_handlers import Handlers, compares, is_elementwise, moves, plain_name, record_of


def refusal(name: str) -> NotImplementedError:
    return NotImplementedError(f"no {name}")


def test_a_handler_by_name_comes_before_one_by_kind() -> None:
    handlers = Handlers(refusal)

    @handlers.of_kind(is_elementwise)
    def by_kind(func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return ("kind", name, args, kwargs)

    @handlers.named("exp log")
    def by_name(input: Any, base: int = 0) -> Any:
        return ("name", input, base)

    assert handlers.operate(pullback.log, (1,), {"base": 2}) == ("name", 1, 2)
    assert handlers.operate(pullback.sin, (1,), {}) == ("kind", "sin", (1,), {})
    with pytest.raises(NotImplementedError, match="no sum"):
        handlers.operate(pullback.sum, (1,), {})


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("mul", "mul"),
        ("mul_", "mul"),
        ("__mul__", "mul"),
        ("__rmul__", "mul"),
        ("rsqrt", "rsqrt"),
        ("__round__", "round"),
    ],
)
def test_an_operation_is_known_by_its_in_place_form_and_its_operators(name: str, plain: str) -> None:
    assert plain_name(name) == plain


def test_a_second_name_has_the_record_and_the_kinds_of_the_first() -> None:
    assert record_of("arccos_") is record_of("acos")
    assert is_elementwise("arctan2")
    assert compares("greater_equal")
    assert [moves(name) for name in ("diagonal", "index_select", "sum")] == [True, True, False]


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (lambda x: x.square(), [[0.0, 1.0], [4.0]]),
        (lambda x: 1 - x, [[1.0, 0.0], [-1.0]]),
        (lambda x: x.isnan(), [[False, False], [False]]),
        (lambda x: x.clone().add_(1), [[1.0, 2.0], [3.0]]),
        (lambda x: x.bfloat16(), [[0.0, 1.0], [2.0]]),
    ],
)
def test_nested_tensors_take_elementwise_operations(operation: Callable[[Any], Any], expected: list[Any]) -> None:
    nested = pullback.nested.nested_tensor([pullback.tensor([0.0, 1.0]), pullback.tensor([2.0])])
    assert [part.tolist() for part in operation(nested).unbind()] == expected


def test_nested_tensors_refuse_the_rest() -> None:
    nested = pullback.nested.nested_tensor([pullback.tensor([0.0, 1.0]), pullback.tensor([2.0])])
    with pytest.raises(NotImplementedError, match="Could not run 'aten::cumsum' with arguments from the 'NestedTensor"):
        nested.cumsum(1)


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (lambda x: pullback.diagonal(x), [0.3, 3.0]),
        (lambda x: x.t().flatten(), [0.3, 2.0, 1.0, 3.0]),
        (lambda x: pullback.cat([x, x])[2:].flatten(), [0.3, 1.0, 2.0, 3.0]),
        (lambda x: pullback.relu(x).flatten(), [0.3, 1.0, 2.0, 3.0]),
    ],
)
def test_quantized_tensors_take_what_moves_elements(operation: Callable[[Any], Any], expected: list[float]) -> None:
    numbers = pullback.tensor([[0.26, 1.0], [2.0, 3.0]])
    result = operation(pullback.quantize_per_tensor(numbers, 0.1, 0, pullback.quint8))
    assert result.is_quantized
    assert result.dequantize().tolist() == pytest.approx(expected)


def test_quantized_tensors_compare_as_numbers_and_refuse_the_rest() -> None:
    x = pullback.quantize_per_tensor(pullback.tensor([0.26, 1.0]), 0.1, 0, pullback.quint8)
    assert pullback.greater(x, 0.5).tolist() == [False, True]
    with pytest.raises(NotImplementedError, match="Could not run 'aten::exp' with arguments from the 'QuantizedCPU'"):
        x.exp()
