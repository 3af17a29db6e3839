"""Kernels compiled from C, below the operation layer: the decorator that puts them in place.

# Note [Compiled kernels]
A kernel in kernels/ is NumPy and stays the reference. Marked with `@native`, it is replaced by the compiled kernel of
the same name where the extension module `pullback.native.kernels` was built: a callable that serves plain float32 and
float64 arrays and hands every other call (other dtypes, strides it does not know, subclasses, bad arguments) to the
reference, which therefore decides all semantics and all errors. Nothing above the kernels knows of it. A formula marked
`@compiled_on_arrays` needs no kernel beside it: where it runs on arrays, it is such a reference itself.
`PULLBACK_NATIVE=0` in the environment turns all of them off.

# Note [Digests of sources]
The C of many kernels is rendered from the text of kernels, formulas and rules when the extension is built. It must not
answer for a text that has changed since: the extension holds a digest of every file that was read, `_load` compares them
with the files that are there, and kernels that were made of another text are not used. Where the text of a file differs,
its syntax decides, so that a comment may be edited without a build.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from contextvars import ContextVar
from functools import cache, wraps
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeVar, cast

from pullback.source_text import digest_of_syntax, digest_of_text

_Function = TypeVar("_Function", bound=Callable[..., Any])


_INTERFACE = 4
"""Of the extension module: one of another number was compiled from other sources. See INTERFACE in module.c."""


def _load() -> Any:
    """The extension module; None where it was not built, is turned off or does not fit these sources."""
    if os.environ.get("PULLBACK_NATIVE", "1") == "0":
        return None
    try:
        found = import_module("pullback.native.kernels")
    except ModuleNotFoundError:
        return None
    except ImportError as error:
        problem = f"do not load, NumPy's are used: {error}"
    else:
        changed = _changed_sources(found.SOURCES) if getattr(found, "INTERFACE", None) == _INTERFACE else None
        if changed == []:
            return found
        of = f"another text of {', '.join(changed)}" if changed else "other sources"
        problem = f"were compiled from {of}, NumPy's are used: install pullback again, or build_ext --inplace"
    warnings.warn(f"pullback's compiled kernels {problem}", UserWarning, stacklevel=2)
    return None


def _changed_sources(noted: str) -> list[str]:
    """The files that say something else than what was noted of them when the extension was built."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    changed = []
    for line in noted.splitlines():
        name, of_text, of_syntax = line.split()
        try:
            with open(os.path.join(folder, name), "rb") as file:
                text = file.read()
        except OSError:  # the package has come without its sources
            continue
        if digest_of_text(text) != of_text and digest_of_syntax(text) != of_syntax:
            changed.append(name)
    return changed


extension: Any = _load()


def native(reference: _Function) -> _Function:
    """Replace a NumPy kernel by the compiled one of its name, where there is one."""
    if extension is None:
        return by_device(reference)
    replaced: _Function = extension.bind(reference.__name__, reference, *_parameters(reference), False)
    return replaced


def overwriting_form(kernel: Any, reference: _Function) -> _Function:
    """The form of a compiled kernel that writes into its first argument, all others given by position."""
    if extension is None:
        return silent(reference)
    form: _Function = extension.bind(kernel.__name__, reference, *_parameters(kernel), True)
    return form


def compiled_on_arrays(formula: _Function) -> _Function:
    """Mark a formula whose name C has a kernel of: on arrays that serves, and the formula on arrays is its reference."""
    vars(formula)["is_compiled_on_arrays"] = True
    return formula


def _parameters(reference: Any) -> tuple[tuple[str, ...], int, tuple[Any, ...]]:
    """The names of a reference's parameters, how many may be given by position, and defaults (`...` for none)."""
    function = reference
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    code, by_name = function.__code__, function.__kwdefaults__ or {}
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    positional, numbers = names[: code.co_argcount], names[code.co_argcount :]
    if hasattr(reference, "is_for_rows"):  # the rows of arrays are one argument
        return ("rows", *numbers), 1, (...,) * (1 + len(numbers))
    defaults = function.__defaults__ or ()
    needed = (...,) * (len(positional) - len(defaults))
    return names, len(positional), (*needed, *defaults, *[by_name.get(name, ...) for name in numbers])


