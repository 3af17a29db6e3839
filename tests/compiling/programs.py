"""Random programs inside of a compiled function, beside eager execution: views, writes, gradients, branches, random numbers.

`python -m tests.compiling.programs --seed 0 --programs 1000` prints what differs, and how many programs were compiled.
"""

from __future__ import annotations

import argparse
import math
import random
import re
import sys
import warnings
from typing import Any

import pullback
from pullback.compiling import backend, entries
from pullback.source_text import run_text
from tests.compiling.comparison import failures
from tests.fuzz.execution import PRELUDE
from tests.fuzz.generation import make_program

CALLS = 8
_CREATION = re.compile(r"(\w+) = torch\.tensor\(")
_NODE = re.compile(r"\w+Backward\d?\b")
_ASSIGNED = re.compile(r"^(?:with [^:]+: )?([a-z]+) = ")


def _with_python(body: list[str], chance: random.Random) -> list[str]:
    """A body in which, now and then, Python looks at values, loops, branches and remembers something."""
    made: list[str] = []
    known: list[str] = []
    for statement in body:
        match = _ASSIGNED.match(statement)
        made.append(statement)
        if match is not None and match[1] not in known:
            known.append(match[1])
        if known and chance.random() < 0.2:
            name = chance.choice(known)
            made.append(chance.choice(_PYTHON).replace("NAME", name))
    return made


_PYTHON = (
    "if NAME.sum() > 0: NAME = NAME * 2",
    "seen.append(NAME.detach().sum().item())",
    "NAME = NAME * (1 + abs(NAME.detach().sum().item()) % 3)",
    "for _ in range(2): NAME = NAME + (1 if NAME.sum() > 1 else 2)",
    "while NAME.detach().abs().sum() > 100: NAME = NAME * 0.25",
    "NAME = NAME - 1 if NAME.mean(dtype=torch.float64) < 0 else NAME + 1",
    "float(NAME.detach().numpy().sum())",
    "NAME = NAME * rate",
    "NAME = (NAME + rate if rate > 1 else NAME - 2 * rate)",
    "NAME = NAME.mul(math.sqrt(rate))",
    "NAME = NAME * count",
    "NAME = (NAME + count if count > 3 else NAME * (count + 1))",
    "NAME = NAME * table[count]",
    "NAME = NAME - (2.5 * count - NAME.dim())",
)


