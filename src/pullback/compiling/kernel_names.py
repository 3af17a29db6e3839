"""Lets a recorder see kernels as wholes, wherever a module of pullback has a name for one.

# Note [Recorded kernels]
Generated functions, rules and the engine call kernels by names of their own modules. While some thread records, these names
mean functions that ask whether their own thread does: one that does not calls the kernel as before. Afterwards the names
mean kernels again, so nobody pays for it at other times. A name that is missed (inside of a compiled module, or bound
while the recording goes on) costs nothing but detail: the kernel then meets traced arrays, and what it does with NumPy is
recorded instead.
"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.machinery import PathFinder
from types import BuiltinFunctionType, FunctionType
from typing import Any

from pullback import kernels
from pullback.backend import array_module
from pullback.backend import dtype as dtypes
from pullback.backend.random import Generator
from pullback.backend.traced_array import plain
from pullback.compiling.number_flow import asks_for_types
from pullback.compiling.numbers import TracedInt, TracedNumber, is_called_from_package, plain_number
from pullback.compiling.recorder import Recorder
from pullback.facts import fact_of, names_with
from pullback.kernels.arithmetic import add
from pullback.modes.source_lines import PACKAGE
from pullback.native import extension
from pullback.native.locks import process_lock
from pullback.recording import array_formulas
from pullback.tensor.tensor import Tensor

_KERNELS = "pullback.kernels."
_DRAWS = "pullback.backend.random"
_NOT_SEARCHED = (
    "pullback.kernels.",
    "pullback.backend.",
    "pullback.native",
    "pullback.compiling",
    "pullback.expressions",
)
_ARRAY_FUNCTIONS = ("copy_array", "cast_array", "zeros", "ones", "full", "empty", "restride")
_ABOUT_GEOMETRY = frozenset("reduced_axes reduced_count is_short has_short_rows geometry_of overwriting".split())
_WRITING = {"add_part": (0,)}
"""Kernels that write to their arguments."""


class _Recording(threading.local):
    recorder: Recorder | None = None


_recording = _Recording()
_lock = process_lock(threading.RLock)
_users = 0
_replaced: list[tuple[dict[str, Any], str, Any, Any]] = []
_wrappers: dict[int, tuple[Any, Any]] = {}
"""By the identity of a kernel: the kernel, and what stands for it. (Kernels live as long as the process.)"""
_stood_for: dict[int, Any] = {}
"""By the identity of what stands for a kernel: the kernel."""


def current_recorder() -> Recorder | None:
    """The recorder of this thread."""
    return _recording.recorder


@contextmanager
def recording_kernels(recorder: Recorder) -> Iterator[None]:
    """Let `recorder` see the kernels that this thread calls."""
    former, _recording.recorder = _recording.recorder, recorder
    _put_in_place()
    try:
        yield
    finally:
        _take_away()
        _recording.recorder = former


def _put_in_place() -> None:
    global _users
    with _lock:
        _users += 1
        if _users > 1:
            return
        for name, module in list(sys.modules.items()):
            if module is not None and _is_searched(name):
                _wrap_names(vars(module))
        sys.meta_path.insert(0, _finder)
        _replace(vars(dtypes), "number_as", _following(dtypes.number_as))
        for module in (kernels, array_formulas):
            _replace(vars(module), "__getattr__", _finding(vars(module), module.__getattr__))


def _is_searched(name: str) -> bool:
    if name == _DRAWS or name == array_module.__name__:
        return True
    return name.startswith("pullback.") and not name.startswith(_NOT_SEARCHED)


def _wrap_names(names: dict[str, Any]) -> None:
    for name, value in list(names.items()):
        _wrap_name(names, name, value)


def _wrap_name(names: dict[str, Any], name: str, value: Any) -> Any:
    """Give a name what stands for its kernel, and return that.

    A name that was made meanwhile from a replaced one has it already: it is to mean the kernel afterwards, too.
    """
    if id(value) in _stood_for:
        _replaced.append((names, name, _stood_for[id(value)], value))
        return value
    if type(value) is not FunctionType and type(value) is not _Kernel:
        return value
    wrapper = _wrapper_of(value)
    if wrapper is None:
        return value
    _replace(names, name, wrapper)
    return wrapper


def _replace(names: dict[str, Any], name: str, wrapper: Any) -> None:
    _replaced.append((names, name, names[name], wrapper))
    names[name] = wrapper


def _finding(names: dict[str, Any], find: Callable[[str], Any]) -> Callable[[str], Any]:
    """A module's `__getattr__` whose kernels are seen as well: it puts what it finds among the names of the module."""

    def find_wrapped(name: str) -> Any:
        value = find(name)
        with _lock:
            return _wrap_name(names, name, value) if _users and names.get(name) is value else value

    return find_wrapped


