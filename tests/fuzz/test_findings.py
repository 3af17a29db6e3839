"""What random programs have found: each of these once did something else than PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

import pullback

pytestmark = pytest.mark.filterwarnings("ignore:Using backward")

INFERENCE = "with torch.inference_mode(): a = torch.ones(2)"
BACKWARD = "with torch.inference_mode(): b.backward(retain_graph=True)"

VALUES: dict[str, tuple[list[str], str, Any]] = {
    "a retained gradient is row-major": (
        ["a = torch.ones(2, 3).requires_grad_()", "b = a.mT", "b.retain_grad()", "b.backward(torch.ones_like(b))"],
        "b.grad.stride()",
        (2, 1),
    ),
    "a cast of repeated complex numbers is row-major": (
        ["a = torch.ones(2, 3, dtype=torch.complex64).expand(2, 2, 3)", "b = a.to(torch.int64)"],
        "b.stride()",
        (6, 3, 1),
    ),
    "a triangle is written to repeated memory": (
        ["a = torch.tensor([[1.0, 2.0]]).expand(2, 2)", "a.triu_()"],
        "a.tolist()",
        [[0.0, 2.0], [0.0, 2.0]],
    ),
    "a conjugate is a view of numbers in the order of transposed ones": (
        ["a = torch.ones(2, 2, 3).mT", "b = torch.polar(a, a)", "c = b.conj()", "c.mul_(2)"],
        "c._is_view(), c.is_conj(), round(b.abs()[0, 0, 0].item(), 4)",
        (True, True, 2.0),
    ),
    "an inference tensor may be resized to its size": ([INFERENCE, "a.resize_(2)"], "a.tolist()", [1.0, 1.0]),
    "a gradient made in inference mode is an inference tensor": (
        [
            "a = torch.ones(2).requires_grad_()",
            "b = (a * a).sum()",
            "with torch.inference_mode(): b.backward(create_graph=True)",
        ],
        "a.grad.is_inference()",
        True,
    ),
    "a gradient made in inference mode is added to there": (
        ["a = torch.ones(2).requires_grad_()", "b = a.sum()", BACKWARD, BACKWARD],
        "a.grad.tolist()",
        [2.0, 2.0],
    ),
    "a gradient of what a tensor was before it was given other data": (
        [
            "a = torch.tensor([1.0, 2.0], dtype=torch.float64).requires_grad_()",
            "b = a * 2",
            "c = torch.where(b > 0, b, b)",
            "b.data = torch.ones(1, 3)",
            "d = torch.autograd.grad(c.sum(), b)[0]",
        ],
        "(d.dtype == torch.float64, d.shape)",
        (True, (2,)),
    ),
    "the gradient of the product of one zero has no history": (
        [
            "a = torch.ones(1).requires_grad_()",
            "b = torch.autograd.grad((a - a).prod(), a, create_graph=True)[0]",
            "c = torch.autograd.grad((a - a).prod(0), a, create_graph=True)[0]",
        ],
        "(b.requires_grad, c.requires_grad)",
        (False, False),
    ),
    "the gradient of the one part of a tensor without elements has a history": (
        [
            "a = torch.ones(0, 2).requires_grad_()",
            "b, c = a.split(2, 0)[0], a.split(0, 0)[0]",
            "d = torch.autograd.grad((b * b).sum(), a, create_graph=True)[0]",
            "e = torch.autograd.grad((c * c).sum(), a, create_graph=True)[0]",
        ],
        "(d.requires_grad, d.shape, e.requires_grad)",
        (True, (0, 2), True),
    ),
    "vectors without elements are joined along any dimension": (
        ["a = torch.ones(0).requires_grad_()", "b = torch.cat([a, a], 1)", "b.sum().backward()"],
        "(b.shape, a.grad.shape)",
        ((0,), (0,)),
    ),
    "what requires grad is written to integers in place, without its gradient": (
        [
            "a, b = torch.arange(4), torch.ones(1).requires_grad_() * 7",
            "a.masked_fill_(a == 1, b[0])",
            "a[2:].fill_(b[0])",
        ],
        "(a.tolist(), a.requires_grad, torch.is_grad_enabled())",
        ([0, 7, 7, 7], False, True),
    ),
    "a complex zero to the power zero is nan where both are tensors, or the power is": (
        ["a = torch.zeros(1, dtype=torch.complex64)", "b = torch.tensor([0j, 1 + 0j])"],
        "[x.isnan().tolist() for x in (a.pow(a), a.pow(b), b.pow(a), a[0].pow(a[0]), 0**b, a**0)]",
        [[True], [True, False], [True, False], True, [True, False], [False]],
    ),
}

ERRORS: dict[str, tuple[list[str], type[Exception], str]] = {
    **{
        f"what requires grad is not put into integers by {call.partition('(')[0].removeprefix('a.')}": (
            ["a, b = torch.arange(4), torch.ones(2).requires_grad_()", f"c = {call}"],
            RuntimeError,
            "Autograd not support dtype: Long",
        )
        for call in (
            "a.masked_fill(a > 1, b[0])",
            "a.index_fill(0, torch.tensor([0]), b[0])",
            "torch.fill(a, b[0])",
            "a.select_scatter(b[0], 0, 0)",
            "a.slice_scatter(b, 0, 0, 2)",
            "a.reshape(2, 2).diagonal_scatter(b)",
            "a.as_strided_scatter(b, (2,), (1,))",
        )
    },
    "a gradient made in inference mode is not added to elsewhere": (
        ["a = torch.ones(2).requires_grad_()", "b = a.sum()", BACKWARD, "b.backward()"],
        RuntimeError,
        "Inplace update to inference tensor outside InferenceMode",
    ),
    "a view that was made a leaf is one no more when its base is written to": (
        ["a = torch.ones(2)", "b = a[:1]", "b.requires_grad_()", "a *= b.clone()", "a.sum().backward()"],
        RuntimeError,
        "leaf variable has been moved into the graph interior",
    ),
    "what is wrong with the arguments comes before an inference tensor is refused": (
        ["with torch.inference_mode(): a = torch.tensor([1, 2])", "a.lerp_(a, 0.5)"],
        NotImplementedError,
        "not implemented for 'Long'",
    ),
    "complex numbers are refused before an inference tensor is": (
        ["with torch.inference_mode(): a = torch.tensor([1j])", "a.floor_()"],
        NotImplementedError,
        "floor is not supported for complex inputs",
    ),
    "an inference tensor is not written to": (
        [INFERENCE, "a.add_(1)"],
        RuntimeError,
        "Inplace update to inference tensor outside InferenceMode",
    ),
    "an inference tensor may not be resized": (
        [INFERENCE, "a.resize_(3)"],
        RuntimeError,
        "Inplace update to inference tensor outside InferenceMode",
    ),
    "a view that may not be used any more is refused before a wrong dimension": (
        ["a = torch.ones(2, 3).requires_grad_()", "b = a.split(2, 1)[-1]", "b.logical_not_()", "b.unbind(3)"],
        RuntimeError,
        "Output 1 of Split.* is a view and its base or another view of its base has been modified inplace",
    ),
    "a view of integers made without grad is not filled with a number that requires grad": (
        [
            "a, b = torch.tensor([1, 2]), torch.tensor(0.5, requires_grad=True)",
            "with torch.no_grad(): c = a.view(2)",
            "c[0] = b",  # a copy, which PyTorch takes
            "c[:1] = b",
        ],
        RuntimeError,
        "A view was created in no_grad mode and is being modified inplace with grad mode enabled",
    ),
    "an argument of a wrong type is refused before such a view": (
        ["a = torch.ones(2, 3).requires_grad_()", "b = a.split(2, 1)[-1]", "b.logical_not_()", "b.sum('x')"],
        TypeError,
        "sum.. received an invalid combination of arguments",
    ),
    "a number has no dimension to be repeated along": (
        ["torch.tensor(1.0).repeat_interleave(2, 0)"],
        IndexError,
        "Dimension specified as 0 but tensor has no dimensions",
    ),
    "the trace of truth values is refused, whatever their shape": (
        ["torch.ones(2, 2, 2, dtype=torch.bool).trace()"],
        NotImplementedError,
        "\"trace\" not implemented for 'Bool'",
    ),
    "elements that lie apart are not seen in a smaller dtype, not even one": (
        ["torch.ones(3).as_strided([1], [2]).view(torch.int16)"],
        RuntimeError,
        r"self.stride\(-1\) must be 1",
    ),
}


def run(statements: list[str]) -> dict[str, Any]:
    names: dict[str, Any] = {"torch": pullback}
    for statement in statements:
        exec(statement, names)
    return names


@pytest.mark.parametrize("name", VALUES)
def test_a_program_gives_what_pytorch_gives(name: str) -> None:
    statements, expression, expected = VALUES[name]

    assert eval(expression, run(statements)) == expected


@pytest.mark.parametrize("name", ERRORS)
def test_a_program_is_refused_as_in_pytorch(name: str) -> None:
    statements, kind, message = ERRORS[name]

    with pytest.raises(kind, match=message):
        run(statements)
