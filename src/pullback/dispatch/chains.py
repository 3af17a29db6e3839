"""The chains of operators by which PyTorch's backward passes compute, for operations whose rule is another chain.

`backward=` of a declaration names them. The rule computes the same on arrays, often in one pass; a dispatch mode sees these.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import pullback.generated as G
from pullback.backend.device import CPU
from pullback.backend.layout import strided
from pullback.dispatch.calling import call
from pullback.dispatch.overloads import aten
from pullback.dispatch.parts_of_fused import conj
from pullback.formulas.exponential import pow_grad_exponent
from pullback.formulas.losses import logits_grad
from pullback.formulas.norms import vector_norm_grad
from pullback.tensor.tensor import Tensor


def operator(name: str, *args: Any, **kwargs: Any) -> Any:
    """Call an operator of ATen's by the name of its overload, as `scatter.src`."""
    short, _, overload = name.partition(".")
    packet = aten(short)
    assert packet is not None, name
    return call(packet.overload(overload or "default"), args, kwargs)


def _placed_as(grad: Tensor) -> dict[str, Any]:
    return {"dtype": grad.dtype, "layout": strided, "device": CPU}


def _zero(grad: Tensor, value: float = 0) -> Tensor:
    made: Tensor = operator("scalar_tensor", value, **_placed_as(grad))
    return made


def put_selected(grad: Tensor, dim: int, indices: Tensor, shape: Sequence[int], keepdim: bool) -> Tensor:
    """The gradient of the values that a reduction along one dimension chose."""
    if not keepdim and len(shape):
        grad, indices = operator("unsqueeze", grad, dim), operator("unsqueeze", indices, dim)
    return put_sorted(grad, dim, indices, shape)


def put_sorted(grad: Tensor, dim: int, indices: Tensor, shape: Sequence[int]) -> Tensor:
    """The gradient of values that were taken from other places along one dimension."""
    zeros = operator("new_zeros", grad, list(shape))
    made: Tensor = operator("scatter.src", zeros, dim, indices, grad)
    return made


def gather_back(grad: Tensor, dim: int, index: Tensor, shape: Sequence[int]) -> Tensor:
    """The gradient of `gather`."""
    made: Tensor = operator("scatter_add", operator("new_zeros", grad, list(shape)), dim, index, grad)
    return made


def index_back(grad: Tensor, indices: Sequence[Tensor | None], shape: Sequence[int]) -> Tensor:
    """The gradient of indexing with tensors."""
    zeros = operator("new_zeros", grad, list(shape), **_placed_as(grad))
    made: Tensor = operator("index_put", zeros, list(indices), grad, True)
    return made


def index_select_back(grad: Tensor, dim: int, index: Tensor, shape: Sequence[int]) -> Tensor:
    """The gradient of `index_select`."""
    zeros = operator("new_zeros", grad, list(shape), **_placed_as(grad))
    made: Tensor = operator("index_add", zeros, dim, index, grad)
    return made


def where_back(grad: Tensor, condition: Tensor, is_input: bool) -> Tensor:
    """The gradient of one of the two sides of `where`."""
    zero = _zero(grad)
    sides = (grad, zero) if is_input else (zero, grad)
    made: Tensor = operator("where.self", condition, *sides)
    return made


def clamp_back(grad: Tensor, input: Tensor, min: Any, max: Any) -> Tensor:
    """The gradient of clamping to numbers."""
    zero = _zero(grad, 0.0)
    above = None if min is None else operator("ge.Scalar", input, min)
    below = None if max is None else operator("le.Scalar", input, max)
    if above is not None and below is not None:
        above = operator("logical_and_", above, below)
    made: Tensor = operator("where.self", below if above is None else above, grad, zero)
    return made


def extreme_back(grad: Tensor, input: Tensor, other: Tensor, loses: str) -> Tensor:
    """The gradient of one side of `maximum` and `minimum`: half of it where the sides are equal, none where it loses."""
    half = operator("div.Scalar", grad, 2)
    shared = operator("where.self", operator("eq.Tensor", input, other), half, grad)
    made: Tensor = operator("masked_fill_.Scalar", shared, operator(f"{loses}.Tensor", input, other), 0)
    return made