class _Loader:
    """Loads a module as its own loader does, and lets its kernels be seen."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def exec_module(self, module: Any) -> None:
        module.__loader__ = module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        with _lock:
            if _users:
                _wrap_names(vars(module))


class _Finder:
    """Finds modules of pullback that are first imported while something is recorded."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        if path is None or not _is_searched(name):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None and spec.submodule_search_locations is None:
            spec.loader = _Loader(spec.loader)  # type: ignore[assignment]  # it answers as the loader does
        return spec


_finder: Any = _Finder


_Kernel: Any = type(extension.by_device(len)) if extension is not None else None


def _take_away() -> None:
    global _users
    with _lock:
        _users -= 1
        if _users:
            return
        sys.meta_path.remove(_finder)
        for names, name, value, wrapper in _replaced:
            if names.get(name) is wrapper:
                names[name] = value
        _replaced.clear()


def _wrapper_of(value: Any) -> Any:
    """What stands for a kernel; None for what is not a kernel."""
    known = _wrappers.get(id(value))
    if known is not None:
        return known[1]
    wrapper = _make_wrapper(value)
    _wrappers[id(value)] = (value, wrapper)
    if wrapper is not None:
        _stood_for[id(wrapper)] = value
    return wrapper


def _make_wrapper(value: Any) -> Any:
    module, name = getattr(value, "__module__", None) or "", getattr(value, "__name__", "")
    if module.startswith(_DRAWS):
        return _draw(value, name) if not name.startswith("_") and name in vars(sys.modules[_DRAWS]) else None
    if module == array_module.__name__:
        return _kernel(value, name, f"array_module.{name}") if name in _ARRAY_FUNCTIONS else None
    if module == "pullback.kernels.overwriting":
        return _declining(value, name)
    if module.startswith(_KERNELS) and name not in _ABOUT_GEOMETRY:
        return _kernel(value, name, f"{module.removeprefix(_KERNELS)}.{name}")
    if type(value) is _Kernel and module.startswith("pullback.generated."):
        return _kernel(value, name, f"{module.removeprefix('pullback.')}.{name}")
    return None


def _kernel(kernel: Any, name: str, title: str) -> Callable[..., Any]:
    owned = _place_of_owned(kernel)
    writes = _WRITING.get(name)
    is_drawing = name in ("standard_gamma", "sample_dirichlet")

    def recorded(*args: Any, **kwargs: Any) -> Any:
        recorder = _recording.recorder
        if recorder is None or not recorder.is_open():
            return kernel(*args, **kwargs)
        if owned is not None:
            args = (*args[:owned], *args[owned + 1 :])
            kwargs.pop("owned", None)
        if fact_of(name, "count_of_values"):
            recorder.stop(f"{name} gives as many results as its values say")
        if name == "add_in_place":
            recorder.write(args[0], recorder.run("arithmetic.add", add, args, kwargs))
            return args[0]
        if writes is not None:
            return recorder.run_writing(title, kernel, args, kwargs, writes)
        return recorder.run(title, kernel, args, kwargs, is_ordered=is_drawing)

    recorded.__name__ = name
    recorded.__wrapped__ = kernel  # type: ignore[attr-defined]  # as functools.wraps does
    # What makes an array is made anew for the library of a device.
    recorded.recorded_as = lambda made: _kernel(made, name, title)  # type: ignore[attr-defined]  # Library.maker asks
    return recorded if extension is None else extension.unwatched(recorded)


