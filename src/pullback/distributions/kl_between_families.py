"""Divergences between distributions of different families on the line; infinite where q lacks support that p has."""

from __future__ import annotations

import math
from typing import Any

from pullback import creation, functions
from pullback.distributions.bernoulli import Bernoulli
from pullback.distributions.beta import Beta
from pullback.distributions.binomial import Binomial
from pullback.distributions.continuous_bernoulli import ContinuousBernoulli
from pullback.distributions.exponential import Exponential
from pullback.distributions.gamma import Gamma
from pullback.distributions.gumbel import Gumbel
from pullback.distributions.kl import register_kl
from pullback.distributions.laplace import Laplace
from pullback.distributions.normal import Normal
from pullback.distributions.pareto import Pareto
from pullback.distributions.poisson import Poisson
from pullback.distributions.uniform import Uniform
from pullback.distributions.utils import euler_constant
from pullback.tensor.tensor import Tensor

inf, pi = math.inf, math.pi


def _register_infinite(p_type: type, *q_types: type, parameter: str) -> None:
    def infinite(p: Any, q: Any) -> Tensor:
        return creation.full_like(getattr(p, parameter), inf)

    for q_type in q_types:
        register_kl(p_type, q_type)(infinite)


_BOUNDED_BELOW = (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)
_register_infinite(Beta, Pareto, parameter="concentration1")
_register_infinite(ContinuousBernoulli, Pareto, parameter="probs")
_register_infinite(Exponential, Beta, ContinuousBernoulli, Pareto, Uniform, parameter="rate")
_register_infinite(Gamma, Beta, ContinuousBernoulli, Pareto, Uniform, parameter="concentration")
_register_infinite(Gumbel, *_BOUNDED_BELOW, parameter="loc")
_register_infinite(Laplace, *_BOUNDED_BELOW, parameter="loc")
_register_infinite(Normal, *_BOUNDED_BELOW, parameter="loc")
_register_infinite(Pareto, Beta, ContinuousBernoulli, Uniform, parameter="scale")
_register_infinite(Poisson, Bernoulli, Binomial, parameter="rate")


def _x_log_x(value: Tensor) -> Tensor:
    return value * value.log()


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Beta, ContinuousBernoulli)
def _beta_continuous_bernoulli(p: Beta, q: ContinuousBernoulli) -> Tensor:
    return -p.entropy() - p.mean * q.logits - functions.log1p(-q.probs) - q._cont_bern_log_norm()


@register_kl(Beta, Exponential)
def _beta_exponential(p: Beta, q: Exponential) -> Tensor:
    return -p.entropy() - q.rate.log() + q.rate * p.mean


@register_kl(Beta, Gamma)
def _beta_gamma(p: Beta, q: Gamma) -> Tensor:
    total = p.concentration1 + p.concentration0
    normalizer = q.concentration.lgamma() - q.concentration * q.rate.log()
    mean_log = p.concentration1.digamma() - total.digamma()
    return -p.entropy() + normalizer - (q.concentration - 1) * mean_log + q.rate * p.concentration1 / total


@register_kl(Beta, Normal)
def _beta_normal(p: Beta, q: Normal) -> Tensor:
    mean = p.mean
    variance = q.scale.pow(2)
    second = (mean * (1 - mean) / (p.concentration1 + p.concentration0 + 1) + mean.pow(2)) * 0.5
    quadratic = second - q.loc * mean + q.loc.pow(2) * 0.5
    return -p.entropy() + 0.5 * (variance * 2 * pi).log() + quadratic / variance


@register_kl(Beta, Uniform)
def _beta_uniform(p: Beta, q: Uniform) -> Tensor:
    result = -p.entropy() + (q.high - q.low).log()
    result[(q.low > 0.0) | (q.high < 1.0)] = inf
    return result


@register_kl(ContinuousBernoulli, Exponential)
def _continuous_bernoulli_exponential(p: ContinuousBernoulli, q: Exponential) -> Tensor:
    return -p.entropy() - functions.log(q.rate) + q.rate * p.mean


@register_kl(ContinuousBernoulli, Normal)
def _continuous_bernoulli_normal(p: ContinuousBernoulli, q: Normal) -> Tensor:
    constant = 0.5 * (math.log(2.0 * pi) + functions.square(q.loc / q.scale)) + functions.log(q.scale)
    quadratic = (p.variance + functions.square(p.mean) - 2.0 * q.loc * p.mean) / (2.0 * functions.square(q.scale))
    return -p.entropy() + constant + quadratic


