"""A pickle machine that can make tensors and plain containers, and cannot run code that a file chooses.

It interprets the opcodes itself instead of filtering what Python's unpickler does: an opcode that is not in the table
does not exist, a name that is not in the vocabulary does not resolve, and lengths are compared with the data that is
left before anything is allocated.
"""

from __future__ import annotations

import mmap
import pickle
import struct
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from pullback.backend.naming import display_namespace
from pullback.serialization.vocabulary import BLOCKED_MODULES, Vocabulary, check_key

_NEWEST_PROTOCOL = 5
_NOT_PICKLE = (IndexError, KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError, struct.error)


def weights_only_error(reason: str) -> pickle.UnpicklingError:
    """The error of a load with `weights_only=True`, with the way out if the file is trusted."""
    return pickle.UnpicklingError(
        f"Weights only load failed. {reason} If you trust the source of the file, "
        f"{display_namespace()}.load(..., weights_only=False) reads everything that pickle can, running whatever code "
        "the file contains."
    )


def unsupported_global(module: str, name: str) -> pickle.UnpicklingError:
    """A file names something that is not in the vocabulary."""
    full_name = f"{module}.{name}"
    text = f"WeightsUnpickler error: Unsupported global: GLOBAL {full_name} was not an allowed global by default."
    if module.partition(".")[0] in BLOCKED_MODULES:
        return weights_only_error(
            f"{text} Trying to load unsupported GLOBAL {full_name} whose module {module} is blocked: "
            "a checkpoint has no use for it, and the file may be malicious."
        )
    serialization = f"{display_namespace()}.serialization"
    return weights_only_error(
        f"{text} Please use `{serialization}.add_safe_globals([{full_name}])` or the "
        f"`{serialization}.safe_globals([{full_name}])` context manager if you trust it with any arguments."
    )


