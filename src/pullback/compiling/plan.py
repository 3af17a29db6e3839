"""Plans a program: groups in order, memory by how long it is needed, and what runs it.

Groups that lie between two kernel calls become one program of native/programs.c, with one arena for all that lives
inside of it. A program without kernel calls is one such object, and a call of it is one call of C.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pullback.backend.array_module import as_array, is_array
from pullback.compiling.collecting import not_collecting
from pullback.compiling.fusion import Fusion, Group, live_steps
from pullback.compiling.library import CompilerFailed, library
from pullback.compiling.loop_text import Loop, write_loop
from pullback.compiling.lowering import Lowering, NotLowered, lower
from pullback.compiling.program import Call, Number, Program, Runner, Value, fill
from pullback.compiling.program_tables import Instruction, Tables, arena_of, made_by
from pullback.compiling.program_tables import Segment as Segment
from pullback.compiling.repeated_loops import RepeatedLoops
from pullback.compiling.sizes import MARK, with_parameters, without_sizes
from pullback.compiling.steps import (
    CONSTANT,
    INPUT,
    MADE,
    KernelCall,
    MatrixProduct,
    Place,
    Reduction,
    Storage,
    is_dense,
    row_major,
)
from pullback.native import extension


class NotPlanned(Exception):
    """A program that is run as it was recorded."""


class Plan:
    """Segments and kernel calls in order, and where the outputs are."""

    def __init__(self, program: Program) -> None:
        self.program = program
        lowering = lower(program)
        self.outputs = [self._output(lowering, value) for value in program.outputs]
        self.targets: list[Storage] = []
        if program.writes and any(isinstance(s, KernelCall) and s.call.is_view for s in lowering.steps):
            raise NotPlanned("a view that only its kernel knows, of memory that may be written")
        for index, value in program.writes:
            self._write(lowering, index, value)
        self._arrays = {
            p.storage.index: p.storage.memory for p in lowering.places.values() if p.storage.origin == INPUT
        }  # fmt: skip
        written = set(self.targets)
        shown = {place.storage for place in self.outputs if isinstance(place, Place)}
        steps = live_steps(lowering.steps, shown | written)
        fusion = Fusion(steps)
        self.groups = fusion.ordered()
        pieces = {storage for group in self.groups for storage in group.made if storage.parent is not None}
        self.wanted = shown | written | pieces | _crossing(self.groups)
        self.parts: list[Segment | KernelCall] = []
        write = write_loop if lowering.has_changing_sizes() else RepeatedLoops().loop_of
        for group in self.groups:
            first = group.steps[0]
            if isinstance(first, KernelCall):
                self.parts.append(first)
                continue
            if not self.parts or isinstance(self.parts[-1], KernelCall):
                self.parts.append(Segment())
            segment = self.parts[-1]
            assert isinstance(segment, Segment)
            segment.instructions += _instructions(group, self.wanted, write)
        self._connect(shown)

    def _output(self, lowering: Lowering, value: Any) -> Place | Number | None:
        if value is None or isinstance(value, Number):
            return value
        place = lowering.place(value)
        expected = tuple(value.strides)
        differs = [n for n, (a, b) in enumerate(zip(place.strides, expected, strict=True)) if a != b]
        if place.storage.origin == CONSTANT or all(place.shape[n] == 1 for n in differs):
            return place
        if not place.size:
            return place
        if not is_dense(place.shape, expected, place.dtype.itemsize):
            expected = row_major(place.shape, place.dtype.itemsize)
        lowering.call = None
        try:
            return lowering.map(lambda x: x, place, out=lowering.new(place.shape, place.dtype, expected))
        except NotLowered as error:
            raise NotPlanned("an output that loops cannot copy") from error

    def _write(self, lowering: Lowering, index: int, value: Value) -> None:
        lowering.call = None
        given = lowering.places[self.program.inputs[index]]
        target = replace(given.storage, before=given.storage, pieces=[]).whole
        source = lowering.place(value)
        if not target.size or source.storage.before is given.storage:
            return
        if source == given:
            return
        if source.dtype != target.dtype or source.storage is given.storage:
            raise NotPlanned("a write of another kind")
        self.targets.append(target.storage)
        try:
            lowering.map(lambda x: x, source, out=target)
        except (NotLowered, ValueError) as error:
            raise NotPlanned("a write that loops cannot do") from error

    def _connect(self, shown: set[Storage]) -> None:
        """Which memory goes from part to part."""
        later: set[Storage] = set(shown)
        known: set[Storage] = set()
        made_in: list[set[Storage]] = []  # by part; what an earlier part began is written where it is
        for part in self.parts:
            storages = (
                {place.storage.memory for place in part.outs} if isinstance(part, KernelCall)
                else {storage for i in part.instructions for storage in made_by(i)}
            )  # fmt: skip
            made_in.append(storages - known)
            known |= storages
        for part, made in zip(reversed(self.parts), reversed(made_in), strict=True):
            if isinstance(part, KernelCall):
                later.update(place.storage.memory for place in part.reads)
                continue
            touched = dict.fromkeys(s for i in part.instructions for s in (p.storage.memory for p in i.places))
            part.outputs = [s for s in touched if s.origin == MADE and s in later and s in made]
            part.inputs = [s for s in touched if s.origin == INPUT or (s.origin == MADE and s not in made)]
            later.update(part.inputs)

    @property
    def texts(self) -> list[str]:
        return [i.text for part in self.parts if isinstance(part, Segment) for i in part.instructions if i.text]


def _crossing(groups: Iterable[Group]) -> set[Storage]:
    """The storages that a group makes and another reads, or that several write."""
    maker: dict[Storage, Group] = {}
    crossing: set[Storage] = set()
    for group in groups:
        for storage in group.made:
            if maker.setdefault(storage, group) is not group:
                crossing.add(storage)
    for group in groups:
        crossing.update(s for s in group.reads if s in maker and (maker[s] is not group or s in crossing))
    return crossing


def _instructions(
    group: Group, wanted: set[Storage], write: Callable[[Group, set[Storage]], Loop]
) -> list[Instruction]:
    first = group.steps[0]
    if isinstance(first, MatrixProduct):
        return [_product(group, first)]
    loop = write(group, wanted)
    made = Instruction(group, loop, list(loop.places), loop.numbers, loop.count, loop.smallest, loop.text)
    made.sizes = _sizes(loop.sizes)
    instructions = [made]
    for step, _ in loop.partials:
        parts = Storage(MADE, shape=(loop.count,), strides=(8,), dtype=np.dtype(np.float64)).whole
        made.places.append(parts)
        made.parts.append(parts.storage)
        text, sizes = with_parameters(_combination(step, loop.count), 2)
        joined = Instruction(group, None, [parts, step.out.rooted], [], 1, 0, text, sizes=_sizes(sizes))
        instructions.append(joined)
    return instructions


def _sizes(values: list[float]) -> Storage | None:
    """Memory that holds the parameters of a loop."""
    if not values:
        return None
    array = np.array(values)
    return Storage(CONSTANT, constant=array, shape=array.shape, strides=array.strides, dtype=array.dtype)


def _combination(step: Reduction, count: int) -> str:
    """The loop that puts the parts of a reduction together."""
    start = {"sum": "0", "maximum": "-INFINITY", "minimum": "INFINITY"}[step.how]
    join = "total += part[i]" if step.how == "sum" else f"total = {step.how}_of(total, part[i])"
    return (
        "void NAME(char *const *places, const int32_t *at, const double *numbers, ptrdiff_t begin, ptrdiff_t end)\n{\n"
        f"{MARK}    const double *part = (const double *)places[at[0]];\n    double total = {start};\n"
        f"    for (ptrdiff_t i = 0; i < {count}; i++)\n        {join};\n"
        f"    *({step.out.ctype} *)places[at[1]] = ({step.out.ctype})total;\n}}\n"
    )


def _product(group: Group, step: MatrixProduct) -> Instruction:
    item = step.out.dtype.itemsize
    a, b, out = ([s // item for s in place.strides] for place in (step.a, step.b, step.out))
    batch, rows, depth = step.a.shape
    columns = step.b.shape[2]
    numbers = (int(item == 8), rows, columns, depth, a[1], a[2], b[1], b[2], out[1], batch, a[0], b[0], out[0])
    return Instruction(group, None, [step.a.rooted, step.b.rooted, step.out.rooted], [], product=numbers)


# Runners ------------------------------------------------------------------------------------------------------------


class PlannedRunner:
    """Runs a plan of several parts: memory goes from one to the next, and is let go when nobody needs it."""

    def __init__(self, plan: Plan, addresses: dict[str, int]) -> None:
        self._plan = plan
        self._slots: dict[Storage, int] = {}
        program = plan.program
        for index, storage in plan._arrays.items():
            self._slots[storage] = index
        self._size = len(program.inputs)
        self._count = len(program.inputs)
        self._steps: list[Callable[[list[Any]], None]] = []
        self._natives: dict[int, tuple[Any, list[int]]] = {}
        """By turn: the objects that run segments, and where what they are given is held."""
        numbers = [i for i, value in enumerate(program.inputs) if isinstance(value, Number)]
        dies = self._last_uses()
        for turn, part in enumerate(plan.parts):
            gone = [self._slot(s) for s in dies.get(turn, ()) if s.origin == MADE]
            if isinstance(part, KernelCall):
                self._steps.append(self._call(part, gone))
            else:
                self._steps.append(self._segment(part, addresses, numbers, gone))
        self._outputs = [self._reader(place) for place in plan.outputs]
        self._endangered = self._written_before_calls()

    def _written_before_calls(self) -> list[int]:
        """The inputs that are written although a call comes after that may raise. Steps of optimizers do not."""
        calls = [
            turn
            for turn, part in enumerate(self._plan.parts)
            if isinstance(part, KernelCall) and not part.call.in_place and _may_raise(part.call)
        ]
        written: set[Storage] = set()
        for part in self._plan.parts[: calls[-1] if calls else 0]:
            if isinstance(part, KernelCall):
                written.update(place.storage.memory for place in part.outs if place.storage.before is not None)
            else:
                written.update(storage for i in part.instructions for storage in made_by(i) if storage.origin == INPUT)
        return sorted({self._slots[storage] for storage in written})

    def _slot(self, storage: Storage) -> int:
        if storage not in self._slots:
            self._slots[storage] = self._size
            self._size += 1
        return self._slots[storage]

    def _last_uses(self) -> dict[int, list[Storage]]:
        last: dict[Storage, int] = {}
        for turn, part in enumerate(self._plan.parts):
            touched = (
                [p.storage.memory for p in (*part.reads, *part.outs)] if isinstance(part, KernelCall)
                else [*part.inputs, *part.outputs]
            )  # fmt: skip
            for storage in touched:
                last[storage] = turn
        shown = {place.storage for place in self._plan.outputs if isinstance(place, Place)}
        dies: dict[int, list[Storage]] = {}
        for storage, turn in last.items():
            if storage not in shown:
                dies.setdefault(turn, []).append(storage)
        return dies

    def _reader(self, place: Any) -> Callable[[list[Any]], Any]:
        """What gives the array of a place."""
        if place is None:
            return lambda held: None
        if isinstance(place, Number):
            index = self._plan.program.inputs.index(place)
            return lambda held: held[index]
        place = place.rooted
        storage = place.storage
        if storage.origin == CONSTANT:
            array = storage.constant if place == storage.whole else _window(storage.constant, place)
            return lambda held: array
        slot = self._slot(storage)
        if place == storage.whole:
            return lambda held: held[slot]
        return lambda held: _window(held[slot], place)

    def _call(self, part: KernelCall, gone: list[int]) -> Callable[[list[Any]], None]:
        call = replace(
            part.call, arguments=without_sizes(part.call.arguments), options=without_sizes(part.call.options)
        )  # fmt: skip
        readers = [(value, self._reader(place)) for value, place in part.places.items()]
        numbers = [(v, i) for i, v in enumerate(self._plan.program.inputs) if isinstance(v, Number)]
        targets = [self._slot(place.storage.memory) for place in part.outs]
        function = call.function
        if call.in_place is not None and all(place.storage.before is not None for place in part.outs):
            function, targets = _giving_nothing(call.in_place), []

        def given(held: list[Any]) -> tuple[Any, Any]:
            arrays = {value: reader(held) for value, reader in readers}
            for value, index in numbers:
                arrays[value] = held[index]
            return fill(call.arguments, arrays), fill(call.options, arrays)

        always = None if call.reads else (call.arguments, call.options)

        def run(held: list[Any]) -> None:
            arguments, options = always or given(held)
            made = function(*arguments, **options)
            for slot, array in zip(targets, (made,) if call.is_single else made, strict=True):
                held[slot] = array if is_array(array) else as_array(array)
            for slot in gone:
                held[slot] = None

        return run

    def _segment(
        self, part: Segment, addresses: dict[str, int], numbers: list[int], gone: list[int]
    ) -> Callable[[list[Any]], None]:
        tables = Tables(part, self._plan, [storage.whole for storage in part.outputs], False)
        native = tables.make(addresses, lambda given: native(_relaid(part.inputs, given)))
        sources = [*[self._slot(storage) for storage in part.inputs], *numbers]
        targets = [self._slot(storage) for storage in part.outputs]
        self._natives[len(self._steps)] = (native, sources)

        def run(held: list[Any]) -> None:
            made = native([held[slot] for slot in sources])
            for slot, array in zip(targets, made, strict=True):
                held[slot] = array
            for slot in gone:
                held[slot] = None

        return run

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        held: list[Any] = [*inputs, *[None] * (self._size - self._count)]
        before = [(inputs[place], inputs[place].copy()) for place in self._endangered]
        try:
            for step in self._steps:
                step(held)
        except Exception:  # the function runs eagerly then, and writes for itself
            for array, content in before:
                array[...] = content
            raise
        return [reader(held) for reader in self._outputs]

    def times(self, inputs: Sequence[Any]) -> list[float]:
        """The seconds that each kernel takes; segments run twice, and so may write twice into the inputs."""
        held: list[Any] = [*inputs, *[None] * (self._size - self._count)]
        times: list[float] = []
        for turn, step in enumerate(self._steps):
            if turn in self._natives:
                native, sources = self._natives[turn]
                times += [nanoseconds * 1e-9 for nanoseconds in native.times([held[slot] for slot in sources])]
                step(held)
            else:
                begin = time.perf_counter()
                step(held)
                times.append(time.perf_counter() - begin)
        return times


_SURE_FAMILIES = ("random", "matrix_products", "convolution", "normalization", "attention")
"""Of kernels that take whatever numbers they are given."""


def _may_raise(call: Call) -> bool:
    """Whether a kernel asks for more than the shapes and dtypes that it was recorded with: that an index is in range."""
    family = call.kernel.partition(".")[0]
    arrays = [value for value in call.reads if isinstance(value, Value)]
    if family == "random":
        return bool(arrays)
    return family not in _SURE_FAMILIES or any(np.dtype(array.dtype).kind in "iu" for array in arrays)


def _giving_nothing(write: Callable[..., Any]) -> Callable[..., tuple[()]]:
    """A kernel that writes over its arguments, as one without results."""

    def run(*args: Any, **kwargs: Any) -> tuple[()]:
        write(*args, **kwargs)
        return ()

    return run


def _window(array: Any, place: Place) -> Any:
    """A place as an array over the memory of the array that owns it."""
    return np.ndarray(place.shape, place.dtype, array, place.offset, place.strides) if array.flags.c_contiguous else (
        _strided(array, place)
    )  # fmt: skip


def _strided(array: Any, place: Place) -> Any:
    first = place.offset // array.itemsize
    start = np.lib.stride_tricks.as_strided(array, (first + 1,), (array.itemsize,))[first:]
    return np.lib.stride_tricks.as_strided(start, place.shape, place.strides)


def _relaid(storages: list[Storage], given: Sequence[Any]) -> list[Any]:
    """Arrays as a segment expects them, where a kernel gave another layout."""
    made: list[Any] = list(given)
    for n, storage in enumerate(storages):
        array = np.asarray(given[n])
        if array.shape != storage.shape or array.dtype != storage.dtype:
            raise NotPlanned("another shape than was recorded")
        if array.strides != storage.strides and storage.origin != INPUT:
            copy = np.lib.stride_tricks.as_strided(
                np.empty(max(storage.nbytes // array.itemsize, 1), array.dtype), storage.shape, storage.strides
            )
            copy[...] = array
            array = copy
        made[n] = array
    return made


_SECONDS_PER_CALL = 1e-5
"""What a recorded kernel takes on small arrays."""


class BuiltRunner:
    """Runs a program: compiled once that is done, as it was recorded until then and where inputs are laid out otherwise.

    A long program is planned and compiled in a thread of its own. The call that asked for it waits for `patience` at most,
    later ones as long as the recorded kernels would take, about. What is compiled is kept whatever it takes, so that the
    bits of results do not depend on a clock: programs that are little more than products or convolutions are as fast either
    way (measured: 0.97 to 1.03 of the time).
    """

    def __init__(
        self, program: Program, make_plan: Callable[[], Plan], reference: Runner, *, patience: float
    ) -> None:  # fmt: skip
        self.program = program
        self._make_plan = make_plan
        self._plan: Plan | None = None
        self._reference = reference
        self._run: Callable[[Sequence[Any]], list[Any]] = self._run_meanwhile
        self.planned: PlannedRunner | None = None
        self.is_compiled = False
        self.problem = ""
        self._thread = threading.Thread(target=self._compile, name="pullback-compile", daemon=True)
        self._thread.start()
        self._thread.join(patience)

    @property
    def plan(self) -> Plan:
        """What is compiled; NotPlanned where there is nothing."""
        self.wait()
        if self._plan is None:
            raise NotPlanned(self.problem)
        return self._plan

    def _run_meanwhile(self, inputs: Sequence[Any]) -> list[Any]:
        self._thread.join(_SECONDS_PER_CALL * len(self.program.calls))
        return self._reference(inputs) if self._run == self._run_meanwhile else self._run(inputs)

    def _compile(self) -> None:
        try:
            with not_collecting():
                self._plan = plan = self._make_plan()
            addresses = dict(zip(plan.texts, library.addresses(plan.texts), strict=True))
            with not_collecting():
                self._run = self._runner(plan, addresses)
            self.is_compiled = True
        except (CompilerFailed, NotPlanned) as error:
            self.problem = str(error)
        except Exception as error:  # what goes wrong here must not reach a program that can be run as recorded
            self.problem = f"{type(error).__name__}: {error}"
        if not self.is_compiled:
            self._run = self._reference

    def _runner(self, plan: Plan, addresses: dict[str, int]) -> Runner:
        places = [place for place in plan.outputs if isinstance(place, Place)]
        is_whole = len(plan.parts) == 1 and isinstance(plan.parts[0], Segment) and len(places) == len(plan.outputs)
        if is_whole:
            segment = plan.parts[0]
            assert isinstance(segment, Segment)
            made: Callable[[Sequence[Any]], list[Any]] = Tables(segment, plan, places, True).make(
                addresses, self._reference
            )
            self.native = made
            return made
        self.planned = planned = PlannedRunner(plan, addresses)
        fits = _layout_check(plan)

        draws = any(call.kernel.startswith("random.") for call in self.program.calls)

        def run(inputs: Sequence[Any]) -> list[Any]:
            if not fits(inputs):
                return self._reference(inputs)
            try:
                return planned(inputs)
            except NotPlanned as error:  # a kernel gave what it did not give while it was recorded
                self.problem, self._run = str(error), self._reference
                if draws:  # the caller moves the random stream back
                    raise
                return self._reference(inputs)

        return run

    def wait(self) -> None:
        """Wait until the program is compiled."""
        self._thread.join()

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        return self._run(inputs)

    def kernels(self) -> list[tuple[str, str]]:
        """What runs, in order: a title for each kernel, and its text where it is a loop."""
        return [kernel for part in self.plan.parts for kernel in _kernels(part)]

    def times(self, inputs: Sequence[Any]) -> list[tuple[str, float]]:
        """The kernels with the seconds that each takes in one call, which may write into the inputs more than once."""
        titles = [title for title, _ in self.kernels()]
        native = getattr(self, "native", None)
        if native is not None:
            seconds = [nanoseconds * 1e-9 for nanoseconds in native.times(inputs)]
        else:
            seconds = [] if self.planned is None else self.planned.times(inputs)
        return list(zip(titles, seconds, strict=True)) if seconds else []

    def describe(self) -> str:
        """What runs, kernel by kernel, with the text of the loops."""
        self.wait()
        if self._plan is None:
            return f"{len(self.program.calls)} kernels, one after the other ({self.problem})"
        return describe(self._plan, self.problem)


def _layout_check(plan: Plan) -> Callable[[Sequence[Any]], bool]:
    expected = [(index, s.shape, s.strides, s.dtype) for index, s in plan._arrays.items()]

    def fits(inputs: Sequence[Any]) -> bool:
        for index, shape, strides, dtype in expected:
            array = inputs[index]
            if array.strides != strides or array.shape != shape or array.dtype != dtype:
                return False
        return True

    return fits


def _title(instruction: Instruction) -> str:
    if not instruction.text:
        _, rows, columns, depth, *_, batch, _, _, _ = map(int, instruction.product)
        return f"product {rows}x{depth} by {depth}x{columns}" + (f", {batch} times" if batch > 1 else "")
    names = [step.source.kernel for step in instruction.group.steps if step.source is not None]
    told = ", ".join(dict.fromkeys(names))
    return f"{instruction.group.kind} over {[int(dim) for dim in instruction.group.dims]}: {told or 'copy'}"


def _kernels(part: Segment | KernelCall) -> list[tuple[str, str]]:
    """The kernels of a part: titles and texts."""
    if isinstance(part, KernelCall):
        return [(f"kernel {part.call.kernel}", "")]
    return [(_title(instruction), instruction.text) for instruction in part.instructions]


def describe(plan: Plan, problem: str = "") -> str:
    """A plan in words and in C."""
    lines = [f"not compiled: {problem}"] if problem else []
    for part in plan.parts:
        if isinstance(part, KernelCall):
            lines.append(_kernels(part)[0][0])
            continue
        _, arena = arena_of(part)
        lines.append(f"segment of {len(part.instructions)} kernels, {arena} bytes of memory of its own")
        for title, text in _kernels(part):
            lines.append(f"  {title}")
            lines += [f"    {line}" for line in text.splitlines()]
    return "\n".join(lines)


def build_plan(program: Program) -> Plan:
    """The plan of a program; NotPlanned where it is run as it was recorded."""
    if extension is None or not hasattr(extension, "make_program"):
        raise NotPlanned("the compiled kernels of pullback are missing")
    return Plan(program)
