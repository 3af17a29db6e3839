"""Where operations and their derivatives are not finite, and what is said of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from pullback.facts import fact_of
from pullback.graph.custom_function_node import BackwardCFunction
from pullback.graph.node import Node
from pullback.graph.saved_tensor import forward_name
from pullback.inspection.nodes import acting_node


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
    "hook": Wording(
        "without hooks this pass makes finite gradients",
        "",
        "Look at what the hook returns, and call zero_grad() before backward(): an earlier pass may have left it, too.",
    ),
    "unknown": Wording(
        "{operation} made it of finite numbers", "{operation} made it of finite numbers", "Look at the operands."
    ),
}
_OWN_WORDS = {
    ("by growing", "overflow"): Wording(
        _TOO_LARGE,
        _TOO_LARGE,
        "Compute in logarithms (logsumexp, log_softmax), clamp() the operand, or use a wider dtype.",
    ),
    ("by dividing", "division_by_zero"): Wording(
        "the derivative of {operation} divides by zero there",
        "it divides by zero",
        _AWAY_FROM_ZERO,
    ),
    ("on empty rows", "domain"): Wording(
        "",
        "a row has nothing but -inf (all of it is masked), or a NaN or an infinity",
        "Leave one position of every row unmasked, or mask with a large negative number instead of -inf.",
    ),
    ("as an empty mean", "division_by_zero"): Wording(
        "",
        "it is the mean over no target at all: every one is ignore_index, or there is none",
        "Leave such batches out, or use reduction='sum' and divide by the count where that is not zero.",
    ),
    ("as a mean", "division_by_zero"): Wording(
        "",
        "it is the mean of no elements at all",
        "Leave empty selections out (if x.numel() > 0), or divide the sum by the count where that is not zero.",
    ),
    ("on single elements", "domain"): Wording(
        "",
        "one element has no deviation: it divides by the count less `correction`, which is zero",
        "Use correction=0, or leave groups of one element out.",
    ),
    ("CompiledFunction", "unknown"): Wording(
        "one of the operations of a compiled function made it",
        "one of the operations of a compiled function made it",
        "Keep the graph (retain_graph=True) and diagnose it again, or call the function itself in place of its compiled "
        "form: then its operations are known.",
    ),
    ("custom Function", "division_by_zero"): Wording(
        "the backward of the custom Function made it, and a value that it saved is zero there",
        "",
        "Look at {code}: what it divides by is to be kept away from zero.",
    ),
    ("custom Function", "unknown"): Wording(
        "the backward of the custom Function made it of finite numbers",
        "the forward of the custom Function made it of finite numbers",
        "Look at {code}.",
    ),
    ("on singular matrices", "division_by_zero"): Wording(
        "",
        "the determinant is zero: the matrix is singular",
        "Add a small multiple of the identity matrix, or leave singular matrices out.",
    ),
    ("on equal singular values", "division_by_zero"): Wording(
        "the derivative of {operation} divides by differences of singular values, and some are equal or zero",
        "",
        "Use what does not depend on the vectors' choice (svdvals, a norm), or perturb the matrix a little.",
    ),
    ("on equal eigenvalues", "division_by_zero"): Wording(
        "the derivative of {operation} divides by differences of eigenvalues, and some are equal",
        "",
        "Use what does not depend on the vectors' choice (eigvalsh, a norm), or perturb the matrix a little.",
    ),
}
"""What is said of operations that break in a way of their own: the fact `breaks`, see facts.py."""


GROWING = ("by growing", "with its exponent")
"""How operations break that give infinities of large numbers."""
OPAQUE = "CompiledFunction"
"""The operation whose own operations nobody sees."""
CUSTOM = "custom Function"
"""The operation of nodes whose derivative is code of the program."""


def operation_of(node: Node) -> str:
    """The operation whose facts say where a node breaks; of others `CUSTOM`, or the name, as `CompiledFunction`."""
    acting = acting_node(node)
    return CUSTOM if isinstance(acting, BackwardCFunction) else acting.operation or forward_name(node.name())


def wording_of(operation: str, kind: str) -> Wording:
    """What is said of a kind where an operation met it."""
    own = _OWN_WORDS.get((how_it_breaks(operation), kind))
    if own is not None:
        return own
    ends = _ends(operation) or (0.0, math.inf)
    words = _KINDS[kind]
    if kind != "division_by_zero" or ends == (0.0, math.inf):
        return words
    inside = f"> {ends[0]:g}" if ends[1] == math.inf else f"between {ends[0]:g} and {ends[1]:g}"
    return words._replace(
        remedy=f"Keep the operand strictly {inside}: clamp() it a little inside of that, or leave such elements out."
    )


def how_it_breaks(operation: str) -> str:
    """The fact `breaks` of an operation."""
    return operation if operation in (OPAQUE, CUSTOM) else fact_of(operation, "breaks") or ""


def deciding_operands(operation: str) -> list[str] | None:
    """The operands that decide where it is infinite; None where all of them do."""
    names = fact_of(operation, "divides_by")
    return None if names is None else names.split()


def is_pole(operation: str) -> bool:
    """Whether an operation is infinite itself where its derivative is."""
    return bool(fact_of(operation, "infinite") == "value")


def has_singular_points(operation: str) -> bool:
    """Whether the derivative of an operation is infinite at some operands."""
    return fact_of(operation, "infinite") is not None


def sees_rows(operation: str) -> bool:
    """Whether operands matter together: one zero among others is harmless."""
    return bool(fact_of(operation, "structure") != "elementwise")


def divides_by_differences(operation: str) -> bool:
    """Whether the derivative divides by differences of values that may be equal."""
    return how_it_breaks(operation).startswith("on equal")


def has_domain(operation: str) -> bool:
    """Whether an operation is not defined for all numbers."""
    return fact_of(operation, "domain") is not None


def is_outside(operation: str, value: Any) -> Any:
    """Whether a value (or which of an array of them) lies outside of an operation's domain."""
    if isinstance(value, complex):
        return False  # numbers without an order: what has ends is defined beyond them
    least, greatest = _ends(operation) or (-math.inf, math.inf)
    return (value < least) | (value > greatest)


