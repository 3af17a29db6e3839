"""Matching: whether a call is one that an entry's program may serve."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from itertools import repeat
from operator import attrgetter, is_
from typing import Any, NamedTuple

from pullback.backend.array_module import ndarray
from pullback.backend.traced_array import plain
from pullback.compiling.capture import Capture, Input, form_of_grad, hooks_of
from pullback.compiling.memory import WrittenApart
from pullback.compiling.program import Value
from pullback.compiling.quick_guards import write_guard

_array_of, _requires_grad_of = attrgetter("_array"), attrgetter("_requires_grad")
_grad_of, _extra_of = attrgetter("_grad"), attrgetter("_extra")

_GUARDS_WRITTEN_AT = (2, 4, 8, 16)
"""After so many calls in which something was not the very same."""


class _Quick(NamedTuple):
    """A guard that was written as text, and what a call is given where it says yes."""

    is_same: Callable[[], bool]
    arrays: list[Any]
    is_all: bool
    """Whether it asks everything that is to be asked."""


class Matching:
    """Compares the inputs of a program, and what its function can reach, with what they were when it was recorded."""

    def __init__(self, made: Capture) -> None:
        self._inputs = made.inputs
        self._surroundings = made.surroundings
        self._conditions = made.conditions
        self._values = [given.value for given in made.inputs]
        self._requires_grad = [given.requires_grad for given in made.inputs]
        self._had_grad = [given.grad_form for given in made.inputs]
        self._had_hooks = [given.had_hooks for given in made.inputs]
        self._writes_grads = bool(made.grads)
        self._asks_grads = made.reads_grads or self._writes_grads
        self._had_no_grads = all(form is None for form in self._had_grad)
        self._had_no_hooks = not any(self._had_hooks)
        self._around = [(place, tensor) for place, tensor in made.identities if tensor is not None]
        """Arguments that are tensors of the surroundings too."""
        self._strangers = [place for place, tensor in made.identities if tensor is None]
        """Arguments that are not."""
        self._sort()
        written = [place for place, _ in made.program.writes]
        self._apart = WrittenApart(written, [given.place is None for given in made.inputs]) if written else None
        self._quick: _Quick | None = None
        self._compared = 0
        """How many calls were compared at length."""
        self._lock = threading.Lock()

    def _sort(self) -> None:
        """Part the inputs into those that are given by each call and those that last."""
        given = list(enumerate(self._inputs))
        self._tensors = [one.tensor if one.place is None and one.grad_of is None else None for one in self._inputs]
        """Those that are the same in every call."""
        self._arguments = [(number, one.place) for number, one in given if one.place is not None]
        self._grads_of = [(number, one) for number, one in given if one.place is None and one.grad_of is not None]
        self._lasting = [number for number, tensor in enumerate(self._tensors) if tensor is not None]
        self._held = [self._tensors[number] for number in self._lasting]
        self._held_require_grad = [self._requires_grad[number] for number in self._lasting]
        self._former: list[Any] = [None] * len(self._held)
        """Their arrays in the last call."""

    def match(self, leaves: Sequence[Any]) -> tuple[list[Any], list[Any]] | None:
        """The tensors and arrays of a call; None unless all that was in reach is as it was."""
        quick = self._quick
        is_same = quick is not None and quick.is_same()
        if quick is not None and is_same and quick.is_all:
            return self._tensors, quick.arrays
        if self._conditions and not all(c.holds(leaves) for c in self._conditions):
            return None
        tensors = self._tensors_where(leaves, is_same)
        if tensors is None:
            return None
        for number, _ in self._grads_of:
            tensor = tensors[number]
            if tensor is None or tensor._requires_grad is not self._requires_grad[number]:
                return None
            if not _has_form(tensor._array, self._values[number]):
                return None
        if not is_same and not self._hold_their_arrays():
            return None
        if not self._have_their_grads_and_hooks(tensors):
            return None
        arrays = [tensor._array for tensor in tensors]
        if not all(map(is_, map(type, arrays), repeat(ndarray))):
            arrays = [array if type(array) is ndarray else plain(array) for array in arrays]
        if self._apart is not None and not self._apart.holds_for(arrays):
            return None
        if not is_same:
            self._write_guard()
        return tensors, arrays

    def _tensors_where(self, leaves: Sequence[Any], is_same: bool) -> list[Any] | None:
        """The tensors of a call, if its surroundings are as they were, or hold others like those."""
        assert self._surroundings is not None
        with self._lock:
            if not is_same and not self._surroundings.is_as_it_was() and not self._follow():
                return None
            if self._around and not all(leaves[place] is tensor for place, tensor in self._around):
                return None
            known = self._surroundings.tensors
            if self._strangers and any(id(leaves[place]) in known for place in self._strangers):
                return None
            return self.tensors_of(leaves)

    def _follow(self) -> bool:
        """Whether tensors of the surroundings gave way to others like them, which are taken from now on."""
        assert self._surroundings is not None
        pairs = zip(self._tensors, self._inputs, strict=True)
        found = self._surroundings.successors([t for t, given in pairs if t is not None and given.spot is None])
        if found is None:
            return False
        tensors = [tensor if tensor is None else found.get(id(tensor), tensor) for tensor in self._tensors]
        self._around = [(place, found.get(id(tensor), tensor)) for place, tensor in self._around]
        self._tensors, self._held = tensors, [tensors[number] for number in self._lasting]
        self._quick = None
        return True

    def _write_guard(self) -> None:
        """Have what is the same from call to call compared at once from now on; a few times, should it not stay the same."""
        self._compared += 1
        arrays = self._former
        if self._compared not in _GUARDS_WRITTEN_AT or not all(map(is_, map(type, arrays), repeat(ndarray))):
            return
        assert self._surroundings is not None
        asks_all = not (self._around or self._strangers or self._grads_of or self._conditions) and (
            self._had_no_hooks and (self._had_no_grads or not self._asks_grads)
        )
        with_grads = self._asks_grads and self._had_no_grads
        guard = write_guard(self._surroundings.places, self._held, arrays, with_grads=with_grads)
        self._quick = None if guard is None else _Quick(guard, arrays, asks_all)

    def _hold_their_arrays(self) -> bool:
        """Whether the tensors beside the arguments have arrays of the form that they had, and require grad as they did."""
        if not all(map(is_, map(_array_of, self._held), self._former)):
            now = list(map(_array_of, self._held))
            if not all(_has_form(array, self._values[n]) for array, n in zip(now, self._lasting, strict=True)):
                return False
            self._former = now
        return all(map(is_, map(_requires_grad_of, self._held), self._held_require_grad))

    def _have_their_grads_and_hooks(self, tensors: list[Any]) -> bool:
        """Whether each input has a `.grad` or hooks if it had some."""
        if self._asks_grads:
            has_none = all(map(is_, map(_grad_of, tensors), repeat(None)))
            if not (has_none and self._had_no_grads) and not self._have_their_grads(tensors):
                return False
        if self._had_no_hooks and all(map(is_, map(_extra_of, tensors), repeat(None))):
            return True
        return all(
            (hooks_of(tensor) is not None) is had_hooks
            for tensor, had_hooks in zip(tensors, self._had_hooks, strict=True)
            if tensor._extra is not None
        )

    def _have_their_grads(self, tensors: list[Any]) -> bool:
        if self._writes_grads:
            return all(form_of_grad(tensor) == form for tensor, form in zip(tensors, self._had_grad, strict=True))
        return all(
            (tensor._grad is None) is (form is None) for tensor, form in zip(tensors, self._had_grad, strict=True)
        )

    def tensors_of(self, leaves: Sequence[Any]) -> list[Any]:
        """The tensors that the program reads and writes."""
        tensors = self._tensors.copy()
        for number, place in self._arguments:
            tensors[number] = leaves[place]
        for number, given in self._grads_of:
            tensors[number] = _tensor_of(given, leaves)
        return tensors


def _tensor_of(given: Input, leaves: Sequence[Any]) -> Any:
    """The tensor of this call that an input stands for; None for a `.grad` that is not there."""
    if given.place is not None:
        return leaves[given.place]
    return given.tensor if given.grad_of is None else _tensor_of(given.grad_of, leaves)._grad


def _has_form(array: Any, value: Value) -> bool:
    return bool(array.shape == value.shape and array.dtype == value.dtype and array.strides == value.strides)
