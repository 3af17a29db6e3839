"""Products of matrices and vectors, batched or not, and the linear layer."""

from __future__ import annotations

import math

import numpy as np

from pullback.backend.halves import cast_half
from pullback.backend.unpromised_bits import note_product
from pullback.checks import checked
from pullback.checks.factors import (
    check_layer,
    check_matrices,
    refuse_other_summand,
    refuse_other_terms,
    refuse_unexpandable,
)
from pullback.checks.numbers import checked_number
from pullback.kernels.accumulation import widened
from pullback.kernels.arithmetic import mul
from pullback.kernels.broadcasting import sum_to
from pullback.kernels.half_products import add_product_of_halves, multiply_halves
from pullback.native import by_device, native
from pullback.typing import Array, Dim, Scalar, Shape

# The dtypes that BLAS multiplies, by NumPy's letters: of these nothing has to be checked or widened.
_NATIVE = "fdFD"
_UNDIVIDED = 8192
"""OpenBLAS divides longer vectors of 8 bytes and more among its threads: the sum would depend on how many there are."""


def _rows(array: Array) -> Array:
    """All dimensions but the last as one: the number is given since -1 is ambiguous where there are no elements."""
    return array.reshape(math.prod(array.shape[:-1]), array.shape[-1])


def _multiply(a: Array, b: Array) -> Array:
    """np.matmul, with 16-bit floats accumulated in float32."""
    note_product(a, b.shape[-1] if b.ndim > 1 else 1)
    return _multiply_undivided(a, b)


def _multiply_undivided(a: Array, b: Array) -> Array:
    """As `_multiply`, for what is too small or too simple to be divided among threads."""
    if a.dtype.itemsize == 2 and a.dtype.kind in "fV":
        return multiply_halves(a, b)
    return np.matmul(a, b)


@native
def mm(input: Array, mat2: Array) -> Array:
    """The product of two matrices.

    `input` is (n, m) and `mat2` (m, p), without broadcasting; the result is (n, p). y[i, j] = sum over k of input[i,
    k] * mat2[k, j].
    """
    dtype = input.dtype
    if (
        dtype is mat2.dtype and dtype.char in _NATIVE and input.ndim == 2 and mat2.ndim == 2
        and input.shape[1] == mat2.shape[0]
    ):  # fmt: skip
        note_product(input, mat2.shape[1])
        return input @ mat2
    check_matrices(input, mat2)
    return _multiply(input, mat2)


@native
@checked
def bmm(input: Array, mat2: Array) -> Array:
    """The products of two batches of matrices.

    `input` is (b, n, m) and `mat2` (b, m, p), without broadcasting; the result is (b, n, p). y[b] = input[b] @
    mat2[b].
    """
    return _multiply(input, mat2)


@native
@checked
def mv(input: Array, vec: Array) -> Array:
    """A matrix times a vector.

    `input` is (n, m) and `vec` (m,); the result is (n,). y[i] = sum over j of input[i, j] * vec[j].
    """
    return _multiply(input, vec)


@native
@checked
def dot(input: Array, tensor: Array) -> Array:
    """The sum of the products of two vectors' elements.

    Both are vectors (n,) of one dtype; the result has no dimensions. y = sum over i of input[i] * tensor[i].
    """
    if input.size <= _UNDIVIDED or input.dtype.char not in "dFD":
        return _multiply_undivided(input, tensor)
    whole = input.size // _UNDIVIDED * _UNDIVIDED
    rows, columns = input[:whole].reshape(-1, 1, _UNDIVIDED), tensor[:whole].reshape(-1, _UNDIVIDED, 1)
    return np.add.reduce(np.matmul(rows, columns).reshape(-1)) + np.matmul(input[whole:], tensor[whole:])


@by_device
def vdot(input: Array, other: Array) -> Array:
    """As `dot`, with the first vector conjugated.

    For vectors of n elements: the sum of conj(input[k]) * other[k].

    >>> import pullback
    >>> pullback.vdot(pullback.tensor([1j, 2]), pullback.tensor([1j, 1]))
    tensor(3.+0.j)
    """
    return dot(input.conjugate(), other)


@by_device
def outer(input: Array, vec2: Array) -> Array:
    """Every product of an element of one vector with one of the other.

    `input` is (n,) and `vec2` (m,); the result is (n, m): y[i, j] = input[i] * vec2[j].
    """
    return mul(input[:, None], vec2)


@native
@checked
def matmul_batched(input: Array, other: Array) -> Array:
    """The product of two batches of matrices whose batch dimensions broadcast."""
    if input.ndim > 2 and other.ndim == 2:
        return _multiply(_rows(input), other).reshape(*input.shape[:-1], other.shape[-1])
    return _multiply(input, other)


@by_device
def matmul_flipped(input: Array, other: Array) -> Array:
    """The product of one matrix with each of a batch."""
    return matmul_batched(input, other)


