"""Probability distributions: samples that gradients flow through, densities, and divergences between them.

    m = Normal(loc, scale)
    x = m.rsample()        # differentiable in loc and scale
    m.log_prob(x)          # differentiable in x, loc and scale

Random numbers are PyTorch's from the same seed. A file per distribution; `transforms.py` and `constraints.py` hold
what new ones are made of, `kl.py` the table of divergences.
"""

from __future__ import annotations

from pullback.distributions import constraints as constraints
from pullback.distributions import transforms as transforms
from pullback.distributions.bernoulli import Bernoulli
from pullback.distributions.beta import Beta
from pullback.distributions.binomial import Binomial
from pullback.distributions.categorical import Categorical
from pullback.distributions.cauchy import Cauchy
from pullback.distributions.chi2 import Chi2
from pullback.distributions.constraint_registry import biject_to, transform_to
from pullback.distributions.continuous_bernoulli import ContinuousBernoulli
from pullback.distributions.dirichlet import Dirichlet
from pullback.distributions.distribution import Distribution
from pullback.distributions.exp_family import ExponentialFamily
from pullback.distributions.exponential import Exponential
from pullback.distributions.fishersnedecor import FisherSnedecor
from pullback.distributions.gamma import Gamma
from pullback.distributions.generalized_pareto import GeneralizedPareto
from pullback.distributions.geometric import Geometric
from pullback.distributions.gumbel import Gumbel
from pullback.distributions.half_cauchy import HalfCauchy
from pullback.distributions.half_normal import HalfNormal
from pullback.distributions.independent import Independent
from pullback.distributions.inverse_gamma import InverseGamma
from pullback.distributions.kl import kl_divergence, register_kl
from pullback.distributions.kumaraswamy import Kumaraswamy
from pullback.distributions.laplace import Laplace
from pullback.distributions.lkj_cholesky import LKJCholesky
from pullback.distributions.log_normal import LogNormal
from pullback.distributions.logistic_normal import LogisticNormal
from pullback.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from pullback.distributions.mixture_same_family import MixtureSameFamily
from pullback.distributions.multinomial import Multinomial
from pullback.distributions.multivariate_normal import MultivariateNormal
from pullback.distributions.negative_binomial import NegativeBinomial
from pullback.distributions.normal import Normal
from pullback.distributions.one_hot_categorical import OneHotCategorical, OneHotCategoricalStraightThrough
from pullback.distributions.pareto import Pareto
from pullback.distributions.poisson import Poisson
from pullback.distributions.relaxed_bernoulli import RelaxedBernoulli
from pullback.distributions.relaxed_categorical import RelaxedOneHotCategorical
from pullback.distributions.studentT import StudentT
from pullback.distributions.transformed_distribution import TransformedDistribution
from pullback.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    CatTransform,
    ComposeTransform,
    CorrCholeskyTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftmaxTransform,
    SoftplusTransform,
    StackTransform,
    StickBreakingTransform,
    TanhTransform,
    Transform,
    identity_transform,
)
from pullback.distributions.uniform import Uniform
from pullback.distributions.von_mises import VonMises
from pullback.distributions.weibull import Weibull
from pullback.distributions.wishart import Wishart

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "Bernoulli",
    "Beta",
    "Binomial",
    "CatTransform",
    "Categorical",
    "Cauchy",
    "Chi2",
    "ComposeTransform",
    "ContinuousBernoulli",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "Dirichlet",
    "Distribution",
    "ExpTransform",
    "Exponential",
    "ExponentialFamily",
    "FisherSnedecor",
    "Gamma",
    "GeneralizedPareto",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "IndependentTransform",
    "InverseGamma",
    "Kumaraswamy",
    "LKJCholesky",
    "Laplace",
    "LogNormal",
    "LogisticNormal",
    "LowRankMultivariateNormal",
    "LowerCholeskyTransform",
    "MixtureSameFamily",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Pareto",
    "Poisson",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "StudentT",
    "TanhTransform",
    "Transform",
    "TransformedDistribution",
    "Uniform",
    "VonMises",
    "Weibull",
    "Wishart",
    "biject_to",
    "identity_transform",
    "kl_divergence",
    "register_kl",
    "transform_to",
]  # fmt: skip
