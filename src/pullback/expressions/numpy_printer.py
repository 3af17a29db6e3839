"""Expressions as NumPy writes them: whole arrays, one call per operation."""

from __future__ import annotations

import math

from pullback.expressions.functions import FUNCTIONS
from pullback.expressions.tree import Expr, Load, Number, Operation, Program, Quoted, Select


def print_numpy(expression: Expr) -> str:
    """The expression in Python, over arrays; `np` is NumPy, and `F` has the kernels that NumPy lacks.

    >>> from pullback.expressions.tree import Load, Number, Operation, Select
    >>> x, zero = Load("x"), Operation("real", (Number(0),))
    >>> print_numpy(Select(Operation(">", (x, zero), "mask"), Operation("exp", (x,)), zero))
    'np.where((x > 0), np.exp(x), 0)'
    """
    match expression:
        case Load():
            return expression.name
        case Number():
            return _literal(expression.value)
        case Quoted():
            return repr(expression.value)
        case Select():
            parts = [print_numpy(p) for p in (expression.mask, expression.first, expression.second)]
            return f"np.where({', '.join(parts)})"
    return _operation(expression, [print_numpy(argument) for argument in expression.arguments])


def _operation(operation: Operation, arguments: list[str]) -> str:
    match operation.name:
        case "neg":
            return f"(-{arguments[0]})"
        case "!":
            return f"(~{arguments[0]})"
        case "real":
            return arguments[0]
        case "absent":
            return f"({arguments[0]} is None)"
        case "same_text":
            return f"({arguments[0]} == {arguments[1]})"
        case "remainder_from":
            rest, divisor = arguments
            return f"np.where(({rest} != 0) & (({rest} < 0) != ({divisor} < 0)), {rest} + {divisor}, {rest})"
        case "floor_quotient":
            return f"np.floor_divide({arguments[0]}, {arguments[1]})"
        case "largest_like":
            return f"np.finfo({arguments[0]}.dtype).max"
    function = FUNCTIONS.get(operation.name)
    if function is not None:
        return f"{function.numpy}({', '.join(arguments)})"
    return f"({arguments[0]} {operation.name} {arguments[1]})"


def print_numpy_function(name: str, parameters: list[str], program: Program) -> str:
    """A function of arrays that computes a program."""
    steps = [f"    {step.name} = {print_numpy(step.value)}" for step in program.steps]
    head = f"def {name}({', '.join(parameters)}):"
    return "\n".join([head, *steps, f"    return {print_numpy(program.result)}", ""])


def _literal(value: float) -> str:
    if math.isnan(value):
        return "np.nan"
    if math.isinf(value):
        return "np.inf" if value > 0 else "(-np.inf)"
    return repr(value) if value >= 0 else f"({value!r})"
