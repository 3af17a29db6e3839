"""Products of matrices in groups, and of matrices in 8-bit floats with scales."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import pullback.generated as G
from pullback.backend.dtype import bfloat16, from_numpy_dtype, scalar_type_name
from pullback.errors import not_a_tensor
from pullback.tensor.tensor import Tensor

_GROUPED_DTYPES = ("float32", "bfloat16", "float16")


class ScalingType(IntEnum):
    """What one scale of a scaled product covers."""

    TensorWise = 0
    RowWise = 1
    BlockWise1x16 = 2
    BlockWise1x32 = 3
    BlockWise1x128 = 4
    BlockWise128x128 = 5


class SwizzleType(IntEnum):
    """How the scales of a scaled product are ordered in memory."""

    NO_SWIZZLE = 0
    SWIZZLE_32_4_4 = 1


def grouped_mm(
    mat_a: Tensor, mat_b: Tensor, *, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype: Any = None
) -> Tensor:
    """One matrix product per group, such as the tokens of each expert with the expert's weight.

    `offs` (int32) says where each group ends: in the rows of a matrix that meets a stack, in the columns of a matrix
    that a stack meets, or, between two matrices, in the dimension that is summed over.

    >>> import pullback
    >>> tokens, experts = pullback.ones(3, 2), pullback.ones(2, 2, 1) * pullback.tensor([1.0, 10.0]).reshape(2, 1, 1)
    >>> pullback.nn.functional.grouped_mm(tokens, experts, offs=pullback.tensor([1, 3], dtype=pullback.int32)).flatten()
    tensor([ 2., 20., 20.])
    """
    _check_matrices(mat_a, mat_b)
    if (mat_a.ndim == 2 or mat_b.ndim == 2) != (offs is not None):
        raise RuntimeError("Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d")
    if offs is not None:
        _check_offsets(mat_a, mat_b, offs)
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    if out_dtype is not None and out_dtype != mat_a.dtype:
        raise RuntimeError("Grouped gemm output dtype must match `mat_a` dtype")
    return G.grouped_mm(mat_a, mat_b, offs)


def _check_matrices(mat_a: Any, mat_b: Any) -> None:
    for position, (name, given) in enumerate((("input", mat_a), ("mat2", mat_b)), start=1):
        if not isinstance(given, Tensor):
            raise not_a_tensor("_grouped_mm", name, position, given)
    for name, given in (("mat_a", mat_a), ("mat_b", mat_b)):
        if from_numpy_dtype(given._array.dtype).name not in _GROUPED_DTYPES:
            found = scalar_type_name(given._array.dtype)
            raise RuntimeError(f"Expected {name} to be Float32, BFloat16 or Float16 matrix, got {found}")
    for name, given in (("mat_a", mat_a), ("mat_b", mat_b)):
        if given.ndim not in (2, 3):
            raise RuntimeError(f"{name} has to be 2 or 3d")
    if mat_a.shape[-1] != mat_b.shape[-2]:
        raise RuntimeError("contraction dimension of mat_a and mat_b must match")
    if mat_a.ndim == 3 and mat_b.ndim == 3 and mat_a.shape[0] != mat_b.shape[0]:
        raise RuntimeError("batched dimension has to match")
    if mat_a.dtype != mat_b.dtype:
        names = [scalar_type_name(m._array.dtype) for m in (mat_a, mat_b)]
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {names[0]} != {names[1]}")


def _check_offsets(mat_a: Tensor, mat_b: Tensor, offs: Tensor) -> None:
    if offs.ndim != 1:
        raise RuntimeError("offs has to be 1D")
    if scalar_type_name(offs._array.dtype) != "Int":
        raise RuntimeError("Offsets have to be int32")
    stack = mat_a if mat_a.ndim == 3 else mat_b
    if stack.ndim == 3 and stack.shape[0] != offs.shape[0]:
        raise RuntimeError("matrix batch sizes have to match")


def scaled_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    scale_a: Any,
    scale_recipe_a: Any,
    scale_b: Any,
    scale_recipe_b: Any,
    swizzle_a: Any = None,
    swizzle_b: Any = None,
    bias: Tensor | None = None,
    output_dtype: Any = None,
    contraction_dim: Any = (),
    use_fast_accum: bool = False,
) -> Tensor:
    """A product of matrices in 8-bit floats, with one scale per tensor, or per row of one and column of the other."""
    rows, columns = mat_a.shape[0], mat_b.shape[-1]
    scales = tuple(_single(scale) for scale in (scale_a, scale_b))
    shapes = [tuple(scale.shape) for scale in scales]
    recipes = (_single(scale_recipe_a), _single(scale_recipe_b))
    fits = {
        ScalingType.TensorWise: all(scale.numel() == 1 for scale in scales),
        ScalingType.RowWise: shapes == [(rows, 1), (1, columns)],
    }
    if not (all(_is_float8(m) for m in (mat_a, mat_b)) and recipes[0] == recipes[1] and fits.get(recipes[0], False)):
        raise ValueError(
            "Invalid scaling configuration.\n- For TensorWise scaling, a and b should be float8, scales should be float "
            "and singletons.\n- For RowWise scaling, a and b should be float8, scales should be float, scale_a should be "
            f"({rows}, 1) and scale_b should be (1, {columns}): got {mat_a.dtype} and {mat_b.dtype}"
        )
    product = mat_a.float().mm(mat_b.float()) * scales[0] * scales[1]
    product = product if bias is None else product + bias.float()
    return product.to(bfloat16 if output_dtype is None else output_dtype)


def _single(value: Any) -> Any:
    return value[0] if isinstance(value, (list, tuple)) else value


def _is_float8(matrix: Tensor) -> bool:
    return from_numpy_dtype(matrix._array.dtype).name.startswith("float8")


def scaled_grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    scale_a: Any,
    scale_recipe_a: Any,
    scale_b: Any,
    scale_recipe_b: Any,
    swizzle_a: Any = None,
    swizzle_b: Any = None,
    bias: Tensor | None = None,
    offs: Tensor | None = None,
    output_dtype: Any = None,
    contraction_dim: Any = (),
    use_fast_accum: bool = False,
) -> Tensor:
    """Products in groups of matrices in 8-bit floats: PyTorch has them on accelerators only."""
    raise NotImplementedError("Could not run 'aten::_scaled_grouped_mm_v2' with arguments from the 'CPU' backend.")
