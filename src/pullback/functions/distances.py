"""Distances and similarities of vectors."""

from __future__ import annotations

import math

import pullback.generated as G
from pullback import functions
from pullback.backend.dtype import cpp_type_name, is_float_or_complex, scalar_type_name
from pullback.checks.shapes import joint_shape
from pullback.facts import declare
from pullback.modes.interception import taken_whole
from pullback.tensor.tensor import Tensor


@taken_whole
@declare(autocast="float32", written_in="functional", found="torch")
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    """The p-norm distances of each row of (*, P, M) from each of (*, R, M).

    >>> import pullback
    >>> pullback.cdist(pullback.tensor([[0.0, 0.0]]), pullback.tensor([[3.0, 4.0], [0.0, 1.0]]))
    tensor([[5., 1.]])
    """
    modes = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")
    if compute_mode not in modes:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode: one of {modes}")
    a, b = x1._array, x2._array
    for name, array in (("X1", a), ("X2", b)):
        if array.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {array.ndim}D")
    for name, array in (("X1", a), ("X2", b)):
        if not is_float_or_complex(array.dtype) or array.dtype.kind == "c":
            raise RuntimeError(
                f"cdist only supports floating-point dtypes, {name} got: {scalar_type_name(array.dtype)}"
            )
    if a.shape[-1] != b.shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {a.shape[-1]} X2: {b.shape[-1]}")
    if not p >= 0:
        raise RuntimeError("cdist only supports non-negative p values")
    batch = joint_shape(a.shape[:-2], b.shape[:-2])
    x1, x2 = (
        functions.expand(t, (*batch, *t._array.shape[-2:])) if t._array.shape[:-2] != batch else t for t in (x1, x2)
    )
    many = a.shape[-2] > 25 or b.shape[-2] > 25
    if p == 2 and (compute_mode == modes[1] or (compute_mode == modes[0] and many)):
        return G.view(G.euclidean_dist(x1, x2), (*batch, a.shape[-2], b.shape[-2]))
    if a.size and b.size and a.dtype.itemsize == 2:
        raise NotImplementedError(f"\"cdist\" not implemented for '{scalar_type_name(a.dtype)}'")
    if a.dtype != b.dtype:
        raise RuntimeError(f"expected scalar type {scalar_type_name(a.dtype)} but found {scalar_type_name(b.dtype)}")
    return G.cdist_forward(x1, x2, float(p))


@declare(functional=True, written_in="c", found="torch")
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The p-norm distances of all pairs of rows of a matrix.

    `input` is (N, M); the result (N * (N - 1) / 2,) holds the pairs i < j in order. y = (sum over k of |x[i, k] - x[j,
    k]| ** p) ** (1 / p).

    >>> import pullback
    >>> pullback.nn.functional.pdist(pullback.tensor([[0., 0.], [3., 4.]]))
    tensor([5.])
    """
    if input._array.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input._array.ndim}D")
    if not is_float_or_complex(input._array.dtype):
        raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    return G.pdist_forward(input, float(p))


@declare(functional=True, written_in="c", found="torch")
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input1 @ weight[o] @ input2` for each output o, plus `bias`.

    `input1` is (*, n), `input2` (*, m), `weight` (out, n, m), `bias` (out,) and the result (*, out).

    >>> import pullback
    >>> pullback.nn.functional.bilinear(pullback.ones(4, 2), pullback.ones(4, 3), pullback.ones(5, 2, 3)).shape
    pullback.Size([4, 5])
    """
    a, b, w = input1._array, input2._array, weight._array
    given = {"input1": a, "input2": b, "weight": w} | ({} if bias is None else {"bias": bias._array})
    if any(array.dtype != a.dtype for array in given.values()):
        shown = ", ".join(f"{name}: {cpp_type_name(array.dtype)}" for name, array in given.items())
        raise RuntimeError(f"All tensors must have the same dtype, got {shown}")
    if a.ndim != b.ndim:
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {a.ndim} and {b.ndim}")
    for d, (n, m) in enumerate(zip(a.shape[:-1], b.shape[:-1], strict=True)):
        if n != m:
            raise RuntimeError(f"bilinear(): input batch dimensions do not match at dim {d}: got {n} and {m}")
    for position, (array, size) in enumerate(((a, w.shape[1]), (b, w.shape[2])), 1):
        if array.shape[-1] != size:
            raise RuntimeError(
                f"bilinear(): input{position} size does not match weight size: got {array.shape[-1]} but "
                f"expected {size}"
            )
    if bias is not None and bias._array.shape != (w.shape[0],):
        raise RuntimeError(
            f"bilinear(): bias size does not match weight size: got {list(bias._array.shape)} but expected {w.shape[0]}"
        )
    count = math.prod(a.shape[:-1])
    flat = G.trilinear(
        functions.reshape(input1, (count, a.shape[-1])), functions.reshape(input2, (count, b.shape[-1])), weight
    )
    result = G.view(flat, (*a.shape[:-1], w.shape[0]))
    return result if bias is None else functions.add(result, bias)
