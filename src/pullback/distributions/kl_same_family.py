"""Divergences between two distributions of one family."""

from __future__ import annotations

import math
from typing import Any

from pullback import functions
from pullback.autograd.differentiation import grad
from pullback.distributions.bernoulli import Bernoulli
from pullback.distributions.beta import Beta
from pullback.distributions.binomial import Binomial
from pullback.distributions.categorical import Categorical
from pullback.distributions.cauchy import Cauchy
from pullback.distributions.continuous_bernoulli import ContinuousBernoulli
from pullback.distributions.dirichlet import Dirichlet
from pullback.distributions.exp_family import ExponentialFamily
from pullback.distributions.exponential import Exponential
from pullback.distributions.gamma import Gamma
from pullback.distributions.geometric import Geometric
from pullback.distributions.gumbel import Gumbel
from pullback.distributions.half_normal import HalfNormal
from pullback.distributions.independent import Independent
from pullback.distributions.kl import kl_divergence, register_kl
from pullback.distributions.laplace import Laplace
from pullback.distributions.normal import Normal
from pullback.distributions.one_hot_categorical import OneHotCategorical
from pullback.distributions.pareto import Pareto
from pullback.distributions.poisson import Poisson
from pullback.distributions.transformed_distribution import TransformedDistribution
from pullback.distributions.uniform import Uniform
from pullback.distributions.utils import _sum_rightmost, euler_constant
from pullback.tensor.tensor import Tensor

inf = math.inf


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    ones = p.probs * (functions.softplus(-q.logits) - functions.softplus(-p.logits))
    ones[q.probs == 0] = inf
    ones[p.probs == 0] = 0
    zeros = (1 - p.probs) * (functions.softplus(q.logits) - functions.softplus(p.logits))
    zeros[q.probs == 1] = inf
    zeros[p.probs == 1] = 0
    return ones + zeros


@register_kl(Beta, Beta)
def _beta(p: Beta, q: Beta) -> Tensor:
    sum_p = p.concentration1 + p.concentration0
    sum_q = q.concentration1 + q.concentration0
    log_beta_q = q.concentration1.lgamma() + q.concentration0.lgamma() + sum_p.lgamma()
    log_beta_p = p.concentration1.lgamma() + p.concentration0.lgamma() + sum_q.lgamma()
    ones = (p.concentration1 - q.concentration1) * functions.digamma(p.concentration1)
    zeros = (p.concentration0 - q.concentration0) * functions.digamma(p.concentration0)
    return log_beta_q - log_beta_p + ones + zeros + (sum_q - sum_p) * functions.digamma(sum_p)


@register_kl(Binomial, Binomial)
def _binomial(p: Binomial, q: Binomial) -> Tensor:
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    divergence = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    divergence[p.total_count > q.total_count] = inf
    return divergence


@register_kl(Categorical, Categorical)
def _categorical(p: Categorical, q: Categorical) -> Tensor:
    terms = p.probs * (p.logits - q.logits)
    terms[(q.probs == 0).expand_as(terms)] = inf
    terms[(p.probs == 0).expand_as(terms)] = 0
    return terms.sum(-1)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: ContinuousBernoulli, q: ContinuousBernoulli) -> Tensor:
    own = p._cont_bern_log_norm() + functions.log1p(-p.probs)
    other = -q._cont_bern_log_norm() - functions.log1p(-q.probs)
    return p.mean * (p.logits - q.logits) + own + other


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    sum_p, sum_q = p.concentration.sum(-1), q.concentration.sum(-1)
    totals = sum_p.lgamma() - sum_q.lgamma()
    parts = (p.concentration.lgamma() - q.concentration.lgamma()).sum(-1)
    slopes = p.concentration.digamma() - sum_p.digamma().unsqueeze(-1)
    return totals - parts + ((p.concentration - q.concentration) * slopes).sum(-1)


@register_kl(Exponential, Exponential)
def _exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p: ExponentialFamily, q: ExponentialFamily) -> Tensor:
    """The Bregman divergence of the log normalizer between the natural parameters."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed using Bregman "
            f"divergences, and none is registered for {type(p).__name__} and {type(q).__name__}"
        )
    p_natural = [parameter.detach().requires_grad_() for parameter in p._natural_params]
    q_natural = q._natural_params
    log_normalizer = p._log_normalizer(*p_natural)
    gradients = grad(log_normalizer.sum(), p_natural, create_graph=True)
    result = q._log_normalizer(*q_natural) - log_normalizer
    for own, other, gradient in zip(p_natural, q_natural, gradients, strict=True):
        result = result - _sum_rightmost((other - own) * gradient, len(q.event_shape))
    return result


@register_kl(Gamma, Gamma)
def _gamma(p: Gamma, q: Gamma) -> Tensor:
    rates = q.concentration * (p.rate / q.rate).log()
    normalizers = functions.lgamma(q.concentration) - functions.lgamma(p.concentration)
    slopes = (p.concentration - q.concentration) * functions.digamma(p.concentration)
    return rates + normalizers + slopes + (q.rate - p.rate) * (p.concentration / p.rate)


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    ratio = p.scale / q.scale
    own, other = p.loc / q.scale, q.loc / q.scale
    tail = functions.exp(other + (1 + ratio).lgamma() - own)
    return -ratio.log() - other + own + ratio * euler_constant + tail - (1 + euler_constant)


@register_kl(Geometric, Geometric)
def _geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - functions.log1p(-q.probs) / p.probs - q.logits


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: HalfNormal, q: HalfNormal) -> Tensor:
    return _normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio = p.scale / q.scale
    distance = (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * functions.exp(-distance / p.scale) - 1


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Tensor:
    variance_ratio = (p.scale / q.scale).pow(2)
    distance = ((p.loc - q.loc) / q.scale).pow(2)
    return 0.5 * (variance_ratio + distance - 1 - variance_ratio.log())


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot_categorical(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return _categorical(p._categorical, q._categorical)


@register_kl(Pareto, Pareto)
def _pareto(p: Pareto, q: Pareto) -> Tensor:
    scale_ratio = p.scale / q.scale
    alpha_ratio = q.alpha / p.alpha
    result = q.alpha * scale_ratio.log() - alpha_ratio.log() + alpha_ratio - 1
    result[p.scale < q.scale] = inf
    return result


@register_kl(Poisson, Poisson)
def _poisson(p: Poisson, q: Poisson) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Any:
    """The divergence of the bases: a common bijection changes nothing."""
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError(
            "KL between transformed distributions is implemented for equal transforms and event shapes only"
        )
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Uniform, Uniform)
def _uniform(p: Uniform, q: Uniform) -> Tensor:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    result[(q.low > p.low) | (q.high < p.high)] = inf
    return result


@register_kl(Independent, Independent)
def _independent(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError(
            "KL between Independent distributions needs equal reinterpreted_batch_ndims, "
            f"got {p.reinterpreted_batch_ndims} and {q.reinterpreted_batch_ndims}"
        )
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    spread = ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log()
    return spread - (4 * p.scale * q.scale).log()
