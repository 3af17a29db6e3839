"""Products of matrices and vectors, batched or not, and the linear layer."""

from __future__ import annotations

import numpy as np

from pullback.backend.dtype import scalar_type_name
from pullback.kernels.broadcasting import sum_to
from pullback.typing import Array, Scalar, Shape


def _same_dtype(a: Array, b: Array) -> None:
    if a.dtype is not b.dtype and a.dtype != b.dtype:
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {scalar_type_name(a.dtype).lower()} != "
            f"{scalar_type_name(b.dtype).lower()}"
        )


def _multiply(a: Array, b: Array) -> Array:
    """np.matmul, with 16-bit floats accumulated in float32."""
    if a.dtype.itemsize == 2 and a.dtype.kind in "fV":
        return np.matmul(a.astype(np.float32), b.astype(np.float32)).astype(a.dtype)
    return np.matmul(a, b)


def mm(input: Array, mat2: Array) -> Array:
    """The product of two matrices."""
    if input.ndim != 2 or mat2.ndim != 2:
        raise RuntimeError(f"{'self' if input.ndim != 2 else 'mat2'} must be a matrix")
    if input.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({input.shape[0]}x{input.shape[1]} and "
            f"{mat2.shape[0]}x{mat2.shape[1]})"
        )
    _same_dtype(input, mat2)
    return _multiply(input, mat2)


def bmm(input: Array, mat2: Array) -> Array:
    """The products of two batches of matrices."""
    if input.ndim != 3 or mat2.ndim != 3:
        raise RuntimeError(f"{'batch1' if input.ndim != 3 else 'batch2'} must be a 3D tensor")
    if input.shape[0] != mat2.shape[0] or input.shape[2] != mat2.shape[1]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{input.shape[0]}, {input.shape[2]}] but "
            f"got: [{mat2.shape[0]}, {mat2.shape[1]}]."
        )
    _same_dtype(input, mat2)
    return _multiply(input, mat2)


def mv(input: Array, vec: Array) -> Array:
    """A matrix times a vector."""
    if input.ndim != 2 or vec.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {input.ndim}, {vec.ndim}")
    if input.shape[1] != vec.shape[0]:
        raise RuntimeError(f"size mismatch, got input ({input.shape[0]}), mat ({input.shape[0]}x{input.shape[1]}), "
                           f"vec ({vec.shape[0]})")  # fmt: skip
    _same_dtype(input, vec)
    return _multiply(input, vec)


def dot(input: Array, tensor: Array) -> Array:
    """The sum of the products of two vectors' elements."""
    if input.ndim != 1 or tensor.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {input.ndim}D and {tensor.ndim}D tensors")
    if input.shape != tensor.shape:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{input.shape[0]}] and src [{tensor.shape[0]}] to have the same "
            f"number of elements, but got {input.shape[0]} and {tensor.shape[0]} elements respectively"
        )
    if input.dtype != tensor.dtype:
        raise RuntimeError(
            f"dot : expected both vectors to have same dtype, but found {scalar_type_name(input.dtype)} and "
            f"{scalar_type_name(tensor.dtype)}"
        )
    return _multiply(input, tensor)


def vdot(input: Array, other: Array) -> Array:
    """As `dot`, with the first vector conjugated."""
    return dot(input.conjugate(), other)


def outer(input: Array, vec2: Array) -> Array:
    """Every product of an element of one vector with one of the other."""
    if input.ndim != 1 or vec2.ndim != 1:
        raise RuntimeError(f"outer: Expected 1-D argument {'self' if input.ndim != 1 else 'vec2'}, but got "
                           f"{(input if input.ndim != 1 else vec2).ndim}-D")  # fmt: skip
    return input[:, None] * vec2  # type: ignore[no-any-return]


def matmul_batched(input: Array, other: Array) -> Array:
    """The product of two batches of matrices whose batch dimensions broadcast."""
    if other.ndim == 1:
        inner = other.shape[0]
    else:
        inner = other.shape[-2]
    if input.shape[-1] != inner:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({_folded(input)} and {_folded(other)})"
            if input.ndim > 2 and other.ndim <= 2
            else "Expected size for first two dimensions of batch2 tensor to be: "
            f"[{input.shape[0]}, {input.shape[-1]}] but got: [{other.shape[0]}, {inner}]."
        )
    _same_dtype(input, other)
    if input.ndim > 2 and other.ndim == 2:
        return _multiply(input.reshape(-1, input.shape[-1]), other).reshape(*input.shape[:-1], other.shape[-1])
    return _multiply(input, other)


def _folded(array: Array) -> str:
    if array.ndim == 1:
        return f"{array.shape[0]}x1"
    return f"{int(np.prod(array.shape[:-1]))}x{array.shape[-1]}"


def matmul_grad_input(grad: Array, input_shape: Shape, other: Array) -> Array:
    """The gradient of `input @ other` with respect to `input`."""
    if other.ndim == 1:
        return sum_to(np.multiply(grad[..., None], other.conj()), input_shape)  # type: ignore[no-any-return]
    if len(input_shape) == 1:
        return sum_to(_multiply(grad[..., None, :], np.swapaxes(other.conj(), -1, -2))[..., 0, :], input_shape)  # type: ignore[no-any-return]
    if other.ndim == 2 and grad.ndim > 2:
        flat = _multiply(grad.reshape(-1, grad.shape[-1]), other.conj().T)
        return flat.reshape(input_shape)
    return sum_to(_multiply(grad, np.swapaxes(other.conj(), -1, -2)), input_shape)  # type: ignore[no-any-return]