@native
def matmul_grad_input(grad: Array, input_shape: Shape, other: Array) -> Array:
    """The gradient of `input @ other` with respect to `input`."""
    if other.ndim == 1:
        return sum_to(np.multiply(grad[..., None], other.conj()), input_shape)
    if len(input_shape) == 1:
        return sum_to(_multiply(grad[..., None, :], np.swapaxes(other.conj(), -1, -2))[..., 0, :], input_shape)
    if other.ndim == 2 and grad.ndim > 2:
        flat = _multiply(_rows(grad), other.conj().T)
        return flat.reshape(input_shape)
    return sum_to(_multiply(grad, np.swapaxes(other.conj(), -1, -2)), input_shape)


@native
def matmul_grad_other(grad: Array, input: Array, other_shape: Shape) -> Array:
    """The gradient of `input @ other` with respect to `other`."""
    if len(other_shape) == 1:
        product = np.multiply(grad[..., None], input.conj())
        return sum_to(product, other_shape)
    if input.ndim == 1:
        return sum_to(input.conj()[:, None] * grad[..., None, :], other_shape)
    if len(other_shape) == 2 and grad.ndim > 2:
        return _multiply(_rows(input).conj().T, _rows(grad))
    return sum_to(_multiply(np.swapaxes(input.conj(), -1, -2), grad), other_shape)


@by_device
def trace(input: Array) -> Array:
    """The sum of the diagonal of a matrix.

    `input` is a matrix (n, m), the result a number. y = sum over i of input[i, i].
    """
    if input.dtype.kind in "iu":
        return np.trace(input, dtype=np.int64)
    wide = np.float32 if input.dtype.itemsize == 2 else input.dtype
    return np.trace(input, dtype=wide).astype(input.dtype)


@by_device
def linalg_cross(input: Array, other: Array, *, dim: Dim = -1) -> Array:
    """The vectors orthogonal to pairs of vectors of three elements."""
    lead = (slice(None),) * (dim % input.ndim)
    a, b = [input[(*lead, i)] for i in range(3)], [other[(*lead, i)] for i in range(3)]
    parts = []
    for i, j in ((1, 2), (2, 0), (0, 1)):
        part = a[i] * b[j]
        part -= a[j] * b[i]
        parts.append(part[(*lead, None)])
    return np.concatenate(parts, dim)


@native
def addmm(input: Array, mat1: Array, mat2: Array, *, beta: Scalar = 1, alpha: Scalar = 1) -> Array:
    """`beta * input + alpha * (mat1 @ mat2)`.

    `mat1` is (n, m), `mat2` (m, p), and `input` broadcasts to the result's (n, p).
    """
    if _all_half(input, mat1, mat2):
        if (
            mat1.ndim == mat2.ndim == 2
            and input.shape == (mat1.shape[0], mat2.shape[1])
            and mat1.shape[1] == mat2.shape[0]
        ):
            return add_product_of_halves(input, mat1, mat2, beta, alpha)
        return cast_half(addmm(widened(input), widened(mat1), widened(mat2), beta=beta, alpha=alpha), input.dtype)
    if mat1.ndim == mat2.ndim == 2 and mat1.shape[1] == mat2.shape[0]:
        refuse_other_terms(input, mat1, mat2)
    return _blend(input, mm(mat1, mat2), beta, alpha)


@by_device
def addmv(input: Array, mat: Array, vec: Array, *, beta: Scalar = 1, alpha: Scalar = 1) -> Array:
    """`beta * input + alpha * (mat @ vec)`.

    For `mat` of shape (n, m) and `vec` of shape (m,), `input` is broadcast to (n,). With `beta=0` its nans do not count.

    >>> import pullback
    >>> pullback.addmv(pullback.ones(2), pullback.tensor([[1.0, 2.0], [3.0, 4.0]]), pullback.ones(2), alpha=10)
    tensor([31., 71.])
    """
    return _blend(input, mv(mat, vec), beta, alpha)


