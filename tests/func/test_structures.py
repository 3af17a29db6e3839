"""Batching follows from the structure that a declaration gives, for operations and for functions of a user's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pullback
from pullback.func import vmap
from pullback.generated.registry import OPERATIONS
from pullback.modes.interception import interceptable, structured


def declared(structure: str, compute: Callable[..., Any]) -> tuple[Callable[..., Any], list[tuple[int, ...]]]:
    """A function outside of the package, and the shapes that it was called with."""
    seen: list[tuple[int, ...]] = []

    @structured(structure)
    @interceptable
    def function(*args: Any) -> Any:
        seen.append(tuple(args[0].shape))
        return compute(*args)

    return function, seen


@pytest.mark.parametrize(
    ("structure", "compute", "shape", "called_with"),
    [
        ("elementwise", lambda x: x.sin() * 2, (1, 3), (2, 1, 3)),
        ("leading", lambda x: x - x.mean(-1, keepdim=True), (4, 3), (2, 4, 3)),
        ("matrices", lambda x: pullback.linalg.inv(x), (3, 3), (2, 3, 3)),
        ("samples", lambda x: x.flatten(1).sum(1), (4, 3), (8, 3)),
    ],
)
def test_a_declared_structure_runs_once_for_all_examples(
    structure: str, compute: Any, shape: tuple[int, ...], called_with: tuple[int, ...]
) -> None:
    function, seen = declared(structure, compute)
    x = pullback.rand(2, *shape) + 4 * pullback.eye(*shape[-2:])
    actual = vmap(function)(x)
    pullback.testing.assert_close(actual, pullback.stack([compute(e) for e in x]))
    assert seen == [called_with]


def test_an_elementwise_function_broadcasts_examples_of_different_rank() -> None:
    function, _ = declared("elementwise", lambda x, y: x + y)
    x, y = pullback.rand(2, 3), pullback.rand(2, 4, 3)
    pullback.testing.assert_close(vmap(function)(x, y), x[:, None] + y)


def test_a_general_function_runs_example_by_example_with_a_warning() -> None:
    function, seen = declared("general", lambda x: x.sum())
    with pytest.warns(UserWarning, match="have not yet implemented the batching rule for aten::function"):
        vmap(function)(pullback.ones(2, 3))
    assert seen == [(3,), (3,)]


@pytest.mark.parametrize(
    ("name", "structure"),
    [
        ("sin", "elementwise"),
        ("eq", "elementwise"),
        ("softmax", "along"),
        ("sum", "along"),
        ("transpose", "view"),
        ("split", "view"),
        ("max_pool2d_with_indices", "leading"),
        ("linalg_qr", "matrices"),
        ("im2col", "samples"),
        ("renorm", "general"),
    ],
)
def test_declarations_say_the_structure(name: str, structure: str) -> None:
    assert OPERATIONS[name].structure == structure
