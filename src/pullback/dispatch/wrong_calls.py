"""What is wrong with a call, in the words of PyTorch's parser of arguments.

PyTorch reads the arguments of a built-in function by its signatures before it runs, and says which argument does not fit;
where there are several signatures that might have been meant, it lists them, with what is wrong about each. pullback's
functions run without that look: this module is asked when one of them failed. See Note [Refusals].
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from pullback.backend.array_module import is_number
from pullback.backend.dtype import dtype
from pullback.backend.naming import display_namespace
from pullback.dispatch.signature_lists import Parameter, Signature, signatures
from pullback.errors import NO_SIGNATURE, type_name_in_c
from pullback.facts import fact_of
from pullback.modes.call_site import as_called, call_entered, compiled_method_entered
from pullback.tensor.arguments import PYTHON_TYPES
from pullback.tensor.size import Size
from pullback.tensor.tensor import Tensor
from pullback.tensor.tensor_base import TensorBase

_NUMPY_WORDS = {"axis": "dim", "keepdims": "keepdim"}


def complaint_about_call() -> str | None:
    """What PyTorch says of the call by which the user came into the package."""
    calls = [call for call in (call_entered(), compiled_method_entered()) if call is not None]
    entered = next((call for call in calls if signatures(call.name, call.is_method)[0]), None)
    if entered is None:
        return None
    owner: Any = Tensor if entered.is_method else import_module("pullback")
    function = getattr(owner, entered.name, None)
    parameters = inspect.signature(function).parameters if function is not None else {}
    defaults = {name: parameter.default for name, parameter in parameters.items()}
    complaints = [complaint(entered.name, entered.is_method, *call) for call in as_called(entered, defaults)]
    return None if None in complaints else complaints[0]


def complaint(name: str, is_method: bool, args: Sequence[Any], kwargs: dict[str, Any]) -> str | None:
    """What PyTorch says of a call; None where a signature takes it, or where PyTorch has none of its own.

    >>> print(complaint("lerp", False, (1, "x", 0.5), {}))
    lerp() received an invalid combination of arguments - got (int, str, float), but expected one of:
    ...
    """
    found, has_older = signatures(name, is_method)
    if not found:
        return None
    if any(_reason(name, signature, args, kwargs) is None for signature in found):
        return None
    if len(found) == 1 and not has_older:
        return _reason(name, found[0], args, kwargs)
    plausible = [signature for signature in found if signature.counts(len(args) + len(kwargs))]
    if len(plausible) == 1:
        return _reason(name, plausible[0], args, kwargs)
    return _combination(name, found, args, kwargs)


def _reason(name: str, signature: Signature, args: Sequence[Any], kwargs: dict[str, Any]) -> str | None:
    """Why a signature does not take a call; None if it does."""
    positional = signature.positional
    args = _packed(positional, args)
    kwargs = _in_own_words(signature, kwargs)
    if len(args) > len(positional):
        least = sum([p.default is None for p in positional])
        count = str(least) if least == len(positional) else f"from {least} to {len(positional)}"
        takes = f"takes {count} positional argument{'' if count == '1' else 's'}"
        return f"{name}() {takes} but {len(args)} w{'as' if len(args) == 1 else 'ere'} given"
    given = {p.name: value for p, value in zip(positional, args, strict=False)}
    missing = [
        p.name for p in signature.parameters if p.default is None and p.name not in (given.keys() | kwargs.keys())
    ]
    for position, parameter in enumerate(signature.parameters):
        is_positional = position < len(args)
        if not is_positional and parameter.name not in kwargs:
            if parameter.default is None:
                plural = "s" if len(missing) == 1 else ""  # PyTorch has it the wrong way round
                listed = ", ".join([f'"{n}"' for n in missing])
                return f"{name}() missing {len(missing)} required positional argument{plural}: {listed}"
            continue
        value = args[position] if is_positional else kwargs[parameter.name]
        wrong = _wrong(name, parameter, value, position)
        if wrong is not None:
            place = f" (position {position + 1})" if is_positional else ""
            return (
                wrong
                if wrong.startswith("expected ")
                else f"{name}(): argument '{parameter.name}'{place} must be {wrong}"
            )
    known = {p.name for p in signature.parameters}
    for keyword in kwargs:
        if keyword not in known:
            return f"{name}() got an unexpected keyword argument '{keyword}'"
        if keyword in given:
            return f"{name}() got multiple values for argument '{keyword}'"
    return None


def _in_own_words(signature: Signature, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments by name, with NumPy's words for a parameter of the signature replaced by PyTorch's."""
    known = {p.name for p in signature.parameters}
    return {_NUMPY_WORDS[n] if _NUMPY_WORDS.get(n) in known - kwargs.keys() else n: v for n, v in kwargs.items()}


def _packed(positional: list[Parameter], args: Sequence[Any]) -> Sequence[Any]:
    """Sizes that were given one by one, as the one argument that they are."""
    alone = len(positional) == 1 and positional[0].kind == "tuple of ints" and len(args) > 1
    return [list(args)] if alone and _is_int(args[0]) else args


def _takes_number(function: str) -> bool:
    return bool(fact_of(function.removesuffix("_"), "number_first"))


