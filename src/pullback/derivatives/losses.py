"""Rules of kernels/losses.py and kernels/nll_loss.py."""

from __future__ import annotations

from pullback.rules import F, Pullback, Tensor, general, linear, wrt


@general
def mse_loss(grad: Tensor, input: Tensor, target: Tensor, reduction: int) -> Pullback:
    return wrt(
        input=F.mse_loss_grad(grad, input, target, reduction), target=F.mse_loss_grad(grad, target, input, reduction)
    )


@linear
def nll_loss(grad: Tensor, input: Tensor, target: Tensor, weight: Tensor, reduction: int, ignore_index: int) -> Pullback:
    return wrt(input=F.nll_loss_grad(grad, target, weight, input.shape, reduction, ignore_index))


@linear(node="NllLoss2DBackward0")
def nll_loss2d(
    grad: Tensor, input: Tensor, target: Tensor, weight: Tensor, reduction: int, ignore_index: int
) -> Pullback:
    return wrt(input=F.nll_loss_grad(grad, target, weight, input.shape, reduction, ignore_index))


@linear(out=False)
def nll_loss_grad(
    grad: Tensor, input: Tensor, target: Tensor, weight: Tensor, reduction: int, ignore_index: int
) -> Pullback:
    return wrt(input=F.nll_loss(grad, target, weight, reduction, ignore_index))
