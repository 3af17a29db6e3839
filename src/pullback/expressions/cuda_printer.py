"""Expressions as kernels of CUDA: one element per thread and turn, in float or double as REAL says."""

from __future__ import annotations

from pullback.expressions.c_printer import literal, print_c
from pullback.expressions.functions import FUNCTIONS
from pullback.expressions.tree import MASK, Expr, Load, Number, Operation, Program, Quoted, Select

PREAMBLE = """
#ifndef REAL
#define REAL float
#endif
#ifndef INFINITY
#define INFINITY __longlong_as_double(0x7ff0000000000000LL)
#define NAN __longlong_as_double(0x7ff8000000000000LL)
#endif
/* NaN wins, as in NumPy. */
static __device__ inline REAL maximum_of(REAL a, REAL b) { return a != a || a > b ? a : b; }
static __device__ inline REAL minimum_of(REAL a, REAL b) { return a != a || a < b ? a : b; }
static __device__ inline REAL logaddexp_of(REAL a, REAL b)
{
    const REAL most = maximum_of(a, b), least = minimum_of(a, b);
    return most == least ? most + (REAL)0.6931471805599453 : most + log1p(exp(least - most));
}
static __device__ inline REAL sinc_of(REAL x) { return x == 0 ? (REAL)1 : sinpi(x) / ((REAL)3.141592653589793 * x); }
static __device__ inline REAL remainder_from_of(REAL rest, REAL divisor)
{
    return rest != 0 && (rest < 0) != (divisor < 0) ? rest + divisor : rest;
}
static __device__ inline REAL floor_quotient_of(REAL a, REAL b, REAL rest)
{
    const REAL whole = rest != 0 && (rest < 0) != (b < 0) ? (a - rest) / b - 1 : (a - rest) / b;
    return b == 0 ? a / b : whole == 0 ? copysign((REAL)0, a / b) : floor(whole + (REAL)0.5);
}
static __device__ inline float largest_like(float x) { return 3.402823466e+38f; }
static __device__ inline double largest_like(double x) { return 1.7976931348623157e+308; }
"""
"""What printed kernels call and CUDA has no word for."""

_MISSING = ("digamma",)


class Unprintable(Exception):
    """A function that CUDA does not have."""


def print_cuda(expression: Expr) -> str:
    """The expression in CUDA: as in C, by the names of its own library."""
    match expression:
        case Load():
            return expression.name
        case Number():
            return literal(expression.value)
        case Quoted():
            raise Unprintable("a string: tests on the call are decided before a kernel is chosen")
        case Select():
            parts = [print_cuda(p) for p in (expression.mask, expression.first, expression.second)]
            return f"({parts[0]} ? {parts[1]} : {parts[2]})"
    if expression.name in _MISSING:
        raise Unprintable(f"CUDA has no {expression.name}")
    arguments = tuple([_Printed(print_cuda(argument)) for argument in expression.arguments])
    function = FUNCTIONS.get(expression.name)
    if function is not None:
        return f"{function.cuda}({', '.join(a.name for a in arguments)})"
    return print_c(Operation(expression.name, arguments, expression.kind))


class _Printed(Load):
    """An argument that is text already."""


def print_cuda_steps(program: Program) -> list[str]:
    """The steps of a program as declarations."""
    return [
        f"const {'bool' if step.value.kind == MASK else 'REAL'} {step.name} = {print_cuda(step.value)};"
        for step in program.steps
    ]
