"""The instructions of a plan, the memory between them, and the tables from which native/programs.c runs them."""

from __future__ import annotations

import bisect
import heapq
import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.compiling.fusion import Group
from pullback.compiling.library import library
from pullback.compiling.loop_text import Loop
from pullback.compiling.program import Number
from pullback.compiling.steps import CONSTANT, INPUT, MADE, KernelCall, Place, Storage
from pullback.native import extension

if TYPE_CHECKING:
    from pullback.compiling.plan import Plan

_ALIGNMENT = 64
_FROM_INPUT, _FROM_FRESH, _FROM_ARENA, _FROM_CONSTANT = range(4)


@dataclass
class Instruction:
    """A loop or a product, and the memory that it reads and writes."""

    group: Group
    loop: Loop | None
    places: list[Place]
    numbers: list[int]
    count: int = 1
    smallest: int = 0
    text: str = ""
    product: tuple[int, ...] = (0,) * 13
    parts: list[Storage] = field(default_factory=list)
    """Memory between this loop and the one that puts the parts of its reductions together."""
    sizes: Storage | None = None
    """The values of the parameters of its text. See Note [Sizes in text]."""


@dataclass
class Segment:
    """Instructions without a kernel call between them."""

    instructions: list[Instruction] = field(default_factory=list)
    inputs: list[Storage] = field(default_factory=list)
    outputs: list[Storage] = field(default_factory=list)


class Tables:
    """The tables of a segment, as bytes."""

    def __init__(self, segment: Segment, plan: Plan, outputs: list[Place], is_whole: bool) -> None:
        self.segment = segment
        self.plan = plan
        self.dims: list[int] = []
        self.constants: list[Any] = []
        self._constant_at: dict[Storage, int] = {}
        self.offsets, self.arena_bytes = arena_of(segment)
        self.fresh = {storage: n for n, storage in enumerate(segment.outputs)}
        if is_whole:  # the inputs of the program, numbers among them
            self.input_at = {s: i for i, s in self._program_inputs().items()}
            self.inputs: list[Any] = list(plan.program.inputs)
        else:
            self.input_at = {storage: n for n, storage in enumerate(segment.inputs)}
            self.inputs = [*segment.inputs, *[value for value in plan.program.inputs if isinstance(value, Number)]]
        self.output_places = outputs

    def _program_inputs(self) -> dict[int, Storage]:
        return self.plan._arrays

    def _dims(self, shape: Sequence[int], strides: Sequence[int]) -> int:
        at = len(self.dims)
        self.dims += [*shape, *strides]
        return at

    def _origin(self, storage: Storage) -> tuple[int, int, int]:
        if storage in self.fresh:
            return _FROM_FRESH, self.fresh[storage], 0
        if storage in self.offsets:
            return _FROM_ARENA, 0, self.offsets[storage]
        if storage.origin == CONSTANT:
            if storage not in self._constant_at:
                self._constant_at[storage] = len(self.constants)
                self.constants.append(storage.constant)
            return _FROM_CONSTANT, self._constant_at[storage], 0
        return _FROM_INPUT, self.input_at[storage.memory], 0

    def make(self, addresses: dict[str, int], otherwise: Callable[..., Any]) -> Any:
        """The object that runs the segment."""
        numbers_at = self._number_places()
        places: dict[tuple[int, int, int], int] = {}
        at: list[int] = []
        rows: list[int] = []
        work = 0
        for i in self.segment.instructions:
            first = len(at)
            for place in i.places:
                origin, index, offset = self._origin(place.storage)
                at.append(places.setdefault((origin, index, offset + place.offset), len(places)))
            at += [numbers_at[number] for number in i.numbers]
            if i.sizes is not None:
                at.append(places.setdefault(self._origin(i.sizes), len(places)))
            kind, address = (0, addresses[i.text]) if i.text else (1, 0)
            rows += [kind, address, i.count, i.smallest, first, *i.product]
            work += _work(i)
        inputs: list[int] = []
        for value in self.inputs:
            if isinstance(value, Number):
                inputs += [1, 0, 0, 0]
            else:
                dtype = np.dtype(value.dtype)
                inputs += [0, dtype.num, len(value.shape), self._dims(value.shape, value.strides)]
        fresh: list[int] = []
        for storage in self.segment.outputs:
            fresh += self._output(_FROM_FRESH, 0, storage.whole)
        outputs: list[int] = []
        for place in self.output_places:
            origin, index, _ = self._origin(place.storage)
            row = self._output(origin, index, place)
            if place == place.storage.whole:
                row[4] = -1  # the array itself
            outputs += row
        written = sorted(
            {self.input_at[s.memory] for i in self.segment.instructions for s in made_by(i) if s.origin == INPUT}
        )  # fmt: skip
        tables = [_packed(table) for table in (inputs, fresh, outputs, self.dims, written)]
        return extension.make_program(
            _packed(rows), struct.pack(f"={len(at)}i", *at), _packed([n for key in places for n in key]), *tables,
            tuple(self.constants), otherwise, library, self.arena_bytes, work,
        )  # fmt: skip

    def _number_places(self) -> dict[int, int]:
        """Where the numbers of the program are among the inputs of this segment."""
        found: dict[int, int] = {}
        positions = {value: n for n, value in enumerate(self.inputs) if isinstance(value, Number)}
        for index, value in enumerate(self.plan.program.inputs):
            if isinstance(value, Number):
                found[index] = positions[value]
        return found

    def _output(self, origin: int, index: int, place: Place) -> list[int]:
        return [
            origin, index, place.offset, place.dtype.num, len(place.shape), self._dims(place.shape, place.strides),
        ]  # fmt: skip


