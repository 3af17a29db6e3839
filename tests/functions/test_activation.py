"""Activations: kinks, inplace arguments, parameters, errors."""

from __future__ import annotations

from typing import Any

import pytest

import pullback

F: Any = pullback
N: Any = pullback.nn.functional


def gradient_at(function: Any, *points: float) -> list[float]:
    x = F.tensor(list(points), requires_grad=True)
    function(x).sum().backward()
    return x.grad.tolist()


def test_subgradients_at_zero_are_those_of_the_closed_side() -> None:
    assert gradient_at(F.relu, 0.0) == [0.0]
    assert gradient_at(abs, 0.0) == [0.0]
    assert gradient_at(lambda x: N.leaky_relu(x, 0.25), 0.0) == [0.25]
    assert gradient_at(lambda x: N.elu(x, 0.5), 0.0) == [0.5]
    assert gradient_at(N.hardtanh, -1.0, 1.0) == [0.0, 0.0]
    assert gradient_at(F.sqrt, 0.0) == [float("inf")]


def test_the_gradient_at_a_kink_can_be_differentiated() -> None:
    x = F.tensor([-1.0, 2.0], requires_grad=True)
    for function in (F.relu, N.leaky_relu, N.hardtanh, N.hardshrink, lambda x: N.threshold(x, 0, 0)):
        (first,) = F.autograd.grad(function(x).sum(), x, create_graph=True)
        (second,) = F.autograd.grad(first.sum(), x)
        assert second.tolist() == [0.0, 0.0]


def test_inplace_writes_into_the_input() -> None:
    for function in (N.relu, N.silu, N.elu, N.hardtanh, N.leaky_relu, N.relu6, N.selu, N.celu, N.mish, N.hardswish):
        x = F.tensor([-1.0, 2.0])
        expected = function(x.clone()).tolist()
        assert function(x, inplace=True) is x
        assert x.tolist() == expected


def test_gelu_takes_two_forms() -> None:
    x = F.tensor([1.0])
    assert N.gelu(x).item() == pytest.approx(0.8413447, abs=1e-6)
    assert N.gelu(x, approximate="tanh").item() == pytest.approx(0.8411920, abs=1e-6)
    with pytest.raises(RuntimeError, match="approximate argument must be either none or tanh"):
        N.gelu(x, approximate="fast")


def test_softplus_is_the_identity_above_its_threshold() -> None:
    assert N.softplus(F.tensor([25.0, 1000.0])).tolist() == [25.0, 1000.0]


def test_sigmoid_and_logsigmoid_do_not_overflow() -> None:
    x = F.tensor([-1000.0, 1000.0])
    assert F.sigmoid(x).tolist() == [0.0, 1.0]
    assert N.logsigmoid(x).tolist() == [-1000.0, 0.0]


def test_prelu_learns_one_slope_per_channel() -> None:
    x, weight = F.tensor([[-1.0, -2.0]]), F.tensor([0.5, 0.25], requires_grad=True)
    result = N.prelu(x, weight)
    result.sum().backward()
    assert (result.tolist(), weight.grad.tolist()) == ([[-0.5, -0.5]], [-1.0, -2.0])
    with pytest.raises(RuntimeError, match="Mismatch of parameter numbers"):
        N.prelu(x, F.ones(3))


def test_glu_halves_an_even_dimension() -> None:
    assert N.glu(F.tensor([2.0, 0.0])).tolist() == [1.0]
    with pytest.raises(RuntimeError, match="Halving dimension must be even"):
        N.glu(F.ones(3))


def test_rrelu_draws_slopes_only_for_training() -> None:
    x = F.tensor([-24.0, 1.0])
    assert N.rrelu(x, 0.25, 0.75).tolist() == [-12.0, 1.0]
    drawn = N.rrelu(x, 0.25, 0.75, training=True)[0].item()
    assert -18.0 <= drawn <= -6.0


def test_integers_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        N.silu(F.tensor([1]))


@pytest.mark.parametrize("name", ["elu", "selu", "celu"])
def test_the_second_derivative_of_elu_at_its_kink_is_zero(name: str) -> None:
    x = pullback.tensor([0.0, -1.0, 1.0], requires_grad=True)
    (slope,) = pullback.autograd.grad(getattr(pullback.nn.functional, name)(x).sum(), x, create_graph=True)
    (curvature,) = pullback.autograd.grad(slope.sum(), x)
    assert curvature[0] == 0
    assert curvature[1] > 0
    assert curvature[2] == 0
