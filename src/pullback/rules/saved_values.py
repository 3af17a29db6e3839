"""Finds, from the syntax tree, what each line of a rule reads: that is what the node must save."""

from __future__ import annotations

import ast
import functools
from dataclasses import dataclass, field

from pullback.facts import fact_of
from pullback.rules.model import Line, Operation, Rule


@dataclass
class Uses:
    """What an expression reads of the operation's inputs and outputs."""

    values: set[str] = field(default_factory=set)
    attributes: set[tuple[str, str]] = field(default_factory=set)
    assignments: list[str] = field(default_factory=list)

    def merge(self, other: Uses) -> None:
        self.values |= other.values
        self.attributes |= other.attributes
        self.assignments += [a for a in other.assignments if a not in self.assignments]


class SavedValues:
    """The saved values of one operation, per line and in all."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        rule = operation.rule
        self._tensors = {p.name for p in operation.kernel.tensors} | set(rule.outputs)
        self._plain = {p.name for p in operation.kernel.parameters if not p.is_tensor}
        self._assigned = dict(rule.assignments)
        self.of_line = {line.parameter: self.uses(line.expression) for line in rule.lines if not line.not_implemented}
        total = Uses()
        for uses in self.of_line.values():
            total.merge(uses)
        self.total = total
        total.values |= self._shown_in_backward()

    def _shown_in_backward(self) -> set[str]:
        """Parameters that only the declared call of ATen's has, as a kernel size, or that PyTorch's node shows."""
        options = self.operation.rule.options
        text = str(options.get("backward", ""))
        names = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
        names.update(str(options.get("shows", "")).split())
        return {name for name in names if name in self._plain}

    def uses(self, expression: ast.expr) -> Uses:
        """What `expression` reads, through assigned names."""
        uses = Uses()
        attribute_bases: set[int] = set()
        for node in ast.walk(expression):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in self._tensors:
                attribute_bases.add(id(node.value))
                uses.attributes.add((node.value.id, node.attr))
        for node in ast.walk(expression):
            if not isinstance(node, ast.Name) or id(node) in attribute_bases:
                continue
            if node.id in self._assigned:
                uses.merge(self.uses(self._assigned[node.id]))
                if node.id not in uses.assignments:
                    uses.assignments.append(node.id)
            elif node.id in self._tensors or node.id in self._plain:
                uses.values.add(node.id)
        return uses

    def tensors(self) -> list[str]:
        """Tensor inputs and outputs whose values are saved, in the order of the signature."""
        names = [p.name for p in self.operation.kernel.tensors] + list(self.operation.rule.outputs)
        return [n for n in names if n in self.total.values]

    def plain(self) -> list[str]:
        """Other parameters that are saved."""
        return [p.name for p in self.operation.kernel.parameters if p.name in self.total.values and not p.is_tensor]

    def attributes(self) -> list[tuple[str, str]]:
        """(tensor, attribute) pairs that are saved; ndim follows from shape."""
        pairs = {
            (name, "shape" if attr == "ndim" else attr)
            for name, attr in self.total.attributes
            if attr not in ("device", "column_major")
        }
        return sorted(pairs)

    def readers(self, name: str) -> list[str]:
        """The inputs whose gradient needs the saved tensor `name`."""
        return [parameter for parameter, uses in self.of_line.items() if name in uses.values]


@functools.cache
def saved_values(operation: Operation) -> SavedValues:
    """The saved values of an operation, found once."""
    return SavedValues(operation)


FILLED = -2
IN_FULL = -3
"""In the place of whether an array is fresh: how it is shown. See Note [Owned gradients]."""


def how_shown(line: Line) -> int:
    """FILLED for the gradient of a sum over everything, IN_FULL for that of a mean, 0 for all others."""
    call = line.expression
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return 0
    if call.func.attr == "mean_grad":
        return IN_FULL
    is_of_all = call.func.attr == "expand_reduced" and isinstance(call.args[2], ast.Constant)
    return FILLED if is_of_all else 0


def is_fresh(line: Line, rule: Rule) -> bool:
    """Whether the line's array is surely a new one that nobody else holds. See Note [Owned gradients]."""
    return line.not_implemented is None and (
        _fresh(line.expression, dict(rule.assignments)) or _is_fresh_part(line.expression, rule)
    )


def _is_fresh_part(expression: ast.expr, rule: Rule) -> bool:
    """Whether this is one of the new arrays that a kernel returned together."""
    if not isinstance(expression, ast.Subscript) or not isinstance(expression.value, ast.Name):
        return False
    made = dict(rule.assignments).get(expression.value.id)
    return (
        isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute) and bool(fact_of(made.func.attr, "fresh"))
    )


def _fresh(expression: ast.expr, assigned: dict[str, ast.expr]) -> bool:
    if isinstance(expression, ast.IfExp):
        if isinstance(expression.test, ast.Attribute) and expression.test.attr == "column_major":
            return _fresh(expression.orelse, assigned)  # what arrays compute
        return _fresh(expression.body, assigned) and _fresh(expression.orelse, assigned)
    if isinstance(expression, ast.Name):
        return expression.id in assigned and _fresh(assigned[expression.id], assigned)
    if isinstance(expression, ast.BinOp):
        return True
    if isinstance(expression, ast.UnaryOp):
        return isinstance(expression.op, ast.USub)
    if isinstance(expression, ast.Call) and isinstance(expression.func, ast.Attribute):
        if expression.func.attr == "depending_on":
            return _fresh(expression.args[0], assigned)
        return bool(fact_of(expression.func.attr, "fresh"))
    return False
