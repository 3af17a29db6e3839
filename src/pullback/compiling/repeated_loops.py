"""Groups that differ in nothing but where their memory is have one loop, which is written once.

Layers and time steps give the same groups again and again: ten thousand operations in a row come to five texts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pullback.compiling.fusion import Group
from pullback.compiling.loop_text import Loop, write_loop
from pullback.compiling.steps import Element, Place, Reduction, Storage


class RepeatedLoops:
    """The loops of a plan whose sizes are plain numbers, by what their groups have in common."""

    def __init__(self) -> None:
        self._known: dict[Any, tuple[Loop, list[int], list[int]]] = {}

    def loop_of(self, group: Group, wanted: set[Storage]) -> Loop:
        """What `write_loop` gives."""
        form = _Form(group, wanted)
        known = self._known.get(form.key)
        if known is not None:
            loop, places, partials = known
            steps: Any = group.steps
            return replace(
                loop, places=[form.places[n].rooted for n in places], numbers=form.numbers,
                partials=[(steps[n], at) for n, (_, at) in zip(partials, loop.partials, strict=True)],
            )  # fmt: skip
        loop = write_loop(group, wanted)
        at = {place.rooted: n for n, place in reversed(list(enumerate(form.places)))}
        places = [at[place] for place in loop.places]
        self._known[form.key] = loop, places, [group.steps.index(step) for step, _ in loop.partials]
        return loop


class _Form:
    """What the text of a loop depends on (`key`), and the places and numbers that it is told from outside."""

    def __init__(self, group: Group, wanted: set[Storage]) -> None:
        self.places: list[Place] = []
        self._storages: dict[Storage, int] = {}
        self._offsets: dict[tuple[int, int], int] = {}
        numbers: dict[int, int] = {}
        parts: list[Any] = [group.kind, group.dims, group.pattern]
        for step in group.steps:
            assert isinstance(step, (Element, Reduction))
            if isinstance(step, Element):
                parts += (step.reading.number, step.real, *step.operands)
                parts += [(name, numbers.setdefault(n, len(numbers))) for name, n in step.numbers.items()]
            else:
                parts += (step.how, step.axes)
            parts += [self._place(place) for place in step.reads]
            parts += (self._place(step.out), step.out.storage in wanted)
        self.numbers = list(numbers)
        self.key = tuple(parts)

    def _place(self, place: Place) -> tuple[Any, ...]:
        """A place, its storage and its offset by when they first came."""
        self.places.append(place)
        storage, storages = place.storage, self._storages
        own = storages.setdefault(storage, len(storages))
        memory, offset = own, place.offset
        if storage.memory is not storage:
            memory, offset = storages.setdefault(storage.memory, len(storages)), offset + storage.begin
        begin = self._offsets.setdefault((memory, offset), len(self._offsets))
        return own, memory, begin, place.shape, place.strides, place.dtype.char
