"""What is said when a function stumbled over an argument of a wrong type.

# Note [Refusals]
Composite functions do not look at the types of their arguments: every call would pay for it. When one fails in a way that
speaks of its inside (an attribute that a str lacks, a tensor that is no truth value), the arguments are compared with the
annotations, and a TypeError in PyTorch's words takes the error's place.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from pullback.errors import ArgumentTypeError
from pullback.tensor.arguments import do_not_broadcast
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
    "could not broadcast input array",
    "setting an array element",
    "can only convert an array",
    "invalid literal for int",
    "negative dimensions are not allowed",
)


def refusal(
    function: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception
) -> Exception | None:
    """The error that explains `error`, or None where that explains itself. See Note [Refusals]."""
    if not _speaks_of_the_inside(error):
        return None
    if isinstance(error, KeyError):  # of a function that takes keywords of any name, to look for its own
        unexpected = [key for key in kwargs if key not in error.args]
        return TypeError(f"{name}() got an unexpected keyword argument '{unexpected[0]}'") if unexpected else None
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return None
    for position, (parameter, value) in enumerate(bound.arguments.items(), 1):
        expected = _mismatch(bound.signature.parameters[parameter].annotation, value)
        if expected is not None:
            place = f" (position {position})" if position <= len(args) else ""
            return _wrong_type(
                error, f"{name}(): argument '{parameter}'{place} must be {expected}, not {type(value).__name__}"
            )
    if isinstance(error, ValueError) and "broadcast together" in str(error):
        shapes = re.findall(r"\(([\d,]*)\)", str(error))
        return do_not_broadcast([tuple(int(size) for size in shape.split(",") if size) for shape in shapes])
    if isinstance(error, ValueError) and "negative dimensions" in str(error):
        return RuntimeError(f"Trying to create tensor with negative dimension in {name}()")
    if _is_to_blame(bound, error):
        given = [type(value).__name__ for value in args]
        given += [f"{key}={type(value).__name__}" for key, value in kwargs.items()]
        text = f"{name}() received an invalid combination of arguments - got ({', '.join(given)})"
        return _wrong_type(error, text)
    return None


def _wrong_type(error: Exception, text: str) -> TypeError:
    return ArgumentTypeError(text) if isinstance(error, AttributeError) else TypeError(text)


def _speaks_of_the_inside(error: Exception) -> bool:
    if isinstance(error, (AttributeError, KeyError, StopIteration)):
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


def _is_to_blame(bound: inspect.BoundArguments, error: Exception) -> bool:
    """Whether the error complains about the type of an argument of which the annotation says nothing."""
    if isinstance(error, StopIteration):
        return True
    text = str(error)
    values = [*bound.args, *bound.kwargs.values()]
    values += [element for value in values if isinstance(value, (list, tuple)) for element in value]
    if isinstance(error, AttributeError):
        return any(f"'{type(value).__name__}' object" in text for value in values)
    if "could not convert string" in text or "invalid literal" in text:
        return any(isinstance(value, str) for value in values)
    if "of Tensor" in text or "to Scalar" in text or "an array" in text:
        parameters = bound.signature.parameters
        free = [value for name, value in bound.arguments.items() if "Tensor" not in str(parameters[name].annotation)]
        return any(isinstance(value, TensorBase) for value in free)
    return False
