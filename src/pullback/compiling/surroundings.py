"""Surroundings: what a function can reach beside its arguments, and whether that is as it was.

From a function one comes to its closure, its defaults, the globals that its code names, and to what these hold: modules and
their parameters, optimizers and their state, containers, objects and the classes that users wrote. The tensors found are
inputs of the program; everything else is compared by identity (numbers and strings by value) before Python is skipped.
After a recording the same comparison finds what the function itself changed, which skipping it would lose.

# Note [Replaced tensors]
A global, a variable of a closure or an attribute may name another tensor in each call: a batch, a state that a model
carries on. One of the same form is then an input as an argument is: it is taken from where its predecessor stood. It must
have followed it wherever that was found, so that what was one tensor is still one and what were two are still two.
Parameters, and tensors that were found in a tuple or a set, or as a `.grad`, are not followed so.

# Note [Memory that Python reads]
NumPy's arrays, bytearrays and their like hold numbers that code may read at any place. Their contents are compared, up to a
limit of bytes. Of modules that are not the user's, what is data and named in code is compared, and so are the settings of
this package that code asks for by name.
"""

from __future__ import annotations

import array
import functools
import itertools
import operator
import os
import sys
import types
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pullback.backend.array_module import is_array, ndarray
from pullback.backend.c_types import ctypes
from pullback.backend.device import device
from pullback.backend.dtype import dtype
from pullback.backend.layout import layout, memory_format
from pullback.compiling.memory import storage_key
from pullback.graph.source_lines import PACKAGE
from pullback.nn.modules.module import Module
from pullback.nn.modules.module_hooks import GlobalHooks
from pullback.random import Generator
from pullback.tensor.tensor import Tensor, TensorBase

LIMIT = 50_000
"""More objects than this are not followed."""
_ATOMS = (int, float, complex, str, bytes, bool, type(None), type(...), slice, range, types.BuiltinFunctionType)
_ITERATORS: Any = (types.GeneratorType, type(iter([])), type(iter(())), type(iter({})), itertools.count, itertools.cycle,
              enumerate, zip, map, filter)  # fmt: skip
LIBRARY = tuple({os.path.dirname(os.__file__) + os.sep, sys.prefix + os.sep, sys.base_prefix + os.sep})
_same = operator.is_
_C_MEMORY: Any = () if ctypes is None else (ctypes._SimpleCData, ctypes.Structure, ctypes.Union, ctypes.Array)
_MEMORY: Any = (bytearray, array.array, memoryview, *_C_MEMORY)
MOST_MEMORY = 1 << 20
"""Arrays of more bytes than this are not compared: a function that can read one runs eagerly."""
_ASKED_SETTINGS = ("get_num_threads", "get_num_interop_threads", "get_float32_matmul_precision", "initial_seed")
_CONSTANTS = frozenset(["pi", "e", "inf", "nan", "newaxis", "modules"])
"""Names of what does not change in modules, and of Python's own table of these."""
_NO_DATA: Any = (type, types.ModuleType, dtype, device, layout, memory_format, Generator, types.GenericAlias)
_METHODS = (types.FunctionType, property, classmethod, staticmethod)