def matmul_grad_other(grad: Array, input: Array, other_shape: Shape) -> Array:
    """The gradient of `input @ other` with respect to `other`."""
    if len(other_shape) == 1:
        product = np.multiply(grad[..., None], input.conj())
        return sum_to(product, other_shape)  # type: ignore[no-any-return]
    if input.ndim == 1:
        return sum_to(input.conj()[:, None] * grad[..., None, :], other_shape)  # type: ignore[no-any-return]
    if len(other_shape) == 2 and grad.ndim > 2:
        return _multiply(input.reshape(-1, input.shape[-1]).conj().T, grad.reshape(-1, grad.shape[-1]))
    return sum_to(_multiply(np.swapaxes(input.conj(), -1, -2), grad), other_shape)  # type: ignore[no-any-return]


def addmm(input: Array, mat1: Array, mat2: Array, *, beta: Scalar = 1, alpha: Scalar = 1) -> Array:
    """`beta * input + alpha * (mat1 @ mat2)`."""
    return _blend(input, mm(mat1, mat2), beta, alpha)


def addmv(input: Array, mat: Array, vec: Array, *, beta: Scalar = 1, alpha: Scalar = 1) -> Array:
    """`beta * input + alpha * (mat @ vec)`."""
    return _blend(input, mv(mat, vec), beta, alpha)


def addr(input: Array, vec1: Array, vec2: Array, *, beta: Scalar = 1, alpha: Scalar = 1) -> Array:
    """`beta * input + alpha * outer(vec1, vec2)`."""
    return _blend(input, outer(vec1, vec2), beta, alpha)


def baddbmm(input: Array, batch1: Array, batch2: Array, *, beta: Scalar = 1, alpha: Scalar = 1) -> Array:
    """`beta * input + alpha * bmm(batch1, batch2)`."""
    return _blend(input, bmm(batch1, batch2), beta, alpha)


def addbmm(input: Array, batch1: Array, batch2: Array, *, beta: Scalar = 1, alpha: Scalar = 1) -> Array:
    """`beta * input + alpha * bmm(batch1, batch2).sum(0)`."""
    return _blend(input, bmm(batch1, batch2).sum(0), beta, alpha)


def _blend(input: Array, product: Array, beta: Scalar, alpha: Scalar) -> Array:
    if input.dtype != product.dtype:
        raise RuntimeError(
            f"self and mat2 must have the same dtype, but got {scalar_type_name(input.dtype)} and "
            f"{scalar_type_name(product.dtype)}"
        )
    if np.broadcast_shapes(input.shape, product.shape) != product.shape:
        raise RuntimeError(f"The expanded size of the tensor {list(product.shape)} must match the existing size "
                           f"{list(input.shape)}")  # fmt: skip
    if alpha != 1:
        product = product * np.asarray(alpha).astype(product.dtype)
    if beta == 0:
        return product
    return product + (input if beta == 1 else input * np.asarray(beta).astype(product.dtype))


def linear_bias(input: Array, weight: Array, bias: Array) -> Array:
    """`input @ weight.T + bias` for a matrix of inputs."""
    result = linear_product(input, weight)
    if result.dtype != bias.dtype or not result.flags.writeable:
        return result + bias  # type: ignore[no-any-return]
    result += bias
    return result


def linear_bias_folded(input: Array, weight: Array, bias: Array) -> Array:
    """`input @ weight.T + bias` for inputs of any other number of dimensions."""
    return linear_bias(input, weight, bias)


def linear_product(input: Array, weight: Array) -> Array:
    """`input @ weight.T` for a matrix of inputs."""
    if input.shape[-1] != weight.shape[-1]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({_folded(input)} and {weight.shape[1]}x{weight.shape[0]})"
            if input.ndim > 1
            else f"size mismatch, got input ({weight.shape[0]}), mat ({weight.shape[0]}x{weight.shape[1]}), vec "
            f"({input.shape[0]})"
        )
    _same_dtype(input, weight)
    if input.ndim > 2:
        return _multiply(input.reshape(-1, input.shape[-1]), weight.T).reshape(*input.shape[:-1], weight.shape[0])
    return _multiply(input, weight.T)


def linear_product_folded(input: Array, weight: Array) -> Array:
    """`input @ weight.T` for inputs of any other number of dimensions."""
    return linear_product(input, weight)


def linear_grad_input(grad: Array, weight: Array) -> Array:
    """The gradient of a linear layer with respect to its input."""
    if grad.ndim > 2:
        return _multiply(grad.reshape(-1, grad.shape[-1]), weight.conj()).reshape(*grad.shape[:-1], weight.shape[1])
    return _multiply(grad, weight.conj())


def linear_grad_weight(grad: Array, input: Array) -> Array:
    """The gradient of a linear layer with respect to its weight."""
    if grad.ndim == 1:
        return np.multiply(grad[:, None], input.conj())  # type: ignore[no-any-return]
    if grad.ndim > 2:
        grad, input = grad.reshape(-1, grad.shape[-1]), input.reshape(-1, input.shape[-1])
    return _multiply(grad.T, input.conj())


def linear_grad_bias(grad: Array) -> Array:
    """The gradient of a linear layer with respect to its bias."""
    if grad.ndim == 1:
        return grad
    rows = grad.reshape(-1, grad.shape[-1])
    # One BLAS call is several times as fast as a sum over the slow axis.
    if rows.dtype.kind == "f" and rows.dtype.itemsize >= 4:
        return np.ones(rows.shape[0], rows.dtype) @ rows
    return rows.sum(0, dtype=rows.dtype)  # type: ignore[no-any-return]
