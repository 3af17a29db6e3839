"""Sums, means and products: forms of one name that PyTorch records as different nodes."""

from __future__ import annotations

from typing import Any

import pullback.generated as G
from pullback.backend.dtype import scalar_type_name
from pullback.facts import declare
from pullback.modes.grad_mode import is_grad_enabled
from pullback.modes.switches import process
from pullback.tensor.arguments import as_dtype
from pullback.tensor.foreign_arguments import answers, ask_foreign
from pullback.tensor.tensor import Tensor, TensorBase


@declare(found="torch and method")
def sum(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None, axis: Any = None,
    keepdims: Any = None,
) -> Tensor:  # fmt: skip
    """Sum over `dim`, or over everything.

    `dim` is a dimension or several, None for all; the result lacks them, or has them with size 1 (`keepdim`).
    Integers and bools are summed as int64 unless `dtype` says otherwise. y = sum over i of x_i.

    >>> import pullback
    >>> pullback.sum(pullback.tensor([[1., 2.], [3., 4.]]), 0)
    tensor([4., 6.])
    """
    if (process.modes or type(input) is not Tensor) and answers("sum", "input", input):
        return ask_foreign(sum, (input, dim, keepdim), {"dtype": dtype, "out": out})
    if axis is not None:
        dim = axis
    if keepdims is not None:
        keepdim = keepdims
    if dtype is not None and not isinstance(dtype, str):
        _require_differentiable(input, dtype)
    if out is not None:
        dtype = _dtype_with_out(dtype, out)
    if dim is None and keepdim is False:
        return G.sum_all(input, dtype=dtype, out=out)
    _require_bool("sum", "keepdim", keepdim)
    return G.sum(input, dim, keepdim, dtype=dtype, out=out)


@declare(found="torch and method")
def mean(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None, axis: Any = None,
    keepdims: Any = None,
) -> Tensor:  # fmt: skip
    """The mean over `dim`, or over everything.

    `dim` is a dimension or several, None for all; the result lacks them, or has them with size 1 (`keepdim`). y =
    (sum over i of x_i) / n; floating or complex numbers, or `dtype` to convert to.

    >>> import pullback
    >>> pullback.tensor([1., 2., 6.]).mean()
    tensor(3.)
    """
    if (process.modes or type(input) is not Tensor) and answers("mean", "input", input):
        return ask_foreign(mean, (input, dim, keepdim), {"dtype": dtype, "out": out})
    if axis is not None:
        dim = axis
    if keepdims is not None:
        keepdim = keepdims
    if dim is None and keepdim is False:
        return G.mean_all(input, dtype=dtype, out=out)
    _require_bool("mean", "keepdim", keepdim)
    return G.mean(input, dim, keepdim, dtype=dtype, out=out)


@declare(found="torch and method")
def prod(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None, axis: Any = None,
    keepdims: Any = None,
) -> Tensor:  # fmt: skip
    """The product over one dimension, or of everything.

    The result lacks `dim`, or has it with size 1 (`keepdim`); without `dim` it has no dimensions. y = x_1 * x_2 * ...
    * x_n.
    """
    if axis is not None:
        dim = axis
    if keepdims is not None:
        keepdim = keepdims
    if dtype is not None:
        _require_differentiable(input, dtype)
    if out is not None:
        dtype = _dtype_with_out(dtype, out)
    if dim is None:
        return G.prod_all(input, dtype=dtype, out=out)
    _require_bool("prod", "keepdim", keepdim)
    return G.prod(input, dim, keepdim, dtype=dtype, out=out)


def method_count_nonzero(input: Tensor, *dims: Any, dim: Any = None, axis: Any = None) -> Tensor:
    """The number of elements that are not zero; dimensions need no tuple."""
    if dims:
        return G.count_nonzero(input, dims[0] if len(dims) == 1 else dims)
    return G.count_nonzero(input, dim if axis is None else axis)


@declare(found="torch and method")
def nansum(
    input: Tensor,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Any = None,
    axis: Any = None,
    keepdims: Any = None,
) -> Tensor:
    """The sum that counts NaN as zero.

    `dim` is a dimension or several, None for all; the result lacks them, or has them with size 1 (`keepdim`).

    >>> import pullback
    >>> pullback.nansum(pullback.tensor([1., pullback.nan, 2.]))
    tensor(3.)
    """
    dim = dim if axis is None else axis
    keepdim = keepdim if keepdims is None else keepdims
    if dtype is not None:
        _require_differentiable(input, dtype)
    if out is not None:
        dtype = _dtype_with_out(dtype, out)
        if isinstance(out, Tensor) and out._array.dtype.kind in "biu" and input._array.dtype.kind not in "biu":
            raise NotImplementedError(f"\"nansum_cpu\" not implemented for '{scalar_type_name(out._array.dtype)}'")
    return G.nansum(input, dim, keepdim, dtype=dtype, out=out)


@declare(found="torch and method")
def nanmean(
    input: Tensor,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Any = None,
    axis: Any = None,
    keepdims: Any = None,
) -> Tensor:
    """The mean of the elements that are numbers.

    `dim` is a dimension or several, None for all; the result lacks them, or has them with size 1 (`keepdim`). It is nan
    where no element is a number.

    >>> import pullback
    >>> pullback.nanmean(pullback.tensor([1., pullback.nan, 2.]))
    tensor(1.5000)
    """
    dim = dim if axis is None else axis
    keepdim = keepdim if keepdims is None else keepdims
    if not (input.is_floating_point() or input.is_complex()):  # attached at run time
        raise RuntimeError(f"nanmean(): expected input to have floating point or complex dtype but got {input.dtype}")
    dtype = None if dtype is None else as_dtype(dtype)
    if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(
            "nanmean(): could not infer output dtype. Optional dtype must be either a floating point or complex dtype. "
            f"Got: {scalar_type_name(dtype.numpy_dtype)}"
        )
    count = G.count_not_nan(input.detach(), dim, keepdim)
    return G.div(G.nansum(input, dim, keepdim, dtype=dtype), count, out=out)


def _dtype_with_out(dtype: Any, out: Any) -> Any:
    """Sum and multiply in the dtype of `out`, unless another is asked for."""
    return out.dtype if dtype is None and isinstance(out, Tensor) else dtype


def _require_differentiable(input: Any, dtype: Any) -> None:
    """Refuse to record a result whose dtype cannot carry a gradient."""
    dtype = as_dtype(dtype)
    if dtype.category < 2 and input._requires_grad and is_grad_enabled():
        raise RuntimeError(f"Autograd not support dtype: {scalar_type_name(dtype.numpy_dtype)}")


def _require_bool(function: str, name: str, value: Any) -> None:
    """Refuse what is not a bool where PyTorch takes nothing else."""
    if not isinstance(value, bool) and not (isinstance(value, TensorBase) and value._array.ndim == 0):
        raise TypeError(f"{function}(): argument '{name}' must be bool, not {type(value).__name__}")