@register_kl(ContinuousBernoulli, Uniform)
def _continuous_bernoulli_uniform(p: ContinuousBernoulli, q: Uniform) -> Tensor:
    # PyTorch counts bounds that touch 0 or 1 as outside.
    result = -p.entropy() + (q.high - q.low).log()
    return functions.where(
        functions.logical_or(functions.ge(q.low, 0.0), functions.le(q.high, 1.0)),
        creation.full_like(result, inf),
        result,
    )


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Exponential, q: Gamma) -> Tensor:
    ratio = q.rate / p.rate
    shape = q.concentration.lgamma() + q.concentration * euler_constant
    return -q.concentration * functions.log(ratio) + ratio + shape - (1 + euler_constant)


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p: Exponential, q: Gumbel) -> Tensor:
    product = p.rate * q.scale
    offset = q.loc / q.scale
    return product.log() - 1 - offset + functions.exp(offset) * product / (product + 1) + product.reciprocal()


@register_kl(Exponential, Normal)
def _exponential_normal(p: Exponential, q: Normal) -> Tensor:
    variance = q.scale.pow(2)
    rate_squared = p.rate.pow(2)
    quadratic = rate_squared.reciprocal() - q.loc / p.rate + q.loc.pow(2) * 0.5
    return 0.5 * functions.log(rate_squared * variance * 2 * pi) - 1 + quadratic / variance


@register_kl(Gamma, Exponential)
def _gamma_exponential(p: Gamma, q: Exponential) -> Tensor:
    return -p.entropy() - q.rate.log() + q.rate * p.concentration / p.rate


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p: Gamma, q: Gumbel) -> Tensor:
    product = p.rate * q.scale
    offset = q.loc / q.scale
    shape = (p.concentration - 1) * p.concentration.digamma() - p.concentration.lgamma() - p.concentration
    tail = functions.exp(offset) * (1 + product.reciprocal()).pow(-p.concentration) - offset
    return shape + product.log() + p.concentration / product + tail


@register_kl(Gamma, Normal)
def _gamma_normal(p: Gamma, q: Normal) -> Tensor:
    variance = q.scale.pow(2)
    rate_squared = p.rate.pow(2)
    shape = (
        0.5 * functions.log(rate_squared * variance * 2 * pi)
        - p.concentration
        - p.concentration.lgamma()
        + (p.concentration - 1) * p.concentration.digamma()
    )
    second = 0.5 * (p.concentration.pow(2) + p.concentration) / rate_squared
    return shape + (second - q.loc * p.concentration / p.rate + 0.5 * q.loc.pow(2)) / variance


@register_kl(Gumbel, Normal)
def _gumbel_normal(p: Gumbel, q: Normal) -> Tensor:
    ratio = p.scale / q.scale
    distance = ((p.loc + p.scale * euler_constant - q.loc) / q.scale).pow(2) * 0.5
    return -(ratio / math.sqrt(2 * pi)).log() + (pi * ratio * 0.5).pow(2) / 3 + distance - (euler_constant + 1)


@register_kl(Laplace, Normal)
def _laplace_normal(p: Laplace, q: Normal) -> Tensor:
    variance = q.scale.pow(2)
    ratio = p.scale.pow(2) / variance
    distance = 0.5 * p.loc.pow(2) - p.loc * q.loc + 0.5 * q.loc.pow(2)
    return -0.5 * functions.log(2 * ratio / pi) + ratio + distance / variance - 1


@register_kl(Normal, Gumbel)
def _normal_gumbel(p: Normal, q: Gumbel) -> Tensor:
    own, offset = p.loc / q.scale, q.loc / q.scale
    variance_ratio = (p.scale / q.scale).pow(2)
    tail = functions.exp(-own + 0.5 * variance_ratio + offset)
    return -variance_ratio.log() * 0.5 + own - offset + tail - 0.5 * (1 + math.log(2 * pi))