def is_singular(operation: str, operands: Mapping[str, Any], value: Any) -> Any:
    """Whether the derivative is infinite at a value (or at which of several); of `pow` the exponent decides."""
    exponent = operands.get("exponent")
    is_smooth = isinstance(exponent, int | float) and exponent >= 1 and _has_exponent(operation)
    if not has_singular_points(operation) or is_smooth:
        return value != value
    least, greatest = _ends(operation) or (0.0, 0.0)
    return ((value == least) | (value == greatest)) & (abs(value) != math.inf)


def _ends(operation: str) -> tuple[float, float] | None:
    domain = fact_of(operation, "domain")
    if domain is None:
        return None
    least, greatest = map(float, domain.split())
    return least, greatest


def _has_exponent(operation: str) -> bool:
    return how_it_breaks(operation) == "with its exponent"


def kind_of(name: str, operands: Mapping[str, Any], incoming: Any, result: Any) -> str:
    """The kind of what an operation, or its derivative where a gradient came in, made of finite operands."""
    deciding = deciding_operands(name)
    values = [at for key in deciding or operands if type(at := operands.get(key)) in (int, float, complex)]
    if name == OPAQUE:
        return "unknown"
    if name == CUSTOM:
        return "unknown" if incoming is None or 0 not in values else "division_by_zero"
    if incoming is not None and result != result and divides_by_differences(name):
        return "division_by_zero"  # each element depends on all of the matrix
    if incoming == 0 and result != result:
        return "zero_times_infinity"
    if any(is_outside(name, value) for value in values) or _is_root_of_negative(name, operands):
        return "domain"
    if any(is_singular(name, operands, value) for value in values):
        return "division_by_zero"
    breaks = how_it_breaks(name)
    if incoming is None and breaks in ("on empty rows", "on single elements"):
        return "domain"
    if incoming is None and breaks == ("as an empty mean" if result != result else "on singular matrices"):
        return "division_by_zero"
    return "overflow" if isinstance(result, int | float) and math.isinf(result) else "unknown"


def _is_root_of_negative(name: str, operands: Mapping[str, Any]) -> bool:
    base, exponent = operands.get("input"), operands.get("exponent")
    if not _has_exponent(name) or not isinstance(base, int | float) or not isinstance(exponent, int | float):
        return False
    return base < 0 and exponent != int(exponent)
