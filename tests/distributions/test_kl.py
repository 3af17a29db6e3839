"""Divergences: against averages over samples, and how a pair is looked up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pullback as torch
from pullback import distributions as D

PAIRS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "normal": lambda: (D.Normal(0.2, 0.8), D.Normal(-0.3, 1.3)),
    "gamma": lambda: (D.Gamma(2.0, 1.5), D.Gamma(3.0, 1.0)),
    "beta": lambda: (D.Beta(2.0, 3.0), D.Beta(1.5, 1.2)),
    "laplace and normal": lambda: (D.Laplace(0.1, 0.7), D.Normal(0.0, 1.5)),
    "gumbel": lambda: (D.Gumbel(0.1, 0.7), D.Gumbel(0.4, 1.0)),
    "uniform and normal": lambda: (D.Uniform(-1.0, 2.0), D.Normal(0.0, 1.5)),
    "exponential and gamma": lambda: (D.Exponential(1.3), D.Gamma(1.4, 1.0)),
    "vectors": lambda: (
        D.MultivariateNormal(torch.zeros(2), torch.eye(2)),
        D.MultivariateNormal(torch.tensor([0.5, -0.2]), torch.tensor([[1.5, 0.4], [0.4, 0.9]])),
    ),
    "categories": lambda: (D.Categorical(torch.tensor([0.2, 0.8])), D.Categorical(torch.tensor([0.5, 0.5]))),
}


@pytest.mark.parametrize("name", PAIRS)
def test_divergence_is_the_mean_difference_of_log_probabilities(name: str) -> None:
    torch.manual_seed(0)
    p, q = PAIRS[name]()
    x = p.sample((6000,))
    estimate = (p.log_prob(x) - q.log_prob(x)).mean().item()
    assert D.kl_divergence(p, q).item() == pytest.approx(estimate, abs=0.04)


def test_divergence_is_infinite_without_support() -> None:
    assert D.kl_divergence(D.Normal(0.0, 1.0), D.Uniform(0.0, 1.0)).item() == float("inf")


def test_low_rank_agrees_with_full_covariance() -> None:
    low = D.LowRankMultivariateNormal(torch.zeros(3), torch.tensor([[1.0], [0.5], [0.2]]), torch.ones(3))
    full = D.MultivariateNormal(torch.zeros(3), low.covariance_matrix)
    other = D.MultivariateNormal(torch.ones(3), 2 * torch.eye(3))
    torch.testing.assert_close(D.kl_divergence(low, other), D.kl_divergence(full, other), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(D.kl_divergence(full, low), torch.tensor(0.0), rtol=0, atol=1e-5)


def test_unknown_pair_raises() -> None:
    with pytest.raises(NotImplementedError, match=r"No KL\(p \|\| q\) is implemented"):
        D.kl_divergence(D.Normal(0.0, 1.0), D.Categorical(torch.ones(2)))


def test_subclasses_find_the_nearest_registered_pair() -> None:
    class Special(D.Normal):
        pass

    @D.register_kl(Special, D.Normal)
    def special(p: Any, q: Any) -> torch.Tensor:
        return torch.tensor(42.0)

    assert D.kl_divergence(Special(0.0, 1.0), Special(1.0, 1.0)).item() == 42.0
    assert D.kl_divergence(D.Normal(0.0, 1.0), Special(0.0, 1.0)).item() == 0.0
