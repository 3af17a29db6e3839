"""Differences that stand, each with its reason."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from tests.fuzz.comparison import Difference, is_close, tolerance_of


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
    made_of_raw_gradient: bool = False
    """Whether the tensor must be made of such a gradient."""
    permuted: bool = False
    """Whether both sides must have the same values in another order."""
    close_where: tuple[str, ...] = ()
    """Values that PyTorch (the first) or we (the second, if given) may have where the other side has something else."""

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
            and (not self.made_of_raw_gradient or _is_made_of_raw_gradient(difference))
            and (not self.permuted or sorted(difference.expected) == sorted(difference.actual))
            and (not self.close_where or _are_close_but_for(difference, *self.close_where))
        )


_DEFINITION = re.compile(r"^(?:with [^:]*: )?(\w) = (.*)$", re.MULTILINE)
_RAW_GRADIENT = re.compile(r"torch\.autograd\.grad\(.*\)\[0\]")


def _name_in(difference: Difference) -> str:
    return difference.field.rpartition(" of ")[2]


def _is_raw_gradient(difference: Difference) -> bool:
    made = dict(_DEFINITION.findall(difference.before)).get(_name_in(difference), "")
    return _RAW_GRADIENT.fullmatch(made) is not None


def _is_made_of_raw_gradient(difference: Difference) -> bool:
    found: set[str] = set()
    for name, made in _DEFINITION.findall(difference.before):
        if _RAW_GRADIENT.fullmatch(made) or found.intersection(re.findall(r"\b[a-z]\b", made)):
            found.add(name)
    return _name_in(difference) in found


def _are_close_but_for(difference: Difference, theirs: str, ours: str = ".*") -> bool:
    """Whether all elements agree but those that are `theirs` in PyTorch and `ours` here (patterns)."""
    expected, actual = difference.expected, difference.actual
    if not isinstance(expected, list) or not isinstance(actual, list) or len(expected) != len(actual):
        return False
    return all(
        is_close(e, a, tolerance_of(difference.dtype, difference.before))
        or (re.fullmatch(theirs, str(e)) is not None and re.fullmatch(ours, str(a)) is not None)
        for e, a in zip(expected, actual, strict=True)
    )


_COMPLEX_VIEW = r"complex64(.|\n)*(\.real|\.imag|view_as_real|adjoint\(|\.H\b|conj\(\))"
_ON_THE_CIRCLE = r"-?(0\.\d+(e-\d+)?|\d(\.\d+)?e-\d+|1\.0)"
_GRADIENT_OF_SUM = r"torch\.autograd\.grad\(.*\.sum\(\), |\.sum\(\)\.backward\("

ACCEPTED = (
    # What PyTorch alone has.
    Accepted(
        "^(requires_grad|grad_fn|is_leaf) of",
        "",
        "An integer tensor into which one with grad was written requires grad in PyTorch; here it never does.",
        actual="^(False|NoneType|True)$",
        dtype="int|bool",
        integers_with_grad=True,
    ),
    Accepted(
        "^(requires_grad|grad_fn|is_leaf|is_view|base) of|exception",
        "",
        "What is made of an integer tensor that requires grad in PyTorch, which it never does here.",
        integers_with_grad=True,
    ),
    Accepted(
        "values",
        "",
        "There are no immutable zero tensors here.",
        expected="^raises RuntimeError$",
        actual=r"^\[(-?0\.0(, )?)*\]$",
    ),
    Accepted(
        "exception",
        "",
        "There are no immutable zero tensors here.",
        expected="ZeroTensors are immutable",
    ),
    Accepted(
        "^(grad_fn|is_leaf|requires_grad) of",
        "",
        "PyTorch cannot make views of parts and conjugates of complex numbers anew after a write that was not recorded, and "
        "says so when their history is read.",
        expected="^raises RuntimeError$",
        actual=r"^(NoneType|\w+Backward0|True|False)$",
        before=_COMPLEX_VIEW,
    ),
    Accepted(
        "^(requires_grad|is_leaf|grad_fn) of|exception",
        "",
        "PyTorch forgets the history of such views then, or fails.",
        expected="^(False|True|NoneType)$|INTERNAL ASSERT FAILED|does not require grad",
        actual=r"^(True|False|\w+Backward\d)$|nothing raised",
        before=_COMPLEX_VIEW,
    ),
    Accepted(
        "^grad_fn of",
        "",
        "PyTorch fails to make a view anew that retains its gradient and was given other strides.",
        expected="^raises RuntimeError$",
        actual="^AsStridedBackward0$",
        before=r"retain_grad\((.|\n)*as_strided_\(",
    ),
    # Gradients.
    Accepted(
        "^grad.first_version of",
        "",
        "How often a rule writes to a new gradient, and whether it can be taken over, is the rule's own business: PyTorch "
        "takes over views of memory that others hold (version 0), and fills zeros in place (version 1).",
        expected=r"^\d: .*backward\(",
        actual=r"^\d: .*backward\(",
    ),
    Accepted(
        "^grad.(offset|is_view|base) of",
        "",
        "PyTorch takes over a part of a larger gradient; here it is copied.",
        expected=r"^(\d+|True|hidden)$",
        actual="^(0|False|None)$",
        before=r"backward\(",
    ),
    Accepted(
        "^grad.(shape|stride|values) of",
        r"^(\w)\.backward\(torch\.ones_like\(\1\)\)$",
        "So it does where a leaf was given data that is seen several times, and the gradient has the shape of before.",
        before=r"(expand|broadcast)(.|\n)*\.data = ",
    ),
    Accepted(
        "values",
        r"backward\(|autograd\.grad\(",
        "The gradient of a leaf that was given data of other shapes twice, and used in between, has the last of them.",
        before=r"(\w)\.data = (.|\n)*\1\.data = ",
    ),
    Accepted(
        "^(is_view|base|first_version|offset|grad_fn) of",
        "",
        "Whether a gradient is a view of something larger, how often its rule wrote to it and by which operations it was made "
        "is the rule's own business (the nodes of second derivatives are compared elsewhere).",
        of_raw_gradient=True,
    ),
    Accepted(
        "^(is_view|base|first_version|grad_fn) of",
        "",
        "What is a view of such a gradient is a view of what that is a view of, and has its version and its history.",
        made_of_raw_gradient=True,
    ),
    Accepted(
        "^(first_version|version|is_view|base|offset) of",
        "",
        "Whether a gradient of a sum is copied depends on how it lies in memory.",
        before=rf"({_GRADIENT_OF_SUM})(.|\n)*\.(contiguous|reshape|ravel|flatten)\(",
    ),
    Accepted(
        "values|exception",
        r"\.(as_strided|view)\(",
        "So do its views by strides.",
        before=_GRADIENT_OF_SUM,
    ),
    Accepted(
        "^(grad.)?(stride|offset) of",
        "",
        "PyTorch's gradient of a sum is one number that is seen many times; here a small one is filled, row by row, and what "
        "is computed with it lies in memory as it does.",
        before=_GRADIENT_OF_SUM,
    ),
    Accepted(
        "values",
        "",
        "The gradient of prod leaves each factor out instead of dividing by it: nan in one does not spread to others.",
        before=r"\.(cum)?prod\(",
        close_where=("nan",),
    ),
    Accepted(
        "^(grad.)?(requires_grad|grad_fn|is_leaf) of",
        "",
        "A gradient of no elements keeps its history.",
        expected="^(False|NoneType|True)$",
        before=r"reshape\(\[0, 2\]\)(.|\n)*create_graph=True",
    ),
    Accepted(
        "^grad.grad_fn of",
        "",
        "The nodes of second derivatives are compared elsewhere.",
        expected=r"^\w+Backwards?\d*$",
        actual=r"^\w+Backward\d$",
        before="create_graph=True",
    ),
    Accepted(
        "values",
        "",
        "Which of several equal elements is among the largest is not defined.",
        before=r"\.topk\(",
        permuted=True,
    ),
    # Errors of one side alone.
    Accepted(
        "exception",
        r"^(?!.*backward\()",
        "A gradient that is a view, or one number that is seen many times, cannot be written to in PyTorch.",
        expected="A view was created in no_grad mode|more than one element of the written-to tensor",
        actual="nothing raised",
        before=_RAW_GRADIENT.pattern,
    ),
    Accepted(
        "exception",
        r"\.(nan_to_num|softmax)\(",
        "Complex numbers have this gradient here.",
        expected="does not support automatic differentiation for outputs with complex dtype",
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
        "exception",
        r"\.conj_physical_\(",
        "PyTorch conjugates real numbers in memory that is seen several times.",
        expected="nothing raised",
        actual="refers to a single memory location",
    ),
    Accepted(
        "exception",
        r"torch\.addcdiv\(",
        "A quotient of integers that is added to floats is one of floats.",
        expected="Integer division with addcdiv is no longer supported",
        actual="nothing raised",
    ),
    Accepted(
        "exception",
        r"backward\(|autograd\.grad\(",
        "What a rule does not read is not saved (the result of cumprod, the input of gather, factors that need no gradient): "
        "a write to it goes unnoticed.",
        expected="modified by an inplace operation",
        actual="nothing raised",
        before=r"(gather|index_add|index_copy_?|masked_select|cumprod|addcdiv)\(",
    ),
    Accepted(
        "exception",
        r"backward\(|autograd\.grad\(",
        "A first gradient of the shape that a leaf had before `data` was set is taken over only where it is new memory here "
        "too (not that of the user, of pad or of mean).",
        expected="nothing raised",
        actual="a gradient of shape .* arrives where one of shape",
        before=r"\.data = ",
    ),
    Accepted(
        "^offset of",
        r"out=",
        "A view that is too small for `out=` is given memory of its own.",
        expected=r"^[1-9]\d*$",
        actual="^0$",
    ),
    Accepted(
        "exception",
        r"backward\(|autograd\.grad\(",
        "PyTorch fails to cast the complex gradient of `where` to bfloat16.",
        expected=r"Expected isFloatingType\(grad.scalar_type\(\)\)",
        actual="nothing raised",
        before=r"bfloat16(.|\n)*torch\.where\(",
    ),
    # Of two errors the other one.
    Accepted(
        "exception",
        r"\.scatter_\(",
        "A source of fewer dimensions is refused as such.",
        expected="Dimension out of range",
        actual="Index tensor must have the same number of dimensions as src tensor|Inplace update to inference tensor",
    ),
    Accepted(
        "exception",
        r"\.index_fill_\(",
        "An index into nothing is an IndexError.",
        expected="setStorage",
        actual="^IndexError",
    ),
    Accepted(
        "exception",
        r"\.cumsum_\(",
        "A scan of bools in place is refused in one way, of one number and of many.",
        expected="nothing raised|\"cumsum_out_cpu\" not implemented for 'Bool'",
        actual="can't be cast to the desired output type Bool|Inplace update to inference tensor",
    ),
    Accepted(
        "exception",
        r"\.(sign|floor|round|remainder|clamp|hardtanh)_\(",
        "Memory that is seen several times is refused before complex numbers are.",
        expected="torch.sign is not intended to support complex numbers|is not supported for complex inputs",
        actual="refers to a single memory location",
    ),
    Accepted(
        "exception",
        r"\.(var|std)\(",
        "A dimension that is not there is refused before a dtype is.",
        expected="std and var only support floating point and complex dtypes",
        actual="^IndexError: Dimension out of range",
    ),
    # Inference tensors.
    Accepted(
        "^(grad.)?first_version of",
        "",
        "A new tensor that is made of an inference tensor counts the writes of the kernel that filled it.",
        expected="^[1-3]: ",
        actual="^[0-2]: ",
        before=r"inference_mode\(\)",
    ),
    Accepted(
        "^(is_view|base) of",
        "",
        "What PyTorch makes of an inference tensor outside of inference mode may be a view, where its kernel ends in one.",
        expected="^(True|hidden)$",
        actual=r"^(False|None|\w)$",
        before=r"inference_mode\(\)",
    ),
    Accepted(
        "^(requires_grad|grad_fn|is_leaf) of|exception",
        "",
        "PyTorch records no operation on inference tensors alone, though they require grad, but for custom Functions; here it is "
        "recorded, or refused.",
        before=r"inference_mode\(\): .*requires_grad",
    ),
    # Values.
    Accepted(
        "values",
        "",
        "A rounding error in a number far above 1 is a different place on the circle.",
        before=r"(exp|pow|\*\*)(.|\n)*(sin|cos)_?\(",
        close_where=(_ON_THE_CIRCLE, _ON_THE_CIRCLE),
    ),
    Accepted(
        "values",
        r"= torch\.polar\(",
        "So it is in what polar makes of such a number.",
        before=r"(exp|pow|\*\*)",
        close_where=(r"\[.*\]", r"\[.*\]"),
    ),
    Accepted(
        "values",
        "",
        "The bits of a nan are not defined.",
        dtype="int32",
        before=r"\.view\(torch\.int32\)",
        close_where=("-4194304|2143289344", "-4194304|2143289344"),
    ),
    Accepted(
        "values",
        "",
        "PyTorch multiplies by the complex number 1 before it adds, which makes nan of infinities.",
        dtype="complex",
        before=r" [-+]=? |add|sub",
        close_where=(".*nan.*", ".*(nan|inf).*"),
    ),
    Accepted(
        "values",
        "",
        "gelu of infinity is infinity, which PyTorch computes as the product of infinity with nan.",
        before=r"functional\.gelu\(",
        close_where=("nan", "-?inf"),
    ),
    Accepted(
        "values",
        "",
        "A power of complex numbers that overflows is nan in one part or both.",
        dtype="complex",
        before=r"pow|\*\*",
        close_where=(".*inf.*", ".*nan.*"),
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
