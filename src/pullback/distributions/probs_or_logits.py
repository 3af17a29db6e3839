"""Parameters that are given either as probabilities or as logits; the other form is computed when asked for."""

from __future__ import annotations

from typing import Any

from pullback.distributions.distribution import Distribution
from pullback.distributions.utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits
from pullback.tensor.size import Size
from pullback.tensor.tensor import Tensor


def require_one(probs: Any, logits: Any) -> None:
    """Raise ValueError unless exactly one of the two forms is given."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


class ProbsOrLogits(Distribution):
    """A distribution with `probs` and `logits`, one of which is an attribute from the start."""

    _is_binary = True
    _is_given_as_probs: bool
    _taken_over = ("_is_given_as_probs",)

    def _take_form(self, probs: Any, logits: Any, *others: Any) -> list[Tensor]:
        """Keep the form that was given, broadcast with `others`, which are returned."""
        require_one(probs, logits)
        self._is_given_as_probs = probs is not None
        *broadcast, form = broadcast_all(*others, logits if probs is None else probs)
        setattr(self, "probs" if self._is_given_as_probs else "logits", form)
        return broadcast

    @lazy_property
    def logits(self) -> Tensor:
        """Log-odds, or normalised log-probabilities."""
        return probs_to_logits(self.probs, is_binary=self._is_binary)

    @lazy_property
    def probs(self) -> Tensor:
        """Probabilities."""
        return logits_to_probs(self.logits, is_binary=self._is_binary)

    @property
    def _param(self) -> Tensor:
        """The form that was given."""
        return self.probs if self._is_given_as_probs else self.logits

    @property
    def param_shape(self) -> Size:
        """The shape of the form that was given."""
        return self._param.size()

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._param.new(*args, **kwargs)
