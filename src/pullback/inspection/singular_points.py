"""Where operations and their derivatives are not finite, and what is said of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pullback.graph.node import Node
from pullback.graph.saved_tensor import forward_name


class Wording(NamedTuple):
    """What is said of a kind: of a derivative, of the operation itself, and what to do about it."""

    derivative: str
    value: str
    remedy: str


_TOO_LARGE = "the result is too large for the dtype"
_BIGGER = (
    "Make weights or steps smaller, clip gradients in the steps before, normalize what grows, or use a wider dtype."
)
_AWAY_FROM_ZERO = "Add a small number to the operand, clamp() it away from zero, or leave such elements out."
_KINDS = {
    "domain": Wording(
        "the operand is outside of the domain of {operation}",
        "the operand is outside of the domain of {operation}",
        "Keep the operand inside of the domain: clamp() it, or use a form that is defined there.",
    ),
    "overflow": Wording(_TOO_LARGE, _TOO_LARGE, _BIGGER),
    "zero_times_infinity": Wording(
        "a gradient of zero met an infinite derivative, and 0 * inf is NaN{branch}",
        "a zero met an infinity, and 0 * inf is NaN",
        "Make the operand harmless before the operation, not its result: "
        "where(mask, operation(where(mask, x, 1.0)), 0.0).",
    ),
    "division_by_zero": Wording(
        "the derivative of {operation} divides by zero there",
        "{operation} of this is not finite",
        _AWAY_FROM_ZERO,
    ),
    "nan_came_in": Wording(
        "a NaN or an infinity came in with the operands",
        "a NaN or an infinity came in with the operands",
        "Look at where the data come from: isfinite(x).all() before the computation.",
    ),
    "earlier_pass": Wording(
        "this pass makes finite gradients, but .grad had a NaN or an infinity before it",
        "",
        "Call zero_grad() before backward(), and diagnose the pass that left it.",
    ),
    "unknown": Wording(
        "{operation} made it of finite numbers", "{operation} made it of finite numbers", "Look at the operands."
    ),
}
_OWN_WORDS = {
    ("Exp", "overflow"): Wording(
        _TOO_LARGE,
        _TOO_LARGE,
        "Compute in logarithms (logsumexp, log_softmax), clamp() the operand, or use a wider dtype.",
    ),
    ("Div", "division_by_zero"): Wording(
        "the derivative of {operation} divides by zero there",
        "it divides by zero",
        _AWAY_FROM_ZERO,
    ),
    ("Softmax", "domain"): Wording(
        "",
        "a row has nothing but -inf (all of it is masked), or a NaN or an infinity",
        "Leave one position of every row unmasked, or mask with a large negative number instead of -inf.",
    ),
    ("NllLoss", "division_by_zero"): Wording(
        "",
        "it is the mean over no target at all: every one is ignore_index, or there is none",
        "Leave such batches out, or use reduction='sum' and divide by the count where that is not zero.",
    ),
    ("Std", "domain"): Wording(
        "",
        "one element has no deviation: it divides by the count less `correction`, which is zero",
        "Use correction=0, or leave groups of one element out.",
    ),
    ("CompiledFunction", "unknown"): Wording(
        "one of the operations of a compiled function made it",
        "one of the operations of a compiled function made it",
        "Call the function itself in place of its compiled form and diagnose that: then its operations are known.",
    ),
    ("LinalgSvd", "division_by_zero"): Wording(
        "the derivative of {operation} divides by differences of singular values, and some are equal or zero",
        "",
        "Use what does not depend on the vectors' choice (svdvals, a norm), or perturb the matrix a little.",
    ),
    ("LinalgEigh", "division_by_zero"): Wording(
        "the derivative of {operation} divides by differences of eigenvalues, and some are equal",
        "",
        "Use what does not depend on the vectors' choice (eigvalsh, a norm), or perturb the matrix a little.",
    ),
}
_ALIKE = {
    "LogSoftmax": "Softmax", "NllLoss2D": "NllLoss", "Var": "Std", "StdMean": "Std", "VarMean": "Std",
    "LinalgEig": "LinalgEigh", "Reciprocal": "Div", "Exp2": "Exp", "Expm1": "Exp", "Cosh": "Exp", "Sinh": "Exp",
}  # fmt: skip


def wording_of(operation: str, kind: str) -> Wording:
    """What is said of a kind where an operation met it."""
    return _OWN_WORDS.get((_ALIKE.get(operation, operation), kind)) or _KINDS[kind]


def _zero(value: Any) -> Any:
    return value == 0


def never(value: Any) -> Any:
    """No finite number at all: what is asked of operations that are finite everywhere."""
    return value != value


# Of one number or of an array of them.
SINGULAR: dict[str, Callable[[Any], Any]] = {
    "Log": _zero, "Log2": _zero, "Log10": _zero, "Sqrt": _zero, "Rsqrt": _zero, "Reciprocal": _zero, "Div": _zero,
    "Pow": _zero, "Norm": _zero, "LinalgVectorNorm": _zero, "Xlogy": _zero, "Atan2": _zero, "Lgamma": _zero, "Std": _zero,
    "Digamma": _zero, "Cdist": _zero, "Logit": lambda value: (value == 0) | (value == 1), "Log1P": lambda value: value == -1,
    "Acos": lambda value: abs(value) == 1, "Asin": lambda value: abs(value) == 1, "Atanh": lambda value: abs(value) == 1,
    "Acosh": lambda value: value == 1, "Erfinv": lambda value: abs(value) == 1,
}  # fmt: skip
"""Operations whose derivative is infinite at some operands."""
OUTSIDE: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("Log", "Log2", "Log10", "Sqrt", "Rsqrt", "Xlogy"), lambda value: value < 0),
    "Log1P": lambda value: value < -1, "Acosh": lambda value: value < 1, "Logit": lambda value: (value < 0) | (value > 1),
    **dict.fromkeys(("Acos", "Asin", "Atanh", "Erfinv"), lambda value: abs(value) > 1),
}  # fmt: skip
POLES = frozenset("Log Log2 Log10 Rsqrt Reciprocal Div Log1P Atanh Lgamma Digamma Logit Erfinv".split())
"""Those that are infinite there themselves."""
DIVIDING = {"Div": ("other",), "Atan2": ("other", "input"), "Xlogy": ("other",), "Pow": ("input",)}
"""Which operands matter, where not all of them do."""
OVER_ROWS = frozenset("Norm LinalgVectorNorm Std Cdist".split())
"""Those whose operands matter together: one zero among others is harmless."""
SWALLOWING = frozenset("Softmax LogSoftmax Logsumexp Exp Sigmoid Max Amax Maximum Relu Clamp".split())
"""Those that give finite numbers where some operands are -inf, as masks put it."""
_EMPTY_ROWS = frozenset("Softmax LogSoftmax".split())
_DEVIATIONS = frozenset("Std Var StdMean VarMean".split())
OPAQUE = frozenset(["CompiledFunction"])
"""Those whose operations nobody sees."""
_MEANS = frozenset("NllLoss NllLoss2D".split())
VECTORS = frozenset("LinalgSvd LinalgEigh LinalgEig".split())
"""Those whose derivatives divide by differences of values that may be equal."""


def operation_of(node: Node) -> str:
    """The name of a node's operation as tables here have it: `LogBackward0` is of `Log`."""
    return forward_name(node.name()).rstrip("0123456789")


