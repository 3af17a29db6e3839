"""Row programs in C: loops for one type of number, which native/row_kernels.c runs over rows, columns or a whole array.

# Note [Printed rows]
A program becomes a function for each pass and one that runs the passes. A pass handles `width` elements side by side, in
lanes: neighbours of one row, or, where the rows lie `stride` apart, one element of each of `width` rows (`across`). Sums
are kept in lanes for some dozens of elements, then go to a float64 total: see Note [Order of sums]. What a pass reads of
a whole row, a number, has an element for each row that is handled. All is inlined with `width` and `across` constant.
"""

from __future__ import annotations

import math
from dataclasses import replace

from pullback.expressions.c_printer import print_c
from pullback.expressions.rows import Map, Reduce, RowProgram, RowStep
from pullback.expressions.tree import (
    MASK,
    NUMBER,
    Expr,
    Load,
    Number,
    Operation,
    Select,
    children,
    is_costly,
    loads,
)

_STARTS = {"sum": "0", "product": "1", "maximum": "-INFINITY"}
_JOINS = {"sum": "{0} += {1};", "product": "{0} *= {1};", "maximum": "{0} = {1} > {0} ? {1} : {0};"}
_PARAMETERS = "ptrdiff_t width, int across, int partly, REAL taken"
RESERVED = {
    "loop", "start", "row", "count", "stride", "width", "across", "taken", "whole", "from", "to", "i", "j", "k", "part",
    "numbers", "out", "unfit", "row_size", "double", "float", "int", "short", "long", "char", "signed", "unsigned", "const",
    "static", "register", "volatile", "inline", "restrict", "struct", "union", "enum", "switch", "case", "default", "goto",
}  # fmt: skip
"""Names that a program's own must not be."""


NAME = "NAME"
"""Stands in the text for what the loop is called: programs of the same text share one."""


def print_c_rows(program: RowProgram, operands: list[str], numbers: list[str], *, flat: bool) -> tuple[str, str]:
    """The functions of a program and the loop NAME over items; of a whole array (`flat`) what its totals become, or ""."""
    return _Text(_improved(program), operands, numbers, flat).printed()


def _improved(program: RowProgram) -> RowProgram:
    """Multiply by the reciprocal of what a whole row, or the whole call, is divided by; choose cheaper functions."""
    of_rows = program.names_of_rows()
    steps: list[RowStep] = []
    inverses: dict[str, str] = {}

    def invert(value: Expr) -> Expr:
        parts = tuple(invert(part) for part in children(value))
        if isinstance(value, Operation):
            value = replace(value, arguments=parts)
        elif isinstance(value, Select):
            value = Select(parts[0], parts[1], parts[2], value.kind)
        if isinstance(value, Operation) and value.name == "maximum" and _is_constant(value.arguments[1]):
            return replace(value, name="at_least")
        if not (isinstance(value, Operation) and value.name == "/" and value.kind == "real"):
            return value
        dividend, divisor = value.arguments
        if isinstance(divisor, Operation) and divisor.name == "real" and loads(dividend) - of_rows:
            inverse = Operation("/", (Number(1), divisor.arguments[0]), NUMBER)
            return Operation("*", (dividend, Operation("real", (inverse,))))
        if not isinstance(divisor, Load) or divisor.name not in of_rows or not loads(dividend) - of_rows:
            return value
        if divisor.name not in inverses:
            inverses[divisor.name] = f"inverse_of_{divisor.name}"
            one = Operation("real", (Number(1),))
            steps.append(Map(inverses[divisor.name], Operation("/", (one, divisor))))
        return Operation("*", (dividend, Load(inverses[divisor.name])))

    for step in program.steps:
        value = invert(step.value) if step.name not in of_rows or isinstance(step, Reduce) else step.value
        steps.append(replace(step, value=value))
    result = invert(program.result) if loads(program.result) - of_rows else program.result
    return replace(program, steps=tuple(steps), result=result)


def _is_constant(value: Expr) -> bool:
    """Whether a value is a number other than zero, whose sign would be a question, and NaN."""
    if not (isinstance(value, Operation) and value.name == "real" and isinstance(value.arguments[0], Number)):
        return False
    return value.arguments[0].value != 0 and not math.isnan(value.arguments[0].value)


