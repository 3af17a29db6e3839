"""What a program comes to before it is fused: places in memory, and steps that write one place from others.

A Storage is memory that one array owns; a Place is a window on it, as NumPy's views are. Two reads are of the same element
when their places have one storage, one offset and, over the same loop, the same strides: so views cost nothing, and a
value that is read as it was written need not go through memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pullback.compiling.elements import Reading
from pullback.compiling.program import Call

INPUT, MADE, CONSTANT = "input", "made", "constant"

C_TYPES = {
    "f": "float", "d": "double", "?": "uint8_t", "b": "int8_t", "B": "uint8_t", "h": "int16_t", "H": "uint16_t",
    "i": "int32_t", "I": "uint32_t", "l": "int64_t", "q": "int64_t", "L": "uint64_t", "Q": "uint64_t",
}  # fmt: skip
"""C's names of the dtypes that loops know, by NumPy's letters."""


@dataclass(eq=False, slots=True)
class Storage:
    """Memory: of an input (its number is `index`), of a constant, or made by the program."""

    origin: str
    index: int = 0
    constant: Any = None
    is_pieced: bool = False
    """Whether several steps write parts of it that overlap: then a read is never taken from a register."""
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    dtype: Any = None
    """The array that owns it."""
    before: Storage | None = None
    """Of an input that is written: the same memory with what it held before."""

    parent: Storage | None = None
    """Of a piece that one step of several writes: the storage that it is a part of, and where it begins there."""
    begin: int = 0
    pieces: list[Storage] = field(default_factory=list)

    @property
    def memory(self) -> Storage:
        """The storage that stands for the memory itself."""
        return self.before or self.parent or self

    def piece(self, place: Place) -> Place:
        """A part of this storage, to be written on its own; no other piece may overlap it."""
        made = Storage(
            MADE, shape=place.shape, strides=place.strides, dtype=place.dtype, parent=self, begin=place.offset
        )
        self.pieces.append(made)
        return made.whole

    @property
    def whole(self) -> Place:
        return Place(self, 0, self.shape, self.strides, self.dtype)

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * int(self.dtype.itemsize)


@dataclass(unsafe_hash=True, slots=True)
class Place:
    """A window on a storage; offset and strides count bytes.

    Nobody changes one: it is a key. (A frozen class would say so, and take three times as long to make.)
    """

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: Any

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def rooted(self) -> Place:
        """The same place in the storage that stands for the memory."""
        storage = self.storage
        return self if storage.memory is storage else Place(
            storage.memory, self.offset + storage.begin, self.shape, self.strides, self.dtype
        )  # fmt: skip

    @property
    def ctype(self) -> str:
        return C_TYPES[self.dtype.char]

    def windowed(self, shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0) -> Place:
        return Place(self.storage, self.offset + offset, shape, strides, self.dtype)

    def broadcast(self, shape: tuple[int, ...]) -> Place:
        """The place seen in a larger shape."""
        if self.shape == shape:
            return self
        lead = len(shape) - len(self.shape)
        strides = [0] * lead + [
            0 if have == 1 and want != 1 else stride
            for have, want, stride in zip(self.shape, shape[lead:], self.strides, strict=True)
        ]
        return self.windowed(shape, tuple(strides))

    def with_ones(self, axes: Sequence[int]) -> Place:
        """The place with dimensions of size 1 inserted, which become these axes."""
        shape, strides = list(self.shape), list(self.strides)
        for axis in sorted(axes):
            shape.insert(axis, 1)
            strides.insert(axis, 0)
        return self.windowed(tuple(shape), tuple(strides))

    def swapped(self) -> Place:
        """The last two dimensions exchanged."""
        shape, strides = self.shape, self.strides
        return self.windowed((*shape[:-2], shape[-1], shape[-2]), (*strides[:-2], strides[-1], strides[-2]))


def row_major(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """The strides of an array without gaps."""
    strides, step = [], itemsize
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def is_dense(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> bool:
    """Whether elements fill their memory once, in some order of the dimensions."""
    step = itemsize
    for stride, size in sorted((s, n) for s, n in zip(strides, shape, strict=True) if n != 1):
        if stride != step:
            return math.prod(shape) == 0
        step *= size
    return True


@dataclass(eq=False, slots=True)
class Element:
    """For every element of `out`, what `reading` makes of the elements of `operands`, broadcast to its shape."""

    out: Place
    reading: Reading
    operands: dict[str, Place]
    numbers: dict[str, int]
    """Numbers among the inputs of the program, by the names of the loads."""
    real: str
    """The type in C in which it is computed."""
    source: Call | None = None
    reads: list[Place] = field(init=False)

    def __post_init__(self) -> None:
        self.reads = list(self.operands.values())


@dataclass(eq=False, slots=True)
class Reduction:
    """The sum, maximum or minimum over `axes` of `operand`; `out` has these dimensions with size 1."""

    out: Place
    how: str
    operand: Place
    axes: tuple[int, ...]
    source: Call | None = None
    reads: list[Place] = field(init=False)

    def __post_init__(self) -> None:
        self.reads = [self.operand]


@dataclass(eq=False, slots=True)
class MatrixProduct:
    """`out = a @ b`: three dimensions each, of which the first is a batch."""

    out: Place
    a: Place
    b: Place
    source: Call | None = None
    reads: list[Place] = field(init=False)

    def __post_init__(self) -> None:
        self.reads = [self.a, self.b]


@dataclass(eq=False, slots=True)
class KernelCall:
    """A kernel that is called as it was recorded."""

    call: Call
    places: dict[Any, Place]
    """Of the values among its arguments."""
    outs: list[Place]
    source: Call | None = None
    reads: list[Place] = field(default_factory=list)


StepKind: TypeAlias = "Element | Reduction | MatrixProduct | KernelCall"


def writes_of(step: StepKind) -> list[Place]:
    """The places that a step fills."""
    return step.outs if isinstance(step, KernelCall) else [step.out]


# Loops -------------------------------------------------------------------------------------------------------------


def plain_dims(shape: Sequence[int]) -> tuple[int, ...]:
    """The sizes of a loop over a shape: without those that are 1."""
    return tuple([size for size in shape if size != 1])


def refine(first: Sequence[int], second: Sequence[int]) -> tuple[int, ...] | None:
    """The coarsest sizes into which both can be split; None where they cannot be."""
    if tuple(first) == tuple(second):
        return tuple(first)
    a, b = list(first), list(second)
    made: list[int] = []
    while a and b:
        x, y = a.pop(), b.pop()
        if x == y:
            made.append(x)
        elif y and x % y == 0:
            made.append(y)
            a.append(x // y)
        elif x and y % x == 0:
            made.append(x)
            b.append(y // x)
        else:
            return None
    rest = [size for size in (*a, *b) if size != 1]
    return None if rest else tuple([size for size in reversed(made) if size != 1])


def strides_over(place: Place, dims: Sequence[int]) -> tuple[int, ...]:
    """The strides of a place, whose shape these sizes refine, over them; in elements."""
    item = place.dtype.itemsize
    if place.shape == dims and 1 not in dims:
        return tuple([stride // item for stride in place.strides])
    shape = [(n, s // item) for n, s in zip(place.shape, place.strides, strict=True) if n != 1]
    made: list[int] = []
    wanted = list(dims)
    while shape:
        size, stride = shape.pop()
        while size != 1:
            part = wanted.pop()
            made.append(stride)
            stride *= part
            size //= part
    return tuple(reversed(made))