class Case:
    """A program as a function of the tensors that its first statements make."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        statements = make_program(pullback, seed)
        chance = random.Random(seed)
        self.creations = [s for s in statements if _CREATION.match(s)]
        body = [s for s in statements if not _CREATION.match(s)]
        self.arguments = [match[1] for s in self.creations if (match := _CREATION.match(s)) is not None]
        name = chance.choice(self.arguments)
        if chance.random() < 0.15:
            body.insert(chance.randrange(len(body) + 1), f"if {name}.sum() > 0: {name} = {name} * 2")
        if chance.random() < 0.25:
            body.insert(chance.randrange(len(body) + 1), f"{name} = {name} * torch.rand(())")
        body = _with_python(body, chance)
        assigned = {match[1]: None for s in body if (match := _ASSIGNED.match(s)) is not None}
        self.results = list({**dict.fromkeys(self.arguments), **assigned})
        self.text = "\n".join(
            [f"def program({', '.join(self.arguments)}, rate, count):"]
            + [f"    {statement}" for statement in body]
            + [f"    return {', '.join(self.results)},"]
        )

    def function(self) -> Any:
        """The program, compiled by Python alone."""
        names: dict[str, Any] = {
            "torch": pullback,
            "__name__": "program",
            "seen": [],
            "math": math,
            "table": [1, 2] * 8,
        }
        exec(PRELUDE, names)
        run_text(self.text, f"<program {self.seed}>", names)
        return names["program"]

    def inputs(self, call: int) -> list[Any]:
        """The arguments of one call: other values each time, and other sizes at last."""
        names: dict[str, Any] = {"torch": pullback}
        for statement in self.creations:
            exec(statement, names)
        for name in self.arguments:
            if names[name].is_floating_point():
                with pullback.no_grad():
                    names[name].mul_(1 + 0.125 * call)
            if call >= CALLS - 2 and names[name].ndim:
                longer = pullback.cat([names[name].detach()] * 2)
                names[name] = longer.requires_grad_(names[name].requires_grad)
        return [*[names[name] for name in self.arguments], 0.5 + 0.25 * call, 2 + call // 2]


def outcome(function: Any, inputs: list[Any], seed: int) -> list[Any]:
    """What can be seen of a call: results, arguments, gradients, what was raised, the random stream."""
    pullback.manual_seed(seed)
    seen: list[Any] = []
    try:
        results = function(*inputs)
    except Exception as error:
        return [type(error).__name__, str(error), *[_look(x) for x in inputs], pullback.rand(1).tolist()]
    seen += [_look(x) for x in (*results, *inputs)]
    same = [[a is b for b in (*results, *inputs)] for a in results]
    roots = [r for r in results if isinstance(r, pullback.Tensor) and r.requires_grad and r.is_floating_point()]
    try:
        if roots:
            sum((root * (number + 1)).sum() for number, root in enumerate(roots)).backward()
    except Exception as error:  # which gradients had arrived by then depends on the order of nodes
        text = _NODE.sub("node", str(error))  # a program is one node, whatever it computes
        return [*seen, type(error).__name__, text[:40], same, pullback.rand(1).tolist()]
    return [*seen, same, *[_look(x) for x in inputs], pullback.rand(1).tolist()]


def _look(value: Any) -> Any:
    if not isinstance(value, pullback.Tensor):
        return value
    grad = None if value._grad is None else value._grad.tolist()
    try:
        is_leaf = value.is_leaf
    except RuntimeError as error:  # a view that may not be looked at any more
        is_leaf = type(error).__name__  # type: ignore[assignment]  # compared alone
    return (value.tolist(), value.dtype, tuple(value.shape), value.stride(), value.requires_grad, is_leaf,
            value.is_inference(), grad)  # fmt: skip


def _agree(expected: Any, actual: Any, rounding: float = 1e-3) -> bool:
    """Whether two outcomes are the same; numbers to rounding, since sums are made in another order.

    A program may keep other values for backward than eager execution does, and fewer: where eager execution alone refuses
    a second backward, or one after a modification, what follows is not compared.
    """
    for refused in ("InPlaceModificationError", "GraphFreedError") if isinstance(expected, list) else ():
        if refused in expected and refused not in actual:
            end = expected.index(refused)
            return _agree(expected[:end], actual[:end])
    if isinstance(expected, tuple) and pullback.bfloat16 in expected:
        rounding = 2e-2  # three steps of its eight bits
    if isinstance(expected, (list, tuple)) and type(expected) is type(actual):
        pairs = zip(expected, actual, strict=False)
        return len(expected) == len(actual) and all(_agree(e, a, rounding) for e, a in pairs)
    if isinstance(expected, complex) and isinstance(actual, complex):
        return _agree([expected.real, expected.imag], [actual.real, actual.imag], rounding)
    if isinstance(expected, float) and isinstance(actual, float):
        return math.isclose(expected, actual, rel_tol=rounding, abs_tol=1e-5) or str(expected) == str(actual)
    return bool(expected == actual)


def skipped(compiled: Any) -> int:
    """How often Python was skipped, for the whole function or a piece of it."""
    segments = compiled.segments
    return int(compiled.runs) - failures(compiled) + (0 if segments is None else sum(map(skipped, segments.pieces)))


def difference(case: Case) -> tuple[str | None, int]:
    """What differs between eager and compiled, and how often Python was skipped."""
    eager, compiled = case.function(), pullback.compile(case.function())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in range(CALLS):
            expected = outcome(eager, case.inputs(call), call)
            actual = outcome(compiled, case.inputs(call), call)
            if not _agree(expected, actual):
                parts = [f"{e} / {a}" for e, a in zip(expected, actual, strict=False) if e != a]
                return f"call {call} ({skipped(compiled)} skipped): {parts[0] if parts else 'lengths'}", skipped(
                    compiled
                )
    return ("a program raised, and the function did not" if failures(compiled) else None), skipped(compiled)


def main() -> int:
    """Compare programs and print those that differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--show", type=int, default=10)
    arguments = parser.parse_args()
    backend.PATIENCE = 300.0  # what is compared is compiled
    entries.MOST_SMALL_CALLS = [0, 0]
    wrong = compiled = 0
    for seed in range(arguments.seed, arguments.seed + arguments.programs):
        case = Case(seed)
        try:
            found, runs = difference(case)
        except Exception as error:
            found, runs = f"{type(error).__name__}: {error}", 0
        compiled += runs > 0
        if found is not None:
            wrong += 1
            if wrong <= arguments.show:
                print(f"seed {seed}: {found}", *case.creations, case.text, "", sep="\n")
    print(f"{arguments.programs} programs, {compiled} of them compiled, {wrong} differ")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
