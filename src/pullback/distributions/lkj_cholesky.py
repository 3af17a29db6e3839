"""The LKJ distribution of correlation matrices, by their Cholesky factors."""

from __future__ import annotations

import math
from typing import Any

from pullback import creation, functions
from pullback.backend.dtype import finfo
from pullback.distributions import constraints
from pullback.distributions.beta import Beta
from pullback.distributions.distribution import Distribution
from pullback.distributions.utils import broadcast_all
from pullback.tensor.size import Size
from pullback.tensor.tensor import Tensor

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Lower factors of correlation matrices with density det**(concentration - 1); 1 is uniform.

    Samples are built row by row: the squared length off the diagonal is beta distributed, the direction uniform
    (the onion method).
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    _event_dims_of_parameters = {"concentration": 0}
    _taken_over = ("dim",)

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        offset = creation.arange(dim - 1, dtype=self.concentration.dtype, device=self.concentration.device)
        offset = functions.cat([offset.new_zeros((1,)), offset])
        marginal = self.concentration + 0.5 * (dim - 2)
        self._beta = Beta(offset + 0.5, marginal.unsqueeze(-1) - 0.5 * offset)
        super().__init__(self.concentration.size(), Size((dim, dim)), validate_args=validate_args)

    def _expand_parts(self, new: Any, batch_shape: Size) -> None:
        super()._expand_parts(new, batch_shape)
        new._beta = self._beta.expand((*batch_shape, self.dim))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        y = self._beta.sample(sample_shape).unsqueeze(-1)
        normal = functions.randn(self._extended_shape(sample_shape), dtype=y.dtype, device=y.device).tril(-1)
        direction = normal / normal.norm(dim=-1, keepdim=True)
        direction[..., 0, :].fill_(0.0)  # the first row has no entries off the diagonal
        w = functions.sqrt(y) * direction
        diagonal = functions.clamp(1 - functions.sum(w**2, dim=-1), min=finfo(w.dtype).tiny).sqrt()
        return w + functions.diag_embed(diagonal)

    def log_prob(self, value: Any) -> Tensor:
        self._check_sample(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = creation.arange(2, self.dim + 1, device=self.concentration.device)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        unnormalized = functions.sum(order * diagonal.log(), dim=-1)
        rows = self.dim - 1
        alpha = self.concentration + 0.5 * rows
        normalizer = (
            0.5 * rows * math.log(math.pi) + functions.mvlgamma(alpha - 0.5, rows) - functions.lgamma(alpha) * rows
        )
        return unnormalized - normalizer
