"""Turn an internal error into the TypeError that names the wrong argument.

# Note [Refusals]
Functions do not look at the types of their arguments: every call would pay for it. When one fails, for whatever
reason, its arguments are compared with its annotations (of composite functions) or with the signature of its kernel (of
generated ones), and a TypeError in PyTorch's words takes the error's place: PyTorch reads all arguments before it runs.
Where PyTorch's signatures are known, `dispatch/wrong_calls.py` reads the call that the user wrote as PyTorch's parser would.
Python itself refuses too few, too many and misnamed arguments, before anything of ours runs.
Switches alone are looked at in every call, since anything is true or false.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections.abc import Callable, Sequence
from typing import Any

from pullback.backend.array_module import is_number
from pullback.backend.dtype import dtype
from pullback.backend.naming import display_namespace
from pullback.errors import ArgumentTypeError, complaint_about_call, no_memory, no_signature_fits, wrong_type
from pullback.tensor.arguments import PYTHON_TYPES, do_not_broadcast
from pullback.tensor.tensor import TensorBase

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))).replace("\\", "/") + "/"
_PYTHON = os.path.dirname(os.__file__).replace("\\", "/") + "/"
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


_SIZES = {
    **dict.fromkeys(
        "kernel_size stride dilation output_padding output_size normalized_shape shifts size pad".split(), "Shape"
    ),
    "padding": "Shape | str",
}
"""Parameters that take a number or one number per dimension in every function that has them."""


def refused(
    error: Exception, function: str, schema: Sequence[tuple[str, str, bool]], values: tuple[Any, ...]
) -> Exception:
    """Make what a generated function raises after `error`: it names the first argument of a wrong type, if there is one.

    `schema` is the signature of the kernel: the name and annotation of each value, and whether it is passed by name.
    """
    for position, (name, annotation, by_name) in enumerate(schema):
        value = values[position]
        expected = mismatch(annotation, value)
        if expected is not None:
            if value is None and name == "dim":
                return TypeError(f'{function}() missing 1 required positional arguments: "dim"')
            return wrong_type(function, name, None if by_name else position + 1, expected, value)
    if isinstance(error, (ValueError, MemoryError)):
        return no_memory(error) or _shapes_that_differ(error) or error
    return error


def refusal(
    function: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception
) -> Exception | None:
    """Make the error that explains `error`; None where that explains itself. See Note [Refusals]."""
    if _comes_from_a_callback(error):
        return None
    explained = _explanation(function, name, args, kwargs, error)
    said = complaint_about_call()
    if said is not None and said != str(error):
        return _also_attribute_error(explained or error, said)
    return explained


def _explanation(
    function: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception
) -> Exception | None:
    if (allocation := no_memory(error)) is not None:
        return allocation
    if isinstance(error, KeyError):  # of a function that takes keywords of any name, to look for its own
        unexpected = [key for key in kwargs if key not in error.args]
        return TypeError(f"{name}() got an unexpected keyword argument '{unexpected[0]}'") if unexpected else None
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return None
    if isinstance(error, TypeError) and "(): argument '" in str(error):
        return None
    inside = _mentions_internals(error)
    if isinstance(error, (ValueError, NotImplementedError)) and not inside:
        return None  # raised by what looks at values before PyTorch's parser looks at types
    for position, (parameter, value) in enumerate(bound.arguments.items(), 1):
        if bound.signature.parameters[parameter].kind in (
            inspect.Parameter.VAR_POSITIONAL,
            inspect.Parameter.VAR_KEYWORD,
        ):
            continue
        expected = mismatch(_annotation(bound.signature.parameters[parameter], inside), value)
        if expected is not None:
            explained = wrong_type(name, parameter, position if position <= len(args) else None, expected, value)
            return _also_attribute_error(error, str(explained))
    if not inside:
        return None
    if isinstance(error, ValueError) and "broadcast together" in str(error):
        return _shapes_that_differ(error)
    if isinstance(error, ValueError) and "negative dimensions" in str(error):
        return RuntimeError(f"Trying to create tensor with negative dimension in {name}()")
    if (element := _wrong_element(bound)) is not None:
        return element
    if _is_to_blame(bound, error):
        given = [type(value).__name__ for value in args]
        given += [f"{key}={type(value).__name__}" for key, value in kwargs.items()]
        return _also_attribute_error(error, str(no_signature_fits(name, given)))
    return None


def _comes_from_a_callback(error: Exception) -> bool:
    """Whether the user's code, called back (a hook, a backward), raised the error: then it stays as it is."""
    below = error.__traceback__
    while below is not None:
        if not _is_library_code(below.tb_frame.f_code.co_filename):
            return True
        below = below.tb_next
    return False


