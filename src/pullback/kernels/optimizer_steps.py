"""Steps of the optimizers that most programs use, in place: a parameter, its gradient, its state, and numbers.

Each is the elementwise rule of its optimizer (optim/), written without temporaries and run a block at a time, so that
its passes stay in the cache. The operations of a step are in PyTorch's order: results round alike. Arrays are real.
"""

from __future__ import annotations

import math

import numpy as np

from pullback.backend.blocks import in_blocks
from pullback.native import native
from pullback.typing import Array


def _descent_gradient(param: Array, grad: Array, weight_decay: float, maximize: bool) -> Array:
    """The gradient to descend along: its sign as `maximize` says, with weight decay added; `grad` itself if neither."""
    if weight_decay != 0:
        decayed = np.multiply(param, weight_decay)
        return np.subtract(decayed, grad, out=decayed) if maximize else np.add(grad, decayed, out=decayed)
    return np.negative(grad) if maximize else grad


@native
@in_blocks
def sgd_step(
    param: Array, grad: Array, momentum_buffer: Array | None = None, *, lr: float, momentum: float, dampening: float,
    weight_decay: float, nesterov: bool, maximize: bool, is_first: bool,
) -> None:  # fmt: skip
    """Stochastic gradient descent; `is_first` makes the gradient the momentum."""
    grad = _descent_gradient(param, grad, weight_decay, maximize)
    if momentum_buffer is None:
        param -= grad * lr
        return
    if is_first:
        momentum_buffer[...] = grad
    else:
        momentum_buffer *= momentum
        momentum_buffer += grad if dampening == 0 else grad * (1 - dampening)
    if nesterov:
        change = momentum_buffer * momentum
        change += grad
        change *= lr
    else:
        change = momentum_buffer * lr
    param -= change


@native
@in_blocks
def adam_step(
    param: Array, grad: Array, exp_avg: Array, exp_avg_sq: Array, max_exp_avg_sq: Array | None = None, *, lr: float,
    beta1: float, beta2: float, eps: float, weight_decay: float, step: float, maximize: bool, decoupled_weight_decay: bool,
) -> None:  # fmt: skip
    """Adam, and AdamW with `decoupled_weight_decay`; with `max_exp_avg_sq` their variant AMSGrad. `step` counts from 1."""
    if decoupled_weight_decay and weight_decay != 0:
        param *= 1 - lr * weight_decay
        weight_decay = 0
    grad = _descent_gradient(param, grad, weight_decay, maximize)
    change = np.subtract(grad, exp_avg)
    change *= 1 - beta1
    exp_avg += change
    exp_avg_sq *= beta2
    np.multiply(grad, 1 - beta2, out=change)
    change *= grad
    exp_avg_sq += change
    if max_exp_avg_sq is not None:
        np.maximum(max_exp_avg_sq, exp_avg_sq, out=max_exp_avg_sq)
    denominator = np.sqrt(exp_avg_sq if max_exp_avg_sq is None else max_exp_avg_sq)
    denominator /= math.sqrt(1 - beta2**step)
    denominator += eps
    np.multiply(exp_avg, lr / (1 - beta1**step), out=change)
    change /= denominator
    param -= change


@native
@in_blocks
def rmsprop_step(
    param: Array, grad: Array, square_avg: Array, momentum_buffer: Array | None = None, grad_avg: Array | None = None, *,
    lr: float, alpha: float, eps: float, weight_decay: float, momentum: float, maximize: bool,
) -> None:  # fmt: skip
    """RMSprop; with `grad_avg` the gradient's variance is taken about its mean."""
    grad = _descent_gradient(param, grad, weight_decay, maximize)
    square_avg *= alpha
    change = grad * (1 - alpha)
    change *= grad
    square_avg += change
    if grad_avg is None:
        root = np.sqrt(square_avg)
    else:
        np.subtract(grad, grad_avg, out=change)
        change *= 1 - alpha
        grad_avg += change
        root = grad_avg * grad_avg
        np.subtract(square_avg, root, out=root)
        np.sqrt(root, out=root)
    root += eps
    if momentum_buffer is None:
        np.multiply(grad, lr, out=change)
        change /= root
    else:
        np.divide(grad, root, out=change)
        momentum_buffer *= momentum
        momentum_buffer += change
        np.multiply(momentum_buffer, lr, out=change)
    param -= change


@native
@in_blocks
def adagrad_step(
    param: Array, grad: Array, total: Array, *, lr: float, eps: float, weight_decay: float, maximize: bool
) -> None:
    """Adagrad; `lr` is the rate of this step, its decay applied, and `total` the state's sum of squares."""
    grad = _descent_gradient(param, grad, weight_decay, maximize)
    change = grad * grad
    total += change
    root = np.sqrt(total)
    root += eps
    np.multiply(grad, lr, out=change)
    change /= root
    param -= change


@in_blocks
def adadelta_step(
    param: Array, grad: Array, square_avg: Array, acc_delta: Array, *, lr: float, rho: float, eps: float,
    weight_decay: float, maximize: bool,
) -> None:  # fmt: skip
    """Adadelta."""
    grad = _descent_gradient(param, grad, weight_decay, maximize)
    work = grad * grad
    work *= 1 - rho
    square_avg *= rho
    square_avg += work
    delta = acc_delta + eps
    np.sqrt(delta, out=delta)
    np.add(square_avg, eps, out=work)
    np.sqrt(work, out=work)
    delta /= work
    delta *= grad
    np.multiply(delta, delta, out=work)
    work *= 1 - rho
    acc_delta *= rho
    acc_delta += work
    delta *= lr
    param -= delta


@in_blocks
def asgd_step(
    param: Array,
    grad: Array,
    average: Array,
    *,
    eta: float,
    mu: float,
    lambd: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """Averaged SGD; `eta` is the rate of this step and `mu` the weight of its result in the average."""
    grad = _descent_gradient(param, grad, weight_decay, maximize)
    change = grad * eta
    param *= 1 - lambd * eta
    param -= change
    if mu == 1:
        average[...] = param
    else:
        np.subtract(param, average, out=change)
        change *= mu
        average += change
