"""vmap of examples that have no elements or no dimensions, which PyTorch takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pullback
from pullback.func import vmap

zeros, ones = pullback.zeros, pullback.ones
INDEX = pullback.tensor([0])


@pytest.mark.parametrize(
    ("function", "examples", "shape"),
    [
        (pullback.cholesky, (zeros(2, 0, 5),), (2, 0, 5)),
        (lambda x: pullback.repeat_interleave(x, pullback.tensor([2]), 0, output_size=6), (ones(2, 0, 3),), (2, 0, 3)),
        (pullback.linalg.tensorsolve, (zeros(2, 2, 3, 0), zeros(2, 2, 0)), (2, 0)),
        (lambda x: pullback.nn.functional.adaptive_avg_pool1d(x, 1), (ones(2, 8, 0),), (2, 8, 1)),
        (lambda x: pullback.nn.functional.adaptive_avg_pool3d(x, 1), (ones(2, 8, 4, 0, 2),), (2, 8, 1, 1, 1)),
        (lambda x, m: pullback.nn.functional.batch_norm(x, m, m), (zeros(2, 0, 5), zeros(2, 0)), (2, 0, 5)),
        (
            lambda q, m: pullback.nn.functional.scaled_dot_product_attention(q, q, q, m),
            (ones(2, 0, 4, 3, 6), ones(2, 0, 3)),
            (2, 0, 4, 3, 6),
        ),
    ],
    ids=["cholesky", "repeat", "tensorsolve", "pool", "pool3d", "batch norm", "attention"],
)
def test_what_has_no_elements_is_taken(
    function: Callable[..., Any], examples: tuple[Any, ...], shape: tuple[int, ...]
) -> None:
    assert vmap(function)(*examples).shape == shape


@pytest.mark.parametrize(
    ("function", "batch", "expected"),
    [
        (lambda x: pullback.index_add(x, 0, INDEX, pullback.tensor([5.0])), ones(2), [6.0, 6.0]),
        (lambda s: pullback.index_add(pullback.tensor(1.0), 0, INDEX, s), ones(2, 1), [2.0, 2.0]),
        (lambda s: pullback.index_add(ones(3), 0, INDEX, s), ones(2), [[2.0, 1.0, 1.0]] * 2),
        (lambda x: pullback.index_add(x, 0, INDEX, pullback.tensor(4.0)), ones(2, 2), [[5.0, 1.0]] * 2),
    ],
    ids=["number", "shared number", "number added", "shared number added"],
)
def test_index_add_takes_numbers(function: Callable[[Any], Any], batch: Any, expected: list[Any]) -> None:
    assert vmap(function)(batch).tolist() == expected


def test_a_tensor_that_escaped_is_told() -> None:
    kept: list[Any] = []

    def keep(x: Any) -> Any:
        kept.append(x)
        return x

    vmap(keep)(ones(3))
    with pytest.raises(RuntimeError, match="Either your tensor may have escaped from inside a function being vmapped"):
        kept[0] * 2


def test_batch_norm_without_elements_is_taken_beside_a_class_that_overrides_operations() -> None:
    class Overriding(pullback.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {}))

    Overriding(ones(2))  # from now on operations ask whether one of their arguments is such a tensor
    normalized = vmap(lambda x, m: pullback.nn.functional.batch_norm(x, m, m))(zeros(2, 0, 5), zeros(2, 0))
    assert normalized.shape == (2, 0, 5)
