"""Turns the calls of a program into steps: expressions over elements, reductions, products, and calls that stay calls.

What a kernel means is read from its own text where it is elementwise (elements.py), found by running it on memory that
nobody reads where it is a view, and said in `lowered/` for those that reduce, multiply or put together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from pullback.compiling.elements import Reading, is_printable, read_call
from pullback.compiling.program import Call, Number, Program, Value, fill, values_in
from pullback.compiling.simplification import escaping_values
from pullback.compiling.sizes import SizedScalar, broadcast_shape, sized_among, without_sizes
from pullback.compiling.steps import (
    C_TYPES,
    CONSTANT,
    INPUT,
    MADE,
    Element,
    KernelCall,
    MatrixProduct,
    Place,
    Reduction,
    StepKind,
    Storage,
    is_dense,
    row_major,
)
from pullback.expressions import tree
from pullback.expressions.tree import Expr, Load, Operation, Select
from pullback.facts import fact_of
from pullback.native import extension

_ELEMENT_FAMILIES = frozenset(
    ("arithmetic", "activation", "activation_gradients", "exponential", "trigonometric", "clamping", "selection",
     "linear_interpolation", "special", "special_gamma", "rounding", "signs", "complex_numbers", "masking",
     "comparison", "bitwise", "losses")
)  # fmt: skip
"""Files of kernels/ whose text is followed; a kernel in them that is not elementwise has words no expression has."""
_LARGEST_VIEW = 2**31


class NotLowered(Exception):
    """A call that a lowering does not cover: it stays a call."""


class Symbol:
    """An element, with Python's operators; for texts that say what a kernel computes."""

    def __init__(self, expression: Expr) -> None:
        self.expression = expression

    def _join(self, name: str, first: Any, second: Any, kind: str = tree.REAL) -> Symbol:
        return Symbol(Operation(name, (as_expression(first), as_expression(second)), kind))

    def __add__(self, other: Any) -> Symbol:
        return self._join("+", self, other)

    def __radd__(self, other: Any) -> Symbol:
        return self._join("+", other, self)

    def __sub__(self, other: Any) -> Symbol:
        return self._join("-", self, other)

    def __rsub__(self, other: Any) -> Symbol:
        return self._join("-", other, self)

    def __mul__(self, other: Any) -> Symbol:
        return self._join("*", self, other)

    def __rmul__(self, other: Any) -> Symbol:
        return self._join("*", other, self)

    def __truediv__(self, other: Any) -> Symbol:
        return self._join("/", self, other)

    def __rtruediv__(self, other: Any) -> Symbol:
        return self._join("/", other, self)

    def __neg__(self) -> Symbol:
        return Symbol(Operation("neg", (self.expression,)))

    def compare(self, sign: str, other: Any) -> Symbol:
        return self._join(sign, self, other, tree.MASK)


def as_expression(value: Any) -> Expr:
    """A symbol's expression, or a number as an element."""
    if isinstance(value, Symbol):
        return value.expression
    return Operation("real", (tree.Number(value),))


def apply(name: str, *values: Any) -> Symbol:
    """A function of elements."""
    return Symbol(Operation(name, tuple([as_expression(value) for value in values])))


def choose(mask: Symbol, first: Any, second: Any) -> Symbol:
    """The first where the mask holds, else the second."""
    return Symbol(Select(mask.expression, as_expression(first), as_expression(second)))


