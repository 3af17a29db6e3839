"""Rules of the losses' kernels: losses.py, nll.py, margin_losses.py, ctc.py."""

from __future__ import annotations

from pullback.rules import F, Pullback, Tensor, general, linear, not_implemented, wrt


@general(
    backward="wrt(input=mse_loss_backward(grad, input, target, reduction), "
    "target=mse_loss_backward(grad, target, input, reduction))",
    again=True,
    gradient_nodes="input: (grad, input, target); target: (grad, target, input)",
    autocast="float32",
    functional=True,
)
def mse_loss(grad: Tensor, input: Tensor, target: Tensor, reduction: int) -> Pullback:
    return wrt(
        input=F.mse_loss_grad(grad, input, target, reduction), target=F.mse_loss_grad(grad, target, input, reduction)
    )


@general(
    backward="wrt(input=smooth_l1_loss_backward(grad, input, target, reduction, beta), "
    "target=smooth_l1_loss_backward(grad, target, input, reduction, beta))",
    again=True,
    gradient_nodes="input: (grad, input, target); target: (grad, target, input)",
    autocast="float32",
    functional=True,
)
def smooth_l1_loss(grad: Tensor, input: Tensor, target: Tensor, reduction: int, beta: float) -> Pullback:
    return wrt(
        input=F.clamped_distance_grad(grad, input, target, reduction, 1 / beta, 1.0),
        target=F.clamped_distance_grad(grad, target, input, reduction, 1 / beta, 1.0),
    )


@general(
    backward="wrt(input=huber_loss_backward(grad, input, target, reduction, delta), "
    "target=huber_loss_backward(grad, target, input, reduction, delta))",
    again=True,
    gradient_nodes="input: (grad, input, target); target: (grad, target, input)",
    autocast="float32",
    functional=True,
)
def huber_loss(grad: Tensor, input: Tensor, target: Tensor, reduction: int, delta: float) -> Pullback:
    return wrt(
        input=F.clamped_distance_grad(grad, input, target, reduction, 1.0, delta),
        target=F.clamped_distance_grad(grad, target, input, reduction, 1.0, delta),
    )


@general(autocast="float32", functional=True)
def soft_margin_loss(grad: Tensor, input: Tensor, target: Tensor, reduction: int) -> Pullback:
    return wrt(input=F.soft_margin_loss_grad(grad, input, target, reduction))


@general(
    backward="wrt(input=binary_cross_entropy_backward(grad, input, target, weight, reduction), "
    "target=binary_cross_entropy_grad_target(grad, input, weight, reduction))",
    gradient_nodes="input: (grad, input, target)",
    autocast="float32",
    functional=True,
)
def binary_cross_entropy(grad: Tensor, input: Tensor, target: Tensor, weight: Tensor, reduction: int) -> Pullback:
    return wrt(
        input=F.binary_cross_entropy_grad(grad, input, target, weight, reduction),
        target=F.binary_cross_entropy_grad_target(grad, input, weight, reduction),
    )


@general(
    backward="wrt(input=logits_back(grad, input, target, weight, pos_weight, reduction), "
    "target=logits_grad_target(grad, input, target, weight, pos_weight, reduction))",
    autocast="float32",
    functional=True,
)
def binary_cross_entropy_with_logits(
    grad: Tensor, input: Tensor, target: Tensor, weight: Tensor, pos_weight: Tensor, reduction: int
) -> Pullback:
    return wrt(
        input=F.logits_grad(grad, input, target, weight, pos_weight, reduction),
        target=F.logits_grad_target(grad, input, target, weight, pos_weight, reduction),
    )


@general(autocast="float32", functional=True)
def multi_margin_loss(
    grad: Tensor, input: Tensor, target: Tensor, p: int, margin: float, weight: Tensor, reduction: int
) -> Pullback:
    return wrt(input=F.multi_margin_loss_grad(grad, input, target, p, margin, weight, reduction))


@general(out=False)
def multi_margin_weights(
    grad: Tensor, input: Tensor, target: Tensor, p: int, margin: float, weight: Tensor
) -> Pullback:
    return wrt(input=F.zeros_in_shape(grad, input.shape))


@general(autocast="float32", functional=True)
def multilabel_margin_loss(grad: Tensor, input: Tensor, target: Tensor, reduction: int) -> Pullback:
    return wrt(input=F.multilabel_margin_loss_grad(grad, input, target, reduction))


@general(out=False)
def multilabel_margin_weights(grad: Tensor, input: Tensor, target: Tensor) -> Pullback:
    return wrt(input=F.zeros_in_shape(grad, input.shape))


@general(out=False, autocast="float32", functional=True)
def ctc_loss(
    grad: Tensor, log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int,
    zero_infinity: bool, *, result: Tensor,
) -> Pullback:  # fmt: skip
    return wrt(
        log_probs=F.ctc_loss_grad(grad, log_probs, targets, input_lengths, target_lengths, result, blank, zero_infinity)
    )


@general(out=False)
def ctc_loss_grad(grad: Tensor, input: Tensor, log_probs: Tensor) -> Pullback:
    return wrt(input=not_implemented("_ctc_loss_backward"), log_probs=not_implemented("_ctc_loss_backward"))


@linear(
    aten="nll_loss_forward(input, target, weight, reduction, ignore_index)",
    backward="nll_loss_backward(grad, input, target, weight, reduction, ignore_index, "
    "total_weight(target, weight, ignore_index, input.dtype))",
    autocast="float32",
    functional=True,
    gradient_nodes="(grad, input)",
    breaks="as an empty mean",
)
def nll_loss(
    grad: Tensor, input: Tensor, target: Tensor, weight: Tensor, reduction: int, ignore_index: int
) -> Pullback:
    return wrt(input=F.depending_on(F.nll_loss_grad(grad, target, weight, input.shape, reduction, ignore_index), input))


@linear(node="NllLoss2DBackward0", autocast="float32", gradient_nodes="(grad, input)", breaks="as an empty mean")
def nll_loss2d(
    grad: Tensor, input: Tensor, target: Tensor, weight: Tensor, reduction: int, ignore_index: int
) -> Pullback:
    return wrt(input=F.depending_on(F.nll_loss_grad(grad, target, weight, input.shape, reduction, ignore_index), input))


@linear(out=False, fresh=True)
def nll_loss_grad(
    grad: Tensor, input: Tensor, target: Tensor, weight: Tensor, reduction: int, ignore_index: int
) -> Pullback:
    return wrt(input=F.nll_loss(grad, target, weight, reduction, ignore_index))
