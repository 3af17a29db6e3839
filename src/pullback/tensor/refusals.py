"""What is said when a function stumbled over an argument of a wrong type.

# Note [Refusals]
Composite functions do not look at the types of their arguments: every call would pay for it. When one fails in a way that
speaks of its inside (an attribute that a str lacks, a tensor that is no truth value), the arguments are compared with the
annotations, and a TypeError in PyTorch's words takes the error's place.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from pullback.tensor.tensor import TensorBase

_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "Tensor": ((TensorBase,), "Tensor"),
    "int": ((int,), "int"),
    "float": ((int, float), "float"),
    "bool": ((bool,), "bool"),
    "str": ((str,), "str"),
    "Scalar": ((bool, int, float, complex), "Number"),
    "None": ((type(None),), "None"),
}
_INSIDE = (
    "Boolean value of Tensor with more than one value",
    "cannot be converted to Scalar",
    "could not convert string to",
    "could not be broadcast together",
    "setting an array element",
)


def refusal(
    function: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception
) -> TypeError | None:
    """The error that explains `error`, or None where that explains itself. See Note [Refusals]."""
    if not _speaks_of_the_inside(error):
        return None
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return None
    for position, (parameter, value) in enumerate(bound.arguments.items(), 1):
        expected = _mismatch(bound.signature.parameters[parameter].annotation, value)
        if expected is not None:
            place = f" (position {position})" if position <= len(args) else ""
            return TypeError(f"{name}(): argument '{parameter}'{place} must be {expected}, not {type(value).__name__}")
    return _unspecific(name, args, kwargs, error)


def _speaks_of_the_inside(error: Exception) -> bool:
    if isinstance(error, AttributeError):
        return True
    text = str(error)
    if type(error) is TypeError:
        return "argument '" not in text and "invalid combination" not in text
    return any(phrase in text for phrase in _INSIDE)


def _mismatch(annotation: Any, value: Any) -> str | None:
    """What the annotation expects, if `value` is something else and the annotation is one that says what it takes."""
    kinds = [_KINDS.get(part) for part in annotation.split(" | ")] if isinstance(annotation, str) else [None]
    if any(kind is None or isinstance(value, kind[0]) for kind in kinds):
        return None
    if kinds[0] is not _KINDS["Tensor"] and getattr(value, "ndim", 1) == 0:  # taken for a number
        return None
    assert kinds[0] is not None
    return kinds[0][1]


def _unspecific(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> TypeError | None:
    """For what annotations do not tell: the types that were given, if one of them is what the error complains about."""
    values = [*args, *kwargs.values()]
    complained = str(error).split("'")[1:2] if isinstance(error, AttributeError) else ["Tensor", "str", "tuple", "list"]
    if isinstance(error, TypeError) or not any(type(value).__name__ in complained for value in values):
        return None
    given = [type(value).__name__ for value in args] + [
        f"{key}={type(value).__name__}" for key, value in kwargs.items()
    ]
    return TypeError(f"{name}() received an invalid combination of arguments - got ({', '.join(given)})")