class RestrictedUnpickler:
    """Reads one pickle from a buffer. `position` is where it ended, since old files hold several in a row."""

    def __init__(
        self,
        data: bytes | mmap.mmap,
        vocabulary: Vocabulary,
        persistent_load: Callable[[Any], object] | None = None,
        position: int = 0,
        find_global: Callable[[str, str], object] | None = None,
        record: str = "data.pkl",
    ) -> None:
        self._data = data
        self._size = len(data)
        self._record = record
        self._vocabulary = vocabulary
        self._persistent_load = persistent_load
        self._find_global = find_global or self.find_global
        self.position = position
        self._stack: list[Any] = []
        self._marks: list[list[Any]] = []
        self._memo: dict[int, Any] = {}

    def load(self) -> Any:
        """Run the machine to its STOP opcode and return the object it made."""
        start = self.position
        try:
            return self._run()
        except pickle.UnpicklingError as error:
            if str(error).startswith("Weights only load failed"):
                raise
            raise weights_only_error(f"WeightsUnpickler error: {error} ({self._place(start)}).") from None
        except _NOT_PICKLE as error:
            raise weights_only_error(
                f"WeightsUnpickler error: the pickle is malformed {self._place(start)} "
                f"({type(error).__name__}: {error!s:.200})."
            ) from error
        except (RuntimeError, EOFError) as error:
            if type(error) not in (RuntimeError, EOFError):
                raise
            raise type(error)(f"{error} ({self._place(start)})") from error.__cause__

    def _place(self, start: int) -> str:
        return f"near byte {self.position - start} of record '{self._record}'"

    def _run(self) -> Any:
        data, handlers = self._data, _HANDLERS
        while True:
            if self.position >= self._size:
                raise EOFError("Ran out of input: the pickle in the file is truncated")
            opcode = data[self.position]
            self.position += 1
            if opcode == _STOP:
                return self._stack.pop()
            handler = handlers.get(opcode)
            if handler is None:
                raise pickle.UnpicklingError(f"Unsupported operand {opcode}")
            handler(self)

    def find_global(self, module: str, name: str) -> object:
        """The object a name stands for, or the error that says it is not allowed."""
        if module.partition(".")[0] in BLOCKED_MODULES:
            raise unsupported_global(module, name)
        found = self._vocabulary.find(module, name)
        if found is None:
            found = self._vocabulary.find_user_object(module, name)
        if found is None:
            raise unsupported_global(module, name)
        return found

    # Reading

    def _read(self, count: int) -> bytes:
        start = self.position
        if count < 0 or count > self._size - start:
            raise EOFError(f"Ran out of input: the pickle asks for {count} bytes where {self._size - start} are left")
        self.position = start + count
        return self._data[start : self.position]

    def _read_line(self) -> str:
        end = self._data.find(b"\n", self.position)
        if end < 0:
            raise EOFError("Ran out of input: a name in the pickle does not end")
        line = self._data[self.position : end]
        self.position = end + 1
        return line.decode("utf-8")

    def _unpack(self, layout: struct.Struct) -> Any:
        return layout.unpack(self._read(layout.size))[0]

    def _pop_mark(self) -> list[Any]:
        items = self._stack
        self._stack = self._marks.pop()
        return items

    # Opcodes

    def _proto(self) -> None:
        protocol = self._unpack(_U8)
        if protocol > _NEWEST_PROTOCOL:
            raise pickle.UnpicklingError(f"Unsupported pickle protocol {protocol}")

    def _frame(self) -> None:
        self._unpack(_U64)

    def _mark(self) -> None:
        self._marks.append(self._stack)
        self._stack = []

    def _pop(self) -> None:
        if self._stack:
            self._stack.pop()
        else:
            self._pop_mark()

    def _long(self, layout: struct.Struct) -> None:
        self._stack.append(int.from_bytes(self._read(self._unpack(layout)), "little", signed=True))

    def _text(self, layout: struct.Struct) -> None:
        self._stack.append(self._read(self._unpack(layout)).decode("utf-8", "surrogatepass"))

    def _bytes(self, layout: struct.Struct) -> None:
        self._stack.append(self._read(self._unpack(layout)))

    def _byte_array(self) -> None:
        self._stack.append(bytearray(self._read(self._unpack(_U64))))

    def _number(self, layout: struct.Struct) -> None:
        self._stack.append(self._unpack(layout))

    def _tuple_of(self, count: int) -> None:
        if len(self._stack) < count:
            raise IndexError(f"a tuple of {count} from a stack of {len(self._stack)}")
        items = tuple(self._stack[len(self._stack) - count :])
        del self._stack[len(self._stack) - count :]
        self._stack.append(items)

    def _tuple(self) -> None:
        items = self._pop_mark()
        self._stack.append(tuple(items))

    def _list(self) -> None:
        items = self._pop_mark()
        self._stack.append(items)

    def _append(self) -> None:
        value = self._stack.pop()
        self._top(list).append(value)

    def _appends(self) -> None:
        items = self._pop_mark()
        self._top(list).extend(items)

    def _dict(self) -> None:
        items = self._pop_mark()
        self._stack.append({})
        self._set_pairs(items)

    def _set_item(self) -> None:
        value = self._stack.pop()
        key = self._stack.pop()
        self._set_pairs([key, value])

    def _set_items(self) -> None:
        self._set_pairs(self._pop_mark())

    def _set_pairs(self, items: list[Any]) -> None:
        target = self._top(dict)
        if len(items) % 2:
            raise ValueError("a dict has a key without a value")
        for index in range(0, len(items), 2):
            target[check_key(items[index])] = items[index + 1]

    def _add_items(self) -> None:
        items = self._pop_mark()
        self._top(set).update([check_key(item) for item in items])

    def _frozen_set(self) -> None:
        items = self._pop_mark()
        self._stack.append(frozenset([check_key(item) for item in items]))

    def _top(self, expected: type) -> Any:
        target = self._stack[-1]
        # Also a type that the user allows may be filled like the container it derives from.
        if not isinstance(target, expected):
            raise TypeError(f"expected a {expected.__name__} to fill, got {type(target).__name__}")
        return target

    def _global(self) -> None:
        module = self._read_line()
        self._stack.append(self._find_global(module, self._read_line()))

    def _stack_global(self) -> None:
        name = self._stack.pop()
        module = self._stack.pop()
        if not isinstance(module, str) or not isinstance(name, str):
            raise TypeError("a name must be two strings")
        self._stack.append(self._find_global(module, name))

    def _reduce(self) -> None:
        arguments = self._stack.pop()
        function = self._stack.pop()
        if not isinstance(arguments, tuple):
            raise TypeError("the arguments of a call must be a tuple")
        self._stack.append(self._vocabulary.call(function, arguments))

    def _new_object(self) -> None:
        arguments = self._stack.pop()
        cls = self._stack.pop()
        if not isinstance(arguments, tuple):
            raise TypeError("the arguments of a new object must be a tuple")
        if isinstance(cls, type) and self._vocabulary.is_allowed_by_user(cls):
            self._stack.append(cls.__new__(cls, *arguments))
        else:
            self._stack.append(self._vocabulary.call(cls, arguments))

    def _build(self) -> None:
        state = self._stack.pop()
        target = self._stack[-1]
        self._vocabulary.budget.spend(len(state) if isinstance(state, (dict, tuple)) else 1)
        if type(target) is OrderedDict:
            # A state_dict carries its metadata as an attribute.
            _update_attributes(target, state)
        elif self._vocabulary.is_allowed_by_user(type(target)):
            _set_state(target, state)
        else:
            raise pickle.UnpicklingError(
                "Can only build OrderedDict or types allowlisted via `add_safe_globals`, "
                f"but got {type(target).__name__}"
            )

    def _persistent(self) -> None:
        if self._persistent_load is None:
            raise pickle.UnpicklingError("a persistent id where the format has none")
        self._stack.append(self._persistent_load(self._stack.pop()))

    def _get(self, layout: struct.Struct) -> None:
        self._stack.append(self._memo[self._unpack(layout)])

    def _put(self, layout: struct.Struct) -> None:
        self._memo[self._unpack(layout)] = self._stack[-1]

    def _memoize(self) -> None:
        self._memo[len(self._memo)] = self._stack[-1]


