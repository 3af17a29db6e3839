"""PyTorch's `_foreach_` functions: one operation over lists of tensors."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pullback.functions as F
from pullback.tensor.tensor import Tensor

_NAMES = frozenset(
    "abs acos add addcdiv addcmul asin atan ceil clamp_max clamp_min copy cos cosh div erf erfc exp expm1 floor frac lerp "
    "lgamma log log10 log1p log2 max maximum minimum mul neg norm pow powsum reciprocal round rsqrt sigmoid sign sin sinh "
    "sqrt sub tan tanh trunc zero".split()
)


@cache
def foreach_function(name: str) -> Callable[..., Any] | None:
    """The function `_foreach_<operation>`, or None if PyTorch has none of that name."""
    operation = name.removeprefix("_foreach_")
    in_place = operation.endswith("_")
    if operation.rstrip("_") not in _NAMES:
        return None

    def over_lists(*args: Any, **kwargs: Any) -> Any:
        count = next(len(a) for a in args if _is_list(a))
        results = []
        for index in range(count):
            own = [a[index] if _is_list(a) else a for a in args]
            own_kwargs = {k: v[index] if _is_list(v) else v for k, v in kwargs.items()}
            results.append(_apply(operation, own, own_kwargs))
        return None if in_place else tuple(results)

    over_lists.__name__ = name
    return over_lists


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and not isinstance(value, Tensor)


def _apply(operation: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
    base = operation.rstrip("_")
    if base in ("addcmul", "addcdiv") and len(args) == 4:
        kwargs = {**kwargs, "value": args.pop()}
    if base == "copy":
        return args[0].copy_(args[1])
    if base == "zero":
        return args[0].zero_()
    if base in ("maximum", "minimum") and not isinstance(args[1], Tensor):
        base = "clamp_min" if base == "maximum" else "clamp_max"
    if operation.endswith("_"):
        if base in ("maximum", "minimum"):
            return args[0].copy_(getattr(F, base)(*args))
        return getattr(args[0], f"{base}_")(*args[1:], **kwargs)
    return getattr(F, base)(*args, **kwargs)
