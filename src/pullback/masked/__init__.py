"""Reductions and normalisations over the elements that a mask selects, under the names of `torch.masked`.

What the mask leaves out becomes the operation's identity (0 for a sum, -inf for a maximum) before the plain operation
runs, so the derivatives are those of the plain operation, and zero outside of the mask.

>>> import pullback
>>> x = pullback.tensor([[1.0, 2.0], [3.0, 4.0]])
>>> pullback.masked.sum(x, 1, mask=pullback.tensor([[True, False], [True, True]]))
tensor([1., 7.])
"""

from pullback.masked.normalizations import log_softmax, logaddexp, normalize, softmax, softmin
from pullback.masked.reductions import (
    amax,
    amin,
    argmax,
    argmin,
    cumprod,
    cumsum,
    logsumexp,
    mean,
    median,
    norm,
    prod,
    std,
    sum,
    var,
)

__all__ = [
    "amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean", "median",
    "norm", "normalize", "prod", "softmax", "softmin", "std", "sum", "var",
]  # fmt: skip
