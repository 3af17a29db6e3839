from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback

A = np.arange(6.0).reshape(2, 3)
B = np.arange(12.0).reshape(3, 4)


@pytest.mark.parametrize(
    ("equation", "arrays"),
    [
        ("ij,jk->ik", (A, B)),
        ("ij,jk", (A, B)),
        ("ji", (A,)),
        ("ij->", (A,)),
        ("ii->i", (B[:, :3],)),
        ("...j,j->...", (A, A[0])),
        ("ij,kl->ijkl", (A, B)),
        ("i,ij,jk,k", (A[:, 0], A, B, B[0])),
        ("Ab,bC->CA", (A, B)),
    ],
)
def test_einsum_agrees_with_numpy(equation: str, arrays: Any) -> None:
    actual = pullback.einsum(equation, *[pullback.from_numpy(a) for a in arrays])
    np.testing.assert_allclose(actual.numpy(), np.einsum(equation, *arrays))


def test_the_sublist_form_means_the_same_as_letters() -> None:
    a, b = pullback.from_numpy(A), pullback.from_numpy(B)
    assert pullback.equal(pullback.einsum(a, [0, 1], b, [1, 2], [0, 2]), pullback.einsum("ij,jk->ik", a, b))
    assert pullback.equal(pullback.einsum(a, [..., 0], [0, ...]), a.T)


def test_operands_can_be_given_as_one_list() -> None:
    a, b = pullback.from_numpy(A), pullback.from_numpy(B)
    assert pullback.equal(pullback.einsum("ij,jk", [a, b]), a @ b)


def test_a_size_of_one_broadcasts() -> None:
    a, b = pullback.ones(1, 3), pullback.ones(2, 3)
    assert pullback.einsum("ij,ij->ij", a, b).shape == (2, 3)
    assert pullback.einsum("ij,ij->", a, b).item() == 6


@pytest.mark.parametrize(
    ("equation", "message"),
    [
        ("ij,jk->ik", "fewer operands"),
        ("i->i", r"number of subscripts in the equation \(1\) does not match"),
        ("ij->ii", "appears more than once in the output"),
        ("ij->k", "does not appear in the equation for any input operand"),
        ("i?->i", "invalid subscript given at index 1"),
        ("i.j->ij", "not part of any ellipsis"),
        ("ii->i", "repeated for operand 0 but the sizes don't match"),
    ],
)
def test_a_wrong_equation_is_refused(equation: str, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        pullback.einsum(equation, pullback.from_numpy(A))