@register_kl(Normal, Laplace)
def _normal_laplace(p: Normal, q: Laplace) -> Tensor:
    difference = p.loc - q.loc
    standard = difference / p.scale
    mean_distance = math.sqrt(2 / pi) * p.scale * functions.exp(-0.5 * standard.pow(2))
    mean_distance = mean_distance + difference * functions.erf(math.sqrt(0.5) * standard)
    return -functions.log(p.scale / q.scale) + mean_distance / q.scale - 0.5 * (1 + math.log(0.5 * pi))


@register_kl(Pareto, Exponential)
def _pareto_exponential(p: Pareto, q: Exponential) -> Tensor:
    product = p.scale * q.rate
    result = (p.alpha / product).log() - p.alpha.reciprocal() + p.alpha * product / (p.alpha - 1) - 1
    result[p.alpha <= 1] = inf
    return result


@register_kl(Pareto, Gamma)
def _pareto_gamma(p: Pareto, q: Gamma) -> Tensor:
    mean_log = p.scale.log() + p.alpha.reciprocal()
    normalizer = q.concentration.lgamma() - q.concentration * q.rate.log()
    mean = p.alpha * p.scale / (p.alpha - 1)
    result = p.alpha.log() - mean_log + normalizer + (1 - q.concentration) * mean_log + q.rate * mean - 1
    result[p.alpha <= 1] = inf
    return result


@register_kl(Pareto, Normal)
def _pareto_normal(p: Pareto, q: Normal) -> Tensor:
    common = p.scale / (p.alpha - 1)
    constant = (math.sqrt(2 * pi) * q.scale * p.alpha / p.scale).log() - p.alpha.reciprocal()
    quadratic = p.alpha * common.pow(2) / (p.alpha - 2) + (p.alpha * common - q.loc).pow(2)
    result = constant + quadratic / (2 * q.scale.pow(2)) - 1
    result[p.alpha <= 2] = inf
    return result


@register_kl(Uniform, Beta)
def _uniform_beta(p: Uniform, q: Beta) -> Tensor:
    width = p.high - p.low
    mean_log = (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    mean_log_rest = (_x_log_x(1 - p.high) - _x_log_x(1 - p.low) + width) / width
    log_beta = q.concentration1.lgamma() + q.concentration0.lgamma() - (q.concentration1 + q.concentration0).lgamma()
    result = (
        (q.concentration0 - 1) * mean_log_rest + log_beta - functions.log(width) - (q.concentration1 - 1) * mean_log
    )
    result[(p.high > 1.0) | (p.low < 0.0)] = inf
    return result


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p: Uniform, q: ContinuousBernoulli) -> Tensor:
    # PyTorch counts bounds that touch 0 or 1 as outside.
    result = -p.entropy() - p.mean * q.logits - functions.log1p(-q.probs) - q._cont_bern_log_norm()
    return functions.where(
        functions.logical_or(functions.ge(p.high, 1.0), functions.le(p.low, 0.0)),
        creation.full_like(result, inf),
        result,
    )


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Uniform, q: Exponential) -> Tensor:
    result = q.rate * (p.high + p.low) / 2 - ((p.high - p.low) * q.rate).log()
    result[p.low < 0.0] = inf
    return result


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Uniform, q: Gamma) -> Tensor:
    width = p.high - p.low
    mean_log = (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    normalizer = q.concentration.lgamma() - q.concentration * q.rate.log()
    result = -width.log() + normalizer + (1 - q.concentration) * mean_log + q.rate * (p.high + p.low) / 2
    result[p.low < 0.0] = inf
    return result


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p: Uniform, q: Gumbel) -> Tensor:
    common = q.scale / (p.high - p.low)
    high, low = (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
    return common.log() + 0.5 * (high + low) - common * (functions.exp(-high) - functions.exp(-low))


@register_kl(Uniform, Normal)
def _uniform_normal(p: Uniform, q: Normal) -> Tensor:
    width = p.high - p.low
    distance = ((p.high + p.low - 2 * q.loc) / 2).pow(2)
    return (math.sqrt(pi * 2) * q.scale / width).log() + 0.5 * (width.pow(2) / 12 + distance) / q.scale.pow(2)


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Uniform, q: Pareto) -> Tensor:
    width = p.high - p.low
    mean_log = (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    result = mean_log * (q.alpha + 1) - (q.alpha * q.scale.pow(q.alpha) * width).log()
    result[p.low < q.scale] = inf
    return result
