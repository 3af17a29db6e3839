"""Matrix products of any number of dimensions."""

from __future__ import annotations

import math
from typing import Any

import pullback.generated as G
from pullback.backend.dtype import cpp_type_name, scalar_type_name
from pullback.checks.matrices import require_floating
from pullback.errors import not_a_tensor
from pullback.facts import declare
from pullback.functions import unfused
from pullback.graph.fused_node import records_steps
from pullback.graph.history import bump_version, check_in_place
from pullback.graph.in_place import adopt_result, alias_of, in_place, write_out
from pullback.modes.interception import taken_whole
from pullback.modes.switches import process, switches
from pullback.modes.user_warnings import warn_once
from pullback.tensor.dims import wrap_dim
from pullback.tensor.foreign_arguments import any_asked_whole, ask_foreign, is_foreign
from pullback.tensor.tensor import Tensor, TensorBase


@declare(out_dtype="for_dot", product=0, asks=True, bare=True, found="torch and method")
def matmul(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor:
    """The matrix product; dimensions before the last two are batches and broadcast.

    (n,) @ (n,) gives a number, (n, m) @ (m,) a vector (n,), (*, n, m) @ (*, m, p) matrices (*, n, p); a vector on the
    left counts as a row, which the result lacks. y[i, j] = sum over k of input[i, k] * other[k, j].

    >>> import pullback
    >>> pullback.matmul(pullback.ones(2, 3), pullback.ones(3))
    tensor([3., 3.])
    """
    if not isinstance(input, Tensor):
        if is_foreign(input):  # type: ignore[unreachable]  # see Note [Foreign arguments]
            return ask_foreign(matmul, (input, other), {"out": out})
        raise not_a_tensor("matmul", "input", 1, input)
    if not isinstance(other, Tensor):
        if is_foreign(other):  # type: ignore[unreachable]  # see Note [Foreign arguments]
            return ask_foreign(matmul, (input, other), {"out": out})
        raise not_a_tensor("matmul", "other", 2, other)
    if process.changed and any_asked_whole(input, other):
        return ask_foreign(matmul, (input, other), {"out": out})
    if out is not None:
        return _written(matmul, input, other, out=out)
    first, second = input._array.ndim, other._array.ndim
    if first == 2 and second == 2:
        result = G.mm(input, other)
    elif first == 0 or second == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {first}D and {second}D")
    elif first > 2 or second > 2:
        may_flip = input._requires_grad and (first == 2 or first == second == 3)
        result = _batched(input, other) if may_flip or process.changed else G.matmul_batched(input, other)
    elif second == 2:
        result = G.mm(G.unsqueeze(input, 0), other).squeeze_(0)
    elif process.changed:
        result = matmul_with_vector(input, other)
    else:
        result = _with_vector(input, other)
    return result


@taken_whole
def _written(function: Any, *args: Any, out: Any) -> Tensor:
    """A result that is written to `out`: autocast sees that, and does not cast."""
    return write_out(function.__name__, out, function(*args))


def _batched(input: Tensor, other: Tensor) -> Tensor:
    """A product that PyTorch may end in other nodes, or whose steps are seen. See Note [Fused nodes]."""
    if process.changed and records_steps(input, other) and unfused.can_multiply(input, other):
        return unfused.matmul_steps(input, other)
    if input._requires_grad and unfused.flips(input, other):
        if input._array.shape[-2] <= 1 or 0 in other._array.shape or other._array.shape[-1] == 1:
            return unfused.matmul_steps(input, other)  # which ends in a view there
        return G.matmul_flipped(input, other)
    return G.matmul_batched(input, other)


def _with_vector(input: Tensor, other: Tensor) -> Tensor:
    return G.mv(input, other) if input._array.ndim == 2 else G.dot(input, other)


@taken_whole
@declare(autocast="lower")
def matmul_with_vector(input: Tensor, other: Tensor) -> Tensor:
    """A matrix or a vector times a vector: autocast casts in `matmul`, not in `mv` and `dot`."""
    return _with_vector(input, other)


def reflected_matmul(input: Tensor, other: Any) -> Tensor:
    """`other @ input`."""
    return matmul(other, input)


@declare(out_dtype="c_types", product=0, asks=True, functional=True, written_in="c")
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Any = None) -> Tensor:
    """`input @ weight.T + bias`.

    `input` is (*, in_features), `weight` (out_features, in_features), `bias` (out_features,) or None; the result is
    (*, out_features).

    >>> import pullback
    >>> pullback.nn.functional.linear(pullback.ones(1, 2), pullback.ones(3, 2))
    tensor([[2., 2., 2.]])
    """
    if out is not None:
        return _written(linear, input, weight, bias, out=out)
    for position, (name, value) in enumerate((("input", input), ("weight", weight)), 1):
        if not isinstance(value, Tensor):
            if is_foreign(value):  # type: ignore[unreachable]  # see Note [Foreign arguments]
                return ask_foreign(linear, (input, weight, bias))
            raise not_a_tensor("linear", name, position, value)
    if process.changed:
        if any_asked_whole(input, weight, bias):
            return ask_foreign(linear, (input, weight, bias))
        same_bits = input._array.flags.c_contiguous  # else the bias is added to the product, or by it
        if records_steps(input, weight, bias, same_bits=same_bits) and unfused.can_apply_linear(input, weight, bias):
            return unfused.linear_steps(input, weight, bias)
    ndim, weight_ndim = input._array.ndim, weight._array.ndim
    folded = ndim != 2
    if (folded and not ndim) or not weight_ndim:
        raise RuntimeError(f"both arguments to linear need to be at least 1D, but they are {ndim}D and {weight_ndim}D")
    if weight_ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {weight_ndim}D")
    if bias is None:
        if weight_ndim == 1 or ndim == 1:
            return matmul(input, G.t(weight))
        return G.linear_product_folded(input, weight) if folded else G.linear_product(input, weight)
    if weight_ndim != 2:
        raise RuntimeError(f"mat2 must be a matrix, got {weight._array.ndim}-D tensor")
    if isinstance(bias, TensorBase) and bias._array.ndim > 2:
        raise RuntimeError(
            f"expand: the number of sizes provided (2) must be greater or equal to the number of "
            f"dimensions in the tensor ({bias._array.ndim})"
        )
    if not folded:
        return G.linear_bias(input, weight, bias)
    if not input._array.flags.c_contiguous or (isinstance(bias, TensorBase) and bias._array.ndim != 1):
        return G.linear_bias_added(input, weight, bias)
    return G.linear_bias_folded(input, weight, bias)


