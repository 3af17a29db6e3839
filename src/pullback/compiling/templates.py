"""Templates: the recordings of a function for some shapes, made into programs for other shapes.

# Note [Templates]
A recording holds the numbers of one call: sizes, strides, offsets, counts. Where recordings for several shapes differ in
nothing but numbers, each of these is looked for as a function of the sizes that changed: a product of them times a constant,
which two recordings tell; that plus a constant, which three tell; or what the user's code computed of sizes it asked for
(Note [Followed sizes]). If all are found, a program for other sizes is written down without running the function. It must
be so that what the user's code compared comes out as it did, and that a number which may be several of these is the same by
all. A size of 0 or 1 broadcasts, and a call with one, or with an array inside that has one by then, is recorded on its own.
Sizes must lie between the least and the greatest that were recorded: what this package compares (the end of a slice with a
size, say) came out alike at both, and so it does in between. A call with a size beyond them is recorded, which moves them.
What cannot be found so (a loop as long as a size, constants of another form) has a program for each shape, as without.
Recordings are compared where their arguments are laid out alike: transposed ones would fit nothing that the others fit. The
stride along a dimension of one element is any number, which changes as sizes do (the last words of a text that grows), and
counts among them.
"""

from __future__ import annotations

import copy
import itertools
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from pullback.backend.device_array import DeviceArray
from pullback.compiling.capture import Capture, Input, Output
from pullback.compiling.fingerprint import fingerprint
from pullback.compiling.memory import laid_out
from pullback.compiling.numbers import Sizes, evaluate, is_this_number
from pullback.compiling.program import Number, Program, Value
from pullback.compiling.sizes import Sized, SizedFloat, SizedScalar, sized, without_sizes
from pullback.kernels.strided import Geometry
from pullback.tensor.size import Size
from pullback.tensor.tensor import TensorBase

SAMPLES = 8
"""So many recordings are compared at most."""
PASSED_OVER = 256
"""The sizes of so many calls are remembered that were not worth a recording."""
_MOST_FACTORS = 3
_LARGEST_UNIFORM = 1 << 20

Visit = Callable[[Any, str], Any]
"""Is given each number of a recording, in order, and what it is, and gives another for it. What it is: "size", "constant",
"scalar" (of NumPy's kinds), "seen" (by the user's code), or "" for what else there is."""


class NoTemplate(Exception):
    """Why recordings are not a template, or a template does not fit a call."""


class _Copier:
    """Copies a recording, with other numbers."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self._values: dict[Any, Any] = {}

    def capture(self, made: Capture) -> Capture:
        new = Capture()
        program = made.program
        new.program = Program([self._given(value) for value in program.inputs])
        for call in program.calls:
            arguments, options = self._given(call.arguments), self._given(call.options)
            results = [self._value(value) for value in call.results]
            new.program.calls.append(replace(call, arguments=arguments, options=options, results=results))
        new.program.outputs = [None if value is None else self._given(value) for value in program.outputs]
        new.program.writes = [(place, self._value(value)) for place, value in program.writes]
        new.outputs = [self._output(output) for output in made.outputs]
        new.inputs = _copied_inputs(made.inputs, [self._value(given.value) for given in made.inputs])
        for name in ("structure", "grads", "versions", "shown", "differentiable", "reads_grads", "conditions", "is_freed",
                     "surroundings", "free", "cut_off", "identities"):  # fmt: skip
            setattr(new, name, getattr(made, name))
        new.gradient_values = [self._value(value) for value in made.gradient_values]
        new.scalars = [(self._given(number), expression) for number, expression in made.scalars]
        if made.sizes is not None:
            new.sizes = Sizes()
            new.sizes.conditions, new.sizes.computed = made.sizes.conditions, made.sizes.computed
            new.sizes.seen = [self._visit(number, "seen") for number in made.sizes.seen]
        return new

    def _output(self, output: Output) -> Output:
        new = output.copied()
        if output.window is not None:
            new.window = (*without_sizes(self._given(output.window[:3])), output.window[3])
            new.path = []  # its nodes hold sizes of the recorded call
        if isinstance(output.value, (int, float, Size)):
            new.value = without_sizes(self._given(output.value))
        return new

    def _given(self, given: Any) -> Any:
        kind = type(given)
        if kind is Value:
            return self._value(given)
        if kind is Number:
            return self._values.setdefault(given, Number(given.kind))
        if kind is int or kind is float:
            return self._visit(given, "")
        if kind is tuple or kind is list:
            return kind([self._given(part) for part in given])
        if kind is dict:
            return {key: self._given(part) for key, part in given.items()}
        if kind is slice:
            return slice(*[self._given(part) for part in (given.start, given.stop, given.step)])
        if kind is Size:
            return Size(tuple([self._given(part) for part in given]))
        if isinstance(given, np.generic) and given.dtype.kind in "fiu":
            number = self._visit(given.item(), "scalar")
            scalar = given.dtype.type(number)
            return SizedScalar(scalar, number) if isinstance(number, (Sized, SizedFloat)) else scalar
        if kind is Geometry:
            shape, strides, offset = self._given((given.shape, given.strides, given.offset))
            return Geometry(shape, strides, offset, given.dtype)
        return given

    def _value(self, value: Any) -> Any:
        known = self._values.get(value)
        if known is None:
            shape = tuple([self._visit(size, "size") for size in value.shape])
            strides = tuple([self._visit(stride, "") for stride in value.strides])
            constant = None if value.constant is None else self._constant(value.constant, shape, strides)
            known = self._values[value] = Value(shape, value.dtype, strides, constant, value.place)
        return known

    def _constant(self, array: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        if not _is_uniform(array):
            return array
        number = self._visit(array.flat[0].item(), "constant") if array.size else 0
        return laid_out(number, without_sizes(shape), without_sizes(strides), array.dtype)


def _is_uniform(array: Any) -> bool:
    """Whether an array is one number, over and over; the host does not look at the values of a device's."""
    if isinstance(array, DeviceArray) or array.dtype.kind not in "fiub" or array.size > _LARGEST_UNIFORM:
        return False
    return array.size <= 1 or bool((array == array.flat[0]).all())


