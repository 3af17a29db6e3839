"""The names a checkpoint may use when it is loaded with `weights_only=True`, and what calling them does.

Every entry is data or a function that checks its arguments; none can reach code that the file chooses. Users widen
the list with `add_safe_globals` and its companions.
"""

from __future__ import annotations

import pickle
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from pullback.pytorch.torch_places import place_of
from pullback.serialization.rebuild import Rebuilder, checked_size
from pullback.serialization.tensor_access import TensorAccess
from pullback.serialization.torch_names import (
    DTYPES,
    STORAGE_TYPES,
    TENSOR_TYPES,
    UNSUPPORTED_DTYPES,
    UNSUPPORTED_STORAGES,
    UNTYPED_STORAGE,
)

SafeGlobal: TypeAlias = Callable[..., Any] | tuple[Callable[..., Any], str]
"""A class or function that files may name, or a pair of it and the name they use."""

BLOCKED_MODULES = frozenset({"os", "posix", "nt", "sys", "subprocess", "shutil", "socket", "ctypes", "importlib"})
_BUILTINS_OF_PYTHON_2 = "__builtin__"
_LARGEST_KEY = 10_000
_FREE_COPIES = 1 << 16
_LARGEST_RATIO = 2

_safe_globals: dict[str, SafeGlobal] = {}


def add_safe_globals(safe_globals: Sequence[SafeGlobal]) -> None:
    """Allow files that are loaded with `weights_only=True` to use these classes and functions.

    A file then decides with which arguments they are called: allow only what is harmless with any.
    """
    for entry in safe_globals:
        _safe_globals[_name_of(entry)] = entry


def get_safe_globals() -> list[SafeGlobal]:
    """Return what `add_safe_globals` has allowed."""
    return list(_safe_globals.values())


def clear_safe_globals() -> None:
    """Forget everything that `add_safe_globals` has allowed."""
    _safe_globals.clear()


@contextmanager
def safe_globals(safe_globals: Sequence[SafeGlobal]) -> Iterator[None]:
    """Allow these classes and functions inside a `with` block."""
    before = dict(_safe_globals)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        _safe_globals.clear()
        _safe_globals.update(before)


def _name_of(entry: SafeGlobal) -> str:
    if isinstance(entry, tuple):
        if len(entry) != 2 or not isinstance(entry[1], str):
            raise ValueError(f"expected a pair of an object and the name files use for it, got {entry!r}")
        return entry[1]
    if not hasattr(entry, "__module__") or not hasattr(entry, "__qualname__"):
        raise TypeError(f"expected a class, a function, or a pair of one and its name, got {entry!r}")
    return ".".join(place_of(entry) or (entry.__module__, entry.__qualname__))


class Budget:
    """How much calls from a file may copy: in proportion to the file, however often it makes the same call.

    A few bytes of a pickle can ask for a copy of anything that was made before, and so again and again.
    """

    def __init__(self, file_size: int) -> None:
        self._left = self._whole = _FREE_COPIES + _LARGEST_RATIO * file_size

    def spend(self, amount: int) -> None:
        """Take from what is left; refuse where the file asks for more."""
        self._left -= amount
        if self._left < 0:
            raise pickle.UnpicklingError(
                f"the objects in the file copy each other to more than {self._whole} parts or bytes, which is out of all "
                "proportion to its size: the file is damaged or malicious"
            )


