"""Differences that stand, each with its reason."""

from __future__ import annotations

import re
from collections import Counter
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
    before: str = ""
    """What one of the statements so far must be."""
    integers_with_grad: bool = False
    """Whether PyTorch must have an integer tensor that requires grad."""
    of_raw_gradient: bool = False
    """Whether the tensor must be what `autograd.grad` returned, not a copy of it."""

    def holds(self, difference: Difference) -> bool:
        """Whether this says why `difference` stands."""
        return bool(
            re.search(self.field, difference.field)
            and re.search(self.statement, difference.statement)
            and re.search(self.expected, str(difference.expected))
            and re.search(self.actual, str(difference.actual))
            and re.search(self.dtype, difference.dtype)
            and re.search(self.before, difference.before)
            and (difference.integers_with_grad or not self.integers_with_grad)
            and (not self.of_raw_gradient or _is_raw_gradient(difference))
        )


def _is_raw_gradient(difference: Difference) -> bool:
    name = difference.field.rpartition(" of ")[2]
    return re.search(rf"(^|\n|: ){name} = torch\.autograd\.grad\(.*\)\[0\]($|\n)", difference.before) is not None


ACCEPTED = (
    Accepted(
        "requires_grad|grad_fn|is_leaf",
        "",
        "An integer tensor into which one with grad was written requires grad in PyTorch; here it never does.",
        dtype="int|bool",
    ),
    Accepted(
        "requires_grad|grad_fn|is_leaf|exception",
        "",
        "What is made of an integer tensor that requires grad in PyTorch, which it never does here.",
        integers_with_grad=True,
    ),
    Accepted(
        "exception",
        "",
        "Of two errors the other one is told: a view of several that is out of date, and a wrong argument.",
        expected="its base or another view of its base has been modified",
        actual="Error",
    ),
    Accepted(
        "exception",
        "backward|autograd.grad",
        "PyTorch fails to divide a number by integers in the gradient of addcdiv.",
        expected="result type Float can't be cast to the desired output type Long",
        actual="nothing raised",
        before="addcdiv",
    ),
    Accepted(
        "values",
        "",
        "A power of a negative number lies a rounding error beside the real axis in PyTorch, where roots and logarithms jump.",
        dtype="complex",
        before=r"(pow|\*\*)(.|\n)*(sqrt|log|pow|\*\*)",
    ),
    Accepted(
        "^(is_view|base|version|offset|stride|grad_fn) of",
        "",
        "Whether a gradient is a view of something larger, how often its rule wrote to it and by which operations it was made "
        "is the rule's own business (the nodes of second derivatives are compared elsewhere).",
        of_raw_gradient=True,
    ),
    Accepted(
        "^(base|is_view|version|offset|stride) of",
        "",
        "What is a view of a gradient is one of what that is a view of, and has its version.",
        before=r"autograd\.grad\(.*\)\[0\]($|\n)",
    ),
    Accepted(
        "exception",
        "",
        "PyTorch's gradient of a sum is one number that is seen many times, which cannot be written to.",
        expected="more than one element of the written-to tensor",
        actual="nothing raised",
        before=r"autograd\.grad\(.*\)\[0\]($|\n)",
    ),
    Accepted(
        "is_inference|version|is_view|base|requires_grad|grad_fn|is_leaf",
        "",
        "An assignment to data across inference mode makes PyTorch's tensor half an inference tensor.",
        before=r"inference_mode(.|\n)*\.data =",
    ),
    Accepted(
        "values",
        "",
        "Bytes of floats are seen as integers: the last bit may differ, as floats may.",
        before=r"\.view\(torch\.u?int",
        dtype="int",
    ),
    Accepted(
        "exception",
        r"\.view\(torch\.",
        "The strides of dimensions without or with one element, which are never taken, may differ, and a view looks at them.",
        expected=r"self.stride\(",
        actual="nothing raised",
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
    Accepted(
        "version",
        "",
        "A new tensor that is made of an inference tensor counts the writes of the kernel that filled it.",
        expected="^[1-3]$",
        actual="^[0-2]$",
        before=r"inference_mode\(\)",
    ),
    Accepted("values", r"\.var\(", "The variance of equal values is zero exactly.", actual=r"^\[-?0.0\]$"),
    Accepted("exception", "index_fill_", "An index into nothing is an IndexError.", expected="setStorage"),
    Accepted(
        "requires_grad|grad_fn|is_leaf",
        "",
        "A second derivative of abs keeps its history.",
        expected="False|NoneType|True",
        actual="True|Backward|False",
        before=r"abs\(\).*create_graph",
    ),
    Accepted(
        "exception",
        r"cumsum_",
        "A scan of bools in place is refused in one way, of one number and of many.",
        actual="can't be cast to the desired output type Bool",
    ),
    Accepted(
        "grad_fn",
        "",
        "PyTorch cannot make some views anew (of parts of complex numbers, or after a write in inference mode) and says so "
        "when their history is read.",
        expected="raises RuntimeError",
    ),
    Accepted(
        "requires_grad|is_leaf|exception",
        "",
        "PyTorch forgets the history of parts and conjugates of complex numbers that cannot be made anew after a write.",
        before=r"complex64(.|\n)*(\.real|\.imag|view_as_real|adjoint\(|\.H\b|conj\()(.|\n)*(inference_mode|no_grad|logical_not_)",
    ),
    Accepted(
        "exception",
        "",
        "PyTorch saves more for some operations (both factors of addcdiv, say), so it refuses more inference tensors.",
        expected="Inference tensors cannot be saved for backward",
        actual="nothing raised",
    ),
    Accepted(
        "values",
        "",
        "Zero to the power zero is 1, of complex numbers too.",
        expected="nan",
        dtype="complex",
        before=r"pow|\*\*",
    ),
    Accepted(
        "exception",
        "addcdiv",
        "A quotient of integers that is added to floats is one of floats.",
        expected="Integer division with addcdiv is no longer supported",
        actual="nothing raised",
    ),
    Accepted(
        "values",
        r"[-+]=|add|sub",
        "PyTorch multiplies by the complex number 1 before it adds, which makes nan of infinities.",
        expected="inf.*nan|nan.*inf",
        dtype="complex",
    ),
    Accepted(
        "exception",
        "nan_to_num",
        "Complex numbers have this gradient here.",
        expected="does not support automatic differentiation for outputs with complex dtype",
        actual="nothing raised",
    ),
    Accepted(
        "exception|requires_grad|grad_fn|is_leaf",
        "",
        "PyTorch records no operation on inference tensors alone, though they require grad; here it is, or is refused.",
        before=r"inference_mode\(\).*requires_grad",
    ),
    Accepted(
        "grad_fn",
        r"\[",
        "An index that covers all of a tensor without elements writes to the whole.",
        expected="CopySlices",
        actual="Fill",
    ),
    Accepted(
        "exception",
        r"triu_|tril_|conj_physical_",
        "PyTorch writes triangles, and conjugates of real numbers, to memory that is seen several times.",
        expected="nothing raised",
        actual="refers to a single memory location",
    ),
    Accepted(
        "exception",
        "repeat_interleave",
        "A number is repeated along its dimension 0, which PyTorch refuses.",
        expected="Dimension out of range",
        actual="nothing raised",
    ),
    Accepted(
        "requires_grad|grad_fn|is_leaf",
        "",
        "The gradient of a variance or a product of one number keeps its history.",
        expected="False|NoneType|True",
        before=r"\.(var|std|prod)\(",
    ),
    Accepted(
        "exception",
        r"=",
        "An integer tensor into which one with grad was written requires grad in PyTorch; here it never does.",
        expected="A view was created in no_grad mode",
        actual="nothing raised",
        before="dtype=torch.int64",
    ),
    Accepted(
        "grad.version|is_view|^base|grad.is_inference",
        "",
        "What PyTorch makes of inference tensors outside of inference mode is a view, or has no version, now and then.",
        expected="raises RuntimeError|True|hidden",
        before=r"inference_mode\(\)",
    ),
    Accepted("stride", "", "Results of expanded tensors lie as NumPy lays them out.", before="expand|broadcast_to"),
    Accepted(
        "exception", "trace", "A trace looks at the dimensions before it looks at the dtype.", expected="for 'Bool'"
    ),
    Accepted(
        "values",
        "index_fill_|masked_fill_",
        "Of writes to memory that is seen several times, which PyTorch warns of, the last one stays.",
        before="as_strided|expand",
    ),
    Accepted("exception", "scatter_", "A source of fewer dimensions is refused.", expected="Dimension out of range"),
    Accepted("stride", r"out=", "A result of out= that must be resized lies as NumPy lays out the result."),
    Accepted(
        "stride",
        "",
        "A gradient lies as NumPy lays out the product of a tensor and of a number that was expanded.",
        before=r"autograd\.grad\(|\.backward\(create_graph",
    ),
    Accepted(
        "stride",
        "",
        "The layout of gathered copies follows NumPy's rules.",
        before=r"\[torch\.tensor|\[\[|sort|index_select|roll|flip",
    ),
    Accepted(
        "grad.(requires_grad|grad_fn|is_leaf)",
        "",
        "A gradient of which no element depends on anything keeps its history.",
        expected="False|NoneType|True",
        before=r"\[0, 2\](.|\n)*create_graph",
    ),
    Accepted("values", "", "There are no immutable zero tensors here.", expected="raises RuntimeError"),
    Accepted("exception", "", "There are no immutable zero tensors here.", expected="ZeroTensors are immutable"),
    Accepted(
        "values",
        "",
        "The gradient of prod leaves each factor out instead of dividing by it: nan in one does not spread to others.",
        expected="nan",
        before=r"\.(cum)?prod\(",
    ),
)


times_accepted: Counter[str] = Counter()
"""How often each reason was met."""


def is_accepted(difference: Difference) -> bool:
    """Whether a difference stands in the list; its reason is counted."""
    for accepted in ACCEPTED:
        if accepted.holds(difference):
            times_accepted[accepted.reason] += 1
            return True
    return False
