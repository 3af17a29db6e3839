"""Differences that stand, each with its reason."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.fuzz.comparison import TOLERANCE, Difference


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
    close_as_floats: bool = False
    """Whether the bytes of both sides must be close as floats of some dtype."""

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
            and (not self.close_as_floats or _are_close_as_floats(difference))
        )


def _is_raw_gradient(difference: Difference) -> bool:
    name = difference.field.rpartition(" of ")[2]
    return re.search(rf"(^|\n|: ){name} = torch\.autograd\.grad\(.*\)\[0\]($|\n)", difference.before) is not None


def _are_close_as_floats(difference: Difference) -> bool:
    if not isinstance(difference.expected, list) or difference.dtype == "bfloat16":
        return False
    kind = np.dtype(difference.dtype)
    expected, actual = (np.array(_joined(side), kind).tobytes() for side in (difference.expected, difference.actual))
    return any(_close(expected, actual, dtype) for dtype in ("float16", "bfloat16", "float32", "float64"))


def _joined(values: list[Any]) -> list[Any]:
    return [complex(*value) if isinstance(value, list) else value for value in values]


def _close(expected: bytes, actual: bytes, dtype: str) -> bool:
    size = 2 if dtype == "bfloat16" else np.dtype(dtype).itemsize
    if len(expected) % size or len(expected) != len(actual):
        return False
    if dtype == "bfloat16":
        expected, actual = (
            np.left_shift(np.frombuffer(b, "u2").astype("u4"), 16).tobytes() for b in (expected, actual)
        )
        dtype = "float32"
    tolerance = TOLERANCE.get(dtype, 1e-6)
    return np.allclose(np.frombuffer(actual, dtype), np.frombuffer(expected, dtype), tolerance, tolerance, True)


ACCEPTED = (
    Accepted(
        "requires_grad|grad_fn|is_leaf",
        "",
        "An integer tensor into which one with grad was written requires grad in PyTorch; here it never does.",
        dtype="int|bool",
    ),
    Accepted(
        "requires_grad|grad_fn|is_leaf|is_view|base|exception",
        "",
        "What is made of an integer tensor that requires grad in PyTorch, which it never does here.",
        integers_with_grad=True,
    ),
    Accepted(
        "^(grad.)?values",
        "backward|autograd.grad",
        "Which of several equal elements is among the largest is not defined.",
        before=r"\.topk\(",
    ),
    Accepted(
        "values",
        "",
        "A rounding error in a number far above 1 is a different place on the circle.",
        before=r"(exp|pow|\*\*)(.|\n)*(sin|cos)",
    ),
    Accepted(
        "values",
        "",
        "The variance of one complex number is nan in both parts.",
        expected="nan, 0.0",
        actual="nan, nan",
        dtype="complex",
        before=r"\.(var|std)\(",
    ),
    Accepted(
        "requires_grad|grad_fn|is_leaf",
        "",
        "PyTorch forgets the history of parts of complex numbers that are written to as floats.",
        dtype="float|complex",
        before=r"complex64(.|\n)*\.view\(torch\.float",
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
        "",
        "Of two errors the other one is told: a write to an inference tensor, and a wrong argument.",
        expected="Error",
        actual="Inplace update to inference tensor outside InferenceMode",
    ),
    Accepted(
        "exception",
        "",
        "Of two errors the other one is told: memory that is seen several times, or a dimension that is not there, and a dtype.",
        expected="not implemented for|not intended to support|only support",
        actual="refers to a single memory location|Dimension out of range",
    ),
    Accepted(
        "exception",
        "backward|autograd.grad",
        "A view that was made a leaf stays one here when its base is written to.",
        expected="leaf variable has been moved into the graph interior",
        actual="nothing raised",
        before="requires_grad",
    ),
    Accepted(
        "grad.(shape|stride|values)",
        "backward|autograd.grad",
        "A gradient that is retained, or of a variance, of a tensor that was given other data.",
        before=r"(retain_grad|var|std)\((.|\n)*\.data = ",
    ),
    Accepted(
        "exception",
        "backward|autograd.grad",
        "A vector of which one number is scattered has a gradient.",
        expected="ScatterBackward0 returned an invalid gradient",
        actual="nothing raised",
    ),
    Accepted(
        "^(grad.)?values|exception",
        "backward|autograd.grad",
        "A product saves its factors themselves, not views of them: it sees what `data` was set to before backward.",
        before=r"(linear|@|einsum|outer)(.|\n)*\.data = ",
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
        before=r"(pow|\*\*)(.|\n)*(sqrt|log|pow|\*\*|eq_)",
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
        expected="more than one element of the written-to tensor|A view was created in no_grad mode",
        actual="nothing raised",
        before=r"autograd\.grad\(.*\)\[0\]($|\n)",
    ),
    Accepted(
        "values",
        "",
        "Memory is seen in another dtype: as what it was written, it differs by a rounding error, or in the bits of a nan.",
        before=r"\.view\(torch\.",
        close_as_floats=True,
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
        "requires_grad|grad_fn|is_leaf|exception",
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
        "",
        "PyTorch multiplies by the complex number 1 before it adds, which makes nan of infinities.",
        expected="inf.*nan|nan.*inf",
        dtype="complex",
        before=r"[-+]=|add|sub",
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
        before=r"dtype=torch\.(int64|bool)",
    ),
    Accepted(
        "grad.version|is_view|^base|grad.is_inference",
        "",
        "What PyTorch makes of inference tensors outside of inference mode is a view, or has no version, now and then.",
        expected="raises RuntimeError|True|hidden",
        before=r"inference_mode\(\)",
    ),
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
    Accepted(
        "stride",
        "",
        "PyTorch's gradient of a sum is one number that is seen many times; here a small one is filled, row by row, and what "
        "is computed with it lies in memory as it does.",
        before=r"autograd\.grad\(|\.backward\(create_graph",
    ),
    Accepted(
        "^offset|exception",
        r"select|\[|narrow|split|chunk|unbind|view",
        "What is a view of a gradient of a sum that lies in memory otherwise.",
        before=r"autograd\.grad\(.*\.(clone\(\)|$)",
        expected=r"^\d+$|self.stride|view size is not compatible|nothing raised",
        actual=r"^\d+$|nothing raised|self.stride|view size is not compatible",
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
    Accepted(
        "values",
        "",
        "The gradient of prod is zeros in PyTorch where two factors are zero, though others are nan.",
        expected=r"^\[(-?0\.0(, )?)*\]$",
        actual="nan",
        before=r"\.prod\(",
    ),
    Accepted(
        "values",
        "",
        "A rounding error before a step, on both sides of which it may fall.",
        before=r"(polar|softmax|norm|sigmoid|tanh|exp|log|sin|cos|pow|\*\*|/|div)(.|\n)*(floor|round|sign|remainder)",
    ),
    Accepted(
        "exception",
        "backward|autograd.grad",
        "A first gradient of the shape that a leaf had is taken over where it is new memory here too (not of pad or mean).",
        expected="nothing raised",
        actual="a gradient of shape .* arrives where one of shape",
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
