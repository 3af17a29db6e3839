"""The Kullback-Leibler divergence: a table from pairs of types to functions, and how a pair is looked up.

The functions stand in `kl_same_family`, `kl_between_families` and `kl_multivariate`, which fill the table.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from pullback.distributions.distribution import Distribution
from pullback.modes.user_warnings import warn_user
from pullback.tensor.tensor import Tensor

__all__ = ["kl_divergence", "register_kl"]

Divergence = Callable[[Any, Any], Any]

_KL_REGISTRY: dict[tuple[type, type], Divergence] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Divergence], Divergence]:
    """Register the decorated function as KL(p || q) for two types of distributions and their subclasses."""
    for name, kind in (("type_p", type_p), ("type_q", type_q)):
        # Any class will do, as in PyTorch: libraries have bases of their own.
        if not isinstance(kind, type):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {kind}")

    def decorator(function: Divergence) -> Divergence:
        _KL_REGISTRY[type_p, type_q] = function
        _dispatch_kl.cache_clear()
        return function

    return decorator


@cache
def _dispatch_kl(type_p: type, type_q: type) -> Any:
    """The function for the nearest registered base types, NotImplemented where there is none."""
    distances = {
        (p, q): (type_p.__mro__.index(p), type_q.__mro__.index(q))
        for p, q in _KL_REGISTRY
        if issubclass(type_p, p) and issubclass(type_q, q)
    }
    if not distances:
        return NotImplemented
    nearest_p = min(distances, key=lambda pair: distances[pair])
    nearest_q = min(distances, key=lambda pair: distances[pair][::-1])
    if _KL_REGISTRY[nearest_p] is not _KL_REGISTRY[nearest_q]:
        names = [f"({p.__name__}, {q.__name__})" for p, q in (nearest_p, nearest_q)]
        warn_user(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}): both {names[0]} and {names[1]} match. "
            f"Please register_kl({nearest_p[0].__name__}, {nearest_q[1].__name__})",
            RuntimeWarning,
        )
    return _KL_REGISTRY[nearest_p]


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Compute KL(p || q), the expectation under p of log p - log q, for each element of the batch.

    >>> from pullback.distributions import Normal
    >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
    tensor(0.5000)
    """
    types: tuple[type, type] = (type(p), type(q))
    function = _dispatch_kl(*types)
    if function is NotImplemented:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
        )
    return function(p, q)


from pullback.distributions import kl_between_families, kl_multivariate, kl_same_family  # noqa: E402, F401
