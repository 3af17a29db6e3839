"""Softmax: stability, dtypes, implicit dimensions."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

import pullback

torch: Any = pullback


def test_softmax_does_not_overflow() -> None:
    assert torch.tensor([1000.0, 1000.0]).softmax(0).tolist() == [0.5, 0.5]
    assert torch.tensor([-1000.0, 0.0]).log_softmax(0).tolist() == [-1000.0, 0.0]


def test_minus_infinity_has_no_probability() -> None:
    assert torch.tensor([-inf, 0.0]).softmax(0).tolist() == [0.0, 1.0]
    assert torch.full((2,), -inf).softmax(0).isnan().all().item()


def test_logsumexp_of_infinities_is_infinite() -> None:
    assert torch.full((2,), -inf).logsumexp(0).item() == -inf
    assert torch.full((2,), inf).logsumexp(0).item() == inf
    assert torch.empty(0).logsumexp(0).item() == -inf


def test_softmax_converts_first() -> None:
    assert torch.tensor([0, 0]).softmax(0, torch.float64).tolist() == [0.5, 0.5]
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        torch.tensor([0, 0]).softmax(0)


def test_the_functional_form_chooses_a_dim_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="Implicit dimension choice for softmax has been deprecated"):
        actual = torch.nn.functional.softmax(torch.zeros(2, 2))
    assert actual.tolist() == [[0.5, 0.5], [0.5, 0.5]]


def test_softmax_of_one_number_is_one() -> None:
    x = torch.tensor(3.0, requires_grad=True)
    y = x.softmax(0)
    y.backward()
    assert (y.item(), x.grad.item()) == (1.0, 0.0)
