"""Every example with each of its functions compiled, beside the example as it stands: what it prints must agree.

`python -m tests.compiling.examples [names]`, or `make compiled-examples`. Losses are rounded differently, and training
makes more of it: the numbers of the first line agree to a thousandth, those of the last to a tenth.
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

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
_LEFT_OUT = ("demo",)
_NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
_TIMES = re.compile(r"\d[\d.,]* *(?:s|ms|seconds|steps/s|KiB|MiB|MB|tokens/s|per second)\b")
_COMPILE = "compile_by_pullback"


class _Decorated(ast.NodeTransformer):
    """Compiles every function at the top of a file and every forward; not `main`, which reads arguments and prints."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        if node.name != "main" and not node.decorator_list:
            node.decorator_list = [ast.copy_location(ast.Name(_COMPILE, ast.Load()), node)]
        return node  # functions inside of it are part of it

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        for item in node.body:
            if isinstance(item, ast.FunctionDef) and item.name == "forward":
                self.visit_FunctionDef(item)
        return node


def output_of(name: str, *, compiles: bool) -> str:
    """What an example prints."""
    file = EXAMPLES / f"{name}.py"
    tree = ast.parse(file.read_text(encoding="utf-8"))
    if compiles:
        tree = ast.fix_missing_locations(_Decorated().visit(tree))
    scope: dict[str, Any] = {"__name__": "__main__", "__file__": str(file), _COMPILE: pullback.compile}
    pullback.manual_seed(0)
    former, sys.argv = sys.argv, [str(file)]
    told = io.StringIO()
    try:
        with contextlib.redirect_stdout(told):
            exec(compile(tree, str(file), "exec"), scope)
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
        wrong += bool(told)
        print(f"{name}: {count['runs']} runs of programs, {time.perf_counter() - begin:.0f} s {told}", flush=True)
    print(f"{len(names)} examples, {wrong} differ")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
