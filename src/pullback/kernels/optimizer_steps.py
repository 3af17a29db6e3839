"""Steps of the elementwise optimizers, in place: rows of arrays (a parameter, its gradient, its state), and numbers.

Each is written for one row, without temporaries where NumPy allows it, and called with all rows of a batch: see
`for_rows`. The operations of a step are in PyTorch's order: results round alike. Arrays are real. The compiled loops are
made of this text (tools/codegen/emit_steps.py); they have no case of their own for a factor of 1, which changes nothing.
"""

from __future__ import annotations

import numpy as np

from pullback.backend.blocks import for_rows
from pullback.native import native
from pullback.typing import Array


def _scaled(array: Array, factor: float) -> Array:
    """The array times a factor; the array itself if that is 1."""
    return array if factor == 1 else array * factor


def _scale(array: Array, factor: float) -> None:
    """Multiply the array by a factor."""
    if factor != 1:
        array *= factor


def _descent_gradient(param: Array, grad: Array, weight_decay: float, maximize: bool) -> Array:
    """The gradient to descend along: its sign as `maximize` says, with weight decay added; `grad` itself if neither."""
    grad = _scaled(grad, -1 if maximize else 1)
    if weight_decay != 0:
        decayed = np.multiply(param, weight_decay)
        return np.add(grad, decayed, out=decayed)
    return grad


@native
@for_rows
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
        momentum_buffer += _scaled(grad, 1 - dampening)
    if nesterov:
        change = momentum_buffer * momentum
        change += grad
        change *= lr
    else:
        change = momentum_buffer * lr
    param -= change


def _update_moments(
    param: Array, grad: Array, exp_avg: Array, exp_avg_sq: Array, beta1: float, beta2: float, weight_decay: float,
    shrink: float, maximize: bool,
) -> tuple[Array, Array]:  # fmt: skip
    """Do what Adam and its relatives begin with; the gradient to descend along, and an array to work in."""
    _scale(param, shrink)
    grad = _descent_gradient(param, grad, weight_decay, maximize)
    work = np.subtract(grad, exp_avg)
    work *= 1 - beta1
    exp_avg += work
    exp_avg_sq *= beta2
    np.multiply(grad, 1 - beta2, out=work)
    work *= grad
    exp_avg_sq += work
    return grad, work


@native
@for_rows
def adam_step(
    param: Array, grad: Array, exp_avg: Array, exp_avg_sq: Array, max_exp_avg_sq: Array | None = None, *, beta1: float,
    beta2: float, eps: float, weight_decay: float, shrink: float, root_correction: float, step_size: float, maximize: bool,
) -> None:  # fmt: skip
    """Adam; with `shrink`, what decoupled weight decay leaves of a parameter, AdamW; with `max_exp_avg_sq` AMSGrad."""
    _, change = _update_moments(param, grad, exp_avg, exp_avg_sq, beta1, beta2, weight_decay, shrink, maximize)
    if max_exp_avg_sq is not None:
        np.maximum(max_exp_avg_sq, exp_avg_sq, out=max_exp_avg_sq)
    denominator = np.sqrt(exp_avg_sq if max_exp_avg_sq is None else max_exp_avg_sq)
    denominator /= root_correction
    denominator += eps
    np.multiply(exp_avg, step_size, out=change)
    change /= denominator
    param -= change


@native
@for_rows
def nadam_step(
    param: Array, grad: Array, exp_avg: Array, exp_avg_sq: Array, *, beta1: float, beta2: float, eps: float,
    weight_decay: float, shrink: float, correction: float, of_grad: float, of_momentum: float, maximize: bool,
) -> None:  # fmt: skip
    """NAdam; `of_grad` and `of_momentum` are the rates of the two parts of the change."""
    grad, change = _update_moments(param, grad, exp_avg, exp_avg_sq, beta1, beta2, weight_decay, shrink, maximize)
    denominator = exp_avg_sq / correction
    np.sqrt(denominator, out=denominator)
    denominator += eps
    np.multiply(grad, of_grad, out=change)
    change /= denominator
    param -= change
    np.multiply(exp_avg, of_momentum, out=change)
    change /= denominator
    param -= change


@native
@for_rows
def radam_step(
    param: Array, grad: Array, exp_avg: Array, exp_avg_sq: Array, *, lr: float, beta1: float, beta2: float, eps: float,
    weight_decay: float, shrink: float, correction: float, root_correction: float, rectification: float,
    is_rectified: bool, maximize: bool,
) -> None:  # fmt: skip
    """RAdam; the step adapts to the second moments once it `is_rectified`."""
    _, work = _update_moments(param, grad, exp_avg, exp_avg_sq, beta1, beta2, weight_decay, shrink, maximize)
    change = exp_avg / correction
    change *= lr
    if is_rectified:
        np.sqrt(exp_avg_sq, out=work)
        work += eps
        np.divide(root_correction, work, out=work)
        change *= work
        change *= rectification
    param -= change


@native
@for_rows
def adamax_step(
    param: Array, grad: Array, exp_avg: Array, exp_inf: Array, *, beta1: float, beta2: float, eps: float,
    weight_decay: float, step_size: float, maximize: bool,
) -> None:  # fmt: skip
    """Adamax."""
    grad = _descent_gradient(param, grad, weight_decay, maximize)
    work = np.subtract(grad, exp_avg)
    work *= 1 - beta1
    exp_avg += work
    exp_inf *= beta2
    np.abs(grad, out=work)
    work += eps
    np.maximum(exp_inf, work, out=exp_inf)
    np.multiply(exp_avg, step_size, out=work)
    work /= exp_inf
    param -= work


@native
@for_rows
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
@for_rows
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


@native
@for_rows
def adadelta_step(
    param: Array, grad: Array, square_avg: Array, acc_delta: Array, *, lr: float, rho: float, eps: float,
    weight_decay: float, maximize: bool,
) -> None:  # fmt: skip
    """Adadelta."""
    grad = _descent_gradient(param, grad, weight_decay, maximize)
    work = grad * (1 - rho)
    work *= grad
    square_avg *= rho
    square_avg += work
    delta = acc_delta + eps
    np.sqrt(delta, out=delta)
    np.add(square_avg, eps, out=work)
    np.sqrt(work, out=work)
    delta /= work
    delta *= grad
    np.multiply(delta, 1 - rho, out=work)
    work *= delta
    acc_delta *= rho
    acc_delta += work
    delta *= lr
    param -= delta


@native
@for_rows
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
        np.copyto(average, param)
    else:
        np.subtract(param, average, out=change)
        change *= mu
        average += change


@native
@for_rows
def rprop_step(
    param: Array, grad: Array, prev: Array, step_size: Array, *, shrink: float, grow: float, smallest: float,
    largest: float, maximize: bool,
) -> None:  # fmt: skip
    """Rprop; where the gradient's sign changed it counts as zero, and where it is not a number nothing moves."""
    grad = _scaled(grad, -1 if maximize else 1)
    work = grad * prev
    differs = work < 0
    agrees = work > 0
    np.multiply(step_size, grow, out=work)
    np.copyto(step_size, work, where=agrees)
    np.multiply(step_size, shrink, out=work)
    np.copyto(step_size, work, where=differs)
    np.clip(step_size, smallest, largest, out=step_size)
    np.copyto(prev, grad)
    np.copyto(prev, 0, where=differs)
    work[...] = 0
    np.copyto(work, step_size, where=prev > 0)
    np.copyto(work, -step_size, where=prev < 0)
    param -= work