@by_device
def addr(input: Array, vec1: Array, vec2: Array, *, beta: Scalar = 1, alpha: Scalar = 1) -> Array:
    """`beta * input + alpha * outer(vec1, vec2)`.

    For vectors of n and m elements, `input` is broadcast to (n, m).
    y[i, j] = beta * input[i, j] + alpha * vec1[i] * vec2[j].

    >>> import pullback
    >>> pullback.addr(pullback.zeros(2, 2), pullback.tensor([1.0, 2.0]), pullback.tensor([3.0, 4.0]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    return _blend(input, outer(vec1, vec2), beta, alpha)


@by_device
def baddbmm(input: Array, batch1: Array, batch2: Array, *, beta: Scalar = 1, alpha: Scalar = 1) -> Array:
    """`beta * input + alpha * bmm(batch1, batch2)`.

    `batch1` (b, n, m) and `batch2` (b, m, p) are matrices, and `input` broadcasts to the result, (b, n, p). With `beta`
    = 0 it is not read.
    """
    if _all_half(input, batch1, batch2):
        return cast_half(baddbmm(widened(input), widened(batch1), widened(batch2), beta=beta, alpha=alpha), input.dtype)
    return _blend(input, bmm(batch1, batch2), beta, alpha)


@by_device
def addbmm(input: Array, batch1: Array, batch2: Array, *, beta: Scalar = 1, alpha: Scalar = 1) -> Array:
    """`beta * input + alpha * bmm(batch1, batch2).sum(0)`."""
    refuse_other_terms(input, batch1, batch2)
    product = bmm(batch1, batch2)
    return _blend(input, product.sum(0, dtype=product.dtype), beta, alpha)


def _all_half(first: Array, second: Array, third: Array) -> bool:
    """Whether these are of one dtype of 16 bits, in which case a sum of products is rounded once."""
    dtype = first.dtype
    return dtype.itemsize == 2 and dtype.kind in "fV" and dtype == second.dtype and dtype == third.dtype


def _blend(input: Array, product: Array, beta: Scalar, alpha: Scalar) -> Array:
    refuse_other_summand(input, product)
    refuse_unexpandable(input.shape, product.shape)
    if product.dtype.kind == "b":
        scaled = product & bool(alpha)
        return scaled | (input & bool(beta)) if beta else scaled
    if alpha != 1:
        product = product * checked_number(alpha, product.dtype)
    if beta == 0:
        return product
    return product + (input if beta == 1 else input * checked_number(beta, product.dtype))


@native
def linear_bias(input: Array, weight: Array, bias: Array) -> Array:
    """`input @ weight.T + bias` for a matrix of inputs."""
    if input.dtype.itemsize == 2 and _all_half(input, weight, bias):
        if input.ndim > 1 and input.shape[-1] == weight.shape[-1] and bias.shape == weight.shape[:1]:
            rows = add_product_of_halves(bias, _rows(input), weight.T, 1, 1)
            return rows.reshape(*input.shape[:-1], weight.shape[0])
        return cast_half(linear_bias(widened(input), widened(weight), widened(bias)), input.dtype)
    if input.shape[-1] == weight.shape[-1]:
        refuse_other_terms(bias, input, weight, ": the bias must have the dtype of the weight")
    result = linear_product(input, weight)
    if bias.shape != result.shape[-1:]:
        refuse_unexpandable(bias.shape, result.shape)
    result += bias
    return result


@native
def linear_bias_folded(input: Array, weight: Array, bias: Array) -> Array:
    """`input @ weight.T + bias` for inputs of any other number of dimensions."""
    return linear_bias(input, weight, bias)


@by_device
def linear_bias_added(input: Array, weight: Array, bias: Array) -> Array:
    """`input @ weight.T + bias` for inputs that are not a view of a matrix, to whose product the bias is added."""
    return linear_bias_folded(input, weight, bias)


@native
def linear_product(input: Array, weight: Array) -> Array:
    """`input @ weight.T` for a matrix of inputs."""
    dtype = input.dtype
    if dtype is weight.dtype and dtype.char in _NATIVE and input.ndim == 2 and input.shape[1] == weight.shape[1]:
        note_product(input, weight.shape[0])
        return input @ weight.T
    check_layer(input, weight)
    if input.ndim > 2:
        return _multiply(_rows(input), weight.T).reshape(*input.shape[:-1], weight.shape[0])
    return _multiply(input, weight.T)


@native
def linear_product_folded(input: Array, weight: Array) -> Array:
    """`input @ weight.T` for inputs of any other number of dimensions."""
    return linear_product(input, weight)


@native
def linear_grad_input(grad: Array, weight: Array) -> Array:
    """The gradient of a linear layer with respect to its input."""
    if grad.ndim > 2:
        return _multiply(_rows(grad), weight.conj()).reshape(*grad.shape[:-1], weight.shape[1])
    return _multiply(grad, weight.conj())


@native
def linear_grad_weight(grad: Array, input: Array) -> Array:
    """The gradient of a linear layer with respect to its weight."""
    if grad.ndim == 1:
        return np.multiply(grad[:, None], input.conj())
    if grad.ndim > 2:
        grad, input = _rows(grad), _rows(input)
    return _multiply(grad.T, input.conj())


@by_device
def trace_back(grad: Array, shape: Shape) -> Array:
    """The gradient of the trace: `grad` on the diagonal."""
    result = np.zeros(shape, grad.dtype)
    count, step = min(shape), shape[1] + 1
    result.reshape(-1)[: count * step : step] = grad
    return result


@by_device
def bias_grad(grad: Array, shape: Shape) -> Array:
    """The gradient of what is added to a product; a bias's is that of a linear layer, to the bit: it may be either."""
    return linear_grad_bias(grad) if shape == grad.shape[1:] else sum_to(grad, shape)


@native
def linear_grad_bias(grad: Array) -> Array:
    """The gradient of a linear layer with respect to its bias."""
    if grad.ndim == 1:
        return grad.copy()
    rows = _rows(grad)
    # One BLAS call is several times as fast as a sum over the slow axis.
    if rows.dtype.kind == "f" and rows.dtype.itemsize >= 4:
        note_product(rows)
        return np.ones(rows.shape[0], rows.dtype) @ rows
    return rows.sum(0, dtype=rows.dtype)