def _packed(numbers: list[int]) -> bytes:
    return struct.pack(f"={len(numbers)}q", *numbers)


def made_by(instruction: Instruction) -> list[Storage]:
    """The memory that an instruction writes to."""
    steps = [step.out.storage.memory for step in instruction.group.steps if not isinstance(step, KernelCall)]
    return steps + instruction.parts


def _work(i: Instruction) -> int:
    if i.text:
        return math.prod(i.group.dims) * (i.group.cost + 4) // 4
    return i.product[1] * i.product[2] * i.product[3] * i.product[9] // 8


def arena_of(segment: Segment) -> tuple[dict[Storage, int], int]:
    """Where in the arena each storage is that lives in the segment only: memory is used again as soon as it may be."""
    kept = set(segment.outputs) | set(segment.inputs)
    span: dict[Storage, tuple[int, int]] = {}
    for turn, instruction in enumerate(segment.instructions):
        for place in instruction.places:
            storage = place.storage
            if storage.origin == MADE and storage not in kept:
                span[storage] = (span.get(storage, (turn, turn))[0], turn)
    offsets: dict[Storage, int] = {}
    gaps = _Gaps()
    active: list[tuple[int, int, int]] = []  # (last turn, offset, size), a heap
    for storage, (begin, last) in sorted(span.items(), key=lambda item: item[1][0]):
        while active and active[0][0] < begin:
            _, at, size = heapq.heappop(active)
            gaps.add(at, size)
        size = -(-max(storage.nbytes, 1) // _ALIGNMENT) * _ALIGNMENT
        at = offsets[storage] = gaps.take(size)
        heapq.heappush(active, (last, at, size))
    return offsets, gaps.end


class _Gaps:
    """Free memory below `end`, neighbours taken together."""

    def __init__(self) -> None:
        self.end = 0
        self._size_at: dict[int, int] = {}
        self._begin_of: dict[int, int] = {}
        """By where they end."""
        self._by_size: list[tuple[int, int]] = []
        """(size, offset), sorted."""

    def take(self, size: int) -> int:
        """The smallest gap that is large enough, else memory at the end."""
        place = bisect.bisect_left(self._by_size, (size, 0))
        if place == len(self._by_size):
            self.end += size
            return self.end - size
        found, at = self._by_size[place]
        self._remove(at, found)
        if found > size:
            self._enter(at + size, found - size)
        return at

    def add(self, at: int, size: int) -> None:
        """Take memory back."""
        before = self._begin_of.get(at)
        if before is not None:
            self._remove(before, at - before)
            at, size = before, size + at - before
        after = self._size_at.get(at + size)
        if after is not None:
            self._remove(at + size, after)
            size += after
        self._enter(at, size)

    def _enter(self, at: int, size: int) -> None:
        self._size_at[at], self._begin_of[at + size] = size, at
        bisect.insort(self._by_size, (size, at))

    def _remove(self, at: int, size: int) -> None:
        del self._size_at[at], self._begin_of[at + size]
        del self._by_size[bisect.bisect_left(self._by_size, (size, at))]
