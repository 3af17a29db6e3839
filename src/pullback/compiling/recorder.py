"""Recorder: writes down what happens to arrays, as a Program.

# Note [Recorded memory]
Programs are functional, and tensors are not: they share memory and are written to. So the recorder knows memory by
address. A Block is a piece of memory with the Value that it holds now. An array that a kernel is given lies in some
block: it is that value, or a window of it. A write gives the block another value, made of the former one and what was
written; windows are taken anew when they are next read. An array that lies in no block is new: it was made of nothing that
the program depends on, and is a constant. Tensors that were there before the recording are inputs; one that was not
found among what the function can reach (surroundings.py) stops the recording.
"""

from __future__ import annotations

import bisect
import itertools
import operator
import sys
import threading
from collections.abc import Callable
from typing import Any

from pullback.backend.array_module import as_array, is_array, memory_bounds
from pullback.backend.random import Generator
from pullback.backend.traced_array import ReadNumber, TracedArray, is_traced, plain, traced
from pullback.compiling.function_text import spot_of
from pullback.compiling.memory import copied_results, laid_out, same_geometry, storage_key, window, written
from pullback.compiling.numbers import Numbers, Sizes, TracedInt, TracedNumber, key_of, plain_number
from pullback.compiling.program import Call, Number, Program, Value
from pullback.compiling.pure_kernels import as_check, filling, on_copies, some_results
from pullback.compiling.random_streams import DrawnNumbers
from pullback.graph.source_lines import SourceLine, calling_line, source_line

WINDOW, WRITTEN, LAID_OUT = "memory.window", "memory.written", "memory.laid_out"


class Block:
    """A piece of memory: the array that was first seen in it, and the Value that it holds now."""

    __slots__ = ("high", "low", "place", "root", "value", "version", "windows")

    def __init__(self, root: Any, value: Value, place: int | None = None, *, is_placed: bool = True) -> None:
        self.root = root
        self.low = self.high = -1
        if is_placed:
            self.find_bounds()
        self.value = value
        self.version = 0
        self.place = place
        """Which input of the program it is, None if it is none."""
        self.windows: dict[Any, Value] = {}

    def find_bounds(self) -> None:
        """Find the addresses between which it lies."""
        self.low, self.high = memory_bounds(self.root)


class Stop:
    """Why a function cannot be one program: what happened, and at which line."""

    def __init__(self, reason: str, source: SourceLine | None) -> None:
        self.reason = reason
        self.source = source

    def describe(self) -> str:
        """The reason with its line."""
        return self.reason if self.source is None else f"{self.reason}, at {self.source.describe()}"


def value_of(array: Any, constant: Any = None) -> Value:
    """The Value that describes an array."""
    return Value(array.shape, array.dtype, array.strides, constant, getattr(array, "place", None))


