"""Densities, samples and moments fit together; parameters and values are checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pullback as torch
from pullback import distributions as D

CONTINUOUS: dict[str, Callable[[], Any]] = {
    "normal": lambda: D.Normal(0.3, 1.2),
    "laplace": lambda: D.Laplace(-0.2, 0.8),
    "gumbel": lambda: D.Gumbel(0.5, 1.1),
    "student": lambda: D.StudentT(torch.tensor(7.0), 0.1, 0.9),
    "von mises": lambda: D.VonMises(torch.tensor(0.0), torch.tensor(1.5)),
    "gamma": lambda: D.Gamma(torch.tensor(2.5), torch.tensor(1.5)),
    "weibull": lambda: D.Weibull(torch.tensor(1.3), torch.tensor(2.0)),
    "log normal": lambda: D.LogNormal(0.1, 0.4),
    "half normal": lambda: D.HalfNormal(1.4),
    "beta": lambda: D.Beta(2.0, 3.0),
    "kumaraswamy": lambda: D.Kumaraswamy(2.0, 2.5),
    "continuous bernoulli": lambda: D.ContinuousBernoulli(torch.tensor(0.3)),
    "relaxed bernoulli": lambda: D.RelaxedBernoulli(torch.tensor(0.8), torch.tensor(0.4)),
    "inverse gamma": lambda: D.InverseGamma(torch.tensor(4.0), torch.tensor(2.0)),
    "generalized pareto": lambda: D.GeneralizedPareto(torch.tensor(0.0), torch.tensor(1.0), torch.tensor(-0.2)),
}
DISCRETE: dict[str, Callable[[], Any]] = {
    "bernoulli": lambda: D.Bernoulli(torch.tensor(0.3)),
    "binomial": lambda: D.Binomial(6, torch.tensor(0.3)),
    "categorical": lambda: D.Categorical(torch.tensor([1.0, 2.0, 3.0])),
    "one-hot": lambda: D.OneHotCategorical(torch.tensor([1.0, 2.0, 3.0])),
}


def _grid(distribution: Any) -> torch.Tensor:
    """Points that cover the support."""
    support = distribution.support
    if isinstance(support, type(D.constraints.unit_interval)):
        low, high = float(support.lower_bound), float(support.upper_bound)
        return torch.linspace(low + 1e-5, high - 1e-5, 20001)
    if support is D.constraints.real:
        width = 3.14159265 if isinstance(distribution, D.VonMises) else 40.0
        return torch.linspace(-width, width, 20001)
    return torch.linspace(1e-5, 40.0, 40001)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_density_integrates_to_one(name: str) -> None:
    distribution = CONTINUOUS[name]()
    x = _grid(distribution)
    total = torch.trapezoid(distribution.log_prob(x).exp(), x).item()
    assert total == pytest.approx(1.0, abs=3e-3)


@pytest.mark.parametrize("name", [n for n in CONTINUOUS if n not in ("von mises", "relaxed bernoulli")])
def test_samples_have_the_stated_mean_and_variance(name: str) -> None:
    torch.manual_seed(0)
    distribution = CONTINUOUS[name]()
    samples = distribution.sample((4000,))
    deviation = distribution.stddev.item()
    assert samples.mean().item() == pytest.approx(distribution.mean.item(), abs=0.08 * deviation)
    assert samples.std().item() == pytest.approx(deviation, rel=0.25)
    assert distribution.support.check(samples).all()


@pytest.mark.parametrize("name", DISCRETE)
def test_probabilities_of_the_support_sum_to_one(name: str) -> None:
    distribution = DISCRETE[name]()
    values = distribution.enumerate_support()
    probabilities = distribution.log_prob(values).exp()
    assert probabilities.sum().item() == pytest.approx(1.0, abs=1e-6)
    assert -(probabilities * probabilities.log()).sum().item() == pytest.approx(distribution.entropy().item(), rel=1e-5)


@pytest.mark.parametrize("concentration", [0.2, 1.5, 6.0, 30.0])
def test_gamma_sample_moves_with_its_concentration_at_constant_probability(concentration: float) -> None:
    alpha = torch.full((8,), concentration, dtype=torch.float64, requires_grad=True)
    torch.manual_seed(1)
    x = D.Gamma(alpha, torch.ones(8, dtype=torch.float64)).rsample()
    (slope,) = torch.autograd.grad(x.sum(), alpha)
    step = 1e-5 * concentration
    detached = x.detach()
    rise = (torch.igamma(alpha + step, detached) - torch.igamma(alpha - step, detached)) / (2 * step)
    density = D.Gamma(alpha, torch.ones(8, dtype=torch.float64)).log_prob(detached).exp()
    torch.testing.assert_close(slope, (-rise / density).detach(), rtol=3e-3, atol=1e-6)


def test_dirichlet_gradient_keeps_the_sum_of_a_sample() -> None:
    concentration = torch.tensor([0.7, 2.0, 5.0], dtype=torch.float64, requires_grad=True)
    torch.manual_seed(0)
    sample = D.Dirichlet(concentration).rsample()
    (slope,) = torch.autograd.grad(sample.sum(), concentration)
    torch.testing.assert_close(slope, torch.zeros_like(slope), rtol=0, atol=1e-12)


def test_straight_through_sample_is_one_hot_and_passes_the_gradient_on() -> None:
    probs = torch.tensor([0.2, 0.3, 0.5], requires_grad=True)
    sample = D.OneHotCategoricalStraightThrough(probs).rsample()
    assert sorted(sample.detach().round().tolist()) == [0.0, 0.0, 1.0]
    sample[0].backward()
    assert probs.grad is not None


def test_mixture_density_is_the_weighted_sum() -> None:
    weights = torch.tensor([0.25, 0.75])
    mixture = D.MixtureSameFamily(D.Categorical(weights), D.Normal(torch.tensor([-1.0, 2.0]), torch.ones(2)))
    x = torch.tensor([0.0, 1.0])
    parts = D.Normal(torch.tensor([-1.0, 2.0]), 1.0).log_prob(x[:, None]).exp()
    torch.testing.assert_close(mixture.log_prob(x).exp(), parts @ weights)
    assert mixture.mean.item() == pytest.approx(1.25)


def test_forms_of_a_covariance_give_one_distribution() -> None:
    covariance = torch.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=torch.float64)
    loc = torch.zeros(2, dtype=torch.float64)
    by_covariance = D.MultivariateNormal(loc, covariance)
    by_precision = D.MultivariateNormal(loc, precision_matrix=by_covariance.precision_matrix)
    by_factor = D.MultivariateNormal(loc, scale_tril=by_covariance.scale_tril)
    x = torch.tensor([[0.3, -1.0], [2.0, 0.1]], dtype=torch.float64)
    torch.testing.assert_close(by_precision.log_prob(x), by_covariance.log_prob(x))
    torch.testing.assert_close(by_factor.log_prob(x), by_covariance.log_prob(x))
    torch.testing.assert_close(by_precision.covariance_matrix, covariance)


def test_expand_repeats_the_batch_without_copying() -> None:
    normal = D.Normal(torch.zeros(3), torch.ones(3)).expand((2, 3))
    assert normal.batch_shape == (2, 3)
    assert normal.loc.stride() == (0, 1)
    assert normal.sample((4,)).shape == (4, 2, 3)


def test_invalid_parameter_is_named_with_its_constraint() -> None:
    with pytest.raises(ValueError, match=r"Expected parameter scale .* to satisfy the constraint GreaterThan"):
        D.Normal(0.0, -1.0)


def test_value_outside_of_the_support_raises() -> None:
    with pytest.raises(ValueError, match="to be within the support"):
        D.Poisson(torch.tensor(2.0)).log_prob(torch.tensor(0.5))


def test_checks_can_be_switched_off() -> None:
    assert D.Normal(0.0, -1.0, validate_args=False).scale.item() == -1.0


def test_giving_both_probs_and_logits_raises() -> None:
    with pytest.raises(ValueError, match="Either `probs` or `logits`"):
        D.Bernoulli(torch.tensor(0.5), torch.tensor(0.0))


def test_subclass_with_its_own_init_must_define_expand() -> None:
    class Standard(D.Normal):
        def __init__(self) -> None:
            super().__init__(0.0, 1.0)

    with pytest.raises(NotImplementedError, match="must also define a custom"):
        Standard().expand((2,))


def test_lazy_attribute_records_even_if_first_read_without_grad() -> None:
    logits = torch.zeros(3, requires_grad=True)
    categorical = D.Categorical(logits=logits)
    with torch.no_grad():
        categorical.probs
    assert categorical.probs.requires_grad


def test_tangent_of_a_gamma_sample_is_its_gradient() -> None:
    alpha = torch.tensor([0.5, 3.0], requires_grad=True)
    torch.manual_seed(0)
    (expected,) = torch.autograd.grad(torch._standard_gamma(alpha).sum(), alpha)
    torch.manual_seed(0)
    _, actual = torch.func.jvp(torch._standard_gamma, (alpha.detach(),), (torch.ones(2),))
    torch.testing.assert_close(actual, expected)
