"""Differentiable sampling."""

from __future__ import annotations

from pullback import functions
from pullback.creation import zeros_like
from pullback.modes.user_warnings import warn_user
from pullback.tensor.tensor import Tensor


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """Sample from the Gumbel-softmax distribution; `hard` gives one-hot rows with the gradient of soft ones.

    The shape of `logits` stays, and `dim` sums to 1. y = softmax((logits + g) / tau), g = -ln(-ln(u)) for u drawn
    uniformly.

    >>> import pullback
    >>> pullback.nn.functional.gumbel_softmax(pullback.zeros(2, 5), hard=True).sum()
    tensor(2.)
    """
    if eps != 1e-10:
        warn_user("`eps` parameter is deprecated and has no effect.")
    # In row-major order whatever the order of the logits is, as PyTorch draws.
    drawn = functions.exponential_(logits.new_empty(logits.shape))
    noise = functions.neg(functions.log(drawn))
    soft = functions.softmax(functions.div(functions.add(logits, noise), tau), dim)
    if not hard:
        return soft
    index = functions.max(soft, dim, keepdim=True)[1]
    chosen = functions.scatter(zeros_like(logits), dim, index, 1.0)
    return functions.add(functions.sub(chosen, soft.detach()), soft)
