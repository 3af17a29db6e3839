"""Which expressions of a compiled module get another text for Cython: accesses of tensors, arrays and switches.

They are found in the syntax of the module. What should have been one of them and is not is refused, since compiled as it
stands it would only be slower.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import NamedTuple


class TranslationError(Exception):
    """The Python text is not what the translation expects: compiled as it is, it would only be slower."""


class Edit(NamedTuple):
    """A text in the place of an expression or a statement, and what kind of access it is."""

    node: ast.expr | ast.stmt
    text: str
    kind: str


Finder = Callable[[ast.AST], Edit | None]

KINDS = frozenset((
    "array_of", "counter_of", "fact_of_array", "fact_of_tensor", "field_of_process", "field_of_state", "field_of_tensor",
    "flag", "new_node", "new_tensor", "shapes_differ",
))  # fmt: skip
"""Every kind of access; one that is found in no module any more is refused (`translate_all`)."""

_FACTS = frozenset(("dtype", "shape"))
_FLAGS = frozenset(("c_contiguous", "carray", "writeable"))
_STATE = frozenset(("_requires_grad", "_edge", "_counter", "_array"))
_CHECKED = frozenset(("_requires_grad", "_extra", "_counter"))
_SWITCHES = frozenset(("changed", "diverted", "modes"))


def edits_in(nodes: Iterable[ast.AST], find: Finder) -> list[Edit]:
    """What `find` gives for the outermost nodes for which it gives something."""
    found: list[Edit] = []
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        edit = find(node)
        if edit is None:
            waiting.extend(ast.iter_child_nodes(node))
        else:
            found.append(edit)
    return found


def apply_edits(lines: list[str], edits: Iterable[Edit]) -> None:
    """Put the texts of `edits` in their places, the last of a line first. Each must stand on one line."""
    for node, text, kind in sorted(edits, key=lambda edit: (edit.node.lineno, -edit.node.col_offset)):
        if node.end_lineno != node.lineno:
            raise TranslationError(f"{kind} in line {node.lineno} goes over several lines: {ast.unparse(node)}")
        line = lines[node.lineno - 1].encode()  # `ast` counts columns in bytes
        lines[node.lineno - 1] = (line[: node.col_offset] + text.encode() + line[node.end_col_offset :]).decode()


def in_module_with_switches(node: ast.AST) -> Edit | None:
    """What is read of `process`: a field of the struct."""
    match node:
        case ast.Attribute(ast.Name("process"), attribute, ast.Load()) if attribute in _SWITCHES:
            return Edit(node, f"(<Process?>process).{attribute}", "field_of_process")
    return None


def in_rule(node: ast.AST) -> Edit | None:
    """In the method of a node: what is read of a tensor."""
    match node:
        case ast.Attribute(ast.Name(name), "_counter", ast.Load()) if name != "self":
            return Edit(node, f"counter_of({name})", "counter_of")
        case ast.Attribute(ast.Name(name), "_array", ast.Load()) if name != "self":
            return Edit(node, f"array_of({name})", "array_of")
    return None


def in_module_by_hand(node: ast.AST) -> Edit | None:
    """In a function written by hand: tensors' arrays, and arrays' flags."""
    match node:
        case ast.Attribute(ast.Name(name), "_array", ast.Load()):
            return Edit(node, f"array_of({name})", "array_of")
        case ast.Attribute(ast.Attribute(ast.Name(name), "flags"), attribute, ast.Load()) if attribute in _FLAGS:
            return Edit(node, f"{attribute}_of({name})", "flag")
    return None


def in_checking_module(node: ast.AST) -> Edit | None:
    """In a function that makes sure of its tensors: their fields too."""
    match node:
        case ast.Attribute(ast.Name(name), attribute, ast.Load()) if attribute in _CHECKED:
            return Edit(node, f"(<TensorBase?>{name}).{attribute}", "field_of_tensor")
    return in_module_by_hand(node)


def in_operation(native: frozenset[str]) -> Finder:
    """In a generated operation: the state of tensors as fields (a checked cast: TypeError for anything else).

    `native` are the classes of nodes that the module makes.
    """

    def find(node: ast.AST) -> Edit | None:
        match node:
            case ast.AnnAssign(ast.Name("node"), _, ast.Call(ast.Name("new_node"), [ast.Name(name)], [])) if (
                name in native
            ):
                made = f"node = <{name}>{name}.__new__({name}); node.source = source_line()"
                return Edit(node, made, "new_node")
            case ast.Call(ast.Name("new"), [ast.Name("Tensor")], []):
                return Edit(node, "TensorBase.__new__(Tensor)", "new_tensor")
            case ast.Compare(
                ast.Attribute(ast.Name(name), "shape"), [ast.NotEq()], [ast.Attribute(ast.Name("computed"), "shape")]
            ) if name.endswith("_array"):
                return Edit(node, f"shapes_differ_between({name}, computed)", "shapes_differ")
            case ast.Attribute(ast.Name(name), fact, ast.Load()) if fact in _FACTS and _is_array(name):
                return Edit(node, f"{fact}_of({name})", "fact_of_array")
            case ast.Attribute(ast.Attribute(ast.Name(name), "_array"), fact, ast.Load()) if fact in _FACTS:
                return Edit(node, f"{fact}_of(array_of({name}))", "fact_of_tensor")
            case ast.Attribute(ast.Name(name), "_array", ast.Load()):
                return Edit(node, f"array_of({name})", "array_of")
            case ast.Attribute(ast.Name(name), attribute) if attribute in _STATE:
                return Edit(node, f"(<TensorBase?>{name}).{attribute}", "field_of_state")
            case ast.Call(ast.Name("new_node"), [ast.Name(name), *_]) if name in native:
                raise _missed(node)
            case ast.Call(ast.Name("new")):
                raise _missed(node)
            case ast.Attribute(_, attribute) if attribute in _STATE:
                raise _missed(node)
        return None

    return find


def _is_array(name: str) -> bool:
    return name.endswith("_array") or name == "computed"


def _missed(node: ast.expr) -> TranslationError:
    return TranslationError(f"{node.lineno}: {ast.unparse(node)} was not translated")
