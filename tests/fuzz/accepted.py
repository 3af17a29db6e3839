"""Differences that stand, each with its reason."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.fuzz.comparison import Difference


@dataclass(frozen=True)
class Accepted:
    """Differences of one field (a pattern) after statements of one form (a pattern), and why they stand."""

    field: str
    statement: str
    reason: str
    expected: str = ""
    actual: str = ""
    dtype: str = ""

    def holds(self, difference: Difference) -> bool:
        """Whether this says why `difference` stands."""
        return bool(
            re.search(self.field, difference.field)
            and re.search(self.statement, difference.statement)
            and re.search(self.expected, str(difference.expected))
            and re.search(self.actual, str(difference.actual))
            and re.search(self.dtype, difference.dtype)
        )


ACCEPTED = (
    Accepted(
        "requires_grad|grad_fn|is_leaf",
        "",
        "An integer tensor into which one with grad was written requires grad in PyTorch; here it never does.",
        dtype="int|bool",
    ),
    Accepted(
        "grad.version",
        "",
        "How often a rule writes to a new gradient, and whether it can be taken over, is the rule's own business: PyTorch "
        "takes over views of memory that others hold (version 0), and fills zeros in place (version 1).",
        expected=r"^\d$",
        actual=r"^\d$",
    ),
    Accepted(
        "grad.(offset|is_view|base)",
        "",
        "PyTorch takes over a part of a larger gradient; here it is copied.",
    ),
    Accepted(
        "requires_grad|grad_fn|is_leaf|exception",
        r"inference_mode\(\): \w+\.detach_",
        "detach_() in inference mode does nothing in PyTorch.",
    ),
    Accepted("version", r"\.(var|std)\(", "PyTorch writes to the new result of an empty variance.", expected="^1$"),
    Accepted(
        "exception",
        "backward|autograd.grad",
        "PyTorch saves more for some operations (the result of prod, say), so it notices more modifications.",
        expected="modified by an inplace operation",
        actual="nothing raised",
    ),
    Accepted(
        "exception",
        "",
        "A view whose base began to require grad later is refused by PyTorch unless its grad_fn was read before.",
        expected="a leaf Variable that requires grad is being used in an in-place operation",
        actual="nothing raised",
    ),
    Accepted("version", r"\.(to|double|type_as)\(", "PyTorch counts the copy of an inference tensor.", expected="^1$"),
    Accepted("values", r"\.var\(", "The variance of equal values is zero exactly.", actual=r"^\[-?0.0\]$"),
    Accepted("exception", "index_fill_", "An index into nothing is an IndexError.", expected="setStorage"),
    Accepted("exception", "softmax", "Softmax is refused by dtype, even of nothing.", actual="not implemented for"),
    Accepted(
        "requires_grad|grad_fn|is_leaf",
        "create_graph",
        "A second derivative of abs keeps its history.",
        expected="False|NoneType|True",
        actual="True|Backward|False",
    ),
    Accepted("stride", r"\[|sort|index_select|roll|flip", "The layout of gathered copies follows NumPy's rules."),
    Accepted("values", "", "There are no immutable zero tensors here.", expected="raises RuntimeError"),
    Accepted("exception", "", "There are no immutable zero tensors here.", expected="ZeroTensors are immutable"),
    Accepted(
        "values",
        "",
        "The gradient of prod leaves each factor out instead of dividing by it: nan in one does not spread to others.",
        expected="nan",
    ),
)


def is_accepted(difference: Difference) -> bool:
    """Whether a difference stands in the list."""
    return any(accepted.holds(difference) for accepted in ACCEPTED)