class Vocabulary:
    """What names mean, and what may be called, for one kind of tensors."""

    def __init__(self, access: TensorAccess, file_size: int = 0) -> None:
        self._access = access
        self.budget = Budget(file_size)
        self.rebuilder = Rebuilder(access, self.budget)
        self._get_layout: Callable[[object], object] = lambda name: access.layout_from_name(str(name))
        self._objects = self._known_objects()
        self._calls: dict[int, Callable[..., object]] = {
            id(OrderedDict): _ordered_dict,
            id(Counter): _counter,
            id(set): _set,
            id(frozenset): _frozenset,
            id(bytearray): _bytearray,
            id(complex): complex,
            id(_encode): _encode,
            id(access.size_type): lambda *sizes: access.size_type(checked_size(*sizes)),
            id(access.device_type): access.device_type,
        }
        self._calls[id(self._get_layout)] = self._get_layout
        self._calls.update((id(function), function) for function in self.rebuilder.functions.values())
        self.user_objects = {
            name: entry[0] if isinstance(entry, tuple) else entry for name, entry in _safe_globals.items()
        }
        self._user_identities = set(map(id, self.user_objects.values()))

    def _known_objects(self) -> dict[str, object]:
        known: dict[str, object] = {
            "collections.OrderedDict": OrderedDict,
            "collections.Counter": Counter,
            "builtins.set": set,
            "builtins.frozenset": frozenset,
            "builtins.bytearray": bytearray,
            "builtins.complex": complex,
            "_codecs.encode": _encode,
            "torch.Size": self._access.size_type,
            "torch.device": self._access.device_type,
            "torch.Tensor": self._access.tensor_type,
            "torch.serialization._get_layout": self._get_layout,
            "torch._tensor.Tensor": self._access.tensor_type,
            "torch.UntypedStorage": UNTYPED_STORAGE,
            "torch.storage.UntypedStorage": UNTYPED_STORAGE,
            "torch.storage._UntypedStorage": UNTYPED_STORAGE,
        }
        known.update(self.rebuilder.functions)
        known.update((f"torch.{name}", element) for name, element in DTYPES.items())
        for package in ("torch", "torch.cuda"):
            known.update((f"{package}.{name}", storage) for name, storage in STORAGE_TYPES.items())
            known.update((f"{package}.{name}", tensor) for name, tensor in TENSOR_TYPES.items())
        return known

    def find(self, module: str, name: str) -> object | None:
        """The object that PyTorch's checkpoints mean by a name, without the user's additions; None if it is unknown."""
        full_name = f"{'builtins' if module == _BUILTINS_OF_PYTHON_2 else module}.{name}"
        if full_name == "torch.nn.parameter.Parameter":
            return self._access.parameter_type
        found = self._objects.get(full_name)
        if found is None and module == "torch" and name in UNSUPPORTED_DTYPES | UNSUPPORTED_STORAGES:
            raise pickle.UnpicklingError(f"the file uses torch.{name}, a type of elements that pullback does not have")
        return found

    def find_user_object(self, module: str, name: str) -> object | None:
        """What the user has allowed under a name, or under the name its PyTorch counterpart has."""
        for spelling in (
            module,
            module.replace("numpy.core", "numpy._core"),
            module.replace("numpy._core", "numpy.core"),
        ):
            exact = self.user_objects.get(f"{spelling}.{name}")
            if exact is not None:
                return exact
        if module.partition(".")[0] != "torch":
            return None
        area = module.split(".")[:2]
        for allowed_name, entry in self.user_objects.items():
            own = allowed_name.removesuffix(f".{name}")
            if own != allowed_name and own.split(".")[:2] == ["pullback", *area[1:]]:
                return entry
        return None

    def is_allowed_by_user(self, function: object) -> bool:
        """Whether `function` is one that the user has allowed."""
        return id(function) in self._user_identities

    def call(self, function: object, arguments: tuple[object, ...]) -> object:
        """Call one of the allowed functions."""
        self.budget.spend(_extent(arguments, 2))
        known = self._calls.get(id(function))
        if known is not None:
            return known(*arguments)
        if self.is_allowed_by_user(function) and callable(function):
            return function(*arguments)
        raise pickle.UnpicklingError(
            f"Trying to call reduce for unrecognized function: the file calls a value of type {type(function).__name__}"
        )


def _extent(value: object, depth: int) -> int:
    """How much a copy of `value` takes: the lengths of it and of what it holds, down to a depth."""
    if isinstance(value, (str, bytes, bytearray)):
        return len(value)
    if not isinstance(value, (tuple, list, dict, set, frozenset)):
        return 1
    if not depth or len(value) > _LARGEST_KEY:
        return len(value)
    return len(value) + sum(_extent(part, depth - 1) for part in (value.values() if isinstance(value, dict) else value))


def check_key(key: object) -> object:
    """Refuse a key whose hash would take unbounded time: tuples within tuples may share parts exponentially often."""
    if not isinstance(key, (tuple, frozenset)):
        return key
    pending: list[object] = [key]
    seen = 0
    while pending:
        part = pending.pop()
        seen += 1
        if seen > _LARGEST_KEY:
            raise pickle.UnpicklingError(f"a dict key or set element of more than {_LARGEST_KEY} parts")
        if isinstance(part, (tuple, frozenset)):
            pending.extend(part if len(part) <= _LARGEST_KEY else [None] * (_LARGEST_KEY + 1))
    return key


def _ordered_dict(pairs: Iterable[Any] = ()) -> OrderedDict[Any, Any]:
    items = pairs.items() if isinstance(pairs, dict) else _as_sequence(pairs)
    return OrderedDict((check_key(key), value) for key, value in items)


def _counter(counts: object = None) -> Counter[Any]:
    if counts is None:
        return Counter()
    if not isinstance(counts, dict):
        raise pickle.UnpicklingError("a Counter in a file must be made of a dict")
    return Counter(counts)


def _set(elements: Iterable[object] = ()) -> set[object]:
    return {check_key(element) for element in _as_sequence(elements)}


def _frozenset(elements: Iterable[object] = ()) -> frozenset[object]:
    return frozenset(_set(elements))


def _as_sequence(elements: object) -> Iterable[Any]:
    if isinstance(elements, (list, tuple, set, frozenset)):
        return elements
    raise pickle.UnpicklingError(f"expected a sequence of elements, got {type(elements).__name__}")


def _bytearray(content: object = b"", encoding: object = "latin1") -> bytearray:
    if isinstance(content, bytes):
        return bytearray(content)
    return bytearray(_encode(content, encoding))


def _encode(text: object, encoding: object = "latin1") -> bytes:
    """Bytes that an old pickle protocol has written as text."""
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError("_codecs.encode may only turn text into bytes by latin1")
    return text.encode("latin1")
