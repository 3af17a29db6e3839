"""Arguments that are not tensors and yet answer for operations: objects whose class defines `__torch_function__`.

# Note [Foreign arguments]
Nothing looks for such an object while arguments are tensors and numbers. An operation looks where it would refuse an
argument; a composite function of the public namespaces, which could read attributes of anything, is called through
`offer_calls`, which lets plain types pass; and the composite functions that small programs call most ask themselves, in a
line that costs one comparison of types, and need no wrapper around them (the fact `asks` says so).
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable
from typing import Any

from pullback.backend.device import device
from pullback.backend.dtype import dtype
from pullback.backend.layout import layout, memory_format
from pullback.errors import not_a_bool, not_a_tensor, wrong_type
from pullback.facts import fact_of
from pullback.modes.function_modes import is_told
from pullback.modes.interception import overrides
from pullback.modes.switches import process, switches
from pullback.source_text import run_text
from pullback.tensor.arguments import missing_arguments, plain_number
from pullback.tensor.refusals import mismatch, refusal
from pullback.tensor.size import Size
from pullback.tensor.tensor import Tensor, TensorBase

PLAIN: set[type] = {
    Tensor, bool, int, float, complex, str, type(None), type(...), Size, dtype, slice, device, layout, memory_format,
}  # fmt: skip
"""Types of arguments that need no look at their class."""

_ANY_TRUTH = frozenset(["get_infos", "inplace", "recompute_scale_factor", "return_indices"])
"""Switches of which PyTorch only asks whether they are true."""

_UNPARSED = frozenset(["gaussian_nll_loss", "multi_head_attention_forward", "local_response_norm", "gumbel_softmax"])
"""Functions that PyTorch has in Python alone: no parser looks at their numbers and switches."""

_UNASKED = frozenset(["new_tensor"])
"""Methods that take a foreign argument for a value."""


def all_plain(values: Iterable[Any]) -> bool:
    """Whether no argument can override operations: asked before every operation once some Tensor subclass does."""
    for value in values:
        cls = type(value)
        if cls not in PLAIN and not ((cls is tuple or cls is list) and all_plain(value)):
            return False
    return True


def is_foreign(value: Any) -> bool:
    """Whether `value` answers for operations without being a tensor, or is a tensor whose class is asked like that."""
    if isinstance(value, TensorBase):
        return is_asked_whole(value)
    return hasattr(type(value), "__torch_function__") and not isinstance(value, type)


def is_asked_whole(value: Any) -> bool:
    """Whether `value` is a tensor of a class that is asked about public functions. See Note [Overriding classes]."""
    return type(value) in overrides.whole and not switches.overrides_disabled and not switches.interceptors


def any_asked_whole(*values: Any) -> bool:
    """Whether one of several tensors `is_asked_whole`, or a function mode is told."""
    if process.modes and is_told(by_itself=True):
        return True
    return bool(overrides.whole) and any(is_asked_whole(value) for value in values)


def answers(function: str, name: str, value: Any) -> bool:
    """Whether an argument that is not a plain Tensor answers for operations; an error if it is not a tensor either."""
    if (process.modes and is_told(by_itself=True)) or is_foreign(value):
        return True
    if isinstance(value, TensorBase):
        return False
    raise not_a_tensor(function, name, 1, value)


def any_foreign(values: Iterable[Any]) -> bool:
    """Whether one of the arguments is foreign, or is a list or tuple with a foreign element."""
    for value in values:
        cls = type(value)
        if cls in PLAIN:
            continue
        if any_foreign(value) if cls is list or cls is tuple else is_foreign(value):
            return True
    return False


def any_foreign_among(function: str, required: list[tuple[int, str, int | None]], values: tuple[Any, ...]) -> bool:
    """As `any_foreign`; without a foreign argument, check those that must be tensors (index, name, position)."""
    if (process.modes and is_told()) or any_foreign(values):
        return True
    for index, name, position in required:
        if not isinstance(values[index], TensorBase):
            raise wrong_type(function, name, position, "Tensor", values[index])
    return False


def ask_foreign(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
    """Ask foreign arguments about an operation; they see its arguments as its caller wrote them."""
    assert overrides.ask_foreign is not None
    return overrides.ask_foreign(function, args, kwargs or {})


def ask_about(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Ask the overriding arguments of a call about `function`, with exactly these arguments."""
    return _ask_exactly(function, args, kwargs)