def by_device(reference: _Function) -> _Function:
    """Hand calls with arrays of another device than the CPU over to that device's kernel. See Note [Kernels by device].

    `@native` does this too: here are the kernels that were not compiled and make arrays of their own.
    """
    if extension is not None:
        handing: _Function = extension.by_device(reference)
        return handing
    return silent(_handing_over(reference) if _may_have_devices() else reference)


class _Errors:
    """NumPy's variable of what floating-point errors do, and its value for: nothing."""

    variable: ContextVar[Any]
    ignoring: Any = None


def ignore_errors(variable: ContextVar[Any], ignoring: Any) -> None:
    """From now on the variable has this value while NumPy kernels run. See Note [Silent arithmetic]."""
    _Errors.variable, _Errors.ignoring = variable, ignoring
    if extension is not None:
        extension.ignore_errors(variable, ignoring)


def silent(function: _Function) -> _Function:
    """Let NumPy not warn of infinities and nan in a function. Kernels are so by their decorators."""

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        variable, ignoring = _Errors.variable, _Errors.ignoring
        if variable.get(None) is ignoring:
            return function(*args, **options)
        token = variable.set(ignoring)
        try:
            return function(*args, **options)
        finally:
            variable.reset(token)

    return cast(_Function, call)


def by_element(reference: _Function) -> _Function:
    """As `by_device`, for a kernel that goes element by element: where dimensions of operands lie in different orders,
    the result follows the first operand, as in PyTorch, and not NumPy's rule. (Without the extension it is NumPy's.)
    """
    if extension is None:
        return by_device(reference)
    ordered: _Function = extension.by_element(reference)
    return ordered


@cache
def _may_have_devices() -> bool:
    """Whether arrays of another device may come up: asked for, or CuPy is installed. Without it nothing is to look out."""
    wanted = os.environ.get("PULLBACK_DEVICES")
    return wanted != "0" if wanted is not None else find_spec("cupy") is not None


class _Devices:
    """The arrays of other devices: their class, and who knows their kernels."""

    array_type: Any = None
    find: Callable[[type, Any], Any]


def use_devices(array_type: type, find: Callable[[type, Any], Any]) -> None:
    """From now on arrays of the type belong to other devices, and `find(type, reference)` gives their kernels."""
    _Devices.array_type, _Devices.find = array_type, find
    if extension is not None:
        extension.use_devices(array_type, find)
    elif not _may_have_devices():
        raise RuntimeError(
            "kernels were loaded for the CPU alone: set PULLBACK_DEVICES=1 in the environment before pullback is imported"
        )


def _handing_over(reference: _Function) -> _Function:
    """As the extension does, where there is none."""
    of_devices: dict[type, Any] = {}

    @wraps(reference)
    def kernel(*args: Any, **options: Any) -> Any:
        if _Devices.array_type is not None:
            if args and isinstance(args[0], _Devices.array_type):
                array = args[0]
            else:
                array = _first_device_array([*args, *options.values()], 2)
            if array is not None:
                kind = type(array)
                found = of_devices.get(kind)
                if found is None:
                    found = of_devices[kind] = _Devices.find(kind, reference)
                return found(*args, **options)
        return reference(*args, **options)

    return cast(_Function, kernel)


def _first_device_array(values: Any, depth: int) -> Any:
    for value in values:
        if isinstance(value, _Devices.array_type):
            return value
        if depth and isinstance(value, (list, tuple)):
            found = _first_device_array(value, depth - 1)
            if found is not None:
                return found
    return None


def compiled_kernels() -> list[str]:
    """The names of the compiled kernels in use."""
    return sorted(extension.names()) if extension is not None else []


def quickly_compiled() -> bool:
    """Whether the kernels were compiled in little time, for tests: they are slower than those of `pip install .`"""
    return hasattr(extension, "quick_build")


class _Threads:
    count = 1


def usable_threads() -> int:
    """How many threads there are unless a program says otherwise: OMP_NUM_THREADS, or the processors it may run on."""
    wanted = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if wanted.isdigit() and int(wanted):
        return int(wanted)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def get_num_threads() -> int:
    """How many threads one loop of a compiled kernel may use."""
    return _Threads.count


def set_num_threads(count: int) -> None:
    """Set how many threads one loop of a compiled kernel may use."""
    _Threads.count = count
    if extension is not None:
        extension.set_num_threads(count)


set_num_threads(usable_threads())
