"""The statement of a program in which a line stands: the names that are used around a cut."""

from __future__ import annotations

import ast
import dis
import linecache
from functools import lru_cache

from pullback.graph.source_lines import SourceLine

__all__ = ["goes_to_numpy", "names_at", "names_in_statement"]


def names_at(line: SourceLine) -> set[str]:
    """The names that are read in the lines of an instruction."""
    positions = list(line.code.co_positions())
    first, last, *_ = positions[min(max(line.offset, 0) // 2, len(positions) - 1)]
    names: set[str] = set()
    for instruction in dis.get_instructions(line.code):
        place = instruction.positions
        number = None if place is None else place.lineno
        if number is not None and first is not None and last is not None and first <= number <= last:
            names.add(str(instruction.argval))
    return names


def names_in_statement(line: SourceLine) -> set[str]:
    """The names in the whole statement, which may go over several lines; those at the line where the text is not known."""
    file, number = line.place
    statement = _statement_at(_parsed("".join(linecache.getlines(file))), number)
    if statement is None:
        return names_at(line)
    names: set[str] = set()
    stack: list[ast.AST] = [statement]
    while stack:
        part = stack.pop()
        if isinstance(part, ast.Name):
            names.add(part.id)
        elif isinstance(part, ast.Attribute):
            names.add(part.attr)
        stack.extend(child for child in ast.iter_child_nodes(part) if not isinstance(child, ast.stmt))
    return names


def goes_to_numpy(line: SourceLine) -> bool:
    """Whether all that the function does with the names that a statement sets is to hand them to NumPy."""
    file, number = line.place
    tree = _parsed("".join(linecache.getlines(file)))
    statement = _statement_at(tree, number)
    if tree is None or not isinstance(statement, ast.Assign | ast.AnnAssign):
        return False
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    names = {target.id for target in targets if isinstance(target, ast.Name)}
    read, handed = set[ast.Name](), set[ast.AST]()
    for part in ast.walk(_scope_at(tree, number)):
        if isinstance(part, ast.Name) and part.id in names and part.lineno > number and isinstance(part.ctx, ast.Load):
            read.add(part)
        elif isinstance(part, ast.Attribute) and part.attr == "numpy":
            handed.add(_named_in_chain(part.value))
        elif isinstance(part, ast.Call) and ast.unparse(part.func).startswith(("np.", "numpy.")):
            handed.update(part.args)
    return bool(read) and read <= handed


def _named_in_chain(part: ast.AST) -> ast.AST:
    """The name that a chain of methods begins with: `values` of `values.cpu()`."""
    while isinstance(part, ast.Call | ast.Attribute):
        part = part.func if isinstance(part, ast.Call) else part.value
    return part


def _scope_at(tree: ast.AST, number: int) -> ast.AST:
    """The innermost function whose lines hold the number, or the whole."""
    around = [
        part for part in ast.walk(tree)
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef) and part.lineno <= number <= (part.end_lineno or 0)
    ]  # fmt: skip
    return max(around, key=lambda part: part.lineno, default=tree)


@lru_cache(maxsize=4)
def _parsed(text: str) -> ast.AST | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):  # a cell of a notebook with its own commands, say
        return None


def _statement_at(tree: ast.AST | None, number: int) -> ast.stmt | None:
    """The innermost statement whose lines hold the number."""
    found: ast.stmt | None = None
    stack = [] if tree is None else [tree]
    while stack:
        part = stack.pop()
        for child in ast.iter_child_nodes(part):
            first, last = getattr(child, "lineno", None), getattr(child, "end_lineno", None)
            if first is None or last is None or first <= number <= last:
                stack.append(child)
                if isinstance(child, ast.stmt):
                    found = child
    return found
