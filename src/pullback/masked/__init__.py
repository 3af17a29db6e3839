"""Reductions and normalisations over the elements that a mask selects, under the names of `torch.masked`.

What the mask leaves out becomes the operation's identity (0 for a sum, -inf for a maximum) before the plain operation
runs, so the derivatives are those of the plain operation, and zero outside of the mask.

>>> import pullback
>>> x = pullback.tensor([[1.0, 2.0], [3.0, 4.0]])
>>> pullback.masked.sum(x, 1, mask=pullback.tensor([[True, False], [True, True]]))
tensor([1., 7.])
"""

from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from pullback.masked.maskedtensor import MaskedTensor, as_masked_tensor, is_masked_tensor, masked_tensor

__all__ = [
    "MaskedTensor",
    "amax",
    "amin",
    "argmax",
    "argmin",
    "as_masked_tensor",
    "cumprod",
    "cumsum",
    "is_masked_tensor",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "masked_tensor",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]


def __getattr__(name: str) -> Any:
    """MaskedTensor and its functions: loaded when asked for, since the class makes every operation look for it."""
    if name not in ("MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"):
        raise AttributeError(f"module 'pullback.masked' has no attribute '{name}'")
    from pullback.masked import maskedtensor

    return getattr(maskedtensor, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
