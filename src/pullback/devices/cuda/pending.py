"""Pending: elementwise work of the GPU that was asked for and not yet launched.

# Note [Deferred work]
A launch takes the host about eight microseconds, and every operation of its own reads and writes its arrays once more. So
elementwise kernels of one shape are written down (`Pending.record`) and launched together as one kernel: what is read is
loaded once, and of the values between only those are stored that somebody still holds. Nothing above can tell: whoever
asks for the memory of any array (`DeferredArray.raw`), for the end of the work, for a stream or for counts of memory has
everything launched before. So a write cannot overtake a read that was written down before it, and values are those that
launches one by one would give: every result is rounded to its dtype, and no multiplication is joined with an addition.
A sequence is compiled when it comes up a second time; the first time its kernels are launched one by one. Memory that
another library may write to unseen ends all of this (`Pending.stop`): from then on every call is launched at once.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any, ClassVar

from pullback.backend.device_array import DeviceArray, Flags
from pullback.devices.cuda.fused_text import fused_source
from pullback.devices.cuda.rows import TYPES, name_of

MOST_STEPS = 64
"""Calls in one kernel."""
MOST_INPUTS = 24
MOST_NUMBERS = 96
_BLOCK = 256
_MOST_BLOCKS = 8448


class DeferredArray(DeviceArray):
    """An array of the GPU whose values may still have to be computed. See Note [Deferred work]."""

    __slots__ = ("kept", "number", "planned_dtype", "planned_shape", "recipe", "recipe_place")
    library: ClassVar[Any]
    kept: Any
    """The library's array; None while it is still to be computed."""
    number: int
    """The step that computes it; -1 where a recipe does."""
    planned_shape: tuple[int, ...]
    planned_dtype: Any
    recipe: Any
    recipe_place: Any
    """The device that a recipe makes it on."""

    def __init__(self, raw: Any, dtype: Any = None, buffer: Any = None, offset: int = 0, strides: Any = None) -> None:
        """As DeviceArray's; thousands are made in a step, so the memory is set without a call."""
        self.kept = raw if dtype is None else self.library.view_of(buffer.raw, raw, dtype, offset, strides)

    @property
    def raw(self) -> Any:
        """The library's array; whatever is pending is launched first."""
        pending = self.library.pending
        if pending.steps:
            pending.flush()
        if self.kept is None:
            self.kept = self.library.on(self.recipe_place, self.recipe.make)
        return self.kept

    @raw.setter
    def raw(self, raw: Any) -> None:
        self.kept = raw

    @property
    def place(self) -> Any:
        """The device that the memory belongs to, or will; nothing is launched for the question."""
        if self.kept is None:
            planned = self.library.pending.place if self.number >= 0 else self.recipe_place
            if self.kept is None:  # no other thread has launched it meanwhile, and gone on with another device
                return planned
        return self.library.place_of(self.kept)

    @property
    def shape(self) -> tuple[int, ...]:
        kept = self.kept
        shape: tuple[int, ...] = self.planned_shape if kept is None else kept.shape
        return shape

    @shape.setter
    def shape(self, shape: Any) -> None:
        self.raw.shape = shape

    @property
    def dtype(self) -> Any:
        kept = self.kept
        return self.planned_dtype if kept is None else kept.dtype

    @property
    def ndim(self) -> int:
        kept = self.kept
        return len(self.planned_shape) if kept is None else int(kept.ndim)

    @property
    def size(self) -> int:
        kept = self.kept
        return _size(self.planned_shape) if kept is None else int(kept.size)

    def reshape(self, *shape: Any, **options: Any) -> Any:
        """As NumPy's; without gaps in memory nothing is launched, and the library need not be asked."""
        raw = self.raw
        if options or not raw._c_contiguous:
            return self.library.call_method(self, "reshape", shape, options)
        return type(self)(raw.reshape(*shape))

    def transpose(self, *axes: Any) -> Any:
        """As NumPy's: a view."""
        return type(self)(self.raw.transpose(*axes))

    def swapaxes(self, first: int, second: int) -> Any:
        """As NumPy's: a view."""
        return type(self)(self.raw.swapaxes(first, second))

    @property
    def itemsize(self) -> int:
        return int(self.dtype.itemsize)

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        kept = self.kept
        if kept is not None:
            strides: tuple[int, ...] = kept.strides
            return strides
        step, found = self.itemsize, []
        for length in reversed(self.planned_shape):
            found.append(step)
            step *= length
        return tuple(found[::-1])

    @property
    def flags(self) -> Flags:
        if self.kept is not None:
            return Flags(self.kept)
        return _DENSE if sum([length != 1 for length in self.planned_shape]) > 1 else _LINE

    @property
    def base(self) -> DeviceArray | None:
        return None if self.kept is None else super().base


