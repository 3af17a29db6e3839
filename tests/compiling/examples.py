"""Every example with its training step and its functions compiled, beside the example as it stands.

`python -m tests.compiling.examples [names]`, or `make compiled-examples`. What they print must agree, and programs must
have run. Losses are rounded differently, and training makes more of it: the numbers of the first line agree to a
thousandth, those of the last to a tenth.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pullback
from pullback.compiling.entries import Entry
from pullback.source_text import run_text

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
_LEFT_OUT = ("demo",)
_NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
_TIMES = re.compile(r"\d[\d.,]* *(?:s|ms|seconds|steps/s|KiB|MiB|MB|tokens/s|per second)\b")
_COMPILE = "compile_by_pullback"


class _Decorated(ast.NodeTransformer):
    """Compiles every function at the top of a file and every forward, and the step of training loops."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.body = _with_steps(node.body, node)
        trains = "training_step" in [part.name for part in ast.walk(node) if isinstance(part, ast.FunctionDef)]
        if node.name != "main" and not node.decorator_list and not trains:  # `main` reads arguments and prints
            node.decorator_list = [ast.copy_location(ast.Name(_COMPILE, ast.Load()), node)]
        return node  # functions inside of it are part of it

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        for item in node.body:
            if isinstance(item, ast.FunctionDef) and item.name == "forward":
                self.visit_FunctionDef(item)
        return node


def _with_steps(body: list[ast.stmt], function: ast.FunctionDef) -> list[ast.stmt]:
    """Statements in which the training step of each innermost loop that has one is a compiled function."""
    made: list[ast.stmt] = []
    for statement in body:
        inner = [part for part in ast.walk(statement) if isinstance(part, ast.For) and part is not statement]
        if isinstance(statement, ast.For) and not any(map(_count_steps, inner)):
            made += _with_step(statement, function)
            continue
        for name in ("body", "orelse"):
            if isinstance(getattr(statement, name, None), list) and not isinstance(statement, ast.FunctionDef):
                setattr(statement, name, _with_steps(getattr(statement, name), function))
        made.append(statement)
    return made


def _count_steps(loop: ast.For) -> int:
    """How many statements of a loop are its training step; 0 if it trains nothing."""
    ends = [n for n, part in enumerate(loop.body, 1) if re.search(r"optimizer\.step\(|\.backward\(", ast.unparse(part))]
    if not ends and ast.unparse(loop.iter) == "range(options.steps)":  # without an optimizer: all but the report
        ends = [n for n, part in enumerate(loop.body, 1) if "print(" not in ast.unparse(part)]
    return ends[-1] if ends else 0


def _with_step(loop: ast.For, function: ast.FunctionDef) -> list[ast.stmt]:
    count = _count_steps(loop)
    if not count:
        return [loop]
    step, rest = loop.body[:count], loop.body[count:]
    stored: list[str] = []
    carried: list[str] = []
    for statement in step:
        _follow(statement, stored, carried)
    outside = Counter(_loaded([function])) - Counter(_loaded(step))
    names = [name for name in dict.fromkeys(stored) if outside[name] or name in carried]
    given = [n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name) and n.id in _loaded(step)]
    given += [name for name in dict.fromkeys(carried) if name in stored]
    head = f"@{_COMPILE}\ndef training_step({', '.join(given)}):\n    return ({''.join(f'{n}, ' for n in names)})\n"
    made: Any = ast.parse(head).body[0]
    made.body = [*step, *made.body]
    call = f"{''.join(f'{n}, ' for n in names)} = " if names else ""
    loop.body = [*ast.parse(f"{call}training_step({', '.join(given)})").body, *rest]
    return [ast.copy_location(made, step[0]), loop]


def _follow(part: Any, stored: list[str], carried: list[str]) -> None:
    """Note the names that code sets, and those that it reads before, in the order in which it runs."""
    if isinstance(part, (ast.ListComp, ast.GeneratorExp, ast.DictComp, ast.SetComp, ast.Lambda)):
        own = {n.id for n in ast.walk(part) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        carried += [name for name in _loaded([part]) if name not in own and name not in stored]
    elif isinstance(part, ast.Name):
        (carried if isinstance(part.ctx, ast.Load) and part.id not in stored else stored).append(part.id)
    elif isinstance(part, (ast.Assign, ast.AugAssign, ast.For)):
        first = part.iter if isinstance(part, ast.For) else part.value
        _follow(first, stored, carried)
        for child in ast.iter_child_nodes(part):
            if child is not first:
                _follow(child, stored, carried)
    else:
        for child in ast.iter_child_nodes(part):
            _follow(child, stored, carried)


def _loaded(parts: list[Any]) -> list[str]:
    return [n.id for part in parts for n in ast.walk(part) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]


def output_of(name: str, *, compiles: bool) -> str:
    """What an example prints."""
    file = EXAMPLES / f"{name}.py"
    text = file.read_text(encoding="utf-8")
    if compiles:  # compile reads the text of what it cuts
        text = ast.unparse(ast.fix_missing_locations(_Decorated().visit(ast.parse(text))))
    scope: dict[str, Any] = {"__name__": "__main__", "__file__": str(file), _COMPILE: pullback.compile}
    pullback.manual_seed(0)
    former, sys.argv = sys.argv, [str(file)]
    told = io.StringIO()
    try:
        with contextlib.redirect_stdout(told):
            run_text(text, f"<{name}, {'compiled' if compiles else 'eager'}>", scope)
    finally:
        sys.argv = former
    return told.getvalue()


def difference(name: str) -> str:
    """In which lines the two outputs differ; empty if they agree."""
    expected, actual = (_TIMES.sub("", output_of(name, compiles=compiles)) for compiles in (False, True))
    rows = [[list(map(float, _NUMBER.findall(line))) for line in text.splitlines()] for text in (expected, actual)]
    rows = [[row for row in table if row] for table in rows]
    if not rows[0] or list(map(len, rows[0])) != list(map(len, rows[1])):
        return f"{name} prints other lines:\n{expected}\n{actual}"
    for place, tolerance in ((0, 1e-3), (-1, 0.1)):
        for one, other in zip(rows[0][place], rows[1][place], strict=True):
            if abs(one - other) > tolerance * max(abs(one), 0.05):
                return f"{name}: {one} and {other}\n{expected}\n{actual}"
    return ""


@contextlib.contextmanager
def counting_runs() -> Iterator[Counter[str]]:
    """How often programs run meanwhile, under "runs": those of functions that are freed by the end are counted too."""
    count: Counter[str] = Counter()
    run = Entry.run

    def counted(entry: Entry, *args: Any) -> Any:
        count["runs"] += 1
        return run(entry, *args)

    with mock.patch.object(Entry, "run", counted):
        yield count


def main() -> int:
    """Compare the examples, and tell how often Python was skipped."""
    names = sys.argv[1:] or sorted(path.stem for path in EXAMPLES.glob("*.py") if path.stem not in _LEFT_OUT)
    wrong = 0
    for name in names:
        pullback.compiler.reset()
        begin = time.perf_counter()
        with counting_runs() as count:
            told = difference(name)
        if not told and not count["runs"]:
            told = "no program ran"
        wrong += bool(told)
        print(f"{name}: {count['runs']} runs of programs, {time.perf_counter() - begin:.0f} s {told}", flush=True)
    print(f"{len(names)} examples, {wrong} differ")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