def cumsum_back(grad: Tensor, dim: int) -> Tensor:
    """The gradient of `cumsum`: summed from the other end."""
    if grad.numel() <= 1 or grad.size(dim) == 1:
        return grad
    summed = operator("cumsum", operator("flip", grad, [dim]), dim)
    made: Tensor = operator("flip", summed, [dim])
    return made


def all_extreme_back(grad: Tensor, input: Tensor, result: Tensor) -> Tensor:
    """The gradient of the largest or smallest of all elements, divided among equal ones."""
    nans = operator("logical_and", operator("isnan", input), operator("isnan", result))
    mask = operator("logical_or_", operator("eq.Tensor", input, result), nans)
    made: Tensor = operator("mul.Tensor", mask, operator("div.Tensor", grad, operator("sum", mask)))
    return made


def extremum_back(grad: Tensor, input: Tensor, result: Tensor, dim: Any, keepdim: bool) -> Tensor:
    """The gradient of `amax` and `amin`, divided among equal elements."""
    dims = _listed(dim)
    kept = [1 if d in dims or not dims else n for d, n in enumerate(input.shape)] if dims else []
    result = result if keepdim else operator("view", result, kept)
    mask = operator("eq.Tensor", result, input)
    grad = grad if keepdim else operator("view", grad, kept)
    made: Tensor = operator(
        "mul.Tensor", operator("div.Tensor", grad, operator("sum.dim_IntList", mask, dims, True)), mask
    )
    return made


def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    """`torch.nn.functional.one_hot` by operators."""
    if input.numel():
        smallest, largest = operator("aminmax", input)
        if operator("_local_scalar_dense", smallest) < 0:
            raise RuntimeError("Class values must be non-negative.")
        high = operator("_local_scalar_dense", largest)
        if num_classes != -1 and num_classes <= high:
            raise RuntimeError("Class values must be smaller than num_classes.")
        num_classes = high + 1 if num_classes == -1 else num_classes
    elif num_classes <= 0:
        raise RuntimeError("Can not infer total number of classes from empty input.")
    rows = operator("zeros", [*input.shape, num_classes], **_placed_as(input))
    made: Tensor = operator("scatter_.value", rows, -1, operator("unsqueeze", input, -1), 1)
    return made


def _listed(dim: Any) -> list[int]:
    return [] if dim is None else [dim] if isinstance(dim, int) else list(dim)


def _with_dims(grad: Tensor, dims: list[int], keepdim: bool) -> Tensor:
    for dim in [] if keepdim else sorted(dims):
        grad = operator("unsqueeze", grad, dim)
    return grad


def var_back(grad: Tensor, input: Tensor, dim: Any, correction: float, keepdim: bool) -> Tensor:
    """The gradient of a variance."""
    dims = _listed(dim)
    if not dims or input.ndim == 0:
        centred = operator("sub.Tensor", input, operator("mean", input))
        factor = 2.0 / (input.numel() - correction)
        every: Tensor = operator("mul.Tensor", operator("mul.Scalar", grad, factor), centred)
        return every
    grad = _with_dims(grad, dims, keepdim)
    count = prod([input.size(d) for d in dims])
    centred = operator("sub.Tensor", input, operator("mean.dim", input, dims, True))
    made: Tensor = operator("mul.Tensor", operator("mul.Scalar", grad, 2.0 / (count - correction)), centred)
    return made


def std_back(grad: Tensor, input: Tensor, result: Tensor, dim: Any, correction: float, keepdim: bool) -> Tensor:
    """The gradient of a standard deviation; none where it is zero."""
    quotient = operator("div.Tensor", grad, operator("mul.Scalar", result, 2))
    quotient = operator("masked_fill_.Scalar", quotient, operator("eq.Scalar", result, 0), 0)
    return var_back(quotient, input, dim, correction, keepdim)


def logsumexp_back(grad: Tensor, input: Tensor, result: Tensor, dim: Any, keepdim: bool) -> Tensor:
    """The gradient of `logsumexp`."""
    dims = _listed(dim) or list(range(input.ndim))
    grad, result = _with_dims(grad, dims, keepdim), _with_dims(result, dims, keepdim)
    made: Tensor = operator("mul.Tensor", grad, conj(operator("exp", operator("sub.Tensor", input, result))))
    return made


