"""PyTorch's `_foreach_` functions: one operation over lists of tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import repeat
from typing import Any

from pullback import functions
from pullback.facts import fact_of
from pullback.graph.overwriting import overwrite
from pullback.kernels import clamping
from pullback.kernels.overwriting import overwriting
from pullback.tensor.tensor import Tensor

_write_maximum, _write_minimum = overwriting(clamping.maximum), overwriting(clamping.minimum)


@cache
def foreach_function(name: str) -> Callable[..., Any] | None:
    """The function `_foreach_<operation>`, or None if PyTorch has none of that name."""
    operation = name.removeprefix("_foreach_")
    in_place = operation.endswith("_")
    if fact_of(operation.rstrip("_"), "foreach") is None:
        return None

    def over_lists(*given: Any, **kwargs: Any) -> Any:
        args = list(given)
        if "scalars" in kwargs:
            args.append(kwargs.pop("scalars"))
        counts = [len(a) for a in args if _is_list(a)]
        count = counts[0]
        if not count:
            raise RuntimeError("Tensor list must have at least one tensor.")
        if counts != [count] * len(counts):
            other = next(c for c in counts if c != count)
            raise RuntimeError(f"Tensor lists must have the same number of tensors, got {count} and {other}")
        function = _function(operation, args)
        if len(args) == 4:
            kwargs = {**kwargs, "value": args.pop()}  # addcmul and addcdiv take it by its name
        rows = zip(*[a if _is_list(a) else repeat(a, count) for a in args], strict=True)
        if any(_is_list(value) for value in kwargs.values()):
            options = [{k: v[i] if _is_list(v) else v for k, v in kwargs.items()} for i in range(count)]
            results = [function(*row, **own) for row, own in zip(rows, options, strict=True)]
        elif kwargs:
            results = [function(*row, **kwargs) for row in rows]
        else:
            results = [function(*row) for row in rows]
        return None if in_place else tuple(results)

    over_lists.__name__ = name
    return over_lists


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and not isinstance(value, Tensor)


def _norm(input: Tensor, ord: Any = 2, dtype: Any = None) -> Tensor:
    return functions.linalg_vector_norm(input, ord, dtype=dtype)


def _function(operation: str, args: Sequence[Any]) -> Callable[..., Any]:
    """What to apply to each tensor and its operands."""
    base = operation.rstrip("_")
    if base == "copy":
        return functions.copy_
    if base == "zero":
        return functions.zero_
    if base == "norm":
        return _norm
    if base in ("maximum", "minimum"):
        other = args[1][0] if _is_list(args[1]) and args[1] else args[1]
        if isinstance(other, Tensor) and operation.endswith("_"):
            return _keep_larger if base == "maximum" else _keep_smaller
        if not isinstance(other, Tensor):
            base = "clamp_min" if base == "maximum" else "clamp_max"
    function: Callable[..., Any] = getattr(functions, f"{base}_" if operation.endswith("_") else base)
    return function


def _keep_larger(input: Tensor, other: Tensor) -> Any:
    return input if overwrite(_write_maximum, input, other) else functions.clamp_min_(input, other)


def _keep_smaller(input: Tensor, other: Tensor) -> Any:
    return input if overwrite(_write_minimum, input, other) else functions.clamp_max_(input, other)
