"""Simplifies a program without changing a bit of what it gives: dead and repeated calls, exact algebra, constants.

What leaves the program keeps memory of its own: two outputs that are equal stay two arrays.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from pullback.backend.array_module import as_array
from pullback.compiling.program import Call, Number, Program, Value, fill
from pullback.facts import fact_of

_LARGEST_CONSTANT = 2**16
_ONE = ("mul", "mul_scalar", "div", "div_scalar", "scaled_by")
"""Kernels that give their first argument where the second is the number 1."""
_CASTS = ("to_dtype", "to_copy")


def simplify(program: Program) -> Program:
    """The same program with fewer calls."""
    made = _Simplified(program)
    calls = [call for call in (made.rewritten(call) for call in program.calls) if call is not None]
    outputs = [made.replaced(value) for value in program.outputs]
    writes = [(place, made.replaced(value)) for place, value in program.writes]
    simpler = Program(program.inputs, calls, outputs, writes)
    simpler.calls = needed_calls(simpler)
    return simpler


def needed_calls(program: Program) -> list[Call]:
    """The calls that lead to an output, a write or an effect, in order."""
    read: set[Value | Number | None] = {*program.outputs, *[value for _, value in program.writes]}
    needed: list[Call] = []
    for call in reversed(program.calls):
        if call.is_ordered or not read.isdisjoint(call.results):
            read.update(call.reads)
            needed.append(call)
    return needed[::-1]


class _Simplified:
    def __init__(self, program: Program) -> None:
        self._replaced: dict[Any, Any] = {}
        self._seen: dict[Any, list[Value]] = {}
        self._maker: dict[Value, Call] = {}
        self._escaping = escaping_values(program)
        self._names: dict[Any, tuple[str, bool]] = {}
        """By functions: what they are called, and whether they may give their first argument again."""

    def replaced(self, given: Any) -> Any:
        return self._replaced.get(given, given) if isinstance(given, Value) else given

    def rewritten(self, call: Call) -> Call | None:
        """The call with simpler arguments; None where its results are known already."""
        if self._replaced and not self._replaced.keys().isdisjoint(call.reads):
            call = replace(call, arguments=self._in(call.arguments), options=self._in(call.options))
        if not call.is_ordered:
            found = self._known(call)
            if found is not None:
                self._replaced.update(zip(call.results, map(self.replaced, found), strict=True))
                return None
            if self._fold(call):
                return None
        for result in call.results:
            self._maker[result] = call
        return call

    def _in(self, given: Any) -> Any:
        kind = type(given)
        if kind is Value:
            return self._replaced.get(given, given)
        if kind is tuple or kind is list:
            return kind([self._in(part) for part in given])
        if kind is dict:
            return {key: self._in(part) for key, part in given.items()}
        return given

    def _known(self, call: Call) -> list[Value] | None:
        """The values that a call would only make again."""
        may_replace = self._escaping.isdisjoint(call.results)
        if may_replace and call.is_single:
            same = self._same_as(call)
            if same is not None and _is_laid_out_alike(same, call.results[0]):
                return [same]
        try:
            key = (call.function, *[part if type(part) is Value else _key(part) for part in call.arguments])
            if call.options:
                key = (*key, dict, _key(call.options))
            seen = self._seen.get(key)
        except TypeError:
            return None
        if seen is not None and may_replace:
            return seen
        self._seen.setdefault(key, call.results)
        return None

    def _same_as(self, call: Call) -> Value | None:
        """A value that is bit for bit what a call gives."""
        first = call.arguments[0] if call.arguments else None
        if not isinstance(first, Value):
            return None
        name, may_be_same = self._names.get(call.function) or self._name(call.function)
        if not may_be_same:
            return None
        if fact_of(name, "same_values") and not (
            name in ("conj", "conjugated") and np.dtype(first.dtype).kind not in "fiub"
        ):
            return self._uncast(first, call) if name in _CASTS else first
        if name in _ONE and len(call.arguments) == 2 and not call.options:
            return first if _is_number(call.arguments[1], 1) else None
        if name in ("sub", "sub_scalar") and len(call.arguments) == 2:
            plain = all(_is_number(value, 1) for value in call.options.values())  # x - 0 is x, of -0.0 too
            return first if plain and _is_number(call.arguments[1], 0) and not _is_negative(call.arguments[1]) else None
        if name in ("add", "add_scalar") and len(call.arguments) == 2 and np.dtype(first.dtype).kind in "iu":
            plain = all(_is_number(value, 1) for value in call.options.values())  # of floats, -0.0 + 0 is 0
            return first if plain and _is_number(call.arguments[1], 0) else None
        if name == "neg":
            before = self._maker.get(first)
            if before is not None and getattr(before.function, "__name__", "") == "neg":
                found = before.arguments[0]
                return found if isinstance(found, Value) else None
        return None

    def _name(self, function: Any) -> tuple[str, bool]:
        name = getattr(function, "__name__", "")
        may_be_same = name in _ONE or name.startswith(("add", "sub", "neg")) or bool(fact_of(name, "same_values"))
        self._names[function] = name, may_be_same
        return name, may_be_same

    def _uncast(self, value: Value, call: Call) -> Value:
        """What was cast to a wider dtype, where a call casts it back."""
        before = self._maker.get(value)
        if before is not None and getattr(before.function, "__name__", "") in _CASTS:
            source = before.arguments[0]
            if isinstance(source, Value) and _is_wider(np.dtype(value.dtype), np.dtype(source.dtype)):
                return source
        return value

    def _fold(self, call: Call) -> bool:
        """Compute now what depends on constants alone."""
        values = call.reads
        for value in values:
            if type(value) is not Value or value.constant is None:
                return False
        if not self._escaping.isdisjoint(call.results):
            return False
        if not call.is_view and any(math.prod(r.shape) > _LARGEST_CONSTANT for r in call.results):
            return False
        arrays: dict[Any, Any] = {value: value.constant for value in values if type(value) is Value}
        try:
            made = call.function(*fill(call.arguments, arrays), **fill(call.options, arrays))
        except Exception:  # it will be raised where the program runs
            return False
        for result, array in zip(call.results, (made,) if call.is_single else made, strict=True):
            self._replaced[result] = Value(result.shape, result.dtype, result.strides, as_array(array), result.place)
        return True


def escaping_values(program: Program) -> set[Value]:
    """The values whose memory leaves the program: outputs, and what outputs are views of."""
    found = {value for value in program.outputs if isinstance(value, Value)}
    for call in reversed(program.calls):
        if call.is_view and call.results[0] in found and isinstance(call.arguments[0], Value):
            found.add(call.arguments[0])
    return found


def _is_laid_out_alike(first: Value, second: Value) -> bool:
    return (first.shape, first.strides) == (second.shape, second.strides) and first.dtype == second.dtype


def _is_number(given: Any, wanted: int) -> bool:
    return type(given) in (int, float) and given == wanted


def _is_negative(given: Any) -> bool:
    return math.copysign(1, given) < 0


def _is_wider(wide: Any, narrow: Any) -> bool:
    """Whether every value of one dtype is one of the other."""
    return wide != narrow and bool(np.can_cast(narrow, wide, "safe")) and wide.kind in "fiu" and narrow.kind in "fiub"


def _key(given: Any) -> Any:
    """Arguments as a key: values by identity, numbers by kind and exact value."""
    kind = type(given)
    if kind is tuple or kind is list:
        return (kind, *[_key(part) for part in given])
    if kind is dict:
        return tuple(sorted((name, _key(part)) for name, part in given.items()))
    if kind is float:
        return (kind, given.hex())
    if kind is Value or kind is Number:
        return id(given)
    hash(given)
    return (kind, given)