class Lowering:
    """The steps of a program so far, and where its values are."""

    def __init__(self, program: Program, *, overwrites: bool = True) -> None:
        self.program = program
        self.written = {value: program.inputs[place] for place, value in program.writes} if overwrites else {}
        """Values that are to end in the memory of inputs, where calls may put them at once."""
        self.steps: list[StepKind] = []
        self.places: dict[Any, Place] = {}
        self.numbers = {value: i for i, value in enumerate(program.inputs) if isinstance(value, Number)}
        self.call: Call | None = None
        self.assembled: dict[Storage, Any] = {}
        """Wholes that were put together, with their parts. See Note [Parts]."""
        self.escaping = escaping_values(program)
        values = [*program.inputs, *[result for call in program.calls for result in call.results]]
        arrays = [value for value in values if isinstance(value, Value)]
        self._sizes = sized_among(value.shape for value in arrays)
        """What NumPy gives as plain numbers, as changing sizes again. See Note [Sizes in text]."""
        self._strides = sized_among(value.strides for value in arrays)
        for index, value in enumerate(program.inputs):
            if isinstance(value, Value):
                dtype = np.dtype(value.dtype)
                self.places[value] = Storage(
                    INPUT, index, shape=tuple(value.shape), strides=tuple(value.strides), dtype=dtype
                ).whole

    def has_changing_sizes(self) -> bool:
        """Whether a template wrote the program down."""
        return bool(self._sizes or self._strides)

    def place(self, value: Any) -> Place:
        """Where a value is; a constant gets a place when it is first read."""
        if value not in self.places:
            if not isinstance(value, Value) or value.constant is None:
                raise NotLowered("a value that nothing made")
            array = np.asarray(value.constant)
            shape = tuple(value.shape) if tuple(value.shape) == array.shape else array.shape
            strides = tuple(value.strides) if tuple(value.strides) == array.strides else array.strides
            self.places[value] = Storage(
                CONSTANT, constant=array, shape=shape, strides=strides, dtype=array.dtype
            ).whole
        return self.places[value]

    def new(self, shape: tuple[int, ...], dtype: Any, strides: tuple[int, ...] | None = None) -> Place:
        """A place in memory of its own, row-major unless strides are given."""
        dtype = np.dtype(dtype)
        strides = row_major(shape, dtype.itemsize) if strides is None else strides
        return Storage(MADE, shape=shape, strides=strides, dtype=dtype).whole

    def new_for(self, value: Value) -> Place:
        """A place for what a call gives, laid out as eager execution did."""
        dtype = np.dtype(value.dtype)
        if not is_dense(value.shape, value.strides, dtype.itemsize):
            raise NotLowered("a layout with gaps")
        return self.new(tuple(value.shape), dtype, tuple(value.strides))

    def map(self, text: Callable[..., Symbol], *operands: Any, out: Place | None = None, dtype: Any = None) -> Place:
        """Write what `text` makes of the elements of places (and of numbers) to a place, a new one unless given."""
        names: dict[str, Place] = {}
        numbers: dict[str, int] = {}
        symbols: list[Any] = []
        for position, operand in enumerate(operands):
            if isinstance(operand, Place):
                names[f"a{position}"] = operand
                symbols.append(Symbol(Load(f"a{position}", tree.MASK if operand.dtype.char == "?" else tree.REAL)))
            elif isinstance(operand, Number):
                numbers[f"n{position}"] = self.place_of_number(operand)
                symbols.append(Symbol(Operation("real", (Load(f"n{position}", tree.NUMBER),))))
            else:
                symbols.append(operand)
        reals = [place.dtype for place in names.values() if place.dtype.char != "?"]
        if out is None:
            shape = broadcast_shape(*[place.shape for place in names.values()])
            out = self.new(shape, dtype or reals[0])
        made = text(*symbols)
        dtype = reals[0] if reals else out.dtype
        return self.add_element(out, Reading(tree.Program((), made.expression)), names, numbers, dtype)

    def add_element(
        self, out: Place, reading: Reading, operands: dict[str, Place], numbers: dict[str, int], dtype: Any
    ) -> Place:
        """Add the step that computes a reading, in the arithmetic of `dtype`."""
        if not out.size:
            raise NotLowered("no elements")
        for place in (out, *operands.values()):
            _check_printable(place)
        real = C_TYPES[dtype.char]
        if not is_printable(reading, real):
            raise NotLowered("a function that C lacks for this dtype")
        seen = {name: place.broadcast(out.shape) for name, place in operands.items()}
        self.steps.append(Element(out, reading, seen, numbers, real, self.call))
        return out

    def reduce(self, how: str, operand: Place, axes: tuple[int, ...], *, keepdim: bool = True) -> Place:
        """The sum, maximum or minimum of a place over axes, of floating point numbers."""
        if operand.dtype.char not in "fd" or not operand.size:
            raise NotLowered("no floating point numbers")
        _check_printable(operand)
        axes = tuple(sorted({axis % len(operand.shape) for axis in axes})) if operand.shape else ()
        axes = tuple([axis for axis in axes if operand.shape[axis] != 1])
        shape = tuple([1 if axis in axes else size for axis, size in enumerate(operand.shape)])
        if not axes:
            return operand
        out = self.new(shape, operand.dtype)
        self.steps.append(Reduction(out, how, operand, axes, self.call))
        return out if keepdim else drop_axes(out, axes)

    def multiply(self, a: Place, b: Place, out: Place) -> Place:
        """Write the products of batches of matrices to a row-major place."""
        item = a.dtype.itemsize
        if a.dtype != b.dtype or a.dtype != out.dtype or a.dtype.char not in "fd" or extension is None:
            raise NotLowered("no product of BLAS")
        if out.strides[1:] != row_major(out.shape[1:], item) or not a.size or not b.size:
            raise NotLowered("a layout of the product")
        a, b = _as_matrix(a), _as_matrix(b)
        for place in (a, b):
            _check_printable(place)
        rows, depth, columns = a.shape[1], a.shape[2], b.shape[2]
        if depth == 1:
            return self.map(lambda x, y: x * y, a, b, out=out)
        steps = [stride // item for stride in (*a.strides[1:], *b.strides[1:])]
        if not extension.can_multiply(int(item == 8), rows, columns, depth, *steps):
            raise NotLowered("a layout of matrices")
        self.steps.append(MatrixProduct(out, a, b, self.call))
        return out

    def window(self, place: Place, function: Callable[[Any], Any], shape: Any = None) -> Place:
        """The place that a view of a place is, of a shape if that is known: the function is run on memory nobody reads."""
        item = place.dtype.itemsize
        if any(stride % item for stride in place.strides):
            raise NotLowered("elements that are not aligned")
        reach = sum((size - 1) * stride // item for size, stride in zip(place.shape, place.strides, strict=True))
        if not place.size or reach >= _LARGEST_VIEW or min(place.strides, default=0) < 0:
            raise NotLowered("a view without elements, or of too many")
        memory = np.empty(reach + 1, np.int8)
        seen = np.lib.stride_tricks.as_strided(memory, place.shape, [stride // item for stride in place.strides])
        made = function(seen)
        if type(made) is not np.ndarray or made.dtype != np.int8:
            raise NotLowered("no view in this dtype")
        first = made.__array_interface__["data"][0] - memory.__array_interface__["data"][0]
        if not (0 <= first <= reach) or not made.size or not np.may_share_memory(made, memory):
            raise NotLowered("a copy")
        strides = tuple([self._strides.get(stride * item, stride * item) for stride in made.strides])
        if shape is None or tuple(shape) != made.shape:
            shape = [self._sizes.get(size, size) for size in made.shape]
        return place.windowed(tuple(shape), strides, first * item)

    def place_of_number(self, number: Number) -> int:
        """Where a number that changes stands among the inputs. Loops take it as a double, which a whole one may not be."""
        if number.kind is int:
            raise NotLowered("a whole number that changes")
        return self.numbers[number]

    def constant_number(self, value: Any) -> Any:
        """A Python number of the call: one that changes from call to call cannot be looked at."""
        if isinstance(value, Number):
            raise NotLowered("a number that changes")
        return value


def drop_axes(place: Place, axes: tuple[int, ...]) -> Place:
    """A place without some dimensions of size 1."""
    kept = [axis for axis in range(len(place.shape)) if axis not in axes]
    return place.windowed(tuple([place.shape[a] for a in kept]), tuple([place.strides[a] for a in kept]))


def _check_printable(place: Place) -> None:
    if place.dtype.char not in C_TYPES or not place.dtype.isnative:
        raise NotLowered("a dtype that loops do not know")
    if any(stride % place.dtype.itemsize for stride in place.strides) or place.offset % place.dtype.itemsize:
        raise NotLowered("elements that are not aligned")


def _as_matrix(place: Place) -> Place:
    """Useful strides for dimensions of size one."""
    _, rows, columns = place.shape
    item = place.dtype.itemsize
    by_batch, by_row, by_column = place.strides
    if columns == 1:
        by_column = rows * item if by_row == item else item
    if rows == 1:
        by_row = columns * item if by_column == item else item
    return place.windowed(place.shape, (by_batch, by_row, by_column))


def lower(program: Program) -> Lowering:
    """The steps of a program."""
    made = _lowered(Lowering(program))
    return made if not _reads_overwritten(made) else _lowered(Lowering(program, overwrites=False))


def _reads_overwritten(made: Lowering) -> bool:
    """Whether something asks for what an input held, after a call that wrote over it."""
    gone: set[Storage] = set()
    for step in made.steps:
        if gone and any(place.storage in gone for place in step.reads):
            return True
        if isinstance(step, KernelCall):
            gone.update(place.storage.before for place in step.outs if place.storage.before is not None)
    ends = [*made.program.outputs, *[value for _, value in made.program.writes]]
    return bool(gone) and any(made.place(value).storage in gone for value in ends if isinstance(value, Value))


def _lowered(made: Lowering) -> Lowering:
    from pullback.compiling.lowered import LOWERINGS

    known: dict[Any, Any] = {}
    for call in made.program.calls:
        before = len(made.steps)
        made.call = call
        try:
            form = None if made.has_changing_sizes() else _form_of(made, call)
            if form in known and not _reads_assembled(made, call):
                _lower_alike(made, call, known[form])
                continue
            _lower_call(made, call, LOWERINGS)
            if form is not None and _is_one_element(made, call, before):
                known[form] = made.steps[-1]
        except NotLowered:
            del made.steps[before:]
            _keep_call(made, call)
    return made


def _reads_assembled(made: Lowering, call: Call) -> bool:
    """Whether a call is given a whole whose parts are known."""
    return bool(made.assembled) and any(
        made.place(value).storage in made.assembled for value in call.reads if type(value) is Value
    )


def _form_of(made: Lowering, call: Call) -> Any:
    """What a call has in common with those that become the same step elsewhere; None where it has no such form.

    Of ten thousand calls in a row, most are like some others: only the first of them is looked at.
    """
    if call.is_ordered or call.is_view or not call.is_single or call.options:
        return None
    parts: list[Any] = [call.function]
    for part in call.arguments:
        kind = type(part)
        if kind is Value:
            place = made.place(part)
            parts.append((place.shape, place.strides, place.offset % place.dtype.itemsize, place.dtype))
        elif kind is float or kind is int or kind is bool or kind is str or part is None:
            parts.append((kind, repr(part)))
        else:
            return None
    result = call.results[0]
    parts.append((result.shape, result.strides, result.dtype))
    return tuple(parts)


def _operands(made: Lowering, call: Call, shape: tuple[int, ...]) -> list[Place]:
    """The arrays among the arguments, in order, as a step of a shape reads them."""
    return [made.place(part).broadcast(shape) for part in call.arguments if type(part) is Value]


def _is_one_element(made: Lowering, call: Call, before: int) -> bool:
    """Whether a call became one step, which reads its arguments in order."""
    step = made.steps[-1] if len(made.steps) == before + 1 else None
    if not isinstance(step, Element) or made.places[call.results[0]] is not step.out:
        return False
    return step.reads == _operands(made, call, step.out.shape)


def _lower_alike(made: Lowering, call: Call, step: Element) -> None:
    """Add the step of a call whose like became `step`."""
    like = step.out
    out = made.places[call.results[0]] = made.new(like.shape, like.dtype, like.strides)
    operands = dict(zip(step.operands, _operands(made, call, out.shape), strict=True))
    made.steps.append(Element(out, step.reading, operands, {}, step.real, call))


def _lower_call(made: Lowering, call: Call, lowerings: dict[str, Callable[..., Any]]) -> None:
    if call.is_ordered:
        raise NotLowered("an effect")
    from pullback.compiling.lowered import BY_FUNCTION, lower_ufunc

    module, name = kernel_of(call)
    known = BY_FUNCTION.get(call.function)
    if known is not None:
        _lower_by_hand(made, call, known)
        return
    if isinstance(call.function, np.ufunc) and call.kernel.startswith("numpy."):
        if call.options or not call.is_single:
            raise NotLowered("options of NumPy")
        result = call.results[0]
        place = lower_ufunc(made, name, _with_places(made, call.arguments), result)
        if place.shape != tuple(result.shape):
            raise NotLowered("a result of another shape")
        made.places[result] = place
        return
    text = lowerings.get(name) if module.startswith(("pullback.kernels.", "pullback.compiling.")) else None
    if call.is_view and call.is_single and isinstance(call.arguments[0], Value):
        if name == "as_strided":  # counts from the beginning of a storage that is not known here
            raise NotLowered("a geometry of the storage")
        try:
            _lower_view(made, call)
            return
        except NotLowered:  # a kernel that asks for a dtype, a sum over nothing for example
            if text is None:
                raise
    if text is not None and _lower_by_hand(made, call, text):
        return
    if not is_elementwise(call):
        raise NotLowered("no elementwise kernel")
    _lower_element(made, call, module, name)


def is_elementwise(call: Call) -> bool:
    """Whether a call is of a kernel that loops compute element by element, as far as its name tells."""
    module, name = kernel_of(call)
    if not call.is_single or fact_of(name, "loops") is False:
        return False
    if module.startswith("pullback.generated."):
        return True
    return module.startswith("pullback.kernels.") and module.rpartition(".")[2] in _ELEMENT_FAMILIES


def kernel_of(call: Call) -> tuple[str, str]:
    """The module and the name of a call's kernel."""
    return getattr(call.function, "__module__", None) or "", getattr(call.function, "__name__", "")


def _lower_view(made: Lowering, call: Call) -> None:
    if any(isinstance(value, (Value, Number)) for value in values_in((call.arguments[1:], call.options))):
        raise NotLowered("a view by values")
    result = call.results[0]
    place = made.place(call.arguments[0])
    if result.dtype != place.dtype:
        raise NotLowered("memory read as another dtype")
    arguments, options = without_sizes((call.arguments[1:], call.options))
    seen = made.window(place, lambda array: call.function(array, *arguments, **options), result.shape)
    if seen.shape != tuple(result.shape):
        raise NotLowered("a view of another shape")
    made.places[result] = seen


def _lower_by_hand(made: Lowering, call: Call, text: Callable[..., Any]) -> bool:
    """Lower a call as a text says; False where the text leaves it to that of the kernel."""
    given = _with_places(made, call.arguments)
    options = {name: _with_places(made, part) for name, part in call.options.items()}
    try:
        results = text(made, *given, **options)
    except (TypeError, IndexError, KeyError) as error:  # arguments that the text does not provide for
        raise NotLowered("other arguments") from error
    if results is None:
        return False
    places = [place for place in (results if isinstance(results, tuple) else (results,)) if place is not None]
    if len(places) != len(call.results):
        raise NotLowered("results that are not there")
    for value, place in zip(call.results, places, strict=True):
        if place.shape != tuple(value.shape) or place.dtype != value.dtype:
            raise NotLowered("a result of another shape")
        made.places[value] = place
    return True


def _with_places(made: Lowering, given: Any) -> Any:
    if isinstance(given, Value):
        return made.place(given)
    if type(given) in (tuple, list):
        return type(given)([_with_places(made, part) for part in given])
    return given


def _lower_element(made: Lowering, call: Call, module: str, name: str) -> None:
    result = call.results[0]
    operands: dict[str, Place] = {}
    numbers: dict[str, int] = {}

    def symbol(given: Any) -> Any:
        if isinstance(given, Value):
            local = f"a{len(operands)}"
            operands[local] = place = made.place(given)
            return Load(local, tree.MASK if place.dtype.char == "?" else tree.REAL)
        if isinstance(given, Number):
            local = f"n{len(numbers)}"
            numbers[local] = made.place_of_number(given)
            return Load(local, tree.NUMBER)
        if isinstance(given, np.generic):
            return given.item()
        if isinstance(given, SizedScalar):
            return given.number
        return given

    arguments = tuple([symbol(part) for part in call.arguments])
    options = {key: symbol(part) for key, part in call.options.items() if key != "owned"}
    reading = read_call(module, name, arguments, options)
    dtypes = {place.dtype for place in operands.values() if place.dtype.char != "?"}
    if reading is None or len(dtypes) > 1:
        raise NotLowered("not elementwise, or of several dtypes")
    wanted = np.dtype(result.dtype)
    if reading.is_mask != (wanted.char == "?") or (dtypes and wanted.char != "?" and dtypes != {wanted}):
        raise NotLowered("a result of another dtype")
    if not operands or (not dtypes and not reading.is_mask and wanted.char not in "fd"):
        raise NotLowered("no array")
    if broadcast_shape(*[place.shape for place in operands.values()]) != tuple(result.shape):
        raise NotLowered("not elementwise")
    dtype = next(iter(dtypes), wanted)
    if dtype.kind in "iu" and not fact_of(name, "loops_on_integers"):
        raise NotLowered("integers")
    made.places[result] = _uniform(made, call, reading, operands, numbers) or made.add_element(
        made.new_for(result), reading, operands, numbers, dtype
    )


def _uniform(
    made: Lowering, call: Call, reading: Reading, operands: dict[str, Place], numbers: dict[str, int]
) -> Place | None:
    """One element in the place of all, if they are equal whatever the inputs are: x ** 0, or a constant of one value."""
    result = call.results[0]
    if result in made.escaping or made.has_changing_sizes():
        return None
    for name in tree.loads(*reading.program.expressions()):
        if name in numbers or (name in operands and not _is_uniform(operands[name])):
            return None
    element = (1,) * len(result.shape)
    given = {
        value: np.full(element, place.storage.constant.flat[0] if _is_uniform(place) else 0, place.dtype)
        for value, place in ((value, made.place(value)) for value in call.reads if type(value) is Value)
    }
    made_of_it = np.asarray(call.function(*fill(call.arguments, given), **fill(call.options, given)))
    if made_of_it.size != 1 or made_of_it.dtype != result.dtype:
        return None
    constant = np.broadcast_to(made_of_it.reshape(element), result.shape)
    return Storage(
        CONSTANT, constant=constant, shape=constant.shape, strides=constant.strides, dtype=constant.dtype
    ).whole


def _is_uniform(place: Place) -> bool:
    """Whether a place is a constant with one value."""
    return place.storage.origin == CONSTANT and not any(
        stride and size != 1 for size, stride in zip(place.storage.shape, place.storage.strides, strict=True)
    )


def _keep_call(made: Lowering, call: Call) -> None:
    """Leave a call to its kernel; what shares memory with an argument is a place of its own all the same."""
    places = {value: made.place(value) for value in call.reads if type(value) is Value}
    outs = _overwritten(made, call) or [_place_of_its_own(value) for value in call.results]
    made.places.update(zip(call.results, outs, strict=True))
    made.steps.append(KernelCall(call, places, outs, call, list(places.values())))


def _place_of_its_own(value: Value) -> Place:
    return Storage(MADE, shape=tuple(value.shape), strides=tuple(value.strides), dtype=np.dtype(value.dtype)).whole


def _overwritten(made: Lowering, call: Call) -> list[Place] | None:
    """The places of a call's arguments, if it can write its results over them and they are inputs that are to hold these."""
    if call.in_place is None:
        return None
    given = [value for row in call.arguments[0] for position, value in enumerate(row) if position != 1]
    if len(given) != len(call.results) or len(set(given)) != len(given):
        return None
    if any(made.written.get(result) is not value for value, result in zip(given, call.results, strict=True)):
        return None
    storages = [made.places[value].storage for value in given]
    return [replace(storage, before=storage, pieces=[]).whole for storage in storages]