class Place:
    """Something that holds values: a dictionary, a list, a cell, or named parts of one."""

    __slots__ = ("holder", "item", "keys", "name", "read", "values")

    def __init__(self, holder: Any, name: str, read: Callable[[Any], Iterable[Any]], keys: Any = None) -> None:
        self.holder = holder
        self.name = name
        self.read = read
        self.keys = keys
        self.item: str | None = None
        """The key in the holder of what stands here, where that is all."""
        self.values = list(read(holder))

    def is_as_it_was(self) -> bool:
        """Whether it holds what it held: the same objects, equal numbers and strings."""
        try:
            now = list(self.read(self.holder))
        except (KeyError, ValueError, AttributeError):
            return False
        if len(now) != len(self.values):
            return False
        if self.keys is not None and not all(map(_is_equal, self.holder, self.keys)):
            return False
        if all(map(_same, now, self.values)):
            return True
        if not all(map(_is_equal, now, self.values)):
            return False
        self.values = now
        return True

    def is_ordered(self) -> bool:
        """Whether what it holds has an order of its own."""
        return not isinstance(self.holder, (set, frozenset))

    def values_of_the_same_form(self) -> list[Any] | None:
        """What it holds, if that differs in nothing but tensors of the same form; else None."""
        try:
            now = list(self.read(self.holder))
        except (KeyError, ValueError, AttributeError):
            return None
        if len(now) != len(self.values):
            return None
        if self.keys is not None and not all(map(_is_equal, self.holder, self.keys)):
            return None
        if not all(map(_is_equal if not self.is_ordered() else _is_alike, now, self.values)):
            return None
        return now

    def describe(self) -> str:
        """Where, and under which name, something else stands now."""
        now = list(self.read(self.holder)) if self.holder is not None else []
        if self.keys is not None:
            before = dict(zip(self.keys, self.values, strict=True))
            after = dict(zip(list(self.holder), now, strict=True))
            changed = [k for k in {**before, **after} if k not in before or k not in after or before[k] is not after[k]]
            if changed:
                key = changed[0]
                named = key if isinstance(key, _ATOMS) else type(key).__name__
                return f"{self.name}.{key}" if isinstance(key, str) else f"{self.name}[{named!r}]"
        return self.name


