"""Puts steps into groups that one loop computes: values that meet in a group stay in registers.

# Note [Groups]
A group goes over one space of sizes. As a *map* it only computes elements. A reduction makes it one of *rows* (the last
dimension is reduced: each row is gone along once per reduction, and what was reduced is there for what comes after), of
*columns* (the last dimension stays: sums of tiles of columns), or a *whole* (everything is reduced, and there is much of
it: parts of it side by side, then the sum of the parts). What columns and wholes give is not read inside of the group.
A step may join a group if nothing outside of it lies between the two.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from pullback.compiling.steps import (
    Element,
    KernelCall,
    Place,
    Reduction,
    StepKind,
    Storage,
    plain_dims,
    refine,
    strides_over,
    writes_of,
)

MAP, ROWS, COLUMNS, WHOLE, SINGLE = "map", "rows", "columns", "whole", "single"
_MOST_COST, _MOST_STEPS, _MOST_PLACES = 1600, 480, 48
_SHORT, _MOST_COST_OF_SHORT = 4096, 640
"""A loop over few elements gains little from being long, since what goes through memory is in the cache; the compiler
takes more than twice as long for twice the text."""
_TINY, _COSTLY, _MOST_COST_OF_COSTLY = 64, 20, 200
"""Functions of many operations are long texts, of which tiny loops need few: 10,000 sines of 4 elements are as fast in loops
of eight as of thirty, which take the compiler three times as long."""
_SMALL_WHOLE = 8192
"""Up to so many elements a reduction of everything is done by one thread, as one row."""
_SMALL_DRAW = 1 << 16
"""Bytes of an array that may wait in memory for what reads it."""
_NEAR = 6
"""So many groups that read the same memory are tried."""

Pattern = tuple[tuple[int, bool], ...]


@dataclass(eq=False, slots=True)
class Group:
    """Steps of one loop; `pattern` says which sizes of the space are reduced, neighbours of a kind taken together."""

    number: int
    kind: str
    steps: list[StepKind] = field(default_factory=list)
    dims: tuple[int, ...] = ()
    pattern: Pattern = ()
    made: dict[Storage, StepKind] = field(default_factory=dict)
    reads: set[Storage] = field(default_factory=set)
    ancestors: int = 0
    """The groups that come before, by their bits."""
    followers: dict[int, Group] = field(default_factory=dict)
    """Those that read what it makes, by their numbers."""
    cost: int = 0
    touched: set[Storage] = field(default_factory=set)
    """What it reads or makes."""

    @property
    def rows(self) -> int:
        return math.prod([size for size, is_reduced in self.pattern if not is_reduced])

    def is_of_rows(self, step: StepKind) -> bool:
        """Whether a step gives one value per row."""
        return self.kind == ROWS and (
            isinstance(step, Reduction) or (isinstance(step, Element) and step.out.size != math.prod(self.dims))
        )

    def reduced_dims(self) -> list[bool]:
        """Which of the sizes are reduced."""
        flags: list[bool] = []
        rest = list(self.pattern)
        size, is_reduced = rest.pop() if rest else (1, False)
        for dim in reversed(self.dims):
            while size == 1 and rest:
                size, is_reduced = rest.pop()
            flags.append(is_reduced)
            size //= dim
        return flags[::-1]


def pattern_of(step: Reduction) -> Pattern:
    """Which sizes of its operand a reduction reduces."""
    made: list[tuple[int, bool]] = []
    for axis, size in enumerate(step.operand.shape):
        is_reduced = axis in step.axes
        if size == 1:
            continue
        if made and made[-1][1] == is_reduced:
            made[-1] = (made[-1][0] * size, is_reduced)
        else:
            made.append((size, is_reduced))
    return tuple(made)


def kind_of(pattern: Pattern) -> str:
    """The kind of group that a reduction needs."""
    if not pattern[-1][1]:
        return COLUMNS
    if len(pattern) == 1 and pattern[0][0] > _SMALL_WHOLE:
        return WHOLE
    return ROWS


class Fusion:
    """The groups of a list of steps."""

    def __init__(self, steps: list[StepKind]) -> None:
        self.groups: list[Group] = []
        self.group_of: dict[StepKind, Group] = {}
        self.writers: dict[Storage, list[StepKind]] = {}
        self._readers: dict[Storage, list[Group]] = {}
        self._reading: dict[Storage, list[StepKind]] = {}
        self._last_ordered: StepKind | None = None
        self.needs: dict[StepKind, list[StepKind]] = {}
        for step in steps:
            self._place(step)

    def _place(self, step: StepKind) -> None:
        before = self._needed(step)
        candidates = sorted({self.group_of[s].number for s in before}, reverse=True)[:_NEAR]
        near = [g.number for place in step.reads for g in self._readers.get(place.storage, [])[-2:]]
        for number in dict.fromkeys([*candidates, *reversed(near[-_NEAR:])]):
            group = self.groups[number]
            dims = self._joined_dims(group, step, before)
            if dims is not None:
                self._join(group, step, dims, before)
                return
        group = self._begin(step)
        self.groups.append(group)
        self._join(group, step, group.dims, before)

    def _needed(self, step: StepKind) -> list[StepKind]:
        """The steps that come before: those that write what it reads, or wrote other parts of what it writes."""
        needed: list[StepKind] = []
        seen: list[Storage] = []
        for place in (*step.reads, *writes_of(step)):
            storage = place.storage
            if storage not in seen:
                seen.append(storage)
                needed += self.writers.get(storage, ())
                for piece in storage.pieces:
                    needed += self.writers.get(piece, ())
        for place in writes_of(step):
            if place.storage.before is not None:  # whoever reads what was there before
                needed += self._reading.get(place.storage.before, ())
        if step.source is not None and step.source.is_ordered and self._last_ordered is not None:
            needed.append(self._last_ordered)
        return needed

    def _begin(self, step: StepKind) -> Group:
        number = len(self.groups)
        if isinstance(step, Element):
            return Group(number, MAP, dims=plain_dims(step.out.shape))
        if isinstance(step, Reduction):
            pattern = pattern_of(step)
            return Group(number, kind_of(pattern), dims=plain_dims(step.operand.shape), pattern=pattern)
        return Group(number, SINGLE)

    def _joined_dims(self, group: Group, step: StepKind, before: list[StepKind]) -> tuple[int, ...] | None:
        """The space of the group with the step in it; None where it cannot join."""
        if group.kind == SINGLE or not isinstance(step, (Element, Reduction)):
            return None
        if step.out.storage in group.made or (step.out.storage.is_pieced and step.out.storage in group.reads):
            return None
        if any(piece in group.made for place in step.reads for piece in place.storage.pieces):
            return None  # what the group writes in pieces is whole only after it
        if step.out.storage.before is not None and not _overwrites_safely(group, step.out):
            return None
        elements, cost = math.prod(group.dims), _cost(step)
        most = _MOST_COST if elements > _SHORT else _MOST_COST_OF_SHORT
        if elements <= _TINY and cost > _COSTLY:
            most = _MOST_COST_OF_COSTLY
        if group.cost + cost > most or len(group.steps) >= _MOST_STEPS:
            return None
        if len(group.touched) + len(step.reads) > _MOST_PLACES and any(
            place.storage not in group.made for place in step.reads
        ):
            return None
        bit = 1 << group.number
        for writer in before:
            other = self.group_of[writer]
            if other is not group and other.ancestors & bit:
                return None
        if isinstance(step, Reduction):
            return self._dims_of_reduction(group, step)
        size = step.out.size
        if size == elements:
            dims = refine(group.dims, plain_dims(step.out.shape))
            if dims is None:
                return None
            for place in step.reads:
                if place.storage in group.made and not self._reads_register(group, place, dims):
                    return None
            return dims
        if group.kind == ROWS and size == group.rows and any(place.storage in group.made for place in step.reads):
            return self._dims_of_row_element(group, step)
        return None

    def _dims_of_reduction(self, group: Group, step: Reduction) -> tuple[int, ...] | None:
        pattern = pattern_of(step)
        kind = kind_of(pattern)
        if group.kind != MAP and (group.kind != kind or group.pattern != pattern):
            return None
        dims = refine(group.dims, plain_dims(step.operand.shape))
        if dims is None or step.operand.size != math.prod(group.dims):
            return None
        return dims if self._reads_register(group, step.operand, dims) else None

    def _dims_of_row_element(self, group: Group, step: Element) -> tuple[int, ...] | None:
        kept = [dim for dim, is_reduced in zip(group.dims, group.reduced_dims(), strict=True) if not is_reduced]
        if refine(kept, plain_dims(step.out.shape)) != tuple(kept):
            return None
        for place in step.reads:
            writer = group.made.get(place.storage)
            if writer is None:
                continue
            if not group.is_of_rows(writer) or (isinstance(writer, Element) and writer.out.storage.is_pieced):
                return None
            out = writer.out  # type: ignore[union-attr]  # of an Element or a Reduction
            if place.offset != out.offset or strides_over(place, kept) != strides_over(out, kept):
                return None
        return group.dims

    def _reads_register(self, group: Group, place: Place, dims: tuple[int, ...]) -> bool:
        """Whether a read is of nothing that the group makes, or of the very element at hand."""
        writer = group.made.get(place.storage)
        if writer is None:
            return True
        if place.storage.is_pieced or not isinstance(writer, (Element, Reduction)):
            return False
        if isinstance(writer, Reduction) and group.kind != ROWS:
            return False
        out = writer.out
        if place.offset != out.offset:
            return False
        if group.kind == MAP and place.strides == out.strides and place.shape == out.shape:
            return True
        if group.is_of_rows(writer):
            return strides_over(place, dims) == row_strides(out, dims, reduced_over(group, dims))
        return strides_over(place, dims) == strides_over(out, dims)

    def _join(self, group: Group, step: StepKind, dims: tuple[int, ...], before: list[StepKind]) -> None:
        group.dims = dims
        if isinstance(step, Reduction) and group.kind == MAP:
            group.pattern = pattern_of(step)
            group.kind = kind_of(group.pattern)
        group.steps.append(step)
        group.cost += _cost(step)
        self.group_of[step] = group
        for place in writes_of(step):
            group.made[place.storage] = step
            group.touched.add(place.storage)
            self.writers.setdefault(place.storage, []).append(step)
        if step.source is not None and step.source.is_ordered:
            self._last_ordered = step
        self.needs[step] = before
        for place in step.reads:
            group.reads.add(place.storage)
            group.touched.add(place.storage)
            self._reading.setdefault(place.storage, []).append(step)
            readers = self._readers.setdefault(place.storage, [])
            if not readers or readers[-1] is not group:
                readers.append(group)
        bits = 0
        for writer in before:
            other = self.group_of[writer]
            if other is not group:
                bits |= other.ancestors | 1 << other.number
                other.followers[group.number] = group
        if bits & ~group.ancestors:
            group.ancestors |= bits
            _tell_followers(group)

    def ordered(self) -> list[Group]:
        """The groups, each after those that it needs, calls as late as can be, else as the program has them.

        What writes into inputs comes last: a call that raises (an index out of range) should have changed nothing by then.
        Small arrays that depend on nothing, as masks of dropout, come first: so they do not part what lies around them.
        """
        after: dict[int, set[int]] = {group.number: set() for group in self.groups}
        waiting: dict[int, int] = {}
        for group in self.groups:
            needed = {self.group_of[other].number for step in group.steps for other in self.needs.get(step, ())}
            needed.discard(group.number)
            waiting[group.number] = len(needed)
            for number in needed:
                after[number].add(group.number)
        ready = [self._turn(number) for number, count in waiting.items() if not count]
        heapq.heapify(ready)
        ordered: list[Group] = []
        while ready:
            *_, number = heapq.heappop(ready)
            ordered.append(self.groups[number])
            for later in after[number]:
                waiting[later] -= 1
                if not waiting[later]:
                    heapq.heappush(ready, self._turn(later))
        assert len(ordered) == len(self.groups), "groups wait for each other"
        return ordered

    def _turn(self, number: int) -> tuple[int, bool, int]:
        steps = self.groups[number].steps
        first = steps[0]
        if any(place.storage.before is not None for step in steps for place in writes_of(step)):
            return 2, isinstance(first, KernelCall), number
        if isinstance(first, KernelCall) and not first.call.reads and first.outs:
            return int(any(place.storage.nbytes > _SMALL_DRAW for place in first.outs)), True, number
        return 1, isinstance(first, KernelCall), number


def _tell_followers(group: Group) -> None:
    """Let those that come after a group come after all that it comes after."""
    pending = [group]
    while pending:
        group = pending.pop()
        for follower in group.followers.values():
            if group.ancestors & ~follower.ancestors:
                follower.ancestors |= group.ancestors
                pending.append(follower)


def _overwrites_safely(group: Group, out: Place) -> bool:
    """Whether a loop may write into an input: it reads that input at the very element only, and once."""
    if out.storage.before not in group.reads:
        return True
    if group.kind != MAP or any(isinstance(step, Element) and step.reading.beyond for step in group.steps):
        return False
    reads = [place for step in group.steps for place in step.reads if place.storage is out.storage.before]
    return all((place.offset, place.shape, place.strides) == (out.offset, out.shape, out.strides) for place in reads)


def row_strides(out: Place, dims: tuple[int, ...], reduced: list[bool]) -> tuple[int, ...]:
    """The strides of a place with a value per row over all sizes: none along the row."""
    kept = [dim for dim, is_reduced in zip(dims, reduced, strict=True) if not is_reduced]
    along = iter(strides_over(out, kept))
    return tuple([0 if is_reduced else next(along) for is_reduced in reduced])


def reduced_over(group: Group, dims: tuple[int, ...]) -> list[bool]:
    """Which of finer sizes the group reduces."""
    return Group(0, group.kind, dims=dims, pattern=group.pattern).reduced_dims()


def _cost(step: StepKind) -> int:
    return step.reading.cost + 1 if isinstance(step, Element) else 2


def live_steps(steps: list[StepKind], wanted: Iterable[Storage]) -> list[StepKind]:
    """The steps that lead to wanted memory, in order; calls with an effect stay."""
    needed = set(wanted)
    kept: list[StepKind] = []
    for step in reversed(steps):
        is_ordered = step.source is not None and step.source.is_ordered
        for place in () if is_ordered else writes_of(step):
            if place.storage in needed or place.storage.parent in needed:
                break
        else:
            if not is_ordered:
                continue
        needed.update([place.storage for place in step.reads])
        kept.append(step)
    return kept[::-1]