def _update_attributes(target: object, state: object) -> None:
    if not isinstance(state, dict) or not all(isinstance(name, str) for name in state):
        raise pickle.UnpicklingError("the state of an object must be a dict of attributes")
    vars(target).update(state)


def _set_state(target: object, state: object) -> None:
    set_state = getattr(target, "__setstate__", None)
    if set_state is not None:
        set_state(state)
        return
    slots: object = None
    if isinstance(state, tuple) and len(state) == 2:
        state, slots = state
    if state:
        _update_attributes(target, state)
    if isinstance(slots, dict):
        for name, value in slots.items():
            setattr(target, name, value)


_U8, _U16, _U32, _U64 = (struct.Struct(f"<{code}") for code in "BHIQ")
_I32, _FLOAT = struct.Struct("<i"), struct.Struct(">d")
_STOP = pickle.STOP[0]

_Handler = Callable[[RestrictedUnpickler], None]


def _push(make: Callable[[], object]) -> _Handler:
    return lambda machine: machine._stack.append(make())


def _with(method: Callable[[RestrictedUnpickler, Any], None], argument: object) -> _Handler:
    return lambda machine: method(machine, argument)


_Machine = RestrictedUnpickler
_HANDLERS: dict[int, _Handler] = {
    opcode[0]: handler
    for opcode, handler in {
        pickle.PROTO: _Machine._proto,
        pickle.FRAME: _Machine._frame,
        pickle.MARK: _Machine._mark,
        pickle.POP: _Machine._pop,
        pickle.NONE: _push(lambda: None),
        pickle.NEWTRUE: _push(lambda: True),
        pickle.NEWFALSE: _push(lambda: False),
        pickle.BININT: _with(_Machine._number, _I32),
        pickle.BININT1: _with(_Machine._number, _U8),
        pickle.BININT2: _with(_Machine._number, _U16),
        pickle.BINFLOAT: _with(_Machine._number, _FLOAT),
        pickle.LONG1: _with(_Machine._long, _U8),
        pickle.LONG4: _with(_Machine._long, _I32),
        pickle.BINUNICODE: _with(_Machine._text, _U32),
        pickle.SHORT_BINUNICODE: _with(_Machine._text, _U8),
        pickle.BINUNICODE8: _with(_Machine._text, _U64),
        pickle.SHORT_BINSTRING: _with(_Machine._text, _U8),
        pickle.BINSTRING: _with(_Machine._text, _I32),
        pickle.BINBYTES: _with(_Machine._bytes, _U32),
        pickle.SHORT_BINBYTES: _with(_Machine._bytes, _U8),
        pickle.BINBYTES8: _with(_Machine._bytes, _U64),
        pickle.BYTEARRAY8: _Machine._byte_array,
        pickle.EMPTY_TUPLE: _push(tuple),
        pickle.EMPTY_LIST: _push(list),
        pickle.EMPTY_DICT: _push(dict),
        pickle.EMPTY_SET: _push(set),
        pickle.TUPLE: _Machine._tuple,
        pickle.TUPLE1: _with(_Machine._tuple_of, 1),
        pickle.TUPLE2: _with(_Machine._tuple_of, 2),
        pickle.TUPLE3: _with(_Machine._tuple_of, 3),
        pickle.LIST: _Machine._list,
        pickle.APPEND: _Machine._append,
        pickle.APPENDS: _Machine._appends,
        pickle.DICT: _Machine._dict,
        pickle.SETITEM: _Machine._set_item,
        pickle.SETITEMS: _Machine._set_items,
        pickle.ADDITEMS: _Machine._add_items,
        pickle.FROZENSET: _Machine._frozen_set,
        pickle.GLOBAL: _Machine._global,
        pickle.STACK_GLOBAL: _Machine._stack_global,
        pickle.REDUCE: _Machine._reduce,
        pickle.NEWOBJ: _Machine._new_object,
        pickle.BUILD: _Machine._build,
        pickle.BINPERSID: _Machine._persistent,
        pickle.BINGET: _with(_Machine._get, _U8),
        pickle.LONG_BINGET: _with(_Machine._get, _U32),
        pickle.BINPUT: _with(_Machine._put, _U8),
        pickle.LONG_BINPUT: _with(_Machine._put, _U32),
        pickle.MEMOIZE: _Machine._memoize,
    }.items()
}