def norm_back(grad: Tensor, input: Tensor, ord: Any, result: Tensor, dim: Any, keepdim: bool) -> Any:
    """The gradient of a vector norm: of the Euclidean one by PyTorch's chain, none where it is zero."""
    if ord == 0:
        return None
    if ord != 2:
        return vector_norm_grad(grad, input, ord, dim, keepdim, result)
    dims = _listed(dim)
    grad, result = _with_dims(grad, dims, keepdim), _with_dims(result, dims, keepdim)
    unit = operator("div.Tensor", input, result)
    unit = operator("masked_fill_.Scalar", unit, operator("eq.Scalar", result, 0), 0)
    made: Tensor = operator("mul.Tensor", grad, unit)
    return made


def distance_back(grad: Tensor, input: Tensor, other: Tensor, p: Any, result: Tensor, of_other: bool) -> Any:
    """The gradient of `dist` for one of its tensors; a count of differences has none."""
    back = norm_back(grad, operator("sub.Tensor", input, other), p, result, None, False)
    if back is None:
        return None
    return G.sum_to(G.neg(back), tuple(other.shape)) if of_other else G.sum_to(back, tuple(input.shape))


def pow_back(grad: Tensor, input: Tensor, exponent: Tensor) -> Tensor:
    """The gradient of a power for its base."""
    lower = operator("mul.Tensor", exponent, operator("pow.Tensor_Tensor", input, operator("sub.Scalar", exponent, 1)))
    product = operator("mul.Tensor", grad, conj(lower))
    zero = _zero(grad, 0.0)
    made: Tensor = operator("where.self", operator("eq.Scalar", exponent, 0.0), zero, product)
    return made


def pow_back_exponent(grad: Tensor, input: Tensor, exponent: Tensor, result: Tensor) -> Tensor:
    """The gradient of a power for its exponent: none where zero is raised to one that is not negative."""
    if grad.is_complex() or exponent.is_complex() or input.is_complex():
        return pow_grad_exponent(grad, input, exponent, result)
    negative = operator("ge.Scalar", exponent, 0)
    vanishes = operator("logical_and", operator("eq.Scalar", input, 0), negative)
    product = operator("mul.Tensor", result, operator("log", input))
    chosen = operator("where.self", vanishes, _zero(grad, 0.0), conj(product))
    made: Tensor = operator("mul.Tensor", grad, chosen)
    return made


def scaled_back(grad: Tensor, other: Tensor, value: Any) -> Tensor:
    """The gradient of a scaled product of two tensors for one of them."""
    made: Tensor = operator("mul.Tensor", grad, conj(operator("mul.Scalar", other, value)))
    return made


def atan2_back(grad: Tensor, input: Tensor, other: Tensor, output_mask: Sequence[bool]) -> list[Any]:
    """The gradients of `atan2` for both sides."""
    square = operator("add.Tensor", operator("mul.Tensor", input, input), operator("mul.Tensor", other, other))
    inverse = operator("masked_fill.Scalar", operator("reciprocal", square), operator("eq.Scalar", square, 0), 0)
    first = operator("mul.Tensor", grad, operator("mul.Tensor", other, inverse)) if output_mask[0] else None
    if not output_mask[1]:
        return [first, None]
    return [first, operator("mul.Tensor", grad, operator("mul.Tensor", operator("neg", input), inverse))]


def repeat_back(grad: Tensor, shape: Sequence[int], repeats: Sequence[int]) -> Tensor:
    """The gradient of `repeat`: the sum over the copies."""
    sizes = [1] * (len(repeats) - len(shape)) + list(shape)
    split: list[int] = []
    summed: list[int] = list(range(len(repeats) - len(shape)))
    if summed:
        grad = operator("sum.dim_IntList", operator("view", grad, list(grad.shape)), summed)
    for count, size in zip(repeats[len(repeats) - len(shape) :], sizes[len(repeats) - len(shape) :], strict=True):
        if count != 1:
            split.append(count)
        split.append(size)
    if len(split) == len(shape):
        return grad
    grad = operator("view", grad, split)
    places, at = [], 0
    for count in repeats[len(repeats) - len(shape) :]:
        if count != 1:
            places.append(at)
            at += 1
        at += 1
    made: Tensor = operator("sum.dim_IntList", grad, places)
    return made