def _copied_inputs(inputs: Sequence[Input], values: Sequence[Any]) -> list[Input]:
    new = [given.copied(value) for given, value in zip(inputs, values, strict=True)]
    places = {id(given): number for number, given in enumerate(inputs)}
    for given in new:
        if given.grad_of is not None:
            given.grad_of = new[places[id(given.grad_of)]]
    return new


def _without_tensors(made: Capture) -> Capture:
    """A recording that holds no arrays of the call, beside the same program. (What makes programs faster makes new ones.)"""
    new = copy.copy(made)
    new.inputs = _copied_inputs(made.inputs, [given.value for given in made.inputs])
    new.program = copy.copy(made.program)
    new.result = new.recorder = new.state = None
    new.new_tensors = None
    return new


class Sample:
    """A recording for one shape, its numbers, and the sizes of the arguments."""

    def __init__(self, made: Capture, leaves: Sequence[Any]) -> None:
        self.made = _without_tensors(made)
        self.sizes = sizes_of(leaves)
        self.values = {place: repr(leaves[place]) for place in made.free}

    @cached_property
    def numbers(self) -> list[tuple[Any, str]]:
        """All numbers in it, in order. They are looked for when there is another recording to compare with."""
        found: list[tuple[Any, str]] = []

        def collect(number: Any, kind: str) -> Any:
            found.append((number, kind))
            return number

        _Copier(collect).capture(self.made)
        return found

    @cached_property
    def skeleton(self) -> Any:
        """What it is apart from them."""
        return fingerprint(_Copier(lambda number, kind: 0).capture(self.made))

    def is_like(self, other: Sample) -> bool:
        """Whether two recordings differ in nothing but numbers."""
        if self.skeleton != other.skeleton or len(self.numbers) != len(other.numbers):
            return False
        mine, others = self.made.program.calls, other.made.program.calls
        return all(is_same_function(a.function, b.function) for a, b in zip(mine, others, strict=True))


def sizes_of(leaves: Sequence[Any]) -> dict[tuple[int, int], int]:
    """The sizes of tensors among the arguments, by leaf and dimension; strides along one element by those below 0."""
    found: dict[tuple[int, int], int] = {}
    for place, leaf in enumerate(leaves):
        if isinstance(leaf, TensorBase):
            array = leaf._array
            for dim, size in enumerate(array.shape):
                found[place, dim] = size
                if size == 1:
                    found[place, dim - array.ndim] = array.strides[dim]
    return found