@declare(out_dtype="for_tensordot", product=0, found="torch and method")
def inner(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor:
    """The sum of products over the last dimensions of both.

    The last sizes agree; the result has all other dimensions, those of `input` first.
    y[..., i, ..., j] = sum over k of input[..., i, k] * other[..., j, k].

    >>> import pullback
    >>> pullback.inner(pullback.tensor([1, 2, 3]), pullback.tensor([1, 0, 2]))
    tensor(7)
    """
    if input._array.ndim == 0 or other._array.ndim == 0:
        result = G.mul(input, other)
    else:
        if input._array.shape[-1] != other._array.shape[-1]:
            raise RuntimeError(
                f"inner() the last dimension must match on both input tensors but got shapes {list(input.shape)} and "
                f"{list(other.shape)}"
            )
        result = tensordot(input, other, ([-1], [-1]))
    return result if out is None else write_out("inner", out, result)


@declare(out_dtype="for_tensordot", written_in="functional", found="torch")
def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Any = None) -> Tensor:
    """The sum of products over pairs of dimensions.

    `dims` is two lists, the dimensions of `a` and those of `b` that they are paired with, or a number: so many of the last
    of `a` with the first of `b`. The result has the other dimensions of `a`, then those of `b`.

    >>> import pullback
    >>> pullback.tensordot(pullback.ones(2, 3, 4), pullback.ones(4, 3, 5), dims=([1, 2], [1, 0])).shape
    pullback.Size([2, 5])
    """
    if a._array.dtype != b._array.dtype:
        raise RuntimeError(
            f"both inputs should have same dtype: they are {cpp_type_name(a._array.dtype)} and "
            f"{cpp_type_name(b._array.dtype)}"
        )
    left, right = _contracted(a, b, dims)
    for i, j in zip(left, right, strict=True):
        first_size, second_size = a._array.shape[i], b._array.shape[j]
        # A size of 1 broadcasts: the other operand is summed over that dimension.
        if second_size == 1:
            a = G.sum(a, (i,), True, dtype=a._array.dtype)
        elif first_size == 1:
            b = G.sum(b, (j,), True, dtype=b._array.dtype)
        elif first_size != second_size:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {first_size} in dim {i} and second has size "
                f"{second_size} in dim {j}"
            )
    keep_a = [i for i in range(a._array.ndim) if i not in left]
    keep_b = [j for j in range(b._array.ndim) if j not in right]
    shape = [a._array.shape[i] for i in keep_a] + [b._array.shape[j] for j in keep_b]
    count = math.prod([a._array.shape[i] for i in left])
    if left and math.prod(shape) == 1:
        result = _full_contraction(a.permute([*keep_a, *left]), b.permute([*right, *keep_b])).reshape(shape)
        return result if out is None else write_out("tensordot", out, result)
    first = a.permute([*keep_a, *left]).reshape(math.prod(shape[: len(keep_a)]), count)
    second = b.permute([*right, *keep_b]).reshape(count, math.prod(shape[len(keep_a) :]))
    result = G.mm(first, second).reshape(shape)
    return result if out is None else write_out("tensordot", out, result)


