"""What each operation supports, told at run time from the generator's registry."""

from __future__ import annotations

from typing import NamedTuple

from pullback.generated.registry import OPERATIONS


class Coverage(NamedTuple):
    """What one operation supports."""

    gradient: tuple[str, ...]
    """The inputs that have a gradient."""
    missing: tuple[str, ...]
    """The inputs whose gradient is known to be missing: asking for it raises."""
    second_order: bool
    forward_mode: str
    """How the tangent is made: by the operation's kind, by a rule of its own, or none."""
    in_place: bool
    view: bool


_FORWARD = {
    "elementwise": "sum of the lines",
    "linear": "the operation itself",
    "multilinear": "one input at a time",
    "self_adjoint": "the line itself",
    "general": "a rule, or the double pullback",
    "non_differentiable": "none",
}


def derivative_coverage() -> dict[str, Coverage]:
    """Tell of every operation which derivatives it has.

    >>> derivative_coverage()["mul"].gradient
    ('input', 'other')
    """
    return {
        name: Coverage(
            tuple(i for i in operation.differentiable_inputs if i not in operation.not_implemented),
            operation.not_implemented,
            operation.kind != "non_differentiable",
            "none" if operation.not_implemented else _FORWARD[operation.kind],
            operation.in_place,
            operation.view,
        )
        for name, operation in OPERATIONS.items()
    }
