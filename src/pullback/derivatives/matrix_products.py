"""Rules of kernels/matrix_products.py."""

from __future__ import annotations

from pullback.rules import Dim, F, Pullback, Scalar, Tensor, general, linear, multilinear, tangent, wrt


@multilinear(
    backward="wrt(mat2=mm_back_second(grad, input, mat2), input=mm_back_first(grad, input, mat2))",
    autocast="lower",
    out_dtype="c_types",
    fresh=True,
    product=0,
    found="torch and method",
)
def mm(grad: Tensor, input: Tensor, mat2: Tensor) -> Pullback:
    return wrt(
        input=F.t(F.mm(F.conj(mat2), F.t(grad))) if input.column_major else F.mm(grad, F.conj(F.t(mat2))),
        mat2=F.t(F.mm(F.t(grad), F.conj(input))) if mat2.column_major else F.mm(F.conj(F.t(input)), grad),
    )


@multilinear(
    backward="wrt(mat2=bmm(conj(transpose(input, 1, 2)), grad), input=bmm(grad, conj(transpose(mat2, 1, 2))))",
    autocast="lower",
    out_dtype="c_types",
    fresh=True,
    product=0,
    found="torch and method",
)
def bmm(grad: Tensor, input: Tensor, mat2: Tensor) -> Pullback:
    return wrt(input=F.bmm(grad, F.conj(F.transpose(mat2, 1, 2))), mat2=F.bmm(F.conj(F.transpose(input, 1, 2)), grad))


@multilinear(
    backward="wrt(input=mul(view(grad, (grad.shape[0], 1)), conj(vec)), vec=mv(conj(t(input)), grad))",
    out_dtype="addmv input tensors must have the same dtype, but got {1}, {0}, and {0}",
    fresh=True,
    product=0,
    found="torch and method",
)
def mv(grad: Tensor, input: Tensor, vec: Tensor) -> Pullback:
    return wrt(input=F.outer(grad, F.conj(vec)), vec=F.mv(F.conj(F.t(input)), grad))


@multilinear(out_dtype="for_dot", product=0, found="torch and method")
def dot(grad: Tensor, input: Tensor, tensor: Tensor) -> Pullback:
    return wrt(input=grad * F.conj(tensor), tensor=grad * F.conj(input))


@general(out_dtype="for_dot", found="torch and method")
def vdot(grad: Tensor, input: Tensor, other: Tensor) -> Pullback:
    return wrt(input=F.conj(grad) * other, other=grad * input)


@tangent
def vdot_tangent(input: Tensor, other: Tensor, input_tangent: Tensor, other_tangent: Tensor) -> Tensor:
    return F.vdot(input_tangent, other) + F.vdot(input, other_tangent)


@multilinear(
    node="MulBackward0",
    promote="common",
    parts="mul(view(input, (input.shape[0], 1)), vec2)",
    fused="outer_node",
    found="torch and method",
)
def outer(grad: Tensor, input: Tensor, vec2: Tensor) -> Pullback:
    return wrt(
        input=F.to_dtype(F.mv(grad, F.to_dtype(F.conj(vec2), grad.dtype)), input.dtype),
        vec2=F.to_dtype(F.mv(F.t(grad), F.to_dtype(F.conj(input), grad.dtype)), vec2.dtype),
    )


@multilinear(
    node="UnsafeViewBackward0",
    parts="matmul_steps(input, other)",
    fused="matmul_node",
    autocast="lower",
    profiled="matmul",
    product=0,
)
def matmul_batched(grad: Tensor, input: Tensor, other: Tensor) -> Pullback:
    return wrt(input=F.matmul_grad_input(grad, input.shape, other), other=F.matmul_grad_other(grad, input, other.shape))


@multilinear(
    node="CloneBackward0",
    parts="matmul_steps(input, other)",
    fused="matmul_node",
    autocast="lower",
    profiled="matmul",
    product=0,
)
def matmul_flipped(grad: Tensor, input: Tensor, other: Tensor) -> Pullback:
    return wrt(input=F.matmul_grad_input(grad, input.shape, other), other=F.matmul_grad_other(grad, input, other.shape))


@linear(autocast="float32", found="torch and method")
def trace(grad: Tensor, input: Tensor) -> Pullback:
    return wrt(input=F.trace_back(grad, input.shape))


@multilinear(out_dtype="c_types")
def linalg_cross(grad: Tensor, input: Tensor, other: Tensor, dim: Dim) -> Pullback:
    return wrt(
        input=F.sum_to(F.linalg_cross(F.conj(other), grad, dim=dim), input.shape),
        other=F.sum_to(F.linalg_cross(grad, F.conj(input), dim=dim), other.shape),
    )