def _full_contraction(first: Tensor, second: Tensor) -> Tensor:
    """The sum of all products of two tensors of one shape but for dimensions of size 1."""
    if first.is_contiguous() and second.is_contiguous():
        vectors = [t if t._array.ndim == 1 else G.reshape(t, (-1,)) for t in (first, second)]
        return G.dot(*vectors)
    return G.sum_all(G.mul(G.squeeze(first), G.squeeze(second)))


def _contracted(a: Tensor, b: Tensor, dims: Any) -> tuple[list[int], list[int]]:
    if isinstance(dims, Tensor):
        dims = dims._array.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a._array.ndim, b._array.ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        return list(range(a._array.ndim - dims, a._array.ndim)), list(range(dims))
    left, right = dims
    if len(left) != len(right):
        raise RuntimeError("both dimension lists should have same length")
    return [wrap_dim(i, a._array.ndim) for i in left], [wrap_dim(j, b._array.ndim) for j in right]


@declare(written_in="functional", found="torch")
def chain_matmul(*matrices: Any, out: Any = None) -> Tensor:
    """The product of several matrices, in the order that needs the fewest multiplications."""
    warn_once("torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use torch.linalg.multi_dot "
              "instead, which takes a list of tensors.")  # fmt: skip
    if len(matrices) == 1 and isinstance(matrices[0], (list, tuple)):
        matrices = tuple(matrices[0])
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    for matrix in matrices:
        if matrix._array.ndim != 2:
            raise RuntimeError(f"Tensor dimension is {matrix._array.ndim}, expected 2 instead.")
    result = matrices[0] if len(matrices) == 1 else linalg_multi_dot(matrices)
    return result if out is None else write_out("chain_matmul", out, result)