def _following(number_as: Any) -> Any:
    """A number becomes an operand: see Note [Changing numbers]."""

    def followed(value: Any, dtype: Any) -> Any:
        recorder = _recording.recorder
        if type(value) is not TracedNumber and type(value) is not TracedInt:
            return number_as(value, dtype)
        if recorder is None or not recorder.is_open() or value._numbers is not recorder.followed:
            return number_as(plain_number(value), dtype)
        if dtype.kind == "f" or (dtype.kind in "iu" and type(value) is TracedInt):
            return recorder.scalar_array(value, dtype, number_as)
        recorder.followed.read()
        return number_as(plain_number(value), dtype)

    return followed


def _declining(function: Any, name: str) -> Any:
    """The short road of in-place operations is closed while they are recorded: see graph/overwriting.py."""
    if name == "overwriting":
        return None

    def declined(*args: Any, **kwargs: Any) -> Any:
        recorder = _recording.recorder
        return False if recorder is not None and recorder.is_open() else function(*args, **kwargs)

    declined.__name__ = name
    declined.__wrapped__ = function  # type: ignore[attr-defined]  # as functools.wraps does
    return declined


def _place_of_owned(kernel: Any) -> int | None:
    """Where a rule's line is told that it may overwrite its gradient: recorded ones never do."""
    try:
        parameters = list(inspect.signature(getattr(kernel, "__wrapped__", kernel)).parameters)
    except (TypeError, ValueError):
        return None
    return parameters.index("owned") if "owned" in parameters else None


def _draw(function: Any, name: str) -> Callable[..., Any]:
    def drawn(*args: Any, **kwargs: Any) -> Any:
        recorder = _recording.recorder
        if recorder is None or not recorder.is_open():
            return function(*args, **kwargs)
        title = f"random.{name}"
        if name.endswith("_"):
            return recorder.run_drawing(title, function, args, kwargs)
        if recorder.drawn.is_behind:
            recorder.move_stream()
        made = recorder.run(title, function, args, kwargs, is_ordered=True)
        recorder.drawn.add(None, None)
        return made

    drawn.__name__ = name
    drawn.__wrapped__ = function  # type: ignore[attr-defined]  # as functools.wraps does
    return drawn


_SHOWING = (
    "__array__", "_typed_storage", "__dlpack__", "__reduce_ex__", "__deepcopy__", "register_hook", "retain_grad",
    "register_post_accumulate_grad_hook", "swap", "_conj", "_neg_view",
)  # fmt: skip
"""Tensor's own methods that let memory out, or change a tensor in a way that is not part of a program."""


@contextmanager
def stopping_at_methods(recorder: Recorder) -> Iterator[None]:
    """Stop the recording where a method gives memory away. Other threads do not notice."""
    former: dict[str, Any] = {}
    with _lock:
        for name in (*_SHOWING, *names_with("shows_memory")):
            method = vars(Tensor).get(name)
            if isinstance(method, (FunctionType, BuiltinFunctionType)) and not hasattr(method, "_stops"):
                former[name] = method
                setattr(Tensor, name, _stopping(method, name))
        for name in _ASKED:
            fact = vars(Tensor).get(name)
            read = fact.fget if isinstance(fact, property) else fact
            if read is not None and not hasattr(read, "_stops"):
                former[name] = fact
                told: Any = _stopping_where_asked(read, name)
                setattr(Tensor, name, property(told) if isinstance(fact, property) else told)
        if "__getattr__" not in vars(Tensor):
            former["__getattr__"] = None
            Tensor.__getattr__ = _missing_attribute  # type: ignore[method-assign]  # looked up where none is found
    try:
        yield
    finally:
        with _lock:
            for name, method in former.items():
                if method is None:
                    delattr(Tensor, name)
                else:
                    setattr(Tensor, name, method)


_ASKED = (
    "grad_fn", "is_leaf", "_version", "output_nr", "retains_grad", "_base", "_is_view", "is_conj", "is_neg", "is_shared",
    "storage_offset",
)  # fmt: skip
"""What programs are not told apart by: the user's code that asks a tensor for it is not skipped.

# Note [Asked facts]
Modules compiled by Cython have no frames, so that their questions look like the user's. They read the fields that these
properties read instead.
"""


def _stopping_where_asked(method: Any, name: str) -> Any:
    @functools.wraps(method)
    def read(self: Any) -> Any:
        recorder = _recording.recorder
        if recorder is not None and recorder.is_open() and not is_called_from_package(1):
            recorder.stop(f"a tensor is asked for its {name}")
        return method(self)

    read._stops = True  # type: ignore[attr-defined]  # others that record at the same time leave it
    return read