def logits_back(grad: Tensor, input: Tensor, target: Tensor, weight: Any, pos_weight: Any, reduction: int) -> Any:
    """The gradient of the binary cross entropy of logits: without weights by PyTorch's chain."""
    if weight is not None or pos_weight is not None:
        return logits_grad(grad, input, target, weight, pos_weight, reduction)
    made: Tensor = operator("mul.Tensor", operator("sub.Tensor", operator("sigmoid", input), target), grad)
    return made if reduction != 1 else operator("div_.Scalar", made, input.numel())


def converted_back(grad: Tensor, dtype: Any) -> Tensor:
    """The gradient of a conversion: converted back."""
    if grad.dtype == dtype:
        return grad
    made: Tensor = operator("_to_copy", grad, dtype=dtype, layout=strided, device=CPU)
    return made


def filled(grads: Sequence[Tensor | None], shapes: Sequence[Sequence[int]], *, expanded: bool = False) -> list[Tensor]:
    """Gradients of several results, with zeros for those that nobody used."""
    known = next(grad for grad in grads if grad is not None)
    made: list[Tensor] = []
    for grad, shape in zip(grads, shapes, strict=True):
        if grad is None and expanded:
            grad = operator("expand", operator("zeros", [], **_placed_as(known)), list(shape))
        elif grad is None:
            grad = operator("zeros", list(shape), **_placed_as(known))
        made.append(grad)
    return made


def split_back(grads: Sequence[Tensor | None], shape: Sequence[int], sizes: Any, dim: int) -> Tensor:
    """The gradient of `split`, by a size or by sizes."""
    if isinstance(sizes, int):
        sizes = [min(sizes, shape[dim] - begin) for begin in range(0, shape[dim], sizes)]
    shapes = [[*shape[:dim], size, *shape[dim + 1 :]] for size in sizes]
    made: Tensor = operator("cat", filled(grads, shapes), dim)
    return made


def unbind_back(grads: Sequence[Tensor | None], shape: Sequence[int], dim: int) -> Tensor:
    """The gradient of `unbind`."""
    parts = filled(grads, [[*shape[:dim], *shape[dim + 1 :]]] * len(grads), expanded=True)
    made: Tensor = operator("stack", parts, *[dim] * (dim != 0))
    return made


def prod_back(grad: Tensor, input: Tensor, result: Tensor) -> Tensor:
    """The gradient of the product of all elements: for each the product of those before it and of those after it."""
    if input.numel() <= 1:
        made: Tensor = operator("mul.Tensor", grad, operator("ones_like", input))
    else:
        others = _products_of_others(operator("view", input, [-1]), 0)
        made = operator("view", operator("mul.Tensor", grad, conj(others)), list(input.shape))
    return made


def prod_along_back(grad: Tensor, input: Tensor, result: Tensor, dim: int, keepdim: bool) -> Tensor:
    """The gradient of products along one dimension."""
    grad = _with_dims(grad, [dim], keepdim or not input.ndim)
    _with_dims(result, [dim], keepdim or not input.ndim)  # as PyTorch does, which goes on without it
    if not input.ndim or input.shape[dim] == 1:
        return grad
    made: Tensor = operator("mul.Tensor", grad, conj(_products_of_others(input, dim)))
    return made


def _products_of_others(input: Tensor, dim: int) -> Tensor:
    size = input.shape[dim]
    shape = [1 if d == dim else n for d, n in enumerate(input.shape)]
    ones = operator("ones", shape, **_placed_as(input))
    places = [dim] if dim else []
    before = operator("cat", [ones, operator("slice.Tensor", input, dim, 0, size - 1)], *places)
    before = operator("cumprod", before, dim)
    after = operator("flip", operator("slice.Tensor", input, dim, 1, size), [dim])
    after = operator("flip", operator("cumprod", operator("cat", [ones, after], *places), dim), [dim])
    made: Tensor = operator("mul.Tensor", before, after)
    return made