def offer_calls(function: Callable[..., Any], module: str, name: str) -> Any:
    """Make a public function that asks foreign arguments first, written out with the same parameters, which is faster."""
    parameters = list(inspect.signature(function).parameters.values())
    if not parameters or any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        return _offer_calls_of_any(function, module, name)
    is_lenient = fact_of(name, "lenient") or fact_of(name, "number_first")
    required = [
        (index, p.name, None if p.kind is p.KEYWORD_ONLY else index + 1)
        for index, p in enumerate(parameters)
        if p.annotation == "Tensor" and p.default is p.empty and not is_lenient
    ]
    asking = (
        f"    if (process.modes or {_foreign_test(parameters)}) and any_foreign_among({name!r}, {required!r}, {{values}}):\n"
        f"        return ask(itself, {{given}})\n"
    )
    told_name = name if module == "pullback" else ""  # the others are Python in PyTorch too, and no parser reads them
    return _named(_written_out(function, name, parameters, asking, told_name), function, module, name)


def explain_errors(function: Callable[..., Any], name: str, *, is_public: bool = False) -> Any:
    """Make a method, or a function that asks no argument, that reports wrong types as PyTorch does. See Note [Refusals]."""
    parameters = list(inspect.signature(function).parameters.values())
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        return _explain_errors_of_any(function, name, is_public)
    tests = _tests_of(parameters[1:]) if name not in _UNASKED else ""
    asking = f"    if ({tests}) and any_foreign({{values}}):\n        return ask(itself, {{given}})\n" if tests else ""
    if is_public:
        asking = "    if process.modes and is_told():\n        return ask(itself, {given})\n" + asking
    made = functools.update_wrapper(_written_out(function, name, parameters, asking, name), function)
    made.__name__ = name
    return made


def _tests_of(parameters: list[inspect.Parameter]) -> str:
    """Write the test of whether one of several parameters is foreign; only those that can be tensors count."""
    names = [p.name for p in parameters if _may_be_tensor(p)]
    return " or ".join([f"type({n}) not in PLAIN" for n in names])


def _may_be_tensor(parameter: inspect.Parameter) -> bool:
    kind = str(parameter.annotation)
    return ("Tensor" in kind or kind == "Any") and parameter.name not in ("axis", "keepdims", "dtype", "memory_format")


def _explain_errors_of_any(function: Callable[..., Any], told_name: str, is_public: bool) -> Any:
    """As `explain_errors`, for functions that take any number of arguments."""

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if is_public and process.modes and is_told():
            return _ask_exactly(called, args, kwargs)
        try:
            return function(*args, **kwargs)
        except Exception as error:
            explained = refusal(function, told_name, args, kwargs, error)
            if explained is None:
                raise
        raise explained

    return called


def _foreign_test(parameters: list[inspect.Parameter]) -> str:
    """Write the test that decides, by the arguments that must be tensors, whether the others are looked at."""
    tests = [f"type({p.name}) is not Tensor" for p in parameters if p.annotation == "Tensor"]
    if others := _tests_of([p for p in parameters if p.annotation != "Tensor"]):
        tests.append(others)
    return " or ".join(tests or [f"type({parameters[0].name}) not in PLAIN"])


def _written_out(
    function: Callable[..., Any], name: str, parameters: list[inspect.Parameter], asking: str, told_name: str
) -> Callable[..., Any]:
    """Make a function with the same parameters that checks switches, calls `function`, and explains what went wrong."""
    scope: dict[str, Any] = {
        "told_name": told_name,
        "__name__": __name__,
        "Tensor": Tensor,
        "PLAIN": PLAIN,
        "process": process,
        "is_told": is_told,
        "any_foreign": any_foreign,
        "any_foreign_among": any_foreign_among,
        "ask": ask_foreign,
        "call": function,
        "refusal": refusal,
        "not_a_bool": not_a_bool,
        "number": _as_number,
        "missing": _MISSING,
        "missing_arguments": missing_arguments,
        "INTS": (int, bool),
        "NUMBERS": (float, int, bool),
        "SCALARS": (float, int, bool, complex),
    }
    heads: list[str] = []
    positional: list[str] = []
    named: list[str] = []
    switches = ""
    opened = _left_open(parameters)
    for p in parameters:
        if p.kind is p.KEYWORD_ONLY:
            heads += ["*"] if not named else []
            named.append(p.name)
        else:
            positional.append(p.name)
        scope[f"default_of_{p.name}"] = _MISSING if p in opened else p.default
        heads.append(p.name if p.default is p.empty and p not in opened else f"{p.name}=default_of_{p.name}")
        if name in _UNPARSED:
            continue
        if (kinds := _PLAIN_KINDS.get(p.annotation)) is not None:
            switches += (
                f"    if {p.name} is not default_of_{p.name} and type({p.name}) not in {kinds}:\n"
                f"        {p.name} = number({name!r}, {p.name!r}, {None if named else len(positional)}, "
                f"{p.annotation!r}, {p.name})\n"
            )
        if is_switch(p):
            switches += (
                f"    if {p.name} is not default_of_{p.name} and {p.name} is not True and {p.name} is not False:\n"
                f"        raise not_a_bool({name!r}, {p.name!r}, {p.name})\n"
            )
    values = f"({', '.join([*positional, *named])},)"
    keywords = ", ".join(f"{n!r}: {n}" for n in named)
    given = f"({''.join(n + ', ' for n in positional)}), {{{keywords}}}"
    passed = ", ".join([*positional, *[f"{n}={n}" for n in named]])
    if "dim" in positional and "axis" not in named:
        heads += ["axis=None"] if named else ["*", "axis=None"]
        asking = _AXIS_FOR_DIM + "".join(_REQUIRED.format(parameter=p.name, function=name) for p in opened) + asking
    text = (
        f"def itself({', '.join(heads)}):\n"
        f"{asking.format(values=values, given=given)}"
        f"{switches}"
        f"    try:\n"
        f"        return call({passed})\n"
        f"    except Exception as error:\n"  # see Note [Refusals]
        f"        explained = refusal(call, {name!r}, {given}, error)\n"
        f"        if explained is None:\n"
        f"            raise\n"
        f"    raise explained\n"
    )
    made: Callable[..., Any] = run_text(text, f"{name}() with its arguments checked", scope)["itself"]
    return made