@functools.cache
def _is_library_code(filename: str) -> bool:
    """Whether a file belongs to this package, to Python or to the array library, which calls no one back."""
    path = filename.replace("\\", "/")
    if path.startswith(("<", "pullback/")) or "/numpy/" in path or "/ml_dtypes/" in path:
        return True
    return path.startswith(_PACKAGE) or (path.startswith(_PYTHON) and "/site-packages/" not in path)


def _wrong_element(bound: inspect.BoundArguments) -> TypeError | None:
    """Make the refusal of what is not a tensor among any number of tensors, given one by one or as a list."""
    tensors = bound.arguments.get("tensors")
    if not tensors or bound.signature.parameters["tensors"].kind is not inspect.Parameter.VAR_POSITIONAL:
        return None
    if len(tensors) == 1:
        tensors = tensors[0]
        if not isinstance(tensors, (list, tuple)):
            if bound.signature.return_annotation == "Any":  # of functions that take a tensor, or many
                return None
            tensors = (tensors,)
    wrong = mismatch("Arrays", tensors)
    return None if wrong is None else wrong_type("", "tensors", 1, wrong, tensors)


def _annotation(parameter: inspect.Parameter, by_name: bool) -> Any:
    """Tell what a parameter takes: by its annotation, or by its name where that has one meaning in all functions."""
    if parameter.name == "dtype":
        return "DType | None"
    if parameter.annotation != "Any" or parameter.name not in _SIZES or not by_name:
        return parameter.annotation
    kinds = _SIZES[parameter.name]
    return f"{kinds} | None" if parameter.default is None else kinds


def _shapes_that_differ(error: Exception) -> RuntimeError | None:
    """Put NumPy's complaint about shapes into PyTorch's words."""
    if "broadcast" not in str(error):
        return None
    shapes = re.findall(r"\(([\d, ]*)\)", str(error))
    return do_not_broadcast([tuple(int(size) for size in shape.split(",") if size.strip()) for shape in shapes])


def _also_attribute_error(error: Exception, text: str) -> TypeError:
    return ArgumentTypeError(text) if isinstance(error, AttributeError) else TypeError(text)


def _mentions_internals(error: Exception) -> bool:
    if isinstance(error, (AttributeError, KeyError, StopIteration)):
        return True
    text = str(error)
    if type(error) is TypeError:
        return "(): argument '" not in text and "invalid combination" not in text
    return any(phrase in text for phrase in _INSIDE)


def mismatch(annotation: Any, value: Any) -> str | None:
    """Tell what the annotation expects; None if `value` fits, or the annotation does not say what it takes."""
    if not isinstance(annotation, str):
        return None
    words = annotation.split(" | ")
    tests = [_KINDS.get(word) for word in words]
    if any(test is None or test[0](value) for test in tests):
        return None
    assert tests[0] is not None
    return tests[0][1].format(namespace=display_namespace())


def _is_tensor(value: Any) -> bool:
    return isinstance(value, TensorBase)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_none(value: Any) -> bool:
    return value is None


def _is_scalar(value: Any) -> bool:
    return is_number(value) or getattr(value, "ndim", 1) == 0


def _is_float(value: Any) -> bool:
    return _is_scalar(value) and not isinstance(value, complex)


def _is_int(value: Any) -> bool:
    return (
        not isinstance(value, float) and (hasattr(type(value), "__index__") or _is_scalar(value)) and _is_single(value)
    )


def _is_single(value: Any) -> bool:
    return getattr(value, "ndim", 0) == 0


def _are_ints(value: Any) -> bool:
    return all(_is_int(v) for v in value) if isinstance(value, (tuple, list)) else _is_int(value)


def _are_tensors(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and all(isinstance(v, TensorBase) for v in value)


def _is_dtype(value: Any) -> bool:
    return isinstance(value, dtype) or value in PYTHON_TYPES or hasattr(value, "itemsize")


def _are_ints_or_none(value: Any) -> bool:
    return value is None or _are_ints(value)


_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "Array": (_is_tensor, "Tensor"),
    "Tensor": (_is_tensor, "Tensor"),
    "Arrays": (_are_tensors, "tuple of Tensors"),
    "int": (_is_int, "int"),
    "Dim": (_is_int, "int"),
    "Dims": (_are_ints_or_none, "tuple of ints"),
    "Shape": (_are_ints, "tuple of ints"),
    "float": (_is_float, "float"),
    "bool": (_is_bool, "bool"),
    "str": (_is_text, "str"),
    "Scalar": (_is_scalar, "Number"),
    "DType": (_is_dtype, "{namespace}.dtype"),
    "None": (_is_none, "None"),
}


def _is_to_blame(bound: inspect.BoundArguments, error: Exception) -> bool:
    """Whether the error complains about the type of an argument whose annotation says nothing."""
    if isinstance(error, StopIteration):
        return True
    text = str(error)
    values = [*bound.args, *bound.kwargs.values()]  # those that go by any name are among the latter
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