class _Dense(Flags):
    """The flags of a result that is to come: row-major and its own."""

    __slots__ = ("_is_line",)

    def __init__(self, is_line: bool) -> None:
        self._is_line = is_line

    @property
    def c_contiguous(self) -> bool:
        return True

    @property
    def f_contiguous(self) -> bool:
        return self._is_line

    @property
    def writeable(self) -> bool:
        return True


_DENSE, _LINE = _Dense(False), _Dense(True)


class Step:
    """One call that was written down."""

    __slots__ = ("dtype", "kernel", "kinds", "operands", "place", "result")

    def __init__(self, kernel: Any, place: int, kinds: str, operands: tuple[int, ...], dtype: Any, result: Any) -> None:
        self.kernel = kernel
        self.place = place
        self.kinds = kinds
        self.operands = operands
        """Numbers of steps; those of inputs are counted from -1 down."""
        self.dtype = dtype
        self.result = result
        """A weak reference to the array that is to hold the result; None where no array does."""


class Pending:
    """The calls of one shape that wait to be launched together."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._lock = threading.RLock()
        self.is_on = True
        self.compiles_at = 2
        """At which occurrence a sequence is compiled."""
        self.steps: list[Step] = []
        self.place: Any = None
        """The device that all steps are for."""
        self._is_single: bool = library.is_single()
        self._shape: tuple[int, ...] = ()
        self._is_double = False
        self._dtype: Any = None
        self._inputs: list[Any] = []
        self._input_kinds: list[str] = []
        self._places_of_inputs: dict[int, int] = {}
        self._numbers: list[float] = []
        self._seen: dict[Any, int] = {}
        self._kernels: dict[Any, Any] = {}

    def stop(self) -> None:
        """From now on launch every call at once: others may write to memory unseen."""
        with self._lock:
            self.flush()
            self.is_on = False

    def later(self, recipe: Any, shape: tuple[int, ...], dtype: Any) -> Any:
        """An array that `recipe.make()` is called for when somebody asks for its memory."""
        made = self._library.wrapper(None)
        made.recipe, made.number, made.planned_shape, made.planned_dtype = recipe, -1, shape, dtype
        made.recipe_place = self._library.place()
        if not self.is_on:
            made.kept = recipe.make()
        return made

    def recipe_of(self, array: Any) -> Any:
        """What an array is still to be made of; None if it is there, or among the steps."""
        return array.recipe if array.kept is None and array.number < 0 else None

    def record(
        self, kernel: Any, place: int, values: list[Any], parameters: Any, into: Any = None, becomes: Any = None
    ) -> Any:
        """Write a call down and return its result, in the array `into` if one is given; None if it does not fit.

        `becomes` is the dtype of the result where it is not that of the operands.
        """
        if not self.is_on:
            return None
        with self._lock:
            return self._record(kernel, place, values, parameters, into, becomes)

    def _record(self, kernel: Any, place: int, values: list[Any], parameters: Any, into: Any, becomes: Any) -> Any:
        wrapper = self._library.wrapper
        arrays: list[Any] = []
        numbers: list[float] = []
        kinds = ""
        dtype: Any = None
        shape: tuple[int, ...] = ()
        for value, parameter in zip(values, parameters, strict=True):
            type_ = type(value)
            if type_ is wrapper:
                kept = value.kept
                if kept is not None:
                    found, own = kept.dtype, kept.shape
                elif value.number < 0:
                    return None  # it is made first
                else:
                    found, own = value.planned_dtype, value.planned_shape
                if parameter[1] == "MASK":
                    if found.char != "?":
                        return None
                    kinds += "m"
                elif dtype is None:
                    dtype = found
                    kinds += "a"
                elif found is dtype or found == dtype:
                    kinds += "a"
                else:
                    return None
                arrays.append(value)
                if own is not shape and (
                    len(own) > len(shape) or (own != shape and len(own) == len(shape) and 1 in shape)
                ):
                    shape = own
            elif type_ is float or type_ is int:
                kinds += "n"
                numbers.append(float(value))
            elif value is None or type_ is str:
                kinds += "-"
            else:
                return None
        if dtype is None or 0 in shape or (dtype is not self._dtype and name_of(dtype) not in TYPES):
            return None
        steps = self.steps
        if not self._is_single or self.place is None:
            here = self._library.place()
            if here != self.place:
                self.flush()
                self.place, steps = here, self.steps
        if steps and (
            shape != self._shape or (dtype.itemsize == 8) != self._is_double or len(steps) == MOST_STEPS
            or len(self._inputs) + len(arrays) > MOST_INPUTS or len(self._numbers) + len(numbers) > MOST_NUMBERS
        ):  # fmt: skip
            self.flush()
            steps = self.steps
        if not steps and self._inputs:
            self._forget()  # those of a call that did not fit
        operands = []
        for array in arrays:
            kept = array.kept
            if kept is None:
                operands.append(array.number)
                continue
            code = self._places_of_inputs.get(id(kept)) if steps else None
            if code is None:
                kind = _kind_of(kept, shape)
                if not kind:
                    return None
                code = self._input(kept, kind)
            operands.append(code)
        if not steps:
            self._shape, self._is_double, self._dtype = shape, dtype.itemsize == 8, dtype
        if into is None:
            into = wrapper.__new__(wrapper)
        elif into.kept is None:
            self.steps[into.number].result = None
        dtype = dtype if becomes is None else becomes
        into.kept, into.planned_shape, into.planned_dtype = None, shape, dtype
        into.number = len(self.steps)
        self.steps.append(Step(kernel, place, kinds, tuple(operands), dtype, weakref.ref(into)))
        self._numbers += numbers
        return into

    def _input(self, raw: Any, kind: str) -> int:
        """The number of an array among the inputs."""
        place = self._places_of_inputs.get(id(raw))
        if place is None:
            place = self._places_of_inputs[id(raw)] = ~len(self._inputs)
            self._inputs.append(raw)
            self._input_kinds.append(kind)
        return place

    def flush(self) -> None:
        """Launch what is pending."""
        with self._lock:
            steps = self.steps
            if not steps:
                return
            live = [None if step.result is None else step.result() for step in steps]
            held = [number for number, array in enumerate(live) if array is not None]
            if held:
                outputs = (
                    self._compute(steps, held) if self._is_single
                    else self._library.on(self.place, lambda: self._compute(steps, held))
                )  # fmt: skip
                for number, raw in zip(held, outputs, strict=True):
                    live[number].kept = raw  # type: ignore[union-attr]  # numbers of those that are held
            self.steps = []
            self._forget()

    def give_up(self) -> None:
        """Forget what is pending, of which nobody will ask for a result any more."""
        with self._lock:
            self.steps = []
            self._forget()

    def _forget(self) -> None:
        """Begin anew, without inputs."""
        self._inputs, self._input_kinds, self._places_of_inputs, self._numbers = [], [], {}, []

    def _compute(self, steps: list[Step], held: list[int]) -> list[Any]:
        inputs = self._inputs
        if len(steps) > 1:
            signature = tuple([(s.kernel.name, s.place, s.kinds, s.operands, s.dtype) for s in steps])
            kinds = tuple([(kind, raw.dtype) for kind, raw in zip(self._input_kinds, inputs, strict=True)])
            key = (signature, kinds, tuple(held), self._width(steps, held))
            seen = self._seen.get(key, 0) + 1
            if seen >= self.compiles_at:
                return self._launch_together(key, steps, held)
            self._seen[key] = seen
        return self._launch_singly(steps, held)

    def _width(self, steps: list[Step], held: list[int]) -> int:
        """How many elements a thread has: 16 bytes of the widest array where all begin and end at such places."""
        widest = max([steps[number].dtype.itemsize for number in held])
        count = _size(self._shape)
        for raw, kind in zip(self._inputs, self._input_kinds, strict=True):
            if kind == "full":
                widest = max(widest, raw.dtype.itemsize)
        width = 16 // widest
        while width > 1 and (count % width or not self._is_aligned(width)):
            width //= 2
        return width

    def _is_aligned(self, width: int) -> bool:
        for raw, kind in zip(self._inputs, self._input_kinds, strict=True):
            if kind == "channels":
                behind, _ = _periods(raw, kind, self._shape, 1)
                if behind % width:
                    return False
            elif (kind != "single" and raw.data.ptr % (raw.dtype.itemsize * width)) or (
                kind == "rows" and raw.size % width
            ):
                return False
        return True

    def _launch_together(self, key: Any, steps: list[Step], held: list[int]) -> list[Any]:
        library, width = self._library, key[3]
        kernel = self._kernels.get(key)
        if kernel is None:
            text = fused_source(
                steps,
                held,
                [(kind, raw.dtype) for kind, raw in zip(self._input_kinds, self._inputs, strict=True)],
                width,
            )
            kernel = self._kernels[key] = library.compiled(text, joins=False)
        outputs = [library.module.ndarray(self._shape, steps[number].dtype) for number in held]
        count = _size(self._shape) // width
        periods = [
            period
            for raw, kind in zip(self._inputs, self._input_kinds, strict=True)
            for period in _periods(raw, kind, self._shape, width)
        ]
        blocks = min(-(-count // _BLOCK), _MOST_BLOCKS)
        kernel((blocks, 1, 1), (_BLOCK, 1, 1), (*outputs, *self._inputs, *self._numbers, *periods, count))
        return outputs

    def _launch_singly(self, steps: list[Step], held: list[int]) -> list[Any]:
        results: list[Any] = []
        used = 0
        last = {operand: number for number, step in enumerate(steps) for operand in step.operands if operand >= 0}
        for number, step in enumerate(steps):
            raws = [results[o] if o >= 0 else self._inputs[~o] for o in step.operands]
            count = step.kinds.count("n")
            results.append(
                step.kernel.launch(
                    step.place, step.kinds, step.dtype, raws, self._numbers[used : used + count], self._shape
                )
            )
            used += count
            for operand in step.operands:
                if operand >= 0 and last[operand] == number and operand not in held:
                    results[operand] = None
        return [results[number] for number in held]


def _size(shape: tuple[int, ...]) -> int:
    count = 1
    for length in shape:
        count *= length
    return count


def _kind_of(raw: Any, shape: tuple[int, ...]) -> str:
    """How an input lies: as the result does, one element for all, the last dimensions or one dimension; "" if otherwise."""
    own = raw.shape
    if own == shape:
        if raw._c_contiguous:
            return "full"
        return "" if any(raw.strides) else "single"
    if raw.size == 1:
        return "single"
    if not raw._c_contiguous:
        return ""
    while own and own[0] == 1:
        own = own[1:]
    if shape[len(shape) - len(own) :] == own:
        return "rows"
    return "channels" if _is_channel(own, shape) else ""


def _is_channel(own: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether a shape is that of one dimension, with ones behind it."""
    return len(own) <= len(shape) and own[0] == shape[len(shape) - len(own)] and own.count(1) == len(own) - 1


def _periods(raw: Any, kind: str, shape: tuple[int, ...], width: int) -> tuple[int, ...]:
    """After how many packs an input repeats; of channels, how many packs one element serves, and how many there are."""
    if kind == "rows":
        return (raw.size // width,)
    if kind == "channels":
        behind = len(raw.shape) - 1 - next(n for n, length in enumerate(raw.shape) if length != 1)
        return (_size(shape[len(shape) - behind :]) // width, raw.size)
    return ()
