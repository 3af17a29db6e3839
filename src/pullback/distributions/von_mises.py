"""The von Mises distribution of angles."""

from __future__ import annotations

import math
from typing import Any

from pullback import creation, functions
from pullback.autograd.grad_mode import no_grad
from pullback.backend.dtype import bool_
from pullback.distributions import constraints
from pullback.distributions.distribution import Distribution, parameter
from pullback.distributions.utils import broadcast_all, lazy_property
from pullback.tensor.size import Size
from pullback.tensor.tensor import Tensor

__all__ = ["VonMises"]


def _rejection_sample(loc: Tensor, concentration: Tensor, proposal_r: Tensor, x: Tensor) -> Tensor:
    """Best and Fisher's method: propose from a wrapped Cauchy distribution, until every element is accepted."""
    done = creation.zeros_like(x, dtype=bool_)
    while not done.all():
        u1, u2, u3 = functions.rand((3, *x.shape), dtype=loc.dtype, device=loc.device).unbind()
        z = functions.cos(math.pi * u1)
        f = (1 + proposal_r * z) / (proposal_r + z)
        c = concentration * (proposal_r - f)
        accept = ((c * (2 - c) - u2) > 0) | ((c / u2).log() + 1 - c >= 0)
        if accept.any():
            x = functions.where(accept, (u3 - 0.5).sign() * f.acos(), x)
            done = done | accept
    return (x + math.pi + loc) % (2 * math.pi) - math.pi


class VonMises(Distribution):
    """Angles around `loc` with density proportional to exp(concentration * cos(angle - loc)).

    p(x) = exp(concentration * cos(x - loc)) / (2 * pi * I0(concentration)), an angle.

    >>> import pullback
    >>> pullback.distributions.VonMises(0.0, 1.0).mean
    tensor(0.)
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False
    _event_dims_of_parameters = {"loc": 0, "concentration": 0}
    mean = parameter("loc", "The circular mean.")
    mode = parameter("loc")

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, Size(), validate_args=validate_args)

    def log_prob(self, value: Any) -> Tensor:
        self._check_sample(value)
        log_bessel = functions.log(functions.i0e(self.concentration)) + self.concentration
        return self.concentration * functions.cos(value - self.loc) - math.log(2 * math.pi) - log_bessel

    @lazy_property
    def _loc(self) -> Tensor:
        return self.loc.double()

    @lazy_property
    def _concentration(self) -> Tensor:
        return self.concentration.double()

    @lazy_property
    def _proposal_r(self) -> Tensor:
        kappa = self._concentration
        tau = 1 + (1 + 4 * kappa**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        # The closed form cancels for small concentrations: its series is used there.
        return functions.where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho**2) / (2 * rho))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw samples in double precision: float32 runs into endless rejection for small concentrations."""
        shape = self._extended_shape(sample_shape)
        with no_grad():
            x = self._loc.new_empty(shape)
            return _rejection_sample(self._loc, self._concentration, self._proposal_r, x).to(self.loc.dtype)

    @lazy_property
    def variance(self) -> Tensor:
        """The circular variance."""
        return 1 - functions.i1e(self.concentration) / functions.i0e(self.concentration)
