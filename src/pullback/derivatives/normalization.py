"""Rules of kernels/normalization.py.

Saved statistics serve the array path; formulas compute them anew from the input, so that they are differentiated too.
"""

from __future__ import annotations

from pullback.rules import F, Pullback, Shape, Tensor, general, wrt


@general(
    outputs=("result", "mean", "rstd"),
    differentiable=(True, False, False),
    out=False,
    backward="native_layer_norm_backward(grad, input, normalized_shape, mean, rstd, weight, "
    "weight if output_mask[2] else bias, output_mask)",
    again=True,
    gradient_nodes="(grad, input, None, None, weight, bias)",
)
def native_layer_norm(
    grad: Tensor, input: Tensor, normalized_shape: Shape, weight: Tensor, eps: float, *, mean: Tensor, rstd: Tensor
) -> Pullback:
    grads = F.in_dtype_of(grad, weight)
    rows = F.in_dtype_of(input, weight)
    parts = F.layer_norm_back(grads, rows, mean, rstd, weight, normalized_shape, eps)
    return wrt(input=F.in_dtype_of(parts[0], input), weight=parts[1], bias=parts[2])


@general(
    node="NativeBatchNormBackward0", outputs=("result", "mean", "rstd", "variance"),
    differentiable=(True, False, False, False), out=False, profiled="native_batch_norm",
    backward="native_batch_norm_backward(grad, input, weight, None, None, mean, rstd, True, eps, output_mask)",
    again=True,
    gradient_nodes="(grad, input, weight, None, None)",
)  # fmt: skip
def batch_norm_training(
    grad: Tensor, input: Tensor, weight: Tensor, eps: float, *, mean: Tensor, rstd: Tensor
) -> Pullback:
    grads = F.in_dtype_of(grad, weight)
    images = F.in_dtype_of(input, weight)
    parts = F.batch_norm_training_back(grads, images, mean, rstd, weight, eps)
    return wrt(input=F.in_dtype_of(parts[0], input), weight=parts[1], bias=parts[2])


@general(
    node="NativeBatchNormBackward0", public="batch_norm", out=False, profiled="native_batch_norm",
    backward="native_batch_norm_backward(grad, input, weight, running_mean, running_var, None, None, False, eps, "
    "output_mask)",
    gradient_nodes="(grad, input, weight, None, None)",
)  # fmt: skip
def batch_norm_evaluation(
    grad: Tensor, input: Tensor, weight: Tensor, running_mean: Tensor, running_var: Tensor, eps: float
) -> Pullback:
    return wrt(
        input=F.batch_norm_evaluation_back(grad, weight, running_var, eps),
        weight=F.batch_norm_evaluation_weight_back(grad, input, weight.dtype, running_mean, running_var, eps),
        bias=F.depending_on(F.sum_over_channels(F.in_dtype_of(grad, weight)), input),
    )


@general(
    outputs=("result", "mean", "rstd"),
    differentiable=(True, False, False),
    out=False,
    backward="native_group_norm_backward(contiguous(grad), input, mean, rstd, weight, input.shape[0], input.shape[1], "
    "input.numel() // (input.shape[0] * input.shape[1]), group, output_mask)",
)
def native_group_norm(
    grad: Tensor, input: Tensor, weight: Tensor, group: int, eps: float, *, mean: Tensor, rstd: Tensor
) -> Pullback:
    grads = F.in_dtype_of(grad, weight)
    images = F.in_dtype_of(input, weight)
    parts = F.group_norm_back(grads, images, mean, rstd, weight, group, eps)
    return wrt(input=F.in_dtype_of(parts[0], input), weight=parts[1], bias=parts[2])


@general(
    node="MulBackward0", out=False, fused="rms_norm_node", profiled="rms_norm",
    parts="rms_norm_steps(input, normalized_shape, weight, eps)",
)  # fmt: skip
def rms_norm_fused(grad: Tensor, input: Tensor, normalized_shape: Shape, weight: Tensor, eps: float | None) -> Pullback:
    grads = F.in_dtype_of(grad, weight)
    rows = F.in_dtype_of(input, weight)
    pair = F.rms_norm_back(grads, rows, normalized_shape, weight, eps)
    return wrt(input=F.in_dtype_of(pair[0], input), weight=pair[1])


@general(node="ToCopyBackward0", out=False, fused="rms_norm_node", public="rms_norm", profiled="rms_norm")
def rms_norm_rounded(
    grad: Tensor, input: Tensor, normalized_shape: Shape, weight: Tensor, eps: float | None
) -> Pullback:
    grads = F.in_dtype_of(grad, weight)
    rows = F.in_dtype_of(input, weight)
    pair = F.rms_norm_back(grads, rows, normalized_shape, weight, eps)
    return wrt(input=F.in_dtype_of(pair[0], input), weight=pair[1])


@general(outputs=("result0", "result1"), differentiable=(True, False), out=False)
def weight_norm_interface(grad: Tensor, v: Tensor, g: Tensor, dim: int, *, result1: Tensor) -> Pullback:
    pair = F.weight_norm_back(grad, v, g, result1, dim)
    return wrt(v=pair[0], g=pair[1])
