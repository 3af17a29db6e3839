"""Expressions as C writes them: REAL is float or double, functions are those of native/functions.h."""

from __future__ import annotations

import math

from pullback.expressions.functions import FUNCTIONS
from pullback.expressions.tree import MASK, Expr, Load, Number, Operation, Program, Quoted, Select


def print_c(expression: Expr, *, by_libm: bool = False) -> str:
    """The expression in C; `by_libm`: functions whose vector code covers a range only are libm's."""
    match expression:
        case Load():
            return expression.name
        case Number():
            return literal(expression.value)
        case Quoted():
            return '"' + expression.value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        case Select():
            parts = [print_c(p, by_libm=by_libm) for p in (expression.mask, expression.first, expression.second)]
            return f"({parts[0]} ? {parts[1]} : {parts[2]})"
    return _operation(expression, [print_c(argument, by_libm=by_libm) for argument in expression.arguments], by_libm)


def _operation(operation: Operation, arguments: list[str], by_libm: bool) -> str:
    name = operation.name
    function = FUNCTIONS.get(name)
    if function is not None and operation.kind == "number":  # of the call's own numbers, in double
        return f"{'fabs' if name == 'abs' else name}({', '.join(arguments)})"
    if function is not None:
        word = f"libm_{function.c}" if by_libm and function.libm else function.c
        return f"{word}({', '.join(arguments)})"
    match name:
        case "neg":
            return f"(-{arguments[0]})"
        case "!":
            return f"(!{arguments[0]})"
        case "real":
            return f"(REAL){arguments[0]}"
        case "absent":
            return f"absent({arguments[0]})"
        case "same_text":
            return f"!strcmp({arguments[0]}, {arguments[1]})"
        case "float32_overflow":
            return f"fabs({arguments[0]}) > FLT_MAX && fabs({arguments[0]}) <= DBL_MAX"
        case "beyond_angle":
            return f"abs_of({arguments[0]}) > (REAL)LARGEST_ANGLE"
        case "beyond_quotient":
            return f"abs_of({arguments[0]} / {arguments[1]}) > LARGEST_QUOTIENT({arguments[0]})"
    # A test on the whole call stands alone; one on elements stands inside of an expression.
    text = f"{arguments[0]} {name} {arguments[1]}"
    return text if operation.kind == "condition" else f"({text})"


def print_steps(program: Program, *, by_libm: bool = False) -> list[str]:
    """The steps of a program as declarations."""
    return [
        f"const {'int' if step.value.kind == MASK else 'REAL'} {step.name} = {print_c(step.value, by_libm=by_libm)};"
        for step in program.steps
    ]


def literal(value: float) -> str:
    """A Python number as C writes it."""
    if math.isinf(value):
        return "INFINITY" if value > 0 else "(-INFINITY)"
    if math.isnan(value):
        return "NAN"
    return repr(value) if value >= 0 else f"({value!r})"
