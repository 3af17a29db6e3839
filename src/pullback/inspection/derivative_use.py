"""used_derivatives: which operations a program uses, whose gradients it takes, and by which branches of their rules.

A rule is an expression per input; `a if test else b` in it makes two branches. Tests read plain values only, so they are
evaluated beside the rule, on what the node saved.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pullback.generated.registry import OPERATIONS
from pullback.graph.node import Node
from pullback.modes.node_observer import RunObserver
from pullback.recording.rendered import read_operation
from pullback.rules.emit_apply import Path

__all__ = ["used_derivatives"]


class OperationUse:
    """What was used of one operation."""

    def __init__(self) -> None:
        self.calls = 0
        self.passes = 0
        """How often its gradients were computed."""
        self.inputs: dict[str, set[str]] = {}
        """The inputs whose gradients were computed, each with the dtypes."""
        self.branches: dict[str, set[str]] = {}
        """The branches of the rule that ran, each with the dtypes."""


class used_derivatives(RunObserver):
    """Note which operations the block calls and which of their derivatives backward passes use.

    >>> import pullback
    >>> x = pullback.ones(3, requires_grad=True)
    >>> with used_derivatives() as used:
    ...     pullback.add(x, x, alpha=2).sum().backward()
    >>> sorted(used.operations["add"].branches)
    ['not alpha == 1']
    """

    def __init__(self) -> None:
        self.operations: dict[str, OperationUse] = {}
        self.functions: set[str] = set()
        """Custom Functions whose backward ran."""

    def use_of(self, operation: str) -> OperationUse:
        """The entry of an operation, made on first use."""
        return self.operations.setdefault(operation, OperationUse())

    def _operation(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name = getattr(function, "__name__", "")
        for known in (name, name.removesuffix("_")):
            if known in OPERATIONS:
                self.use_of(known).calls += 1
                break
        else:
            return NotImplemented  # what it is made of is seen instead
        return function(*args, **kwargs)

    def observe(self, node: Any, grads: Sequence[Any], edges: Any, run: Callable[[], Any]) -> Any:
        """Note whose gradients a node computes, and by which branches."""
        inner = getattr(node, "inner", node)  # of a node that stands for another
        if inner.operation in OPERATIONS and not inner.needs_tensors:
            self._note(inner, grads, edges)
        elif inner.needs_tensors:
            self.functions.add(node.name())
        return run()

    def _note(self, node: Node, grads: Sequence[Any], edges: Any) -> None:
        use = self.use_of(node.operation)
        use.passes += 1
        dtype = next((str(grad.dtype).rpartition(".")[2] for grad in grads if grad is not None), "")
        wanted = [name for name, edge in zip(rule_inputs(node.operation), edges, strict=False) if edge is not None]
        for name in wanted:
            use.inputs.setdefault(name, set()).add(dtype)
        for branch in taken_branches(node, grads, wanted):
            use.branches.setdefault(branch, set()).add(dtype)


@functools.cache
def _rule(operation: str) -> Any:
    return read_operation(operation)


def rule_inputs(operation: str) -> tuple[str, ...]:
    """The inputs that a rule has a line for, in the order of the node's edges.

    >>> rule_inputs("mul")
    ('input', 'other')
    """
    return tuple(parameter.name for parameter in _rule(operation).inputs)


@functools.cache
def rule_branches(operation: str) -> tuple[str, ...]:
    """All branches of an operation's rule, as the tests that lead to them.

    Those by memory order are not among them: both ways are one gradient, recorded as PyTorch records it.

    >>> rule_branches("add")
    ('alpha == 1', 'not alpha == 1')
    """
    if OPERATIONS[operation].kind == "non_differentiable":
        return ()
    rule = _rule(operation).rule
    expressions = [line.expression for line in rule.lines] + [expression for _, expression in rule.assignments]
    tests = [ast.unparse(n.test) for e in expressions for n in ast.walk(e) if isinstance(n, ast.IfExp)]
    tests = [test for test in tests if not test.endswith(".column_major")]
    return tuple(dict.fromkeys(branch for test in tests for branch in (test, f"not {test}")))


@functools.cache
def has_second_derivative(operation: str) -> bool:
    """Whether a rule is made of operations that have derivatives themselves.

    >>> has_second_derivative("mul"), has_second_derivative("ctc_loss")
    (True, False)
    """
    rule = _rule(operation).rule
    expressions = [line.expression for line in rule.lines] + [expression for _, expression in rule.assignments]
    called = {
        node.attr for expression in expressions for node in ast.walk(expression)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "F"
    }  # fmt: skip
    known = [OPERATIONS[name] for name in called if name in OPERATIONS]
    return not any(
        part.not_implemented and set(part.differentiable_inputs) <= set(part.not_implemented) for part in known
    )


def taken_branches(node: Any, grads: Sequence[Any], inputs: Sequence[str]) -> Iterator[str]:
    """The branches that a node's rule takes for the gradients of some inputs; where a test cannot be told, none."""
    if not rule_branches(node.operation):
        return
    operation = _rule(node.operation)
    rule = operation.rule
    assigned = dict(rule.assignments)
    scope = {"self": node, "grads": grads, **dict(zip(rule.grads, grads, strict=False))}
    waiting = [line.expression for line in rule.lines if line.parameter in inputs and line.not_implemented is None]
    seen: set[str] = set()
    while waiting:
        expression = waiting.pop()
        if isinstance(expression, ast.Name) and expression.id in assigned and expression.id not in seen:
            seen.add(expression.id)
            waiting.append(assigned[expression.id])
        if not isinstance(expression, ast.IfExp):
            waiting.extend(child for child in ast.iter_child_nodes(expression) if isinstance(child, ast.expr))
            continue
        try:
            text = Path(on_arrays=True).text(expression.test, operation)
            outcome = bool(eval(text, {"len": len, "isinstance": isinstance}, scope))
        except Exception:  # a test on an assigned name, or on a formula: it is not counted
            waiting.extend((expression.body, expression.orelse))
            continue
        yield ast.unparse(expression.test) if outcome else f"not {ast.unparse(expression.test)}"
        waiting.append(expression.body if outcome else expression.orelse)