def _missing_attribute(self: Any, name: str) -> Any:
    """Stop the recording where the user's code asks for an attribute that a tensor of a later call may have."""
    recorder = _recording.recorder
    if recorder is not None and not name.startswith("__") and not is_called_from_package(1):
        recorder.stop(f"a tensor is asked for the attribute {name}, which it has not")
    return object.__getattribute__(self, name)


@contextmanager
def following_sizes() -> Iterator[None]:
    """Let the user's code learn sizes as numbers that are followed. See Note [Followed sizes]."""
    with _lock:
        former = {name: vars(Tensor)[name] for name in ("shape", "size", "numel", "nelement", "stride", "nbytes")}
        length = vars(Tensor)["__len__"]
        for name, method in former.items():
            is_property = isinstance(method, property)
            told: Any = _telling_sizes(method.fget if is_property else method)
            setattr(Tensor, name, property(told) if is_property else told)
        setattr(Tensor, "__len__", _telling_length(length))  # noqa: B010  # as the others
    try:
        yield
    finally:
        with _lock:
            for name, method in {**former, "__len__": length}.items():
                setattr(Tensor, name, method)


def _telling_sizes(method: Any) -> Any:
    def telling(self: Any, *args: Any, **kwargs: Any) -> Any:
        made = method(self, *args, **kwargs)
        recorder = _recording.recorder
        if recorder is None or not recorder.is_open() or is_called_from_package(1):
            return made
        if asks_for_types(sys._getframe(1).f_code):
            recorder.sizes.read()
            return made
        if isinstance(made, int):
            return recorder.sizes.see([made])[0]
        return tuple.__new__(type(made), recorder.sizes.see(made))

    telling.__name__ = method.__name__
    telling.__doc__ = method.__doc__
    return telling


def _telling_length(method: Any) -> Any:
    """`len` gives Python's own numbers: what the user's code does with it cannot be followed."""

    def telling(self: Any) -> Any:
        recorder = _recording.recorder
        if recorder is not None and recorder.is_open() and not is_called_from_package(1):
            recorder.sizes.read()
        return method(self)

    return telling


_SETTING = ("set_state", "manual_seed", "seed", "get_state")
"""Methods that move a random stream to another place, which no program does, or tell where it is."""


@contextmanager
def watching_streams() -> Iterator[None]:
    """Tell the recorder where a random stream is moved, in the backward as well."""
    with _lock:
        former = {name: vars(Generator)[name] for name in _SETTING}
        for name, method in former.items():
            setattr(Generator, name, _setting(method))
    try:
        yield
    finally:
        with _lock:
            for name, method in former.items():
                setattr(Generator, name, method)


def _is_restored() -> bool:
    """Whether this package reads or sets a state, which it does to give back one that was there before."""
    frame: Any = sys._getframe(2)
    if frame.f_code.co_name in ("set_rng_state", "get_rng_state"):
        frame = frame.f_back
    return bool(frame.f_code.co_filename.startswith(PACKAGE))


def _setting(method: Any) -> Any:
    def setting(self: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = _recording.recorder
        if recorder is not None and recorder.is_open():
            reads = method.__name__ == "get_state"
            if method.__name__ not in ("set_state", "get_state") or not _is_restored():
                told = (
                    "the state of a random stream is read"
                    if reads
                    else "the random stream is moved, by a seed or a state"
                )
                recorder.stop(told)
            result = method(self, *args, **kwargs)
            state = id(self), self.pack_state().tobytes()
            if reads:
                recorder.drawn.note(state)
            elif not recorder.drawn.go_to(state):
                recorder.move_stream()
            return result
        return method(self, *args, **kwargs)

    return setting


def _stopping(method: Any, name: str) -> Any:
    def stopping(self: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = _recording.recorder
        if recorder is not None and recorder.is_open():
            recorder.stop(f"Tensor.{name}() is called")
        return plain(method(self, *args, **kwargs))

    stopping._stops = True  # type: ignore[attr-defined]  # so that it is not wrapped twice
    stopping.__name__ = name
    stopping.__doc__ = method.__doc__
    return stopping
