"""The special functions' public face: namespace, numbers in place of tensors, missing derivatives."""

from __future__ import annotations

from typing import Any

import pytest

import pullback

F: Any = pullback


def test_the_namespace_has_aliases() -> None:
    x = F.tensor([2.5])
    assert F.special.gammaln(x).equal(F.lgamma(x))
    assert F.special.psi(x).equal(F.digamma(x))
    assert F.special.expit(x).equal(F.sigmoid(x))


def test_numbers_may_stand_on_either_side() -> None:
    x = F.tensor([2.0])
    assert F.xlogy(0, x).tolist() == [0.0]
    assert F.xlogy(x, 1).tolist() == [0.0]
    assert F.special.zeta(2.0, F.tensor([1.0])).item() == pytest.approx(1.6449341)


def test_polygamma_takes_the_order_first_as_a_function_and_last_as_a_method() -> None:
    x = F.tensor([1.0])
    assert F.polygamma(1, x).equal(x.polygamma(1))


@pytest.mark.parametrize("function", [lambda x: F.igamma(x, F.ones(1)), lambda x: F.special.zeta(x, F.ones(1))])
def test_derivatives_that_do_not_exist_are_told(function: Any) -> None:
    result = function(F.tensor([1.5], requires_grad=True))
    with pytest.raises(NotImplementedError, match="is not implemented"):
        result.backward()


def test_bessel_functions_have_no_history() -> None:
    assert not F.special.bessel_j0(F.tensor([1.0], requires_grad=True)).requires_grad


def test_complex_numbers_are_refused_where_only_reals_are_known() -> None:
    with pytest.raises(NotImplementedError, match="ComplexFloat"):
        F.lgamma(F.tensor([1j]))
