"""Transforms invert, and their Jacobians are those of automatic differentiation."""

from __future__ import annotations

from typing import Any

import pytest

import pullback as torch
from pullback import distributions as D
from pullback.distributions import constraints

SCALARS = {
    "exp": D.ExpTransform(),
    "sigmoid": D.SigmoidTransform(),
    "softplus": D.SoftplusTransform(),
    "tanh": D.TanhTransform(),
    "affine": D.AffineTransform(0.5, -2.0),
    "composed": D.ComposeTransform(
        [D.AffineTransform(0.1, 0.5), D.ExpTransform(), D.PowerTransform(torch.tensor(0.7))]
    ),
    "cdf": D.CumulativeDistributionTransform(D.Normal(0.0, 1.0)),
    "inverse": D.ExpTransform().inv.inv,
}
VECTORS: dict[str, tuple[Any, int]] = {
    "stick breaking": (D.StickBreakingTransform(), 3),
    "corr cholesky": (D.CorrCholeskyTransform(), 3),
}


@pytest.mark.parametrize("name", SCALARS)
def test_inverse_and_jacobian_of_elementwise_transform(name: str) -> None:
    transform: Any = SCALARS[name]
    x = torch.linspace(-1.5, 1.5, 7, dtype=torch.float64).requires_grad_()
    y = transform(x)
    torch.testing.assert_close(transform.inv(y), x, rtol=1e-6, atol=1e-6)
    (slope,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(transform.log_abs_det_jacobian(x, y), slope.abs().log(), rtol=1e-6, atol=1e-6)
    assert transform.codomain.check(y).all()


def test_jacobian_of_stick_breaking_is_the_determinant() -> None:
    transform = D.StickBreakingTransform()
    x = torch.tensor([0.3, -0.4, 1.0], dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(lambda t: transform(t)[:-1], x)
    expected = torch.linalg.slogdet(jacobian)[1]
    torch.testing.assert_close(transform.log_abs_det_jacobian(x, transform(x)), expected)


@pytest.mark.parametrize("name", VECTORS)
def test_inverse_of_vector_transform(name: str) -> None:
    transform, size = VECTORS[name]
    x = torch.linspace(-0.5, 0.8, size, dtype=torch.float64)
    y = transform(x)
    assert transform.codomain.check(y).all()
    torch.testing.assert_close(transform.inv(y), x)
    assert tuple(transform.forward_shape(x.shape)) == tuple(y.shape)


def test_cache_gives_back_the_very_input() -> None:
    transform = D.TanhTransform(cache_size=1)
    x = torch.tensor([9.5])
    assert transform.inv(transform(x)) is x


def test_equal_transforms_compare_equal() -> None:
    assert D.AffineTransform(0, 1) == D.AffineTransform(0, 1)
    assert D.AffineTransform(0, 1) != D.AffineTransform(0, 2)


@pytest.mark.parametrize(
    ("constraint", "inside", "outside"),
    [
        (constraints.positive, 0.1, 0.0),
        (constraints.nonnegative, 0.0, -0.1),
        (constraints.unit_interval, 1.0, 1.1),
        (constraints.boolean, 1.0, 0.5),
        (constraints.integer_interval(0, 3), 3.0, 1.5),
        (constraints.real, 0.0, float("nan")),
        (constraints.half_open_interval(0.0, 1.0), 0.0, 1.0),
    ],
)
def test_constraint_tells_inside_from_outside(constraint: Any, inside: float, outside: float) -> None:
    assert constraint.check(torch.tensor(inside))
    assert not constraint.check(torch.tensor(outside))


def test_matrix_constraints() -> None:
    good = torch.tensor([[2.0, 0.5], [0.5, 1.0]])
    assert constraints.positive_definite.check(good)
    assert not constraints.positive_definite.check(-good)
    assert not constraints.symmetric.check(torch.tensor([[1.0, 2.0], [0.0, 1.0]]))
    assert constraints.lower_cholesky.check(torch.linalg.cholesky(good))
    assert constraints.simplex.check(torch.tensor([0.2, 0.8]))
    assert not constraints.simplex.check(torch.tensor([0.2, 0.9]))


def test_dependent_constraint_cannot_be_checked() -> None:
    with pytest.raises(ValueError, match="Cannot determine validity of dependent constraint"):
        constraints.dependent.check(torch.tensor(0.0))


def test_registry_refuses_an_unknown_constraint() -> None:
    with pytest.raises(NotImplementedError, match="Cannot transform _Boolean constraints"):
        D.biject_to(constraints.boolean)


def test_transform_with_another_shape_changes_the_event() -> None:
    base = D.Independent(D.Normal(torch.zeros(6), torch.ones(6)), 1)
    reshaped = D.TransformedDistribution(base, D.ReshapeTransform((6,), (2, 3)))
    assert reshaped.event_shape == (2, 3)
    x = reshaped.sample((4,))
    torch.testing.assert_close(reshaped.log_prob(x), base.log_prob(x.reshape(4, 6)))
