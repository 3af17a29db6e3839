"""Writes the loop of a group in C. See Note [Groups]; how a loop is called is in native/programs.c.

A loop takes its places and numbers by position, and sizes and strides stand in the text: equal groups have equal texts,
and are compiled once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from pullback.compiling.elements import print_element, renamed
from pullback.compiling.fusion import COLUMNS, ROWS, WHOLE, Group, row_strides
from pullback.compiling.sizes import MARK, with_parameters
from pullback.compiling.steps import Element, Place, Reduction, Storage, strides_over
from pullback.expressions.tree import MASK, NUMBER, REAL, Expr, Load

_TILE, _CHUNK, _ROWS_AT_ONCE, _PART = 64, 1024, 128, 4096
_LONGEST_KEPT = 4096
_WORK = 1 << 20
"""So many additions are worth a thread: some 20 microseconds of work, since waking one takes 5, and much longer where other
processes want the core."""
_MEMORY = 16
"""What reading and writing an element costs beside its arithmetic, in additions."""

_STARTS = {"sum": "0", "maximum": "(-INFINITY)", "minimum": "INFINITY"}
_SIGNS = {"maximum": ">", "minimum": "<"}
_WORDS = {"sum": "+", "maximum": "max", "minimum": "min"}


@dataclass
class Loop:
    """The text of a loop, `NAME` its name, and what it is to be called with."""

    text: str
    places: list[Place]
    numbers: list[int]
    count: int
    smallest: int
    sizes: list[float] = field(default_factory=list)
    """The values of its parameters. See Note [Sizes in text]."""
    partials: list[tuple[Reduction, int]] = field(default_factory=list)
    """Reductions whose parts are still to be put together, and where among the places their parts go."""


@dataclass
class _Access:
    """A pointer of the loop: what it reads or writes, and its strides over the sizes."""

    name: str
    ctype: str
    strides: tuple[int, ...]
    is_written: bool = False


def write_loop(group: Group, wanted: set[Storage]) -> Loop:
    """The loop of a group that leaves the wanted storages in memory."""
    writer = _Writer(group, wanted)
    body = writer.write(by_libm=False)
    exact = ""
    if any(isinstance(step, Element) and step.reading.beyond for step in group.steps):
        second = _Writer(group, wanted)
        exact = second.write(by_libm=True)
        body = body.replace("(void)beyond;", "if (beyond) { NAME_exact(places, at, numbers, begin, end); }")
        exact = exact.replace("void NAME(", "static void NAME_exact(")
    at = len(writer.places) + len(writer.partials) + len(writer.numbers)
    text, sizes = with_parameters(exact + body, at)
    return Loop(text, writer.places, writer.numbers, writer.count, writer.smallest, sizes, writer.partials)


class _Writer:
    def __init__(self, group: Group, wanted: set[Storage]) -> None:
        self.group = group
        self.wanted = wanted
        self.reduced = group.reduced_dims() if group.pattern else [False] * len(group.dims)
        self.places: list[Place] = []
        self.numbers: list[int] = []
        self.partials: list[tuple[Reduction, int]] = []
        self.accesses: dict[tuple[Storage, int, tuple[int, ...], str], _Access] = {}
        self.names: dict[Storage, str] = {}
        self.levels: dict[Storage, int] = {}
        self.beyond = False
        self._collect()
        self._order()

    # What is read and written ---------------------------------------------------------------------------------------

    def _collect(self) -> None:
        group = self.group
        for number, step in enumerate(group.steps):
            assert isinstance(step, (Element, Reduction))
            self.names[step.out.storage] = f"v{number}"
            if isinstance(step, Element):
                for number_index in step.numbers.values():
                    if number_index not in self.numbers:
                        self.numbers.append(number_index)
            of_rows = group.is_of_rows(step) and isinstance(step, Element)
            level = 0
            for place in step.reads:
                if place.storage in group.made:
                    level = max(level, self.levels[place.storage])
                else:
                    self._access(place, of_rows)
            self.levels[step.out.storage] = level + (isinstance(step, Reduction) and group.kind == ROWS)
            if step.out.storage in self.wanted and not self._is_partial(step):
                self._access(step.out, group.is_of_rows(step) or isinstance(step, Reduction)).is_written = True

    def _is_partial(self, step: Element | Reduction) -> bool:
        return self.group.kind == WHOLE and isinstance(step, Reduction)

    def _strides(self, place: Place, of_rows: bool) -> tuple[int, ...]:
        if of_rows:
            return row_strides(place, self.group.dims, self.reduced)
        return strides_over(place, self.group.dims)

    def _access(self, place: Place, of_rows: bool) -> _Access:
        strides = self._strides(place, of_rows)
        place = place.rooted
        key = (place.storage, place.offset, strides, place.ctype)
        if key not in self.accesses:
            self.accesses[key] = _Access(f"p{len(self.places)}", place.ctype, strides)
            self.places.append(place)
        return self.accesses[key]

    # The order of loops ---------------------------------------------------------------------------------------------

    def _order(self) -> None:
        """Choose the order of the sizes, and take neighbours together where every pointer allows it."""
        dims, kind = self.group.dims, self.group.kind
        order = list(range(len(dims)))
        if kind == ROWS:
            order.sort(key=lambda d: self.reduced[d])
        elif kind == COLUMNS:
            order = [d for d in order[:-1] if not self.reduced[d]] + [d for d in order if self.reduced[d]] + order[-1:]
        elif kind != WHOLE:
            written = [a for a in self.accesses.values() if a.is_written]
            if written:
                order.sort(key=lambda d: -abs(written[0].strides[d]))
        sizes = [dims[d] for d in order]
        flags = [self.reduced[d] for d in order]
        table = [[a.strides[d] for d in order] for a in self.accesses.values()]
        if kind == COLUMNS:
            flags[-1] = None  # type: ignore[call-overload]  # the last stays alone
        place = len(sizes) - 2
        while place >= 0:
            if flags[place] == flags[place + 1] and all(
                row[place] == row[place + 1] * sizes[place + 1] for row in table
            ):
                sizes[place : place + 2] = [sizes[place] * sizes[place + 1]]
                del flags[place]
                for row in table:
                    del row[place]
            place -= 1
        self.tail = 0
        if kind == WHOLE and len(sizes) == 1:
            self.tail = sizes[0] % _PART
            sizes = [-(-sizes[0] // _PART), _PART]
            table = [[row[0] * _PART, row[0]] for row in table]
            flags = [False, True]
        elif kind == WHOLE:
            flags = [False, *[True] * (len(sizes) - 1)]
        self.sizes, self.flags = sizes, flags
        for access, row in zip(self.accesses.values(), table, strict=True):
            access.strides = tuple(row)
        elements = math.prod(sizes)
        if kind == COLUMNS:
            kept = math.prod([s for s, f in zip(sizes[:-1], flags[:-1], strict=True) if not f])
            self.tiles = -(-sizes[-1] // _TILE)
            self.count = kept * self.tiles
        else:
            self.count = sizes[0] if sizes and not flags[0] else 1
        share = max(_WORK // (self.group.cost + _MEMORY), 2048)
        # A loop that is too short for threads has its bounds in its text, so that the compiler can choose its vectors.
        self.smallest = max(1, math.ceil(share * self.count / max(elements, 1))) if elements >= 2 * share else 0

    def _index(self, access: _Access, names: list[str]) -> str:
        terms = [
            name if stride == 1 else f"{name} * {stride}"
            for name, stride in zip(names, access.strides, strict=True)
            if stride
        ]
        return f"{access.name}[{' + '.join(terms) or '0'}]"

    # The text -------------------------------------------------------------------------------------------------------

    def write(self, *, by_libm: bool) -> str:
        self.by_libm = by_libm
        if self.group.kind == COLUMNS:
            body = self._columns()
        elif self.group.kind in (ROWS, WHOLE):
            body = self._rows()
        else:
            body = self._map()
        head = [
            "void NAME(char *const *places, const int32_t *at, const double *numbers, ptrdiff_t begin, ptrdiff_t end)",
            "{",
        ]
        for number, access in enumerate(self.accesses.values()):
            if access.is_written:
                head.append(f"    {access.ctype} *restrict {access.name} = ({access.ctype} *)places[at[{number}]];")
            else:
                head.append(
                    f"    const {access.ctype} *restrict {access.name} = (const {access.ctype} *)places[at[{number}]];"
                )
        for position, (step, _) in enumerate(self.partials):
            at = len(self.accesses) + position
            head.append(f"    double *restrict partial_{self.names[step.out.storage]} = (double *)places[at[{at}]];")
        first = len(self.accesses) + len(self.partials)
        head += [f"    const double n{i} = numbers[at[{first + i}]];" for i in range(len(self.numbers))]
        head.append(MARK.rstrip("\n"))
        if self.beyond:
            head.append("    int beyond = 0;")
            body.append("    (void)beyond;")
        return "\n".join([*head, *body, "}", ""])

    def _for(self, position: int, name: str | None = None) -> str:
        i = name or f"i{position}"
        if position == 0 and self.smallest and self.group.kind != COLUMNS and not (self.flags and self.flags[0]):
            return f"for (ptrdiff_t {i} = begin; {i} < end; {i}++)"
        bound = str(self.sizes[position])
        if self.tail and position == 1:
            bound = f"(i0 == {self.sizes[0] - 1} ? {self.tail} : {self.sizes[1]})"
        return f"for (ptrdiff_t {i} = 0; {i} < {bound}; {i}++)"

    def _map(self) -> list[str]:
        names = [f"i{p}" for p in range(len(self.sizes))]
        lines: list[str] = []
        if not self.sizes:
            lines.append("    for (ptrdiff_t i0 = begin; i0 < end; i0++) {")
        for position in range(len(self.sizes)):
            if position == len(self.sizes) - 1:
                lines.append(self._simd(0))
            lines.append("    " + self._for(position) + " {")
        scope = _Scope(self, names)
        for step in self.group.steps:
            scope.value(step.out.storage)  # type: ignore[union-attr]  # elements
            scope.store(step.out)  # type: ignore[union-attr]
        lines += [f"        {text}" for text in scope.lines]
        return [*lines, *["    }"] * max(len(self.sizes), 1)]

    def _simd(self, reductions: int) -> str:
        clause = " reduction(|:beyond)" if self._has_beyond() else ""
        return f"    #pragma omp simd{clause}"

    def _has_beyond(self) -> bool:
        return not self.by_libm and any(isinstance(s, Element) and s.reading.beyond for s in self.group.steps)

    def _rows(self) -> list[str]:
        group = self.group
        kept = [p for p, flag in enumerate(self.flags) if not flag]
        along = [p for p, flag in enumerate(self.flags) if flag]
        names = [f"i{p}" for p in range(len(self.sizes))]
        lines = ["    " + self._for(p) + " {" for p in kept] or ["    for (ptrdiff_t row = begin; row < end; row++) {"]
        outer = _Scope(self, names)
        self._buffers: dict[Storage, str] = {}
        last = max(self.levels.values(), default=0)
        for level in range(last + 1):
            outer.lines = []
            for step in group.steps:
                if group.is_of_rows(step) and isinstance(step, Element) and self.levels[step.out.storage] == level:
                    outer.value(step.out.storage)
                    outer.store(step.out)
            lines += [f"        {text}" for text in outer.lines]
            lines += [f"        {text}" for text in self._pass(level, along, names, outer)]
        return [*lines, *["    }"] * max(len(kept), 1)]

    def _pass(self, level: int, along: list[int], names: list[str], outer: _Scope) -> list[str]:
        """Go along a row: compute and store the elements of this level, and reduce."""
        group = self.group
        step_up = int(group.kind == ROWS)
        reductions = [
            s for s in group.steps if isinstance(s, Reduction) and self.levels[s.out.storage] == level + step_up
        ]  # fmt: skip
        elements = [
            s for s in group.steps
            if isinstance(s, Element) and not group.is_of_rows(s) and self.levels[s.out.storage] == level
        ]  # fmt: skip
        stored = [s for s in elements if s.out.storage in self.wanted]
        if not reductions and not stored:
            return []
        inner = _Scope(self, names, outer, level)
        kept = self._keep(elements, level)
        for step in [*stored, *kept]:
            inner.value(step.out.storage)
        for step in stored:
            inner.store(step.out)
        length = math.prod([self.sizes[p] for p in along])
        place = self._place_in_row(along)
        lines: list[str] = []
        for step in kept:
            name = self.names[step.out.storage]
            lines.append(f"{step.out.ctype} kept_{name}[{length}];")
            inner.lines.append(f"kept_{name}[{place}] = {name};")
            self._buffers[step.out.storage] = f"kept_{name}[{place}]"
        after: list[str] = []
        parts: list[str] = []
        clauses: list[str] = []
        for reduction in reductions:
            name, ctype = self.names[reduction.out.storage], reduction.out.ctype
            value = inner.read(reduction.operand, REAL)
            if reduction.how == "sum":
                lines.append(f"double total_{name} = 0;")
                parts.append(f"{ctype} part_{name} = 0;")
                inner.lines.append(f"part_{name} += {value};")
                after.append(f"total_{name} += part_{name};")
            else:
                sign, start = _SIGNS[reduction.how], _STARTS[reduction.how]
                lines.append(f"{ctype} total_{name} = {start}; int bad_{name} = 0;")
                parts.append(f"{ctype} part_{name} = {start}; int part_bad_{name} = 0;")
                inner.lines.append(f"part_{name} = {value} {sign} part_{name} ? {value} : part_{name};")
                inner.lines.append(f"part_bad_{name} |= {value} != {value};")
                after.append(f"total_{name} = part_{name} {sign} total_{name} ? part_{name} : total_{name};")
                after.append(f"bad_{name} |= part_bad_{name};")
                clauses.append(f"reduction(|:part_bad_{name})")
            clauses.append(f"reduction({_WORDS[reduction.how]}:part_{name})")
        lines += self._along(along, parts, clauses, inner.lines, after)
        for reduction in reductions:
            lines += self._reduced(reduction, outer)
        return lines

    def _keep(self, elements: list[Element], level: int) -> list[Element]:
        """Costly elements of this level that a later pass reads and that are in no memory: they are kept for the row."""
        length = math.prod([s for s, f in zip(self.sizes, self.flags, strict=True) if f])
        if self.group.kind != ROWS or length > _LONGEST_KEPT:
            return []
        made = self.group.made
        stack = [
            place.storage
            for step in self.group.steps
            if self.levels[step.out.storage] > level + isinstance(step, Reduction)  # type: ignore[union-attr]
            for place in step.reads
        ]
        later: set[Storage] = set()
        while stack:
            storage = stack.pop()
            if storage in made and storage not in later and isinstance(made[storage], Element):
                later.add(storage)
                stack += [place.storage for place in made[storage].reads]
        return [s for s in elements if s.reading.cost >= 8 and s.out.storage in later]

    def _place_in_row(self, along: list[int]) -> str:
        terms, step = [], 1
        for position in reversed(along):
            terms.append(f"i{position}" if step == 1 else f"i{position} * {step}")
            step *= self.sizes[position]
        return " + ".join(terms) or "0"

    def _along(
        self, along: list[int], parts: list[str], clauses: list[str], body: list[str], after: list[str]
    ) -> list[str]:
        if self._has_beyond():
            clauses = [*clauses, "reduction(|:beyond)"]
        pragma = f"#pragma omp simd {' '.join(clauses)}"
        if not along:
            return ["{", *parts, *body, *after, "}"]
        lines = [self._for(position) + " {" for position in along[:-1]]
        i, size = f"i{along[-1]}", self.sizes[along[-1]]
        if size > _CHUNK:
            bound = str(size)
            if self.tail and along[-1] == 1:
                bound = f"(i0 == {self.sizes[0] - 1} ? {self.tail} : {size})"
            lines += [
                f"for (ptrdiff_t chunk = 0; chunk < {bound}; chunk += {_CHUNK}) {{",
                f"const ptrdiff_t stop = {bound} - chunk < {_CHUNK} ? {bound} : chunk + {_CHUNK};",
                *parts, pragma, f"for (ptrdiff_t {i} = chunk; {i} < stop; {i}++) {{", *body, "}", *after, "}",
            ]  # fmt: skip
        else:
            lines += [*parts, pragma, self._for(along[-1]) + " {", *body, "}", *after]
        return [*lines, *["}"] * (len(along) - 1)]

    def _reduced(self, step: Reduction, outer: _Scope) -> list[str]:
        name, ctype = self.names[step.out.storage], step.out.ctype
        value = f"total_{name}" if step.how == "sum" else f"(bad_{name} ? ({ctype})NAN : total_{name})"
        if self.group.kind == WHOLE:
            self.partials.append((step, len(self.accesses) + len(self.partials)))
            return [f"partial_{name}[i0] = {value};"]
        outer.values.add(step.out.storage)
        outer.lines = []
        outer.store(step.out)
        return [f"const {ctype} {name} = ({ctype}){value};", *outer.lines]

    def _columns(self) -> list[str]:
        sizes, flags = self.sizes, self.flags
        last = len(sizes) - 1
        names = [f"i{p}" for p in range(len(sizes))]
        kept = [p for p in range(last) if not flags[p]]
        along = [p for p in range(last) if flags[p]]
        lines = ["    for (ptrdiff_t item = begin; item < end; item++) {"]
        lines.append(f"        ptrdiff_t rest = item / {self.tiles};")
        for position in reversed(kept):
            lines.append(f"        const ptrdiff_t i{position} = rest % {sizes[position]}; rest /= {sizes[position]};")
        width = str(sizes[last]) if sizes[last] <= _TILE else "width"
        lines.append(f"        const ptrdiff_t first = item % {self.tiles} * {_TILE};")
        if width == "width":
            lines.append(
                f"        const ptrdiff_t width = {sizes[last]} - first < {_TILE} ? {sizes[last]} - first : {_TILE};"
            )
        inner = _Scope(self, names)
        for step in self.group.steps:
            if isinstance(step, Element):
                inner.value(step.out.storage)
                inner.store(step.out)
        reductions = [s for s in self.group.steps if isinstance(s, Reduction)]
        parts, after, ends = [], [], []
        for step in reductions:
            name, ctype = self.names[step.out.storage], step.out.ctype
            start = _STARTS[step.how]
            wide = "double" if step.how == "sum" else ctype
            join = "{0} += {1};" if step.how == "sum" else f"{{0}} = {step.how}_of({{0}}, {{1}});"
            lines.append(
                f"        {wide} total_{name}[{_TILE}]; for (int j = 0; j < {_TILE}; j++) total_{name}[j] = {start};"
            )
            parts.append(f"{ctype} part_{name}[{_TILE}]; for (int j = 0; j < {_TILE}; j++) part_{name}[j] = {start};")
            inner.lines.append(join.format(f"part_{name}[j]", inner.read(step.operand, REAL)))
            after.append(join.format(f"total_{name}[j]", f"part_{name}[j]"))
            if step.out.storage in self.wanted:
                access = self._access_of(step.out, True)
                ends.append(f"{self._index(access, names)} = ({ctype})total_{name}[j];")
        lines += [self._for(position) + " {" for position in along[:-1]]
        i, size = f"i{along[-1]}", sizes[along[-1]]
        each = f"for (ptrdiff_t j = 0; j < {width}; j++) {{ const ptrdiff_t i{last} = first + j;"
        clause = " reduction(|:beyond)" if self._has_beyond() else ""
        lines += [
            f"for (ptrdiff_t chunk = 0; chunk < {size}; chunk += {_ROWS_AT_ONCE}) {{",
            f"const ptrdiff_t stop = {size} - chunk < {_ROWS_AT_ONCE} ? {size} : chunk + {_ROWS_AT_ONCE};",
            *parts, f"for (ptrdiff_t {i} = chunk; {i} < stop; {i}++)", f"#pragma omp simd{clause}", each, *inner.lines, "}",
            f"for (ptrdiff_t j = 0; j < {width}; j++) {{", *after, "}", "}",
        ]  # fmt: skip
        lines += ["}"] * (len(along) - 1)
        return [*lines, each, *ends, "}", "    }"]

    def _access_of(self, place: Place, of_rows: bool) -> _Access:
        rooted = place.rooted
        return self.accesses[(rooted.storage, rooted.offset, self._strides(rooted, of_rows), rooted.ctype)]


class _Scope:
    """Statements inside of a loop, and what has a name there; `outer` is the scope around the loop."""

    def __init__(self, writer: _Writer, names: list[str], outer: _Scope | None = None, level: int = 0) -> None:
        self.writer = writer
        self.names = names
        self.outer = outer
        self.level = level
        self.lines: list[str] = []
        self.values: set[Storage] = set()
        self.loaded: dict[str, str] = {}

    def knows(self, storage: Storage) -> bool:
        return storage in self.values or (self.outer is not None and self.outer.knows(storage))

    def value(self, storage: Storage) -> None:
        """Write the statements that compute what a step of the group makes, and what they need, in order."""
        group = self.writer.group
        if self.knows(storage):
            return
        reads = [place.storage for place in group.made[storage].reads]
        if all(read not in group.made or self.knows(read) for read in reads):
            self._compute(group.made[storage])  # type: ignore[arg-type]  # groups have elements and reductions
            return
        needed: set[Storage] = set()
        stack = [storage]
        while stack:
            wanted = stack.pop()
            if wanted in needed or self.knows(wanted):
                continue
            needed.add(wanted)
            if not self._in_memory(wanted):
                stack += [p.storage for p in group.made[wanted].reads if p.storage in group.made]
        for step in group.steps:
            if step.out.storage in needed:  # type: ignore[union-attr]  # groups have elements and reductions
                self._compute(step)  # type: ignore[arg-type]

    def _in_memory(self, storage: Storage) -> bool:
        """Whether an earlier pass left a value in memory, so that it is read rather than computed again."""
        writer = self.writer
        if writer.group.kind != ROWS or writer.levels[storage] >= self.level:
            return False
        step = writer.group.made[storage]
        return storage in writer._buffers or (
            isinstance(step, Element) and step.reading.cost >= 8 and storage in writer.wanted
        )

    def _compute(self, step: Element | Reduction) -> None:
        writer, storage = self.writer, step.out.storage
        name = writer.names[storage]
        self.values.add(storage)
        assert isinstance(step, Element)
        is_mask = step.reading.is_mask
        ctype = "int" if step.out.dtype.char == "?" else step.out.ctype
        if self._in_memory(storage):
            kept = writer._buffers.get(storage) or writer._index(writer._access_of(step.out, False), self.names)
            self.lines.append(f"const {ctype} {name} = {kept};")
            return
        values: dict[str, Expr] = {}
        for local, place in step.operands.items():
            kind = MASK if place.dtype.char == "?" else REAL
            values[local] = Load(self.read(place, kind, writer.group.is_of_rows(step)), kind)
        for local, index in step.numbers.items():
            values[local] = Load(f"n{writer.numbers.index(index)}", NUMBER)
        program = renamed(step.reading.program, name, values)
        for part in program.steps:
            kind_name = "int" if part.value.kind == MASK else step.real
            text = print_element(part.value, step.real, by_libm=writer.by_libm)
            self.lines.append(f"const {kind_name} {part.name} = {text};")
        if step.reading.beyond and not writer.by_libm:
            writer.beyond = True
            again = {old.name: new.name for old, new in zip(step.reading.program.steps, program.steps, strict=True)}
            for test in step.reading.beyond:
                text = print_element(_renamed_test(test, again, values), step.real)
                self.lines.append(f"beyond |= {text};")
        text = print_element(program.result, step.real, by_libm=writer.by_libm)
        self.lines.append(f"const {ctype} {name} = {text};" if is_mask else f"const {ctype} {name} = ({ctype}){text};")

    def read(self, place: Place, kind: str, of_rows: bool = False) -> str:
        """The name of the element of a place."""
        writer = self.writer
        if place.storage in writer.group.made:
            self.value(place.storage)
            return writer.names[place.storage]
        access = writer._access_of(place, of_rows)
        scope: _Scope | None = self
        while scope is not None:
            if access.name in scope.loaded:
                return scope.loaded[access.name]
            scope = scope.outer
        name = f"x{access.name[1:]}"
        self.loaded[access.name] = name
        ctype = "int" if kind == MASK else place.ctype
        self.lines.append(f"const {ctype} {name} = {writer._index(access, self.names)};")
        return name

    def store(self, out: Place) -> None:
        """Write a value to memory, where that is wanted."""
        writer = self.writer
        if out.storage not in writer.wanted:
            return
        step = writer.group.made[out.storage]
        access = writer._access_of(out, writer.group.is_of_rows(step))
        self.lines.append(f"{writer._index(access, self.names)} = {writer.names[out.storage]};")


def _renamed_test(test: Expr, steps: dict[str, str], values: dict[str, Expr]) -> Expr:
    from pullback.expressions.tree import substitute

    names: dict[str, Expr] = dict(values)
    names.update({old: Load(new) for old, new in steps.items()})
    return substitute(test, names)
