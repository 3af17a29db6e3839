"""Programs along one axis: map over the elements of a row, reduce a row to a number, scan along it, map again.

Softmax is one: the row's maximum, the exponentials of what is below it, their sum, and each by the sum. A step reads the
operands' elements and the steps before it; a reduced step is one number for the whole row.

# Note [Passes of a row program]
A printer goes along the row once per reduction and scan, and once for the result. What a map computed is needed again in
later passes: where it is costly (a fact of its functions) it is kept in memory, else it is computed again, which is
cheaper than to read it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from pullback.expressions.cuda_printer import Unprintable, print_cuda
from pullback.expressions.numpy_printer import print_numpy
from pullback.expressions.tree import NUMBER, Expr, Load, is_costly, loads, substitute, walk

_NUMPY_REDUCTIONS = {"sum": "np.sum", "product": "np.prod", "maximum": "np.max", "minimum": "np.min"}
_NUMPY_SCANS = {
    "sum": "np.cumsum", "product": "np.cumprod", "maximum": "np.maximum.accumulate", "minimum": "np.minimum.accumulate",
}  # fmt: skip
_STARTS = {"sum": "0", "product": "1", "maximum": "(-INFINITY)", "minimum": "INFINITY"}
_JOINS = {
    "sum": "{0} + {1}", "product": "{0} * {1}", "maximum": "maximum_of({0}, {1})", "minimum": "minimum_of({0}, {1})",
}  # fmt: skip


@dataclass(frozen=True)
class Map:
    """A value for every element of the row."""

    name: str
    value: Expr


@dataclass(frozen=True)
class Reduce:
    """One number for the row: the sum, product, maximum or minimum of the values of its elements; `wide`: in float64."""

    name: str
    how: str
    value: Expr
    wide: bool = False


@dataclass(frozen=True)
class Scan:
    """For every element the sum, product, maximum or minimum of the values up to it."""

    name: str
    how: str
    value: Expr


RowStep: TypeAlias = "Map | Reduce | Scan"
Printer: TypeAlias = Callable[[Expr], str]


@dataclass(frozen=True)
class RowProgram:
    """Steps, and the value of every element of the result, or of the row.

    Of the operands, `per_row` have one number for a row, and `along` one row for all rows. `others` are further results.
    Where one of the masks `requires` does not hold, the program does not serve.
    """

    steps: tuple[RowStep, ...]
    result: Expr
    per_row: frozenset[str] = frozenset()
    along: frozenset[str] = frozenset()
    others: tuple[Expr, ...] = ()
    requires: tuple[Expr, ...] = ()

    def names_of_rows(self) -> set[str]:
        """The operands and steps that are one number for a row."""
        names = set(self.per_row)
        elements = {n for v in (*[s.value for s in self.steps], self.result) for n in _arrays(v)} - names
        elements -= {step.name for step in self.steps}
        for step in self.steps:
            if isinstance(step, Reduce) or (isinstance(step, Map) and not _arrays(step.value) & elements):
                names.add(step.name)
            else:
                elements.add(step.name)
        return names

    def has_elements(self, value: Expr) -> bool:
        """Whether a value is another one for each element of the row."""
        return bool(_arrays(value) - self.names_of_rows())

    def kept(self) -> list[str]:
        """The names that must be in memory: scans, and costly maps that a later pass reads."""
        names = []
        for place, step in enumerate(self.steps):
            later = [self.result, *[after.value for after in self.steps[place + 1 :]]]
            ends_pass = any(isinstance(after, (Reduce, Scan)) for after in self.steps[place + 1 :])
            if isinstance(step, Scan) or (
                isinstance(step, Map) and ends_pass and is_costly(step.value) and step.name in loads(*later)
            ):
                names.append(step.name)
        return names


def _arrays(value: Expr) -> set[str]:
    """The names that an expression reads, without numbers of the call."""
    return {part.name for part in walk(value) if isinstance(part, Load) and part.kind != NUMBER}


def print_numpy_rows(name: str, parameters: list[str], program: RowProgram) -> str:
    """A function of arrays whose last axis is the row."""
    lines = [f"def {name}({', '.join(parameters)}):"]
    for step in program.steps:
        text = print_numpy(step.value)
        if isinstance(step, Reduce):
            text = f"{_NUMPY_REDUCTIONS[step.how]}({text}, axis=-1, keepdims=True)"
        elif isinstance(step, Scan):
            text = f"{_NUMPY_SCANS[step.how]}({text}, axis=-1)"
        lines.append(f"    {step.name} = {text}")
    return "\n".join([*lines, f"    return {print_numpy(program.result)}", ""])


def print_cuda_rows(name: str, operands: list[str], program: RowProgram) -> str:
    """A kernel of CUDA with a block for each row; threads of a block reduce together. Scans go along it one by one."""
    if program.kept() and any(isinstance(step, Scan) for step in program.steps):
        raise Unprintable("a scan: its elements wait for each other, which needs a kernel of another form")
    kept = program.kept()
    given = ", ".join(f"const REAL *__restrict__ {operand}_rows" for operand in operands)
    head = f'extern "C" __global__ void {name}(REAL *__restrict__ out_rows, {given}, const long long length'
    lines = [f"{head}, REAL *__restrict__ room)", "{", "    __shared__ REAL parts[32];"]
    lines.append("    const long long row = blockIdx.x;")
    lines += [f"    const REAL *{operand}_at = {operand}_rows + row * length;" for operand in operands]
    count = len(kept)
    lines += [f"    REAL *{step}_at = room + (row * {count} + {place}) * length;" for place, step in enumerate(kept)]
    lines.append("    REAL *out_at = out_rows + row * length;")
    for declared, body, reduced in _passes(program, operands, print_cuda):
        lines += [f"    {text}" for text in declared]
        lines.append("    for (long long i = threadIdx.x; i < length; i += blockDim.x) {")
        lines += [*[f"        {text}" for text in body], "    }"]
        if reduced is not None:
            lines.append(f"    {reduced.name} = reduce_{reduced.how}({reduced.name}, parts);")
    return "\n".join([*lines, "}", ""])


def _passes(
    program: RowProgram, operands: list[str], print_in: Printer
) -> list[tuple[list[str], list[str], Reduce | None]]:
    """What each pass declares before its loop, what its loop does, and what it reduces."""
    kept = set(program.kept())
    maps: dict[str, Expr] = {}
    stored: set[str] = set()
    made: list[tuple[list[str], list[str], Reduce | None]] = []
    pending: list[Map] = []
    for step in (*program.steps, None):
        if isinstance(step, Map):
            maps[step.name] = step.value
            pending.append(step)
            continue
        value = program.result if step is None else step.value
        stores = [m.name for m in pending if m.name in kept]
        needed = _maps_below([value, *[maps[name] for name in stores]], maps, stored)
        elements = [n for n in operands if n in loads(value, *[maps[m] for m in (*needed, *stores)])]
        body = [f"const REAL {operand} = {operand}_at[i];" for operand in elements]
        body += [f"const REAL {n} = {n}_at[i];" for n in sorted(stored & loads(value, *[maps[m] for m in needed]))]
        order = [name for name in maps if (name in needed or name in stores) and name not in stored]
        for name in order:
            body.append(f"const REAL {name} = {print_in(maps[name])};")
        body += [f"{name}_at[i] = {name};" for name in stores]
        declared: list[str] = []
        if isinstance(step, Reduce):
            declared.append(f"REAL {step.name} = {_STARTS[step.how]};")
            body.append(f"{step.name} = {_JOINS[step.how].format(step.name, print_in(value))};")
        elif isinstance(step, Scan):
            declared.append(f"REAL {step.name}_so_far = {_STARTS[step.how]};")
            body.append(f"{step.name}_so_far = {_JOINS[step.how].format(f'{step.name}_so_far', print_in(value))};")
            body.append(f"{step.name}_at[i] = {step.name}_so_far;")
        else:
            body.append(f"out_at[i] = {print_in(value)};")
        made.append((declared, body, step if isinstance(step, Reduce) else None))
        stored |= set(stores) | ({step.name} if isinstance(step, Scan) else set())
        pending = []
    return made


def _maps_below(values: list[Expr], maps: dict[str, Expr], stored: set[str]) -> set[str]:
    """The maps that values read, directly or through others, and that are not in memory."""
    found: set[str] = set()
    stack = list(values)
    while stack:
        for name in loads(stack.pop()):
            if name in maps and name not in found and name not in stored:
                found.add(name)
                stack.append(maps[name])
    return found


def fuse_rows(program: RowProgram, name: str, value: Expr) -> RowProgram:
    """The program with an expression in the place of an operand: what made its rows is computed on the way."""
    read = sum(name in loads(expression) for expression in (program.result, *[step.value for step in program.steps]))
    if read > 1:
        return RowProgram((Map(name, value), *program.steps), program.result)
    steps = [type(step)(**{**vars(step), "value": substitute(step.value, {name: value})}) for step in program.steps]
    return RowProgram(tuple(steps), substitute(program.result, {name: value}))


REDUCTIONS = "".join(
    f"""
static __device__ inline REAL reduce_{how}(REAL value, REAL *parts)
{{
    for (int step = 16; step; step >>= 1)
        value = {join.format("value", "__shfl_xor_sync(0xffffffffu, value, step)")};
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = threadIdx.x % 32 < (blockDim.x + 31) / 32 ? parts[threadIdx.x % 32] : (REAL){_STARTS[how]};
    for (int step = 16; step; step >>= 1)
        value = {join.format("value", "__shfl_xor_sync(0xffffffffu, value, step)")};
    return value;
}}
"""
    for how, join in _JOINS.items()
)
"""The functions by which the threads of a block reduce together: warps by shuffling, then their parts."""
