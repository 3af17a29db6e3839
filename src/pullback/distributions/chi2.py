"""The chi-squared distribution."""

from __future__ import annotations

from typing import Any

from pullback.distributions import constraints
from pullback.distributions.gamma import Gamma
from pullback.tensor.tensor import Tensor

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The sum of `df` squared standard normal variables: Gamma(df / 2, 1 / 2).

    The mean is `df`, a number or a tensor.

    >>> import pullback
    >>> pullback.distributions.Chi2(3.0).mean
    tensor(3.)
    """

    arg_constraints = {"df": constraints.positive}
    _event_dims_of_parameters = Gamma._event_dims_of_parameters

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self) -> Tensor:
        """The degrees of freedom."""
        return self.concentration * 2