@general(
    in_place=True,
    backward="wrt(mat1=mm_back_first(grad, mat1, mat2, alpha), mat2=mm_back_second(grad, mat1, mat2, alpha), "
    "input=sum_to(scaled_by(grad, beta) if beta != 1 else grad, input.shape))",
    autocast="lower",
    out_dtype="c_types",
    product=1,
)
def addmm(grad: Tensor, input: Tensor, mat1: Tensor, mat2: Tensor, beta: Scalar, alpha: Scalar) -> Pullback:
    # The sum of a bias is that of a linear layer, to the bit: a layer may be recorded as either.
    weighted = grad if beta == 1 else F.scaled_by(grad, beta)
    to_mat1 = F.t(F.mm(F.conj(mat2), F.t(grad))) if mat1.column_major else F.mm(grad, F.conj(F.t(mat2)))
    to_mat2 = F.t(F.mm(F.t(grad), F.conj(mat1))) if mat2.column_major else F.mm(F.conj(F.t(mat1)), grad)
    return wrt(
        input=F.bias_grad(weighted, input.shape),
        mat1=to_mat1 if alpha == 1 else F.scaled_by(to_mat1, alpha),
        mat2=to_mat2 if alpha == 1 else F.scaled_by(to_mat2, alpha),
    )


@tangent
def addmm_tangent(
    mat1: Tensor, mat2: Tensor, beta: Scalar, alpha: Scalar, input_tangent: Tensor, mat1_tangent: Tensor,
    mat2_tangent: Tensor,
) -> Tensor:  # fmt: skip
    return F.addmm(input_tangent, mat1_tangent, mat2, beta=beta, alpha=alpha) + F.mm(mat1, mat2_tangent) * alpha


@general(in_place=True, out_dtype="c_types", product=1, found_in_place="torch and method")
def addmv(grad: Tensor, input: Tensor, mat: Tensor, vec: Tensor, beta: Scalar, alpha: Scalar) -> Pullback:
    to_mat = F.outer(grad, F.conj(vec))
    to_vec = F.mv(F.conj(F.t(mat)), grad)
    return wrt(
        input=F.sum_to(grad if beta == 1 else F.scaled_by(grad, beta), input.shape),
        mat=to_mat if alpha == 1 else F.scaled_by(to_mat, alpha),
        vec=to_vec if alpha == 1 else F.scaled_by(to_vec, alpha),
    )


@tangent
def addmv_tangent(
    mat: Tensor, vec: Tensor, beta: Scalar, alpha: Scalar, input_tangent: Tensor, mat_tangent: Tensor,
    vec_tangent: Tensor,
) -> Tensor:  # fmt: skip
    return F.addmv(input_tangent, mat_tangent, vec, beta=beta, alpha=alpha) + F.mv(mat, vec_tangent) * alpha


@general(in_place=True, promote="common")
def addr(grad: Tensor, input: Tensor, vec1: Tensor, vec2: Tensor, beta: Scalar, alpha: Scalar) -> Pullback:
    to_vec1 = F.mv(grad, F.to_dtype(F.conj(vec2), grad.dtype))
    to_vec2 = F.mv(F.t(grad), F.to_dtype(F.conj(vec1), grad.dtype))
    return wrt(
        input=F.sum_to_like(grad if beta == 1 else F.scaled_by(grad, beta), input.shape, input.dtype),
        vec1=F.to_dtype(to_vec1 if alpha == 1 else F.scaled_by(to_vec1, alpha), vec1.dtype),
        vec2=F.to_dtype(to_vec2 if alpha == 1 else F.scaled_by(to_vec2, alpha), vec2.dtype),
    )


@general(in_place=True, autocast="lower", out_dtype="c_types", product=1)
def baddbmm(grad: Tensor, input: Tensor, batch1: Tensor, batch2: Tensor, beta: Scalar, alpha: Scalar) -> Pullback:
    to_batch1 = F.bmm(grad, F.conj(F.transpose(batch2, 1, 2)))
    to_batch2 = F.bmm(F.conj(F.transpose(batch1, 1, 2)), grad)
    return wrt(
        input=F.sum_to(grad if beta == 1 else F.scaled_by(grad, beta), input.shape),
        batch1=to_batch1 if alpha == 1 else F.scaled_by(to_batch1, alpha),
        batch2=to_batch2 if alpha == 1 else F.scaled_by(to_batch2, alpha),
    )