class _Text:
    def __init__(self, program: RowProgram, operands: list[str], numbers: list[str], flat: bool) -> None:
        self.program, self.numbers, self.flat = program, numbers, flat
        self.places = {operand: place for place, operand in enumerate(operands)}
        self.of_rows = program.names_of_rows()
        self.steps = {step.name: step for step in program.steps}
        self.levels: dict[str, int] = {}
        for step in program.steps:
            self.levels[step.name] = self.level(step.value) + isinstance(step, Reduce)
        results = [program.result, *program.others]
        self.in_elements = [value for value in results if program.has_elements(value)]
        last = max([*self.levels.values(), *[self.level(value) for value in results]], default=0)
        self.passes: list[list[Reduce]] = [
            [s for s in program.steps if isinstance(s, Reduce) and self.levels[s.name] == level + 1]
            for level in range(last)
        ]
        self.looks_first = any(map(program.has_elements, program.requires))
        if self.looks_first:  # a pass of its own: with the others' it takes too many registers
            self.passes.insert(0, [])
        self.joined = flat and any(self.passes)
        self.kept = self._kept()

    def level(self, value: Expr) -> int:
        return max([self.levels.get(name, 0) for name in loads(value)], default=0)

    def is_wide(self, name: str) -> bool:
        step = self.steps.get(name)
        return isinstance(step, Reduce) and step.wide

    def below(self, values: list[Expr], kept: str | None) -> list[str]:
        """The maps over elements that values read, directly or through others, in their order; not below `kept`."""
        found: set[str] = set()
        stack = list(values)
        while stack:
            for name in loads(stack.pop()) - found:
                if isinstance(step := self.steps.get(name), Map) and name not in self.of_rows:
                    found.add(name)
                    if name != kept:
                        stack.append(step.value)
        return [name for name in self.steps if name in found]

    def _kept(self) -> str | None:
        """The costly map that a later pass reads again: it is kept where the result will be."""
        passes = [[reduce.value for reduce in reduces] for reduces in self.passes] + [self.in_elements]
        if self.program.result not in self.in_elements:
            return None
        costly = [name for name, step in self.steps.items() if isinstance(step, Map) and is_costly(step.value)]
        read = [name for name in costly if sum(name in self.below(values, None) for values in passes) > 1]
        return read[0] if read else None

    def printed(self) -> tuple[str, str]:
        texts, calls = [], []
        stored = False
        for place, reduces in enumerate(self.passes):
            text, call, stores = self._pass(place, reduces, [], stored)
            texts.append(text)
            done = place + 1 - self.looks_first
            calls.append(self._reducing(call, reduces) + (self._between(done, reduces) if done else []))
            stored = stored or stores
        if self.in_elements:
            text, call, _ = self._pass(len(self.passes), [], self.in_elements, stored)
            texts.append(text)
            reads_out = stored and self.kept in self.below(self.in_elements, self.kept)
            values = [*self.in_elements, *[self.steps[n].value for n in self.below(self.in_elements, self.kept)]]
            calls.append(self._mapping(call, in_lanes=is_costly(*values) and not reads_out and not self.flat))
        run = [
            f"INLINE void TYPED({NAME}_run)(RowLoop *loop, ptrdiff_t start, ptrdiff_t row, ptrdiff_t count, "
            "ptrdiff_t stride, ptrdiff_t width, int across)",
            "{",
            "    const ptrdiff_t numbers = across ? width : 1;",
            "    (void)numbers, (void)row, (void)stride, (void)width;",
            *self._declared(),
        ]
        run += [f"    {line}" for line in self._between(0, [])]
        run += [f"    {line}" for lines in calls for line in lines]
        if not self.joined:
            run += [f"    {line}" for line in self._stored_rows()]
        texts.append("\n".join([*run, "}", ""]))
        before = [n for reduces in self.passes for n in self.below([r.value for r in reduces], None)]
        before_costs = is_costly(*[self.steps[n].value for n in before], *[r.value for rs in self.passes for r in rs])
        costly = is_costly(*[step.value for step in self.program.steps], self.program.result)
        if not self.flat:
            texts.append(f"ROW_LOOP({NAME}, {'LANES' if before_costs else 8 if costly else 0})\n")
        elif self.passes:
            texts.append(f"ROW_LOOP_WHOLE({NAME}, {'PART' if self.joined else '1'})\n")
        else:
            texts.append(f"ROW_LOOP_PLAIN({NAME})\n")
        return "\n".join(texts), self._finish() if self.joined else ""

    def _declared(self) -> list[str]:
        lines = []
        used = self._all_loads()
        for operand, place in self.places.items():
            if operand in used and operand not in self.of_rows:
                offset = "" if operand in self.program.along else " + start"
                lines.append(f"    const REAL *restrict {operand}_at = (const REAL *)loop->operands[{place}]{offset};")
            elif operand in used:
                index = "" if self.flat else " + row"
                lines.append(f"    const REAL *{operand}_of = (const REAL *)loop->operands[{place}]{index};")
        for number in [n for n in self.numbers if n in used]:
            lines.append(f"    const double {number} = loop->numbers[{self.numbers.index(number)}];")
        if "row_size" in used:
            lines.append("    const double row_size = (double)loop->layout.count;")
        if self.in_elements:
            lines.append("    REAL *restrict out_at = (REAL *)loop->results[0] + start;")
        return lines

    def _all_loads(self) -> set[str]:
        """The names that the passes read, and what is computed between them."""
        program = self.program
        if self.joined:
            values = [reduce.value for reduces in self.passes for reduce in reduces]
            values += [step.value for step in program.steps if self.levels[step.name] == 0]
            return loads(*values, *program.requires)
        return loads(*[step.value for step in program.steps], program.result, *program.others, *program.requires)

    def _pass(self, place: int, reduces: list[Reduce], results: list[Expr], stored: bool) -> tuple[str, str, bool]:
        """The function of a pass, the call of it at `+ i`, and whether it keeps what a later pass reads."""
        kept = self.kept if stored else None
        values = [*[reduce.value for reduce in reduces], *results]
        required = [mask for mask in self.program.requires if not place and self.program.has_elements(mask)]
        maps = self.below([*values, *required], kept)
        stores = not results and self.kept in maps and not stored
        read = loads(*values, *required, *[self.steps[name].value for name in maps if name != kept])
        elements = [n for n in self.places if n in read and n not in self.of_rows]
        rows = [n for n in [*self.places, *self.steps] if n in read and n in self.of_rows]
        numbers = [n for n in [*self.numbers, "row_size"] if n in read]
        writes = stores or results or kept in maps
        parameters = [f"const REAL *restrict {n}_at" for n in elements]
        parameters += ["REAL *restrict out_at"] if writes else []
        parameters += [f"const {self._type(n)} *{n}_of" for n in rows] + [f"double {n}" for n in numbers]
        accumulated = [(reduce.name, self._type(reduce.name)) for reduce in reduces]
        accumulated += [("unfit", "REAL")] if required else []
        parameters += [f"{kind} *{n}_lanes" for n, kind in accumulated]
        head = f"INLINE void TYPED({NAME}_pass_{place})({', '.join([*parameters, _PARAMETERS])})"
        body = [f"const REAL {n} = {n}_at[{'across ? 0 : j' if n in self.program.along else 'j'}];" for n in elements]
        body += [f"const {self._type(n)} {n} = {n}_of[across ? j : 0];" for n in rows]
        for name in maps:
            value = self.steps[name].value
            kind = "int" if value.kind == MASK else "REAL"
            body.append(f"const {kind} {name} = {'out_at[j]' if name == kept else print_c(value)};")
        body += [f"out_at[j] = {self.kept};"] if stores else []
        for reduce in reduces:
            joined = print_c(reduce.value)
            if reduce.how != "maximum":
                joined = f"(!partly || j >= taken ? {joined} : {_STARTS[reduce.how]})"
            body.append(_JOINS[reduce.how].format(f"{reduce.name}_lanes[j]", joined))
        body += [f"unfit_lanes[j] += {print_c(mask)} ? 0 : 1;" for mask in required]
        body += [f"out_at[j] = {print_c(value)};" for value in results]
        used = "" if reduces else "    (void)partly, (void)taken;\n"
        across = "" if any("across" in line for line in body) else "    (void)across;\n"
        text = f"{head}\n{{\n{used}{across}    EACH_LANE(\n        " + "\n        ".join(body) + ")\n}\n"
        given = [f"{n}_at + {'AT_PLACE' if n in self.program.along else 'AT'}" for n in elements]
        given += ["out_at + AT"] if writes else []
        given += [f"{n}_of" for n in rows] + numbers + [f"{n}_lanes" for n, _ in accumulated]
        return text, f"TYPED({NAME}_pass_{place})({', '.join(given)}, WIDTH, ACROSS, TAKEN);", bool(stores)

    def _type(self, name: str) -> str:
        return "double" if self.is_wide(name) else "REAL"

    def _reducing(self, call: str, reduces: list[Reduce]) -> list[str]:
        """A pass over the rows that reduces them to numbers."""
        lanes = [(r.name, r.how, self._type(r.name)) for r in reduces]
        lanes += [("unfit", "sum", "REAL")] if "unfit_lanes" in call else []
        is_sum = any(how == "sum" for _, how, _ in lanes)
        lines = [f"{kind} {name}_of[LANES];" for name, _, kind in lanes]
        rows = ["const ptrdiff_t whole = count - count % width;"] if is_sum else []
        rows += [f"double {name}_total = {_STARTS[how]};" for name, how, _ in lanes]
        begun = [f"{kind} {name}_lanes[LANES];" for name, _, kind in lanes]
        begun += [
            "for (ptrdiff_t j = 0; j < width; j++)",
            "    " + ", ".join(f"{name}_lanes[j] = {_STARTS[how]}" for name, how, _ in lanes) + ";",
        ]
        joined = [
            _JOINS[how].format(f"{name}_total", f"{_gather(how, kind)}({name}_lanes, width)")
            for name, how, kind in lanes
        ]
        if is_sum:
            rows += [
                "for (ptrdiff_t from = 0; from < whole; from += 64 * width) {",
                "    const ptrdiff_t to = from + 64 * width < whole ? from + 64 * width : whole;",
                *_indented(begun),
                "    for (ptrdiff_t i = from; i < to; i += width)",
                f"        {_filled(call, 'i', 'i', 'width', 0)}",
                "    if (to == whole && whole < count) /* the last ones, without those that have been taken */",
                f"        {_filled(call, 'count - width', 'count - width', 'width', 0, '(REAL)(width - (count - whole))')}",
                *_indented(joined),
                "}",
            ]
        else:
            rows += [
                *begun,
                "for (ptrdiff_t i = 0; i + width <= count; i += width)",
                f"    {_filled(call, 'i', 'i', 'width', 0)}",
                "if (count % width)",
                f"    {_filled(call, 'count - width', 'count - width', 'width', 0, '(REAL)(width - count % width)')}",
                *joined,
            ]
        rows += [f"{name}_of[0] = ({kind}){name}_total;" for name, _, kind in lanes]
        rounds = any(how == "sum" and kind == "REAL" for _, how, kind in lanes)
        columns = [
            "for (ptrdiff_t j = 0; j < width; j++)",
            "    " + ", ".join(f"{name}_of[j] = {_STARTS[how]}" for name, how, _ in lanes) + ";",
            f"for (ptrdiff_t k = 0; k < count{' && k < BLOCK_OF_COLUMN' if rounds else ''}; k++)",
            f"    {_filled(call.replace('_lanes', '_of'), 'k * stride', 'k', 'width', 1)}",
        ]
        in_blocks = [
            "for (ptrdiff_t from = BLOCK_OF_COLUMN; from < count; from += BLOCK_OF_COLUMN) {",
            "    const ptrdiff_t to = from + BLOCK_OF_COLUMN < count ? from + BLOCK_OF_COLUMN : count;",
            *_indented(begun),
            "    for (ptrdiff_t k = from; k < to; k++)",
            f"        {_filled(call, 'k * stride', 'k', 'width', 1)}",
            "    for (ptrdiff_t j = 0; j < width; j++) {",
            *[f"        {_JOINS[how].format(f'{n}_of[j]', f'{n}_lanes[j]')}" for n, how, _ in lanes],
            "    }",
            "}",
        ]
        lines += self._either(rows, [*columns, *(in_blocks if rounds else [])])
        if lanes[-1][0] == "unfit":
            lines += ["for (ptrdiff_t j = 0; j < numbers; j++)", "    loop->unfit |= unfit_of[j] != 0;"]
        if self.joined and reduces:
            lines += [f"loop->partials[{len(reduces)} * row + {i}] = {r.name}_of[0];" for i, r in enumerate(reduces)]
        return lines

    def _mapping(self, call: str, in_lanes: bool) -> list[str]:
        """The pass that writes elements."""
        whole = _filled(call, "0", "0", "count", 0)
        rows = [whole]
        if in_lanes:
            rows = [
                "for (ptrdiff_t i = 0; i + width <= count; i += width)",
                f"    {_filled(call, 'i', 'i', 'width', 0)}",
                "if (count % width) /* the last ones, some of them again */",
                f"    {_filled(call, 'count - width', 'count - width', 'width', 0)}",
            ]
        columns = ["for (ptrdiff_t k = 0; k < count; k++)", f"    {_filled(call, 'k * stride', 'k', 'width', 1)}"]
        return self._either(rows, columns)

    def _either(self, rows: list[str], columns: list[str]) -> list[str]:
        """What is done with rows, and with columns, which whole arrays do not have."""
        if self.flat:
            return ["{", *_indented(rows), "}"]
        return ["if (!across) {", *_indented(rows), "} else {", *_indented(columns), "}"]

    def _between(self, level: int, reduces: list[Reduce]) -> list[str]:
        """What is computed once for each row when so many passes are done."""
        if self.joined and level:
            return []
        maps = [s for s in self.program.steps if isinstance(s, Map) and s.name in self.of_rows]
        maps = [step for step in maps if self.levels[step.name] == level]
        required = [m for m in self.program.requires if self.level(m) == level and not self.program.has_elements(m)]
        if not maps and not required:
            return []
        lines = [f"REAL {step.name}_of[LANES];" for step in maps]
        made = {step.name for step in maps}
        read = loads(*[step.value for step in maps], *required) - made
        body = [f"const {self._type(n)} {n} = {n}_of[j];" for n in [*self.places, *self.steps] if n in read]
        for step in maps:
            kind = "int" if step.value.kind == MASK else "REAL"
            body += [f"const {kind} {step.name} = {print_c(step.value)};", f"{step.name}_of[j] = (REAL){step.name};"]
        body += [f"loop->unfit |= !{print_c(mask)};" for mask in required]
        lines += ["for (ptrdiff_t j = 0; j < numbers; j++) {", *_indented(body), "}"]
        return [*lines, *[f"(void){step.name}_of;" for step in maps]]

    def _stored_rows(self) -> list[str]:
        """Results that are one number for a row."""
        lines = []
        for place, value in enumerate([self.program.result, *self.program.others]):
            if value in self.in_elements:
                continue
            read = [n for n in [*self.places, *self.steps] if n in loads(value)]
            declared = [f"    const {self._type(n)} {n} = {n}_of[j];" for n in read]
            lines += [
                "for (ptrdiff_t j = 0; j < numbers; j++) {",
                *declared,
                f"    ((REAL *)loop->results[{place}])[row + j] = {print_c(value)};",
                "}",
            ]
        return lines

    def _finish(self) -> str:
        """The result of a whole array, from the totals of its parts."""
        reduces = self.passes[-1]
        lines = [
            f"static void TYPED({NAME}_finish)(RowLoop *loop, const double *totals)",
            "{",
            "    const ptrdiff_t numbers = 1, row = 0;",
        ]
        lines += [f"    const REAL {r.name}_of[1] = {{(REAL)totals[{i}]}};" for i, r in enumerate(reduces)]
        used = loads(self.program.result, *[step.value for step in self.program.steps if isinstance(step, Map)])
        for number in [n for n in self.numbers if n in used]:
            lines.append(f"    const double {number} = loop->numbers[{self.numbers.index(number)}];")
        if "row_size" in used:
            lines.append("    const double row_size = (double)loop->layout.count;")
        lines += [f"    (void){n};" for n in [*self.numbers, "row_size"] if n in used]
        self.joined = False  # now what follows from the totals
        lines += [f"    {line}" for line in [*self._between(1, []), *self._stored_rows()]]
        return "\n".join([*lines, "}", ""])


def _gather(how: str, kind: str) -> str:
    return f"{'wide_' if kind == 'double' else ''}{how}_of_lanes" if kind == "double" else f"TYPED({how}_of_lanes)"


def _filled(call: str, at: str, place: str, width: str, across: int, taken: str = "0") -> str:
    """A call of a pass at a place."""
    text = call.replace("AT_PLACE", place).replace("+ AT", f"+ {at}")
    return text.replace("WIDTH, ACROSS, TAKEN", f"{width}, {across}, {int(taken != '0')}, {taken}").replace(" + 0", "")


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]