def _wrong(function: str, parameter: Parameter, value: Any, position: int) -> str | None:
    """What does not fit about an argument: the rest of "must be ...", or a sentence of its own; None if it fits."""
    kind = parameter.kind
    if _fits(kind, value, _takes_number(function)) or (value is None and parameter.takes_none):
        return None
    if isinstance(value, (list, tuple)) and value:
        if kind == "tuple of Tensors":
            at = next(i for i, element in enumerate(value) if not _fits("Tensor", element, False))
            return f"expected Tensor as element {at} in argument {position}, but got {type_name(value[at])}"
        if kind == "tuple of ints":
            return f"tuple of ints, but found element of type {type_name(value[0])} at pos 0"
    return f"{kind.replace('torch.', display_namespace() + '.')}, not {type_name(value)}"


def _fits(kind: str, value: Any, number_for_tensor: bool) -> bool:
    if kind == "Tensor":
        return _is_tensor(value) or (number_for_tensor and is_number(value))
    if kind == "tuple of Tensors":
        return isinstance(value, (list, tuple)) and all(_is_tensor(v) or v is None for v in value)
    if kind == "tuple of ints":
        if isinstance(value, (list, tuple)):
            return not value or _is_int(value[0])
        return _is_int(value)
    test = _TESTS.get(kind)
    if test is not None:
        return test(value)
    return type(value).__name__ == kind.removeprefix("torch.") or (
        kind == "torch.Storage" and "Storage" in str(type(value))
    )


def _is_tensor(value: Any) -> bool:
    return isinstance(value, TensorBase) or (hasattr(type(value), "__torch_function__") and not isinstance(value, type))


def _is_single(value: Any) -> bool:
    return isinstance(value, TensorBase) and value._array.ndim == 0 and not value._requires_grad


def _is_int(value: Any) -> bool:
    if isinstance(value, TensorBase):
        return _is_single(value) and value._array.dtype.kind in "biu"
    return not isinstance(value, (float, complex)) and hasattr(type(value), "__index__")


def _is_number(value: Any) -> bool:
    return is_number(value) or _is_single(value)


def _is_dtype(value: Any) -> bool:
    return isinstance(value, dtype) or (isinstance(value, type) and value in PYTHON_TYPES)


_TESTS: dict[str, Callable[[Any], bool]] = {
    "Number": _is_number,
    "float": lambda value: _is_number(value) and not isinstance(value, complex),
    "int": _is_int,
    "bool": lambda value: isinstance(value, bool),
    "str": lambda value: isinstance(value, str),
    "object": lambda value: True,
    "torch.dtype": _is_dtype,
    "torch.device": lambda value: type(value).__name__ == "device" or isinstance(value, (str, int)),
}


def _combination(name: str, found: list[Signature], args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """No signature fits: what was given, and the signatures with what is wrong about those of as many arguments."""
    known = {p.name for signature in found for p in signature.parameters}
    if len(found) == 1 and (unknown := [keyword for keyword in kwargs if keyword not in known]):
        return f"{name}() {NO_SIGNATURE} - got unrecognized keyword arguments: {', '.join(unknown)}"
    head = f"{name}() {NO_SIGNATURE} - got ({_shown([type_name(a) for a in args], kwargs)}), but expected "
    if len(found) == 1:
        return f"{head}({found[0].text})"
    lines = [f" * ({signature.text})\n{_mismatches(name, signature, args, kwargs)}" for signature in found]
    return f"{head}one of:\n{''.join(lines)}"


def _mismatches(name: str, signature: Signature, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """The line below a signature of as many arguments as were given."""
    parameters = signature.parameters
    if len(args) + len(kwargs) != signature.text.count(",") + 1:  # PyTorch counts the star, and one argument in ()
        return ""
    known = {p.name: p for p in parameters if p.default is None}  # PyTorch knows no others here
    unknown = [keyword for keyword in kwargs if keyword not in known]
    if unknown:
        return f"      didn't match because some of the keywords were incorrect: {', '.join(unknown)}\n"
    lenient = _takes_number(name)
    marked = [
        _marked(_detailed(value), i < len(parameters) and _is_marked_right(parameters[i], value, lenient))
        for i, value in enumerate(args)
    ]
    named = [_marked(f"{n}={_detailed(v)}", _is_marked_right(known[n], v, lenient)) for n, v in kwargs.items()]
    shown = ", ".join([*marked, *named]) + (", " if named and not marked else "")
    return f"      didn't match because some of the arguments have invalid types: ({shown})\n"


def _is_marked_right(parameter: Parameter, value: Any, lenient: bool) -> bool:
    """PyTorch marks every argument of a parameter with a default as wrong, and every one that should be a number."""
    return parameter.default is None and parameter.kind != "Number" and _fits(parameter.kind, value, lenient)


def _marked(text: str, fits: bool) -> str:
    return text if fits else f"!{text}!"


def _shown(given: list[str], kwargs: dict[str, Any]) -> str:
    named = [f"{keyword}={type_name(value)}" for keyword, value in kwargs.items()]
    return ", ".join([*given, *named]) + (", " if named and not given else "")


def _detailed(value: Any) -> str:
    """The type of an argument, with those of its elements if it has some."""
    if type(value) is list:
        return f"list of [{', '.join([type_name(v) for v in value])}]"
    if type(value) is tuple:
        comma = "," if len(value) == 1 else ""
        return f"tuple of ({', '.join([type_name(v) for v in value])}{comma})"
    return type_name(value)


def type_name(value: Any) -> str:
    """The name of a type as PyTorch gives it: those of its own built-in ones with the package."""
    cls = type(value)
    if isinstance(value, (dtype, Size)) or (cls.__name__ in ("device", "layout", "memory_format", "Generator")):
        return f"{display_namespace()}.{cls.__name__}"
    return cls.__name__ if isinstance(value, TensorBase) else type_name_in_c(cls)