def is_singular(name: str, operands: Mapping[str, Any], value: Any) -> Any:
    """Whether the derivative is infinite at a value (or at which of several); of `pow` the exponent decides."""
    exponent = operands.get("exponent")
    if name == "Pow" and isinstance(exponent, int | float) and exponent >= 1:
        return never(value)
    return SINGULAR.get(name, never)(value)


def kind_of(name: str, operands: Mapping[str, Any], incoming: Any, result: Any) -> str:
    """The kind of what an operation, or its derivative where a gradient came in, made of finite operands."""
    values = [at for key in DIVIDING.get(name, operands) if type(at := operands.get(key)) in (int, float)]
    if name in OPAQUE:
        return "unknown"
    if incoming == 0 and result != result:
        return "zero_times_infinity"
    if any(OUTSIDE.get(name, never)(value) for value in values) or _is_root_of_negative(name, operands):
        return "domain"
    if any(is_singular(name, operands, value) for value in values):
        return "division_by_zero"
    if incoming is None and name in _EMPTY_ROWS | _DEVIATIONS:
        return "domain"
    if name in (_MEANS if incoming is None else VECTORS) and result != result:
        return "division_by_zero"
    return "overflow" if isinstance(result, int | float) and math.isinf(result) else "unknown"


def _is_root_of_negative(name: str, operands: Mapping[str, Any]) -> bool:
    base, exponent = operands.get("input"), operands.get("exponent")
    if name != "Pow" or not isinstance(base, int | float) or not isinstance(exponent, int | float):
        return False
    return base < 0 and exponent != int(exponent)