def layout_of(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> tuple[Any, ...]:
    """How an array lies in memory: its dimensions from the widest stride to the narrowest, and whether it has gaps.

    Those of one element lie anywhere.
    """
    order = sorted([dim for dim, size in enumerate(shape) if size != 1], key=lambda dim: -abs(strides[dim]))
    step, is_dense = itemsize, True
    for dim in reversed(order):
        is_dense = is_dense and strides[dim] == step
        step *= shape[dim]
    return (*order, is_dense)


def is_same_function(one: Any, other: Any) -> bool:
    """Whether two functions do the same: they are one, or of one text with the same values around."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, MethodType):
        return one.__func__ is other.__func__ and is_same_function(one.__self__, other.__self__)
    if isinstance(one, FunctionType):
        cells = (
            zip(one.__closure__ or (), other.__closure__ or (), strict=True) if one.__code__ is other.__code__ else None
        )
        return cells is not None and all(is_same_function(a.cell_contents, b.cell_contents) for a, b in cells)
    same = getattr(one, "is_same_update", None)
    if same is not None:
        return bool(same(other))
    return isinstance(one, (int, float, str, tuple, bool)) and bool(one == other)


class _Form:
    """What a number may be: a coefficient times sizes (or divided by them), plus an offset."""

    def __init__(self, coefficient: Any, factors: tuple[int, ...], offset: int = 0, *, divides: bool = False) -> None:
        self.coefficient, self.factors, self.offset, self.divides = coefficient, factors, offset, divides
        self.origin = ("form", coefficient, factors, offset, divides)

    def value(self, symbols: Sequence[int]) -> Any:
        product = math.prod([symbols[place] for place in self.factors])
        return self.coefficient / product if self.divides else self.coefficient * product + self.offset


class _Computed:
    """A number that the user's code computed of sizes."""

    def __init__(self, expression: Any, number: int) -> None:
        self.expression = expression
        self.origin = ("computed", number)


class Template:
    """Recordings that differ in numbers alone, and what these numbers are. See Note [Templates]."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self.base = samples[-1].made
        vectors: dict[tuple[int, ...], tuple[int, int]] = {}
        for key in samples[0].sizes:
            vector = tuple([sample.sizes[key] for sample in samples])
            if len(set(vector)) > 1:
                vectors.setdefault(vector, key)
        if not vectors or any(min(vector) < 2 for vector in vectors):
            raise NoTemplate("no sizes that change, or one that broadcasts")
        self._symbols = list(vectors.values())
        self._vectors = list(vectors)
        self._bounds = [(min(vector), max(vector)) for vector in self._vectors]
        self._limits = list(zip(self._symbols, self._bounds, strict=True))
        self._count = len(samples)
        same = [place for place in self.base.free if len({sample.values.get(place) for sample in samples}) == 1]
        self._same = [(place, samples[0].values[place]) for place in same]
        pairs = itertools.permutations(range(len(self._vectors)), 2)
        self._orders = [(i, j) for i, j in pairs if all(map(operator.le, self._vectors[i], self._vectors[j]))]
        self._samples = samples
        self._known: dict[Any, list[Any]] = {}
        self._fits = [
            self._fit([sample.numbers[n][0] for sample in samples], kind)
            for n, (_, kind) in enumerate(samples[-1].numbers)
        ]  # fmt: skip
        self._known.clear()
        self._samples = ()

    # What numbers are.

    def _fit(self, values: list[Any], kind: str) -> list[Any]:
        """What a number may be, the number itself where it is one and the same; NoTemplate if it is nothing known."""
        key = (kind == "seen", tuple(map(repr, values)))
        if key not in self._known:
            self._known[key] = self._forms(values, kind)
        return self._known[key]

    def _forms(self, values: list[Any], kind: str) -> list[Any]:
        if len(set(map(repr, values))) == 1:
            return [values[0]]
        is_whole = all(type(value) is int for value in values)
        found = list(self._whole_forms(values) if is_whole else self._real_forms(values, kind))
        if kind != "seen":
            found += self._computed_forms(values, kind)
        if not found:
            raise NoTemplate(f"numbers {values} that are nothing known of the sizes {self._vectors}")
        return found

    def _products(self) -> list[tuple[tuple[int, ...], list[int]]]:
        """Products of sizes: which, and what they are in each recording."""
        made = []
        for count in range(1, _MOST_FACTORS + 1):
            for factors in itertools.combinations_with_replacement(range(len(self._vectors)), count):
                made.append(
                    (factors, [math.prod(row) for row in zip(*[self._vectors[f] for f in factors], strict=True)])
                )
        return made

    def _whole_forms(self, values: list[int]) -> list[Any]:
        found = []
        for factors, products in self._products():
            coefficient, rest = divmod(values[0], products[0])
            if not rest and all(coefficient * p == v for p, v in zip(products, values, strict=True)):
                found.append(_Form(coefficient, factors))
        if found or len({tuple(row) for row in zip(*self._vectors, strict=True)}) < 3:
            return found
        for factors, products in self._products():
            if len(factors) > 1 or products[0] == products[1]:
                continue
            slope, rest = divmod(values[1] - values[0], products[1] - products[0])
            offset = values[0] - slope * products[0]
            if not rest and slope and all(slope * p + offset == v for p, v in zip(products, values, strict=True)):
                found.append(_Form(slope, factors, offset))
        return found

    def _real_forms(self, values: list[Any], kind: str) -> list[Any]:
        if all(float(value).is_integer() for value in values):
            return self._whole_forms([int(value) for value in values])
        found: list[Any] = []
        for factors, products in self._products():
            for divides in (False, True):
                exact = values[0] * products[0] if divides else values[0] / products[0]
                whole = float(round(exact))
                form = _Form(whole if math.isclose(exact, whole, rel_tol=1e-5) else exact, factors, divides=divides)
                made = [form.value(row) for row in zip(*self._vectors, strict=True)]
                if all(_is_equal(a, b, kind) for a, b in zip(made, values, strict=True)):
                    found.append(form)
        return found

    def _computed_forms(self, values: list[Any], kind: str) -> list[Any]:
        tables = [sample.made.sizes.computed if sample.made.sizes is not None else [] for sample in self._samples]
        found = []
        for number, row in enumerate(zip(*tables, strict=False)):
            if all(_is_equal(value, wanted, kind) for (value, _), wanted in zip(row, values, strict=True)):
                found.append(_Computed(row[-1][1], number))
        return found

    # Programs for other sizes.

    def instance(self, leaves: Sequence[Any]) -> Capture:
        """The recording that a call would give; NoTemplate if it may be another."""
        sizes = sizes_of(leaves)
        symbols = [sizes[key] for key in self._symbols]
        if not all(low <= size <= high for size, (low, high) in zip(symbols, self._bounds, strict=True)):
            raise NoTemplate("a size beyond those that were recorded")
        if not all(symbols[i] <= symbols[j] for i, j in self._orders):
            raise NoTemplate("a size greater than another, unlike in all recordings")
        if not all(is_this_number(leaves[place], value) for place, value in self._same):
            raise NoTemplate("a number that had one value in all recordings has another")
        seen = self._seen(symbols)
        learned = self.base.sizes
        if learned is not None and not all(condition.holds(seen) for condition in learned.conditions):
            raise NoTemplate("the function's code compares sizes, and this call comes out differently")
        fits = iter(self._fits)
        made = _Copier(lambda number, kind: self._number(number, next(fits), kind, symbols, seen)).capture(self.base)
        for given in made.inputs:
            if given.place is not None:
                array = leaves[given.place]._array
                if array.shape != given.value.shape or array.strides != given.value.strides:
                    raise NoTemplate("an argument of another layout")
        return made

    def is_just_beyond(self, leaves: Sequence[Any]) -> bool:
        """Whether sizes are but little beyond those of many recordings: one that grows from call to call is not recorded
        each time."""
        sizes = sizes_of(leaves)
        near = [low * 4 <= 5 * sizes[key] and 4 * sizes[key] <= 5 * high for key, (low, high) in self._limits]
        return self._count >= SAMPLES and all(near)

    def _seen(self, symbols: Sequence[int]) -> list[int]:
        """The sizes that the user's code would learn."""
        count = 0 if self.base.sizes is None else len(self.base.sizes.seen)
        return [self._number(0, forms, "seen", symbols, ()) for forms in self._fits[len(self._fits) - count :]]

    def _number(self, number: Any, forms: list[Any], kind: str, symbols: Sequence[int], seen: Sequence[int]) -> Any:
        first = forms[0]
        if type(first) is not _Form and type(first) is not _Computed:
            return first
        values = [f.value(symbols) if type(f) is _Form else evaluate(f.expression, seen) for f in forms]
        if any(not _is_equal(value, values[0], kind) for value in values):
            raise NoTemplate("sizes that were alike in all recordings, and are not in this call")
        if kind == "size" and values[0] < 2:
            raise NoTemplate("an array inside has a size of 0 or 1, which broadcasts")
        made = float(values[0]) if type(number) is float else values[0]
        return made if kind in ("seen", "constant") else sized(made, *first.origin)


def _is_equal(one: Any, other: Any, kind: str) -> bool:
    """Whether numbers are equal; as constants, which may have been rounded to float32, where they round alike."""
    if kind in ("constant", "scalar") and isinstance(one, float) and isinstance(other, float):
        return bool(one == other or np.float32(one) == np.float32(other))
    return bool(one == other)


class Templates:
    """The templates of a function, by what tells kinds of calls apart beside sizes."""

    def __init__(self) -> None:
        self._samples: dict[Any, list[list[Sample]]] = {}
        self._found: dict[Any, list[Template]] = {}
        self._passed_over: dict[Any, None] = {}
        """The sizes of calls that were not worth a recording."""
        self.problems: list[str] = []
        """Why there was none, the last few times."""

    def add(self, key: Any, made: Capture, leaves: Sequence[Any]) -> bool:
        """See a recording; whether a template for calls like it came about."""
        reason = _why_not(made)
        if reason:
            self.tell(reason)
            return False
        groups = self._samples.setdefault(key, [])
        sizes = sizes_of(leaves)
        if not sizes:
            return False
        if len(groups) == 1 and any(sample.sizes == sizes for sample in groups[0]):
            return False
        sample = Sample(made, leaves)
        group = next((group for group in groups if group[-1].is_like(sample)), None)
        if group is None:
            groups.insert(0, [sample])
            del groups[SAMPLES:]
            if len(groups) > 1:
                self.tell("the function computes something else for other sizes")
            return False
        if any(other.sizes == sample.sizes for other in group):
            return False
        group.append(sample)
        _drop_inner(group)
        try:
            made_of_group = Template(group)
        except NoTemplate as error:
            self.tell(str(error))
            return False
        self._found[key] = [t for t in self._found.get(key, []) if t.base is not group[-2].made]
        self._found[key] = [made_of_group, *self._found[key]][:SAMPLES]
        return True

    def instance(self, key: Any, leaves: Sequence[Any]) -> Capture | None:
        """What a call would be recorded as, if that is known."""
        for template in self._found.get(key, ()):
            try:
                return template.instance(leaves)
            except NoTemplate as error:
                self.tell(str(error))
        return None

    def is_just_beyond(self, key: Any, leaves: Sequence[Any]) -> bool:
        """Whether a call is not worth a recording, since it is so much like others. Sizes that come back are worth one."""
        if not any(template.is_just_beyond(leaves) for template in self._found.get(key, ())):
            return False
        call = (key, *[size for (_, dim), size in sizes_of(leaves).items() if dim >= 0])
        if call in self._passed_over:
            return False
        self._passed_over[call] = None
        if len(self._passed_over) > PASSED_OVER:
            del self._passed_over[next(iter(self._passed_over))]
        return True

    def tell(self, reason: str) -> None:
        """Note why there is no program."""
        if reason not in self.problems:
            self.problems = [*self.problems[-3:], reason]


def _drop_inner(group: list[Sample]) -> None:
    """Keep few recordings, those of the least and the greatest sizes among them."""
    if len(group) <= SAMPLES:
        return
    needed = {len(group) - 1}
    for key in group[0].sizes:
        sizes = [sample.sizes[key] for sample in group]
        needed |= {sizes.index(min(sizes)), sizes.index(max(sizes))}
    gone = next((place for place in range(len(group)) if place not in needed), None)
    if gone is not None:
        del group[gone]


def _why_not(made: Capture) -> str:
    """Why a recording cannot be a sample; empty if it can."""
    if made.sizes is None:
        return "sizes are not followed"
    if made.sizes.is_read:
        return "the function uses sizes in a way that cannot be followed (len(), float(), a text)"
    touches_grads = bool(made.grads) or made.reads_grads
    for given in made.inputs:
        above = given if given.grad_of is None else given.grad_of
        if above.place is not None and (given.grad_of is not None or (touches_grads and above.grad_form is not None)):
            return "an argument has a .grad"
    return ""