def _is_equal(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if type(one) is not type(other) or not isinstance(one, _ATOMS):
        return False
    return repr(one) == repr(other) if isinstance(one, (float, complex)) else bool(one == other)  # as to minus zero


def _is_alike(one: Any, other: Any) -> bool:
    """Whether a value may stand for another. See Note [Replaced tensors]."""
    if type(one) is not Tensor or type(other) is not Tensor or one is other:
        return _is_equal(one, other)
    array, former, extra = one._array, other._array, one._extra
    if type(array) is not type(former) or (array.shape, array.strides) != (former.shape, former.strides):
        return False
    if extra is not None and (extra.tangents or extra.mirror is not None or extra.hooks or extra.post_accumulate_hooks):
        return False
    is_same_kind = array.dtype == former.dtype and one._requires_grad is other._requires_grad
    return is_same_kind and one.is_inference() is other.is_inference()


class Surroundings:
    """The places that a function can reach, the tensors in them, and memory that is not a tensor's."""

    _has_modules = False

    def __init__(self, *roots: Any, names: set[str] | None = None) -> None:
        """`names` are those under which attributes of users' objects were read; without them, all may have been."""
        self._names = names
        self.places: list[Place] = []
        self.tensors: dict[int, Tensor] = {}
        self.storage: set[Any] = set()
        self.problem: str | None = None
        self._fixed: set[int] = set()
        """Tensors that were found elsewhere than in a place, by identity."""
        self._seen: set[int] = set()
        self._pending: deque[tuple[Any, str]] = deque((root, "the function") for root in roots)
        self._kept: list[Any] = []
        self._modules: set[int] = set()
        """Those that are being looked through."""
        self._finish()
        self.look_up(names or set())

    def _finish(self) -> None:
        while self._pending and self.problem is None:
            self._visit(*self._pending.popleft())

    def look_up(self, names: set[str]) -> None:
        """Visit what code reaches by names alone: modules that it imports, settings, the hooks of all modules."""
        for name in names & sys.modules.keys():
            if (module := sys.modules.get(name)) is not None and is_users_module(module):
                self._hold_module(module, name, names)
        if "getenv" in names:
            self._pending.append((os.environ, "os.environ"))
        for name in names.intersection(_ASKED_SETTINGS):
            self._hold(getattr(sys.modules["pullback"], name), name, _result_of)
        if self._has_modules:
            for hooks in (GlobalHooks.forward_pre, GlobalHooks.forward, GlobalHooks.backward_pre, GlobalHooks.backward):
                self._hold(hooks, "the hooks of all modules", dict.values, list(hooks))
        self._finish()

    def changed(self) -> Place | None:
        """A place that is not as it was."""
        for place in self.places:
            if not place.is_as_it_was():
                return place
        return None

    def holds(self, value: Any) -> bool:
        """Whether an object was found here."""
        return id(value) in self._seen

    def is_as_it_was(self) -> bool:
        """Whether every place holds what it held."""
        return all(map(Place.is_as_it_was, self.places))

    @functools.cached_property
    def spots(self) -> dict[int, tuple[Any, int]]:
        """Where tensors stand that others may replace, by identity: a holder, and the number of what it holds."""
        found: dict[int, tuple[Any, int]] = {}
        for place in self.places:
            for number, value in enumerate(place.values):
                if type(value) is Tensor and place.is_ordered() and id(value) not in self._fixed:
                    found.setdefault(id(value), (place.holder, number))
        return found

    def successors(self, fixed: Iterable[Any]) -> dict[int, Any] | None:
        """The tensors that stand where others stood, by the identity of these; None where more than that has changed.

        See Note [Replaced tensors]. They are expected from now on. Those that are `fixed` must be where they were.
        """
        found: dict[int, Any] = {identity: self.tensors[identity] for identity in self._fixed & self.tensors.keys()}
        found |= {id(tensor): tensor for tensor in fixed}
        now = []
        for place in self.places:
            values = place.values_of_the_same_form()
            if values is None:
                return None
            now.append(values)
            for former, value in zip(place.values, values, strict=True):
                if isinstance(former, TensorBase) and found.setdefault(id(former), value) is not value:
                    return None
        if len(set(map(id, found.values()))) < len(found):
            return None
        for place, values in zip(self.places, now, strict=True):
            place.values = values
        self.tensors = {id(found.get(key, tensor)): found.get(key, tensor) for key, tensor in self.tensors.items()}
        self.__dict__.pop("spots", None)
        return found

    def leave_out_rates(self) -> None:
        """Let the numbers among an optimizer's options change: its update reads them whenever it runs."""
        for place in self.places:
            if type(place.holder) is dict and isinstance(place.holder.get("params"), list) and "lr" in place.holder:
                place.read, place.values = _all_but_rates, _all_but_rates(place.holder)

    def _visit(self, value: Any, name: str) -> None:
        if isinstance(value, _ATOMS) or id(value) in self._seen:
            return
        self._seen.add(id(value))
        self._kept.append(value)
        if len(self._seen) > LIMIT:
            self.problem = f"the function can reach more than {LIMIT} objects"
        elif isinstance(value, TensorBase):
            self._visit_tensor(value, name)
        elif isinstance(value, Mapping) and isinstance(value, dict):
            self._hold(value, name, dict.values, list(value))
            self._follow(value, name)
        elif isinstance(value, types.MappingProxyType):
            self._hold(value, name, _values_of, list(value))
        elif isinstance(value, weakref.ref):
            self._hold(value, name, _referent_of)
            self._follow((getattr(value, "_func_ref", None),), name)
        elif isinstance(value, (list, deque, set)):
            self._hold(value, name, list)
        elif isinstance(value, (tuple, frozenset)):
            self._follow(value, name)
        elif isinstance(value, types.FunctionType):
            self._visit_function(value)
        elif isinstance(value, types.MethodType):
            self._follow((value.__self__, value.__func__), name)
        elif isinstance(value, functools.partial):
            self._follow((value.func, value.args, value.keywords), name)
        elif isinstance(value, (staticmethod, classmethod)):
            self._follow((value.__func__,), name)
        elif isinstance(value, property):
            self._follow((value.fget, value.fset), name)
        elif hasattr(type(value), "followed_by_compile"):
            self._follow(value.followed_by_compile(), name)
        elif isinstance(value, _ITERATORS):
            self.problem = f"{name} holds an iterator, which each call would move on"
        elif is_array(value):
            self.storage.add(storage_key(value))
            if type(value) is ndarray:
                self._hold_memory(value, name)
        elif isinstance(value, _MEMORY):
            self._hold_memory(value, name)
        elif isinstance(value, type):
            if is_users(value):
                self._hold(vars(value), value.__name__, _plain_entries, None)
                self._follow((*value.__mro__[1:], type(value)), name)
        elif not isinstance(value, types.ModuleType):
            self._visit_object(value, name)

    def _hold_memory(self, value: Any, name: str) -> None:
        """Compare what memory holds. See Note [Memory that Python reads]."""
        size = memoryview(value).nbytes if type(value) is not ndarray else value.nbytes
        if size <= MOST_MEMORY:
            self._hold(value, name, _contents_of)
        elif self._names is not None:
            self.problem = f"{name} holds an array of {size:,} bytes, whose values Python may read"

    def _visit_tensor(self, tensor: Any, name: str) -> None:
        self.tensors[id(tensor)] = tensor
        if type(tensor).__module__.startswith("pullback"):
            if tensor._grad is not None:
                self._follow((tensor._grad,), f"{name}.grad")
            if attributes := vars(tensor):
                names = self._names
                unread = set() if names is None else attributes.keys() - names
                if len(unread) < len(attributes):
                    self._hold(tensor, "an attribute of a tensor", _user_attributes_but(unread))
            return
        self._visit_object(tensor, name)

    def _visit_object(self, value: Any, name: str) -> None:
        attributes = getattr(value, "__dict__", None)
        title = type(value).__name__
        self._has_modules |= isinstance(value, Module)
        if isinstance(attributes, dict):
            if type(value).__module__.startswith("pullback"):  # what its own objects hold, Python reads through methods
                self._seen.update([id(part) for part in attributes.values() if is_array(part)])
            unread = self._unread(attributes) if is_users(type(value)) else None
            if unread:
                self._hold(attributes, title, _all_but(unread))
            else:
                self._hold(attributes, title, dict.values, list(attributes))
        for cls in type(value).__mro__:
            for slot in cls.__dict__.get("__slots__", ()) if is_users(cls) else ():
                if hasattr(value, slot):
                    self._hold(value, f"{title}.{slot}", _slot_reader(slot))
        self._follow((type(value),), name)

    def _unread(self, attributes: dict[str, Any]) -> set[str]:
        """Attributes that no code reads that ran."""
        if self._names is None:
            return set()
        return {key for key in attributes if key not in self._names and not key.startswith("_")}

    def _visit_function(self, function: types.FunctionType) -> None:
        for cell, variable in zip(function.__closure__ or (), function.__code__.co_freevars, strict=True):
            if id(cell) not in self._seen:
                self._seen.add(id(cell))
                self._hold(cell, variable, cell_contents)
                self._hold_module(self.places[-1].values[0], variable, names_in(function.__code__))
        self._follow(
            (function.__defaults__, function.__kwdefaults__, getattr(function, "__wrapped__", None)), "defaults"
        )
        if not function.__code__.co_filename.startswith(PACKAGE):
            self._hold(function, function.__name__, code_of)
            self._hold(function, "defaults", defaults_of)
            if attributes := vars(function):
                self._hold(attributes, function.__name__, dict.values, list(attributes))
            if not function.__code__.co_filename.startswith(LIBRARY):
                self._visit_globals(function.__globals__, function.__code__)

    def _visit_globals(self, scope: dict[str, Any], code: types.CodeType) -> None:
        names = set(code.co_names)
        if "globals" in names:
            names.update([text for text in code.co_consts if type(text) is str])
        for name in names:
            if name not in scope:
                if (module := sys.modules.get(name)) is not None and is_users_module(module):  # imported inside
                    self._hold_module(module, name, names)
                continue
            value = scope[name]
            self._hold(scope, f"the global {name}", _item_reader(name), item=name)
            self._hold_module(value, name, names)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self._visit_globals(scope, constant)

    def _hold_module(self, value: Any, name: str, names: set[str]) -> None:
        """Hold what code may read of a module by names: all of the user's own, what is data of others."""
        if not isinstance(value, types.ModuleType) or id(value) in self._modules:
            return
        self._modules.add(id(value))
        is_users_own = is_users_module(value)
        for attribute in names & vars(value).keys():
            part = vars(value)[attribute]
            if isinstance(part, types.ModuleType):
                self._hold_module(part, f"{name}.{attribute}", names)
            if is_users_own or _is_data(part, attribute):
                self._hold(vars(value), f"{name}.{attribute}", _item_reader(attribute), item=attribute)
        self._modules.discard(id(value))  # other code reads other names of it

    def _hold(self, holder: Any, name: str, read: Any, keys: Any = None, *, item: str | None = None) -> None:
        place = Place(holder, name, read, keys)
        place.item = item
        self.places.append(place)
        self._pending.extend([(value, name) for value in place.values if not isinstance(value, _ATOMS)])

    def _follow(self, values: Iterable[Any], name: str) -> None:
        """Visit what stands in no place."""
        for value in values:
            if not isinstance(value, _ATOMS):
                self._pending.append((value, name))
                if isinstance(value, TensorBase):
                    self._fixed.add(id(value))


def is_users(cls: type) -> bool:
    """Whether a class was written by the user, and not for Python's library, NumPy or this package."""
    module = sys.modules.get(cls.__module__)
    return module is not None and is_users_module(module)


def is_users_module(module: Any) -> bool:
    """Whether a module is the user's own."""
    name, file = module.__name__, getattr(module, "__file__", None)
    if name == "__main__" or (
        file is None and name not in sys.builtin_module_names and not hasattr(module, "__path__")
    ):
        return True
    return file is not None and not file.startswith((PACKAGE, *LIBRARY)) and not name.startswith("pullback.")


def _all_but_rates(options: dict[str, Any]) -> list[Any]:
    parts = [part for value in options.values() for part in (value if type(value) is tuple else (value,))]  # betas
    return [type(part) if type(part) is float else part for part in parts]


def _all_but(unread: set[str]) -> Callable[[dict[str, Any]], list[Any]]:
    """What reads attributes, with their names, without some."""
    return lambda holder: [part for pair in holder.items() if pair[0] not in unread for part in pair]


def _user_attributes_but(unread: set[str]) -> Callable[[Any], list[Any]]:
    """What reads the attributes that users set on a tensor, with their names, without some."""
    read = _all_but(unread)
    return lambda tensor: read(vars(tensor))


def cell_contents(cell: Any) -> tuple[Any, ...]:
    """What a variable of a closure holds."""
    return (cell.cell_contents,)


def _item_reader(name: str) -> Callable[[dict[str, Any]], tuple[Any, ...]]:
    return lambda holder: (holder[name],)


def defaults_of(function: Any) -> tuple[Any, ...]:
    """The defaults of a function, which may be replaced."""
    return (function.__defaults__, function.__kwdefaults__)


def _is_data(value: Any, name: str) -> bool:
    """Whether something of a module is neither code nor a constant."""
    return not callable(value) and not isinstance(value, _NO_DATA) and name not in _CONSTANTS


def _values_of(mapping: Any) -> list[Any]:
    return list(mapping.values())


def _referent_of(reference: Any) -> tuple[Any, ...]:
    return (weakref.ref.__call__(reference),)


def _result_of(function: Any) -> tuple[Any, ...]:
    return (function(),)


def _contents_of(memory: Any) -> tuple[bytes]:
    return (memory.tobytes() if type(memory) is ndarray else bytes(memoryview(memory)),)


def code_of(function: Any) -> tuple[Any, ...]:
    """The code of a function, which may be replaced."""
    return (function.__code__,)


def _slot_reader(slot: str) -> Callable[[Any], tuple[Any, ...]]:
    return lambda holder: (getattr(holder, slot, None),)


def _plain_entries(entries: Any) -> list[Any]:
    """What a class holds, without what Python itself keeps in it."""
    return [
        value
        for name, value in entries.items()
        if not (name.startswith("__") and name.endswith("__")) or isinstance(value, _METHODS)
    ]


def names_in(code: types.CodeType) -> set[str]:
    """The names of globals and attributes in a function and those inside of it."""
    inner = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return {*code.co_names, *[name for one in inner for name in names_in(one)]}
