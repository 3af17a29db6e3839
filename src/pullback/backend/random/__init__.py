"""Random numbers, the same as PyTorch's CPU generator draws, from arrays to arrays.

`generator.py` holds the engine and its state; the distributions are in `continuous`, `discrete` and `rejection`, each
function taking the generator last, with None for the default one.
"""

from pullback.backend.random.continuous import (
    cauchy,
    cauchy_,
    exponential,
    exponential_,
    log_normal,
    log_normal_,
    normal,
    normal_,
    uniform,
    uniform_,
)
from pullback.backend.random.discrete import (
    bernoulli,
    bernoulli_,
    geometric,
    geometric_,
    multinomial,
    randint,
    random_,
    randperm,
)
from pullback.backend.random.generator import Generator, default_generator
from pullback.backend.random.rejection import binomial, dirichlet, poisson, standard_gamma

__all__ = [
    "Generator",
    "bernoulli",
    "bernoulli_",
    "binomial",
    "cauchy",
    "cauchy_",
    "default_generator",
    "dirichlet",
    "exponential",
    "exponential_",
    "geometric",
    "geometric_",
    "log_normal",
    "log_normal_",
    "multinomial",
    "normal",
    "normal_",
    "poisson",
    "randint",
    "random_",
    "randperm",
    "standard_gamma",
    "uniform",
    "uniform_",
]
