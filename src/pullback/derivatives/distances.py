"""Rules of kernels/distances.py."""

from __future__ import annotations

from pullback.rules import F, Pullback, Tensor, general, multilinear, non_differentiable, wrt

ON_FIRST_USE = True  # see Note [Families on first use]


@general(
    node="CdistBackward0",
    public="cdist",
    out=False,
    structure="leading",
    aten="_cdist_forward(x1, x2, p, None)",
    backward="wrt(x1=_cdist_backward(contiguous(grad), x1, x2, p, result), x2=_cdist_backward("
    "contiguous(transpose(grad, -2, -1)), x2, x1, p, contiguous(transpose(result, -2, -1))))",
    gradient_nodes="x1: (grad, x1, x2, result)",
    infinite="derivative",
)
def cdist_forward(grad: Tensor, x1: Tensor, x2: Tensor, p: float, *, result: Tensor) -> Pullback:
    return wrt(
        x1=F.cdist_back(grad, x1, x2, p, result),
        x2=F.cdist_back(F.transpose(grad, -2, -1), x2, x1, p, F.transpose(result, -2, -1)),
    )


@general(out=False, structure="leading")
def euclidean_dist(grad: Tensor, x1: Tensor, x2: Tensor, *, result: Tensor) -> Pullback:
    return wrt(
        x1=F.cdist_back(grad, x1, x2, 2.0, result),
        x2=F.cdist_back(F.transpose(grad, -2, -1), x2, x1, 2.0, F.transpose(result, -2, -1)),
    )


@general(node="PdistBackward0", out=False, gradient_nodes="(grad, input, result)")
def pdist_forward(grad: Tensor, input: Tensor, p: float, *, result: Tensor) -> Pullback:
    return wrt(input=F.pdist_back(grad, input, p, result))


@non_differentiable(out=False)
def pair_rows(input: Tensor, which: int) -> None: ...


@non_differentiable(out=False)
def largest_share(input: Tensor, largest: Tensor) -> None: ...


@multilinear(out=False, edges=("input1", "weight", "input2"))
def trilinear(grad: Tensor, input1: Tensor, input2: Tensor, weight: Tensor) -> Pullback:
    return wrt(
        input1=F.trilinear_back_first(grad, input2, weight),
        input2=F.trilinear_back_first(grad, input1, F.transpose(weight, 1, 2)),
        weight=F.trilinear_back_weight(grad, input1, input2),
    )
