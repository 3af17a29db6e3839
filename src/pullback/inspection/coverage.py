"""What each operation's derivatives are known to do: declared in the registry, and measured by checks that ran.

The measurements stand in checked_derivatives.json, written by `python -m tests.derivatives.measure`: each sample of
tests/derivatives is compared with finite differences in float64 and complex128, and in fewer bits with float64, and the
branches of rules that it takes are noted. They hold for a rule as long as its text has not changed since.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any, NamedTuple

from pullback.generated.registry import OPERATIONS
from pullback.inspection.derivative_use import rule_branches, used_derivatives
from pullback.inspection.rule_digests import rule_digest
from pullback.report import Report

__all__ = ["Coverage", "coverage", "derivative_coverage", "program_coverage"]


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
    """Tell of every operation which derivatives it declares.

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


@functools.cache
def measured() -> dict[str, Any]:
    """The measurements, by operation."""
    path = Path(__file__).with_name("checked_derivatives.json")
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def checked(operation: str) -> dict[str, Any]:
    """What was measured of an operation whose rule is still the same; empty otherwise."""
    found = measured().get(operation, {})
    return found if found and found["rule"] == rule_digest(operation) else {}


_COLUMNS = (
    "operation",
    "family",
    "inputs",
    "missing",
    "gradient",
    "second_order",
    "forward_mode",
    "branches",
    "unchecked",
)


def coverage() -> Report:
    """What is known by measurement of the derivatives of every operation that has some.

    A row has the inputs with a gradient and those without, the dtypes at which gradients, second derivatives and forward
    mode were checked, how many branches of the rule were, and which were not. The shares among the facts are of the
    operations that have a gradient; asking for one of the others (`without_gradient`) raises.

    >>> report = coverage()
    >>> row = next(row for row in report.rows if row["operation"] == "mul")
    >>> row["inputs"], "float64" in row["gradient"]
    (['input', 'other'], True)
    """
    rows = []
    for name, operation in sorted(OPERATIONS.items()):
        if operation.kind == "non_differentiable":
            continue
        found = checked(name)
        branches = rule_branches(name)
        known = found.get("branches", {})
        rows.append(
            {
                "operation": name, "family": operation.family,
                "inputs": [i for i in operation.differentiable_inputs if i not in operation.not_implemented],
                "missing": list(operation.not_implemented), "gradient": found.get("gradient", []),
                "second_order": found.get("second_order", []), "forward_mode": found.get("forward_mode", []),
                "branches": f"{sum(branch in known for branch in branches)}/{len(branches)}" if branches else "",
                "unchecked": [branch for branch in branches if branch not in known],
            }
        )  # fmt: skip
    having = [row for row in rows if row["inputs"]]
    facts = {
        "operations": len(rows),
        "without_gradient": len(rows) - len(having),
        "gradient_share": sum(bool(row["gradient"]) for row in having) / len(having),
        "second_order_share": sum(bool(row["second_order"]) for row in having) / len(having),
        "forward_mode_share": sum(bool(row["forward_mode"]) for row in having) / len(having),
        "unchecked_branches": sum(len(row["unchecked"]) for row in rows),
    }
    return Report("Derivatives that were checked", _COLUMNS, rows, facts)


def program_coverage(used: used_derivatives) -> Report:
    """What a program used of each operation's derivatives, and whether that was checked, at which dtypes.

    >>> import pullback
    >>> x = pullback.ones(3, requires_grad=True)
    >>> with used_derivatives() as used:
    ...     (x * x).sum().backward()
    >>> [(row["operation"], row["gradients"]) for row in program_coverage(used).rows]
    [('mul', ['input', 'other']), ('sum_all', ['input'])]
    """
    rows = []
    for name, use in sorted(used.operations.items()):
        found = checked(name)
        dtypes = sorted({dtype for known in use.inputs.values() for dtype in known})
        unchecked = [dtype for dtype in dtypes if dtype not in found.get("gradient", [])]
        unchecked += [
            f"{branch} ({', '.join(sorted(at))})"
            for branch, at in sorted(use.branches.items())
            if not at <= set(found.get("branches", {}).get(branch, []))
        ]
        rows.append(
            {
                "operation": name, "calls": use.calls, "gradients": sorted(use.inputs), "passes": use.passes,
                "dtypes": dtypes, "branches": sorted(use.branches),
                "unused_branches": [branch for branch in rule_branches(name) if branch not in use.branches],
                "checked": found.get("gradient", []), "unchecked": unchecked,
            }
        )  # fmt: skip
    facts = {
        "operations": len(rows), "differentiated": sum(bool(row["passes"]) for row in rows),
        "with_something_unchecked": sum(bool(row["unchecked"]) for row in rows),
        "custom_functions": sorted(used.functions),
    }  # fmt: skip
    columns = ("operation", "calls", "gradients", "passes", "dtypes", "branches", "checked", "unchecked")
    return Report("Derivatives that the program used", columns, rows, facts)