@declare(out_dtype="multi_dot(): expected out tensor to have dtype {0} but got {1}")
def linalg_multi_dot(tensors: Any, *, out: Any = None) -> Tensor:
    """The product of several matrices; the first and the last may be vectors.

    >>> import pullback
    >>> pullback.linalg.multi_dot([pullback.ones(2, 3), pullback.ones(3, 4), pullback.ones(4)])
    tensor([12., 12.])
    """
    if len(tensors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    matrices = list(tensors)
    _check_chain_ends(matrices)
    shape: list[int] = []
    if matrices[0]._array.ndim == 1:
        matrices[0] = G.unsqueeze(matrices[0], 0)
    else:
        shape.append(matrices[0]._array.shape[0])
    if matrices[-1]._array.ndim == 1:
        matrices[-1] = G.unsqueeze(matrices[-1], 1)
    else:
        shape.append(matrices[-1]._array.shape[1])
    _check_chain(matrices)
    splits = _best_splits([m._array.shape[0] for m in matrices] + [matrices[-1]._array.shape[1]])
    result = G.view(_multiply_chain(matrices, splits, 0, len(matrices) - 1), tuple(shape))
    return result if out is None else write_out("linalg_multi_dot", out, result)


def _check_chain_ends(tensors: list[Any]) -> None:
    for position in (0, len(tensors) - 1):
        ndim = tensors[position]._array.ndim
        if ndim not in (1, 2):
            place = "the first" if position == 0 else "the last"
            raise RuntimeError(f"multi_dot(): {place} tensor must be 1D or 2D but got {ndim}D")


def _check_chain(matrices: list[Any]) -> None:
    for position, matrix in enumerate(matrices):
        if matrix._array.ndim != 2:
            raise RuntimeError(f"multi_dot(): tensor {position} must be 2D but got {matrix._array.ndim}D")
        if matrix._array.dtype != matrices[0]._array.dtype:
            raise RuntimeError(
                "multi_dot(): all tensors must have be the same dtype but tensor 0 is "
                f"{cpp_type_name(matrices[0]._array.dtype)} and tensor {position} {cpp_type_name(matrix._array.dtype)}"
            )
    for position in range(len(matrices) - 1):
        first, second = matrices[position]._array.shape, matrices[position + 1]._array.shape
        if first[1] != second[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {position} and {position + 1} with shapes {list(first)} and {list(second)} cannot "
                "be multiplied"
            )


def _best_splits(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Where to split each part of the chain so that the fewest multiplications are needed."""
    count = len(sizes) - 1
    costs = {(i, i): 0 for i in range(count)}
    splits: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for first in range(count - length):
            last = first + length
            options = [
                (costs[first, k] + costs[k + 1, last] + sizes[first] * sizes[k + 1] * sizes[last + 1], k)
                for k in range(first, last)
            ]
            costs[first, last], splits[first, last] = min(options)
    if count == 3 and options[0][0] == options[1][0]:
        splits[0, 2] = 1  # of three matrices the first two are multiplied first where it is the same
    return splits


def _multiply_chain(matrices: list[Any], splits: dict[tuple[int, int], int], first: int, last: int) -> Any:
    if first == last:
        return matrices[first]
    split = splits[first, last]
    left = _multiply_chain(matrices, splits, first, split)
    return G.mm(left, _multiply_chain(matrices, splits, split + 1, last))


@declare(found="torch and method")
def kron(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor:
    """The Kronecker product: every product of elements, the blocks of `other` laid out as `input`.

    >>> import pullback
    >>> pullback.kron(pullback.tensor([1, 2]), pullback.tensor([1, 10]))
    tensor([ 1, 10,  2, 20])
    """
    first, second = input._array.shape, other._array.shape
    ndim = max(len(first), len(second))
    rows = (1,) * (ndim - len(first)) + first
    columns = (1,) * (ndim - len(second)) + second
    left = G.unsafe_view(input, tuple([size for row in rows for size in (row, 1)]))
    right = G.unsafe_view(other, tuple([size for column in columns for size in (1, column)]))
    shape = tuple([row * column for row, column in zip(rows, columns, strict=True)])
    result = G.unsafe_view(G.mul(left, right), shape)
    return result if out is None else write_out("kron", out, result)


@declare(found="torch and method")
def cross(input: Tensor, other: Tensor, dim: Any = None, *, out: Any = None, axis: Any = None) -> Tensor:
    """The cross product along `dim`, or (PyTorch wants users to leave that off) along the first dimension of size 3.

    >>> import pullback
    >>> pullback.cross(pullback.tensor([1., 0., 0.]), pullback.tensor([0., 1., 0.]), dim=0)
    tensor([0., 0., 1.])
    """
    dim = dim if axis is None else axis
    if dim is None:
        warn_once(
            "Using torch.cross without specifying the dim arg is deprecated: give `dim`, or use `linalg.cross`, which takes "
            "the last dimension."
        )
        sizes = list(input._array.shape)
        if 3 not in sizes:
            raise RuntimeError("no dimension of size 3 in input")
        dim = sizes.index(3)
    return linalg_cross(input, other, dim=dim, out=out)


def linalg_cross(input: Tensor, other: Tensor, *, dim: int = -1, out: Any = None, axis: Any = None) -> Tensor:
    """The cross product along `dim`; the other dimensions broadcast.

    `dim` has size 3. y = (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]).

    >>> import pullback
    >>> pullback.linalg.cross(pullback.tensor([1., 0., 0.]), pullback.tensor([0., 1., 0.]))
    tensor([0., 0., 1.])
    """
    dim = dim if axis is None else axis
    ndim = input._array.ndim
    if ndim == other._array.ndim and -ndim <= dim < ndim:
        sizes = input._array.shape[dim], other._array.shape[dim]
        if sizes != (3, 3):
            raise RuntimeError(
                f"linalg.cross: inputs dimension {dim} must have length 3. Got {sizes[0]} and {sizes[1]}"
            )
    if input._array.dtype != other._array.dtype:
        first, second = scalar_type_name(input._array.dtype), scalar_type_name(other._array.dtype)
        raise RuntimeError(f"expected scalar type {first} but found {second}")
    return G.linalg_cross(input, other, dim=dim, out=out)


@taken_whole
@declare(autocast="lower", out_dtype="linalg.vecdot: Expected out of dtype {0} but found {1}")
def linalg_vecdot(x: Tensor, y: Tensor, *, dim: int = -1, out: Any = None, axis: Any = None) -> Tensor:
    """The dot products of vectors along `dim`, the first conjugated.

    >>> import pullback
    >>> pullback.linalg.vecdot(pullback.ones(2, 3), pullback.ones(3))
    tensor([3., 3.])
    """
    dim = dim if axis is None else axis
    require_floating("linalg.vecdot", x._array)
    if x._array.dtype != y._array.dtype:
        raise RuntimeError(
            f"linalg.vecdot: Expected x and y to have the same dtype, but found x of type "
            f"{scalar_type_name(x._array.dtype)} and y of type {scalar_type_name(y._array.dtype)} instead"
        )
    if x._array.ndim == 1 and x._array.shape == y._array.shape and x._array.dtype == y._array.dtype:
        result = G.vdot(x, y)
    else:
        first: Any = G.conj_physical(x) if x._array.dtype.kind == "c" else x
        result = G.sum(first * y, dim)
    return result if out is None else write_out("linalg_vecdot", out, result)


@declare(found="torch and method")
def ger(input: Tensor, vec2: Tensor, *, out: Any = None) -> Tensor:
    """As `outer`."""
    return G.outer(input, vec2, out=out)


def _in_place_product(function: Any, input: Tensor, shape: tuple[int, ...], *args: Any, **scalars: Any) -> Tensor:
    if input._array.shape != shape:
        if any(a._array.ndim != len(shape) or a._array.dtype != input._array.dtype for a in args):
            function(input, *args, **scalars)  # what is wrong with the factors is said first
        raise RuntimeError(
            f"Bad in-place call: input tensor size {list(input.shape)} and output tensor size {list(shape)} should match"
        )
    return in_place(function, input, *args, **scalars)


def baddbmm_(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """In-place version of baddbmm."""
    shape = (*batch1._array.shape[:2], *batch2._array.shape[-1:])
    return _in_place_product(G.baddbmm, input, shape, batch1, batch2, beta=beta, alpha=alpha)


def addmm_(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """In-place version of addmm."""
    shape = (*mat1._array.shape[:1], *mat2._array.shape[-1:])
    return _in_place_product(G.addmm, input, shape, mat1, mat2, beta=beta, alpha=alpha)


def addbmm_(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """In-place version of addbmm; a smaller tensor grows to the size of the product, as in PyTorch."""
    shape = (*batch1._array.shape[-2:-1], *batch2._array.shape[-1:])
    if input._array.shape == shape or (input._extra is not None and input._extra.view is not None):
        return in_place(G.addbmm, input, batch1, batch2, beta=beta, alpha=alpha)
    alias = alias_of(input)
    check_in_place(input, "addbmm", records=input._requires_grad and (not process.changed or switches.records))
    result = G.addbmm(alias, batch1, batch2, beta=beta, alpha=alpha)
    input._array = result._array.copy()
    if result._requires_grad:
        adopt_result(input, alias, result)
    else:
        bump_version(input)
    return input
