"""einsum finds what to do once for an equation and its shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback
from pullback.functions import einstein_sums

EQUATIONS: list[tuple[str, list[tuple[int, ...]]]] = [
    ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
    ("ij,kj->ik", [(3, 4), (5, 4)]),
    ("ij->", [(3, 4)]),
    ("ii", [(3, 3)]),
    ("iij->ij", [(3, 3, 2)]),
    ("i,j->ji", [(2,), (3,)]),
    ("bn,anm,bm->ba", [(2, 3), (4, 3, 5), (2, 5)]),
    ("...ij,...jk->...ik", [(1, 2, 3), (4, 3, 2)]),
    ("ij,jk", [(0, 3), (3, 2)]),
    ("bi,bi->b", [(1, 3), (4, 3)]),
]


@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS, ids=[equation for equation, _ in EQUATIONS])
def test_a_program_that_is_run_again_gives_what_numpy_gives(equation: str, shapes: list[tuple[int, ...]]) -> None:
    source = np.random.default_rng(0)
    for _ in range(2):
        arrays = [source.normal(size=shape) for shape in shapes]
        result: Any = pullback.einsum(equation, *[pullback.from_numpy(array) for array in arrays])
        np.testing.assert_allclose(result.numpy(), np.einsum(equation, *arrays), atol=1e-12)


def test_a_program_is_found_once_for_shapes_and_serves_only_them() -> None:
    einstein_sums._program.cache_clear()
    for size in (2, 3, 2, 3):
        pullback.einsum("ij,jk->ik", pullback.ones(size, 4), pullback.ones(4, size))
    assert einstein_sums._program.cache_info().misses == 2
    with pytest.raises(RuntimeError, match="does not broadcast with previously seen size"):
        pullback.einsum("ij,jk->ik", pullback.ones(2, 4), pullback.ones(5, 2))


def test_one_operand_gives_a_view_and_never_itself() -> None:
    x = pullback.eye(3)
    for equation in ("ij->ij", "ij->ji", "ii->i"):
        result = pullback.einsum(equation, x)
        assert result is not x
        assert result._base is x