_MISSING = object()
_AXIS_FOR_DIM = "    if axis is not None:\n        dim = axis\n"
_REQUIRED = "    if {parameter} is missing:\n        raise missing_arguments({function!r}, {parameter!r})\n"


def _left_open(parameters: list[inspect.Parameter]) -> list[inspect.Parameter]:
    """A required `dim` and what must be given after it: with `axis=`, which PyTorch takes for `dim`, they go by keyword."""
    names = [p.name for p in parameters]
    if "dim" not in names or "axis" in names:
        return []
    after = parameters[names.index("dim") :]
    return [p for p in after if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]


def _offer_calls_of_any(function: Callable[..., Any], module: str, name: str) -> Any:
    """As `offer_calls`, for functions that take any number of arguments."""
    prefix = module.removeprefix("pullback").removeprefix(".")
    told_name = f"{prefix}_{name}" if prefix in ("linalg", "fft", "special") else "" if prefix else name
    switches = [(i, p.name) for i, p in enumerate(inspect.signature(function).parameters.values()) if is_switch(p)]
    first_switch = switches[0][0] if switches else sys.maxsize

    def called(*args: Any, **kwargs: Any) -> Any:
        if kwargs or len(args) > first_switch:
            _check_switches(name, switches, args, kwargs)
        if process.modes and is_told():
            return _ask_exactly(called, args, kwargs)
        for value in args:
            if type(value) not in PLAIN:
                if any_foreign(args) or (kwargs and any_foreign(kwargs.values())):
                    return _ask_exactly(called, args, kwargs)
                break
        else:
            if kwargs and any_foreign(kwargs.values()):
                return _ask_exactly(called, args, kwargs)
        try:
            return function(*args, **kwargs)
        except Exception as error:  # see Note [Refusals]
            explained = refusal(function, told_name or name, args, kwargs, error)
            if explained is None:
                raise
        raise explained

    return _named(called, function, module, name)


_PLAIN_KINDS = {
    "int": "INTS", "int | None": "INTS", "float": "NUMBERS", "float | None": "NUMBERS", "Scalar": "SCALARS",
}  # fmt: skip


def _as_number(function: str, name: str, position: int | None, annotation: str, value: Any) -> Any:
    """Return the Python number in a NumPy number or a tensor of one element; refuse what is not a number."""
    expected = None if is_foreign(value) else mismatch(annotation, value)
    if expected is not None:
        raise wrong_type(function, name, position, expected, value)
    return plain_number(value)


def is_switch(parameter: inspect.Parameter) -> bool:
    """Whether a parameter takes True or False and nothing else: PyTorch's functions written in Python take any truth."""
    return parameter.annotation in ("bool", "bool | None") and parameter.name not in _ANY_TRUTH


def _check_switches(
    function: str, switches: list[tuple[int, str]], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    for position, name in switches:
        value = args[position] if position < len(args) else kwargs.get(name, False)
        if value is not True and value is not False and value is not None and not is_foreign(value):
            raise not_a_bool(function, name, value)


def _named(made: Any, function: Callable[..., Any], module: str, name: str) -> Any:
    functools.update_wrapper(made, function)
    made.__module__ = module
    made.__name__ = made.__qualname__ = name
    return made


def offer_all(namespace: dict[str, Any]) -> None:
    """Let all functions of a module ask foreign arguments first."""
    for name, value in list(namespace.items()):
        if not name.startswith("_") and inspect.isroutine(value):
            made = namespace[name] = _offer_calls_of_any(value, namespace["__name__"], name)
            made.__name__ = f"{namespace['__name__'].rpartition('.')[2]}_{name}"  # as PyTorch's compiled functions


def _ask_exactly(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    assert overrides.ask_exactly is not None
    return overrides.ask_exactly(function, args, kwargs)