class Recorder:
    """What one call of a function does to arrays. See Notes [Recorded memory] and [Traced arrays]."""

    def __init__(
        self, known_storage: set[int], storage_of_others: Callable[[], set[int]] = set, code: Any = None
    ) -> None:
        self.program = Program([])
        self.breaks: list[tuple[int, int]] = []
        """Where in the text of `code`, that of the function, the recording was stopped."""
        self._code = code
        self.spots: list[tuple[int, int] | None] | None = None
        """For each call, where in that text it was made, if that is wanted."""
        self.stops: list[Stop] = []
        self.numbers: list[tuple[Any, Value]] = []
        """Python numbers that `.item()` gave, with the Values that they are of."""
        self._readings: list[tuple[Stop, tuple[int, int] | None]] = []
        """Where they were got, as long as nobody computed with them."""
        self._draws = self._is_stream_moved = False
        self.drawn = DrawnNumbers()
        self.undo: list[tuple[Any, Any]] | None = None
        """What inputs held before they were written to, while that is not meant to last."""
        self.formats_numbers = False
        """Whether code ran that may make texts of numbers without asking them."""
        self.followed = Numbers()
        """Numbers among the arguments that change. See Note [Changing numbers]."""
        self.sizes = Sizes()
        """What the user's code learned of sizes. See Note [Followed sizes]."""
        self.scalars: dict[Any, tuple[Number | Value, Any]] = {}
        """What kernels got of these: inputs of the program, with the expressions that they are, by those."""
        self._scalar_arrays: dict[Any, Any] = {}
        self.names: set[str] = set()
        """Names that the user's code reads, as far as it ran."""
        self.own_names = {"training"}
        """Those that this package's code reads."""
        self.reads_any_name = False
        """Whether names of attributes were made while it ran."""
        self._known_storage = known_storage
        self._tell_others = storage_of_others
        self._others: set[int] | None = None
        """The memory of all tensors that were there before: it is found when it is asked for, which takes long."""
        self._thread = threading.get_ident()
        self._open = True
        self._inside = False
        self._lows: list[int] = []
        self._blocks: list[Block] = []
        self._new_blocks: list[Block] = []
        """Memory of arrays that own it, which therefore overlaps no other: addresses are found when they are needed."""
        self._kept: list[Any] = []
        self._computed: dict[Value, Any] = {}

    def is_open(self) -> bool:
        """Whether this thread records, and is not inside of a kernel that is recorded as a whole."""
        return self._open and not self._inside and threading.get_ident() == self._thread

    def close(self) -> None:
        """End the recording: traced arrays are arrays like others from now on."""
        self._open = self.followed.is_open = self.sizes.is_open = False
        self._kept.clear()
        for number, _ in self.numbers:  # the user may keep it
            number._recorder = None

    def stop(self, reason: str) -> None:
        """Say that what happens now cannot be part of a program. The function goes on."""
        self._stop_at(Stop(reason, source_line() or calling_line()), self._spot())

    def _stop_at(self, stop: Stop, spot: tuple[int, int] | None) -> None:
        self.stops.append(stop)
        if spot is not None:
            self.breaks.append(spot)

    def _spot(self) -> tuple[int, int] | None:
        """Where in its text the function is now."""
        frame: Any = sys._getframe(1)
        found = None
        while frame is not None and self._code is not None:
            if frame.f_code is self._code:
                found = frame  # the outermost, where the function calls itself
            frame = frame.f_back
        return None if found is None else spot_of(found)

    # Inputs and what becomes of memory.

    def add_input(self, array: Any) -> Any:
        """Make an array an input of the program; what to use in its place."""
        value = value_of(array)
        place = len(self.program.inputs)
        self.program.inputs.append(value)
        if array.size and not self._add_block(Block(array, value, place)):
            self.stop("two arguments share memory")
        return traced(array, self)

    def _settle(self) -> None:
        """Put new blocks in their places."""
        new, self._new_blocks = self._new_blocks, []
        for block in new:
            block.find_bounds()
        if 8 * len(new) < len(
            self._blocks
        ):  # to sort all of them after each call would take the square of their number
            for block in new:
                place = bisect.bisect_right(self._lows, block.low)
                self._lows.insert(place, block.low)
                self._blocks.insert(place, block)
            return
        self._blocks.extend(new)
        self._blocks.sort(key=_low_of)
        self._lows = [block.low for block in self._blocks]

    def _add_block(self, block: Block) -> bool:
        """Enter a block; False if it overlaps one that is there."""
        if self._new_blocks:
            self._settle()
        place = bisect.bisect_right(self._lows, block.low)
        if place and self._blocks[place - 1].high > block.low:
            return False
        if place < len(self._blocks) and self._blocks[place].low < block.high:
            return False
        self._lows.insert(place, block.low)
        self._blocks.insert(place, block)
        return True

    def _block_of(self, array: Any) -> Block | None:
        if self._new_blocks:
            self._settle()
        low, high = memory_bounds(array)
        place = bisect.bisect_right(self._lows, low)
        if place:
            block = self._blocks[place - 1]
            if high <= block.high:
                return block
            if low < block.high:
                self.stop("an array reaches past the memory that it was made from")
        if place < len(self._blocks) and self._blocks[place].low < high:
            self.stop("an array reaches past the memory that it was made from")
        return None

    def written_inputs(self) -> list[tuple[int, Value]]:
        """The inputs whose memory was written to, with what it holds now."""
        self._settle()
        found = [b for b in self._blocks if b.place is not None and b.version]
        return sorted([(b.place, b.value) for b in found if b.place is not None], key=_place_of)

    def block_of(self, array: Any) -> Block | None:
        """The block in which an array lies."""
        return self._block_of(array) if array.size else None

    def computed(self, value: Value) -> Any:
        """The array that held a value, if nothing was written to its memory since; else None."""
        array = self._computed.get(value)
        if array is None or not array.size:
            return array
        block = self._quiet_block_of(array)
        return array if block is not None and not block.version else None

    def read(self, array: Any) -> Value:
        """The Value that an array holds now."""
        if is_traced(array) and array._known is not None:
            known: tuple[Block, int, Value] = array._known
            if known[0].version == known[1] and array._recorder is self:
                return known[2]
        if not array.size:
            return value_of(array, plain(array))
        if isinstance(array, _generic):  # its memory is made when one asks for it, and another's a moment later
            array = as_array(array)
        block = self._block_of(array)
        if block is None:
            return self._constant(array)
        value = self._value_in(array, block)
        if is_traced(array):
            array._known = (block, block.version, value)
        return value

    def _value_in(self, array: Any, block: Block) -> Value:
        """The Value of an array that lies in a block."""
        if same_geometry(array, block.root):
            return block.value
        key = _key(array, block)
        value = block.windows.get(key)
        if value is None:
            value = value_of(plain(array))
            options = {"strides_of_whole": block.root.strides}
            self._add_call(WINDOW, window, (block.value, *key), options, [value], is_view=True)
            block.windows[key] = value
            self._computed[value] = plain(array)
        return value

    def _constant(self, array: Any) -> Value:
        if self._others is None:
            self._others = self._tell_others()
        storage = storage_key(array)
        if is_traced(array) or storage in self._known_storage or storage in self._others:
            self.stop("a tensor is read that is reached in a way that cannot be followed")
        if self._readings:
            self.use_number()  # the array may have been made of it
        self.followed.read()
        array = plain(array)
        value = value_of(array, laid_out(array, array.shape, array.strides, array.dtype))
        if not self._add_block(Block(array, value)):
            self.stop("an array shares a part of its memory with another")
        return value

    def write(self, target: Any, source: Any) -> None:
        """Write `source`, an array or a number, to the memory of `target`."""
        region = plain(target)
        made = _plain(source)
        is_array = hasattr(source, "dtype") and getattr(source, "shape", None) is not None
        value = self.read(source) if is_array else self._described(source)
        block = self._block_of(region) if region.size else None
        if block is None and region.size:
            self._constant(region)
            block = self._block_of(region)
        if self.undo is not None and block is not None and block.place is not None:
            self.undo.append((block.root, _copy(plain(block.root))))
        region[...] = made
        if block is None:
            return
        new = value_of(block.root)
        if same_geometry(region, block.root):
            if isinstance(value, Value) and _same_form(value, new):
                new = value
            else:
                facts = (new.shape, new.strides, new.dtype)
                place = {} if new.place is None else {"place": new.place}
                self._add_call(LAID_OUT, laid_out, (value, *facts), place, [new])
        else:
            facts = _key(region, block)
            options = {"strides_of_whole": block.root.strides}
            self._add_call(WRITTEN, written, (block.value, value, *facts), options, [new])
        block.value = new
        block.version += 1
        block.windows = {}

    def copied(self, value: Value, array: Any) -> Value:
        """Another value that is equal to one, held by `array`."""
        new = value_of(array)
        self._add_call(LAID_OUT, laid_out, (value, new.shape, new.strides, new.dtype), {}, [new])
        self._computed[new] = plain(array)
        return new

    def copy_to(self, target: Any, source: Any, casting: str = "same_kind", where: Any = True) -> None:
        """What NumPy's copyto does."""
        if where is not True:
            self.stop("NumPy's copyto writes where it cannot be followed")
        self.write(target, source)

    def see(self, array: Any) -> Any:
        """A view that NumPy made of recorded memory: it is read when it is used."""
        self._kept.append(array)
        return traced(array, self)

    def move_stream(self) -> None:
        """Note that the random stream is moved: programs draw one number after the other."""
        self._is_stream_moved = True
        self._check_stream()

    def _check_stream(self) -> None:
        if self._draws and self._is_stream_moved:
            self.stop("the random stream is moved, by a seed, or by a checkpoint that computes again")

    def give_number(self, array: Any, number: float) -> float:
        """What Python gets for the one value of an array: if the function returns it and does nothing else, that is all."""
        stop = Stop("the value of a tensor is read by .item()", source_line() or calling_line())
        if self.stops or self.formats_numbers:
            self._stop_at(stop, self._spot())
            return number
        made = ReadNumber(number)
        made._recorder = self
        self.numbers.append((made, self.read(array)))
        self._readings.append((stop, self._spot()))
        return made

    def use_number(self) -> None:
        """Python computes with a value that it got: where it got it, no program goes on."""
        for stop, spot in self._readings:
            self._stop_at(stop, spot)
        self._readings.clear()

    # Calls.

    def run(
        self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], *,
        is_ordered: bool = False,
    ) -> Any:  # fmt: skip
        """Run a function of arrays and record it."""
        arguments: list[Any] = []
        given: list[Any] = []
        for (
            part
        ) in args:  # most are arrays of which everything is known, and plain numbers: ten thousands of calls come here
            kind = type(part)
            if kind is TracedArray:
                known = part._known
                is_known = known is not None and known[0].version == known[1] and part._recorder is self
                arguments.append(known[2] if is_known else self.read(part))
                given.append(part.view(_ndarray))
            elif kind in _PLAIN:
                arguments.append(part)
                given.append(part)
            else:
                arguments.append(self._described(part))
                given.append(_plain(part))
        options = self._described(kwargs) if kwargs else {}
        self._inside = True
        try:
            made = function(*given, **_plain(kwargs)) if kwargs else function(*given)
        except Exception as error:  # the function may catch it: it goes on then as it does with these values
            self.stop(f"{name} raises {type(error).__name__}")
            raise
        finally:
            self._inside = False
        return self._take(name, function, tuple(arguments), options, made, args, is_ordered)

    def _compute(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        self._inside = True
        try:
            return function(*args, **kwargs)
        except Exception as error:
            self.stop(f"{getattr(function, '__name__', 'a kernel')} raises {type(error).__name__}")
            raise
        finally:
            self._inside = False

    def aside(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function of which nothing is recorded."""
        return self._compute(function, args, {})

    def run_drawing(
        self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:  # fmt: skip
        """Run a function that fills its first argument with random numbers: of that it reads the form alone."""
        target = plain(args[0])
        form = (target.shape, target.strides, target.dtype)
        fill = filling(function, getattr(target, "place", None))
        is_known = all(isinstance(value, _OF_DRAWS) for value in (*args[1:], *kwargs.values()))
        what = (name, *form, *args[1:], *sorted(kwargs.items())) if is_known else None
        if self.drawn.is_behind and (made := self.drawn.again(what)) is not None:
            fill(*form, *args[1:], **kwargs)  # which moves the stream
        else:
            if self.drawn.is_behind:
                self.move_stream()
            made = self.run(name, fill, (*form, *args[1:]), kwargs, is_ordered=True)
            self.drawn.add(what, made)
        self.write(args[0], made)
        return args[0]

    def run_writing(
        self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
        places: tuple[int, ...] = (0,), is_ordered: bool = False,
    ) -> Any:  # fmt: skip
        """Run a function that writes to the arrays at `places` of its arguments; it gives their number of new values."""
        pure = on_copies(function, places)
        arguments, options = self._described(args), self._described(kwargs)
        copies = [laid_out(plain(args[p]), args[p].shape, args[p].strides, args[p].dtype) for p in places]
        given = list(_plain(args))
        for place, copy in zip(places, copies, strict=True):
            given[place] = copy
        answer = self._compute(function, given, _plain(kwargs))
        values = [value_of(copy) for copy in copies]
        self._add_call(name, pure, arguments, options, values, is_ordered=is_ordered, is_single=False)
        for place, copy, value in zip(places, copies, values, strict=True):
            self._kept.append(copy)
            if copy.size:
                self._add_block(Block(copy, value))
            self.write(args[place], copy)
        return args[places[0]] if answer is not None and answer is given[places[0]] else answer

    def _take(
        self, name: str, function: Callable[..., Any], arguments: Any, options: Any, made: Any, args: Any, is_ordered: bool
    ) -> Any:  # fmt: skip
        if type(made) is _ndarray and made.base is None and made.flags.carray and made.size:
            return self._take_new(made, name, function, arguments, options, is_ordered)
        is_single = not isinstance(made, (tuple, list))
        parts = [made] if is_single else list(made)
        if made is None and name.rpartition(".")[2].strip("_").startswith(_CHECKING):
            self._add_call(name, as_check(function), arguments, options, [], is_ordered=True, is_single=False)
            return None
        if not is_single and None in map(_none_or_zero, parts):
            kept = tuple([place for place, part in enumerate(parts) if part is not None])
            rest = tuple([parts[place] for place in kept])
            some = self._take(name, some_results(function, kept), arguments, options, rest, args, is_ordered)
            found = dict(zip(kept, some, strict=True))
            return tuple([found.get(place) for place in range(len(parts))])
        if not all(hasattr(part, "dtype") for part in parts):
            if _holds_values((arguments, options)) or is_ordered:
                self.stop(f"{name} gives Python values that depend on a tensor")
            return made
        if is_single and (same := _identical(made, args)) is not None:
            return same
        arrays = [as_array(part) for part in parts]
        if not all(hasattr(array, "strides") for array in arrays):
            self.stop(f"{name} gives a sparse array")
            return made
        backwards = [array for array in arrays if any(step < 0 for step in array.strides)]
        if any(self._quiet_block_of(array) is not None for array in backwards if array.size):
            self.stop(f"{name} goes backwards through the memory of its argument")
        elif backwards or self._overlap(arrays):
            function, arrays = copied_results(function), [_copy(array) for array in arrays]
        values = [value_of(array) for array in arrays]
        blocks = [self._block_of(array) if array.size else None for array in arrays]
        is_view = any(block is not None for block in blocks)
        self._add_call(
            name, function, arguments, options, values, is_view=is_view, is_ordered=is_ordered, is_single=is_single
        )
        results = []
        for array, value, block in zip(arrays, values, blocks, strict=True):
            self._computed[value] = array
            if block is not None:
                if not same_geometry(array, block.root):
                    block.windows[_key(array, block)] = value
            elif array.size and not self._add_block(Block(array, value)):
                self.stop(f"results of {name} share a part of their memory")
            results.append(traced(array, self))
        return results[0] if is_single else type(made)(results) if type(made) in (tuple, list) else tuple(results)

    def _take_new(
        self, made: Any, name: str, function: Callable[..., Any], arguments: Any, options: Any, is_ordered: bool
    ) -> Any:  # fmt: skip
        """The short road of most kernels: one new array, which owns its memory."""
        value = Value(made.shape, made.dtype, made.strides)
        self._add_call(name, function, arguments, options, [value], is_ordered=is_ordered)
        self._computed[value] = made
        block = Block(made, value, is_placed=False)
        self._new_blocks.append(block)
        return traced(made, self, (block, 0, value))

    def _overlap(self, arrays: list[Any]) -> bool:
        """Whether new arrays share memory with each other, or reach past what is known."""
        if len(arrays) < 2:
            return False
        bounds = sorted(memory_bounds(a) for a in arrays if a.size and self._quiet_block_of(a) is None)
        return any(first[1] > second[0] for first, second in itertools.pairwise(bounds))

    def _quiet_block_of(self, array: Any) -> Block | None:
        if self._new_blocks:
            self._settle()
        low, high = memory_bounds(array)
        place = bisect.bisect_right(self._lows, low)
        block = self._blocks[place - 1] if place else None
        return block if block is not None and high <= block.high else None

    def _described(self, given: Any) -> Any:
        """Arguments with Values in place of arrays."""
        kind = type(given)
        if kind is tuple or kind is list:
            return kind([self._described(part) for part in given])
        if kind is dict:
            return {key: self._described(part) for key, part in given.items()}
        if is_traced(given) or is_array(given):
            return self.read(given)
        if kind is ReadNumber:
            self.use_number()
        elif kind is TracedNumber or kind is TracedInt:
            return self._scalar(given) if given._numbers is self.followed else plain_number(given)
        elif kind is complex or isinstance(given, _generic):
            self.followed.read()  # it may have been made of one that is followed
        return given

    def _scalar(self, number: Any) -> Number:
        expression = number._expression
        kind = int if type(number) is TracedInt else float
        made: Any = self.scalars.setdefault(key_of(expression), (Number(kind), expression))[0]
        return made  # under this key stand Numbers

    def scalar_array(self, number: Any, dtype: Any, number_as: Callable[..., Any]) -> Any:
        """A number as an operand of a dtype: an array without dimensions, which is an input of the program."""
        expression = (_as_array, number._expression, dtype, number_as)
        key = key_of(expression)
        known = self._scalar_arrays.get(key)
        if known is None:
            array = _as_array(plain_number(number), dtype, number_as)
            value = value_of(array)
            self._add_block(Block(array, value))
            self.scalars[key] = (value, expression)
            known = self._scalar_arrays[key] = traced(array, self)
        return known

    def _add_call(
        self, name: str, function: Any, arguments: Any, options: Any, results: list[Value], *, is_view: bool = False,
        is_ordered: bool = False, is_single: bool = True,
    ) -> None:  # fmt: skip
        if name.startswith("random."):
            self._draws = True
            self._check_stream()
        source = source_line() or calling_line()
        call = Call(name, function, tuple(arguments), dict(options), results, is_single, is_view, is_ordered, source)
        self.program.calls.append(call)
        if self.spots is not None:
            self.spots.append(self._spot())


def _place_of(pair: tuple[int, Value]) -> int:
    return pair[0]


_low_of = operator.attrgetter("low")


_OF_DRAWS = (int, float, Generator, type(None))
"""What functions that draw are given, where it is known to be the same again."""
_CHECKING = ("check", "require", "refuse")
"""How the names of kernels begin that only raise where something is wrong."""


def _none_or_zero(part: Any) -> int | None:
    return None if part is None else 0


def _as_array(number: float, dtype: Any, number_as: Callable[..., Any]) -> Any:
    return laid_out(number_as(number, dtype), (), None, dtype)


_ndarray: Any = TracedArray.__mro__[1]
_PLAIN = frozenset([int, float, bool, str, type(None)])
"""Arguments that stand in a program as they are."""
_generic: Any = type(_ndarray((1,), dtype="f8")[0]).__mro__[-3]


def _plain(value: Any) -> Any:
    """Arguments with plain arrays and numbers."""
    kind = type(value)
    if kind is TracedNumber or kind is TracedInt:
        return plain_number(value)
    if kind is tuple or kind is list:
        return kind([_plain(part) for part in value])
    if kind is dict:
        return {key: _plain(part) for key, part in value.items()}
    return plain(value)


def _copy(array: Any) -> Any:
    return laid_out(array, array.shape, None, array.dtype)


def _key(array: Any, block: Block) -> tuple[Any, ...]:
    array = plain(array)
    offset = memory_bounds(array)[0] - block.low
    return (offset, array.shape, array.strides, array.dtype)


def _same_form(one: Value, other: Value) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype and one.strides == other.strides


def _identical(part: Any, args: Any) -> Any:
    """The argument that a result is, itself."""
    for given in args:
        if not is_traced(given) or not is_array(part):
            continue
        if same_geometry(part, given) and _same_memory(part, given):
            return given
    return None


def _same_memory(one: Any, other: Any) -> bool:
    return bool(one.size) and memory_bounds(one) == memory_bounds(plain(other))


def _holds_values(given: Any) -> bool:
    if type(given) is Value:
        return given.constant is None
    if isinstance(given, (tuple, list)):
        return any(_holds_values(part) for part in given)
    return isinstance(given, dict) and any(_holds_values(part) for part in given.values())