@tangent
def baddbmm_tangent(
    batch1: Tensor, batch2: Tensor, beta: Scalar, alpha: Scalar, input_tangent: Tensor, batch1_tangent: Tensor,
    batch2_tangent: Tensor,
) -> Tensor:  # fmt: skip
    return (
        F.baddbmm(input_tangent, batch1_tangent, batch2, beta=beta, alpha=alpha) + F.bmm(batch1, batch2_tangent) * alpha
    )


@general(
    in_place=True,
    autocast="lower",
    out_dtype="self and mat2 must have the same dtype, but got {1} and {0}",
    out_resized="silently",
)
def addbmm(grad: Tensor, input: Tensor, batch1: Tensor, batch2: Tensor, beta: Scalar, alpha: Scalar) -> Pullback:
    wide = F.expand(F.unsqueeze(grad, 0), (batch1.shape[0], grad.shape[0], grad.shape[1]))
    to_batch1 = F.bmm(wide, F.conj(F.transpose(batch2, 1, 2)))
    to_batch2 = F.bmm(F.conj(F.transpose(batch1, 1, 2)), wide)
    return wrt(
        input=F.sum_to(grad if beta == 1 else F.scaled_by(grad, beta), input.shape),
        batch1=to_batch1 if alpha == 1 else F.scaled_by(to_batch1, alpha),
        batch2=to_batch2 if alpha == 1 else F.scaled_by(to_batch2, alpha),
    )


@general(
    node="AddmmBackward0",
    public="linear",
    edges=("bias", "input", "weight"),
    parts="linear_steps(input, weight, bias)",
    fused="linear_node",
    autocast="lower",
    product=0,
)
def linear_bias(grad: Tensor, input: Tensor, weight: Tensor, bias: Tensor) -> Pullback:
    return wrt(
        input=F.linear_grad_input(grad, weight), weight=F.linear_grad_weight(grad, input), bias=F.linear_grad_bias(grad)
    )


@tangent
def linear_bias_tangent(
    input: Tensor, weight: Tensor, input_tangent: Tensor, weight_tangent: Tensor, bias_tangent: Tensor
) -> Tensor:
    return F.linear_bias(input_tangent, weight, bias_tangent) + F.linear_product(input, weight_tangent)


@general(
    node="ViewBackward0",
    public="linear",
    edges=("bias", "input", "weight"),
    parts="linear_steps(input, weight, bias)",
    fused="linear_node",
    autocast="lower",
    product=0,
)
def linear_bias_folded(grad: Tensor, input: Tensor, weight: Tensor, bias: Tensor) -> Pullback:
    return wrt(
        input=F.linear_grad_input(grad, weight), weight=F.linear_grad_weight(grad, input), bias=F.linear_grad_bias(grad)
    )


@tangent
def linear_bias_folded_tangent(
    input: Tensor, weight: Tensor, input_tangent: Tensor, weight_tangent: Tensor, bias_tangent: Tensor
) -> Tensor:
    return F.linear_bias_folded(input_tangent, weight, bias_tangent) + F.linear_product_folded(input, weight_tangent)


@general(
    node="AddBackward0",
    public="linear",
    edges=("bias", "input", "weight"),
    fused="linear_node",
    parts="linear_steps(input, weight, bias, fold=False)",
    autocast="lower",
    product=0,
)
def linear_bias_added(grad: Tensor, input: Tensor, weight: Tensor, bias: Tensor) -> Pullback:
    return wrt(
        input=F.linear_grad_input(grad, weight),
        weight=F.linear_grad_weight(grad, input),
        bias=F.sum_to(grad, bias.shape),
    )


@tangent
def linear_bias_added_tangent(
    input: Tensor, weight: Tensor, input_tangent: Tensor, weight_tangent: Tensor, bias_tangent: Tensor
) -> Tensor:
    return F.linear_bias_added(input_tangent, weight, bias_tangent) + F.linear_product_folded(input, weight_tangent)


@multilinear(
    node="MmBackward0",
    parts="linear_steps(input, weight, None)",
    fused="linear_node",
    autocast="lower",
    profiled="linear",
    product=0,
)
def linear_product(grad: Tensor, input: Tensor, weight: Tensor) -> Pullback:
    return wrt(input=F.linear_grad_input(grad, weight), weight=F.linear_grad_weight(grad, input))


@multilinear(
    node="UnsafeViewBackward0",
    parts="linear_steps(input, weight, None)",
    fused="linear_node",
    autocast="lower",
    profiled="linear",
    product=0,
)
def linear_product_folded(grad: Tensor, input: Tensor, weight: Tensor) -> Pullback:
    return wrt(input=F.linear_grad_input(grad, weight), weight=F.linear_grad_weight(grad, input))
