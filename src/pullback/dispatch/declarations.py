"""What `backward=` of a declaration says: one call of ATen's for all gradients, or an expression per input."""

from __future__ import annotations

import ast
from functools import cache
from typing import NamedTuple

from pullback.generated.registry import OPERATIONS, Operation


class BackwardLine(NamedTuple):
    """An expression, and the call in it, if there is one, of an operator that only backward passes use."""

    text: str
    call: str


def backward_lines(operation: Operation) -> list[tuple[str | None, BackwardLine]]:
    """The declared lines with the input each is for; None for a call that gives the gradients of all."""
    return _lines(operation.name)


@cache
def _lines(name: str) -> list[tuple[str | None, BackwardLine]]:
    text = OPERATIONS[name].backward
    if not text:
        return []
    tree = ast.parse(text, mode="eval").body
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id == "wrt":
        return [(str(k.arg), _line(k.value)) for k in tree.keywords]
    return [(None, _line(tree))]


def _line(tree: ast.expr) -> BackwardLine:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and "backward" in ast.unparse(node.func):
            return BackwardLine(ast.unparse(tree), ast.unparse(node))
    return BackwardLine(ast.unparse(tree), "")
