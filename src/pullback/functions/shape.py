"""Views and copies in another shape: PyTorch's overloads and the functions composed of other views."""

from __future__ import annotations

from typing import Any

import pullback.generated as G
from pullback.backend.dtype import dtype as Dtype
from pullback.checks.shapes import infer_shape
from pullback.errors import dim_out_of_range, wrong_type
from pullback.facts import declare
from pullback.functions.copies import contiguous
from pullback.kernels.broadcasting import is_expandable_to
from pullback.kernels.shape import view_dtype
from pullback.modes.interception import interceptable, structured
from pullback.modes.switches import process, switches
from pullback.tensor.arguments import as_dtype, as_int, refuse_unknown, the_dim
from pullback.tensor.dims import wrap_dim
from pullback.tensor.foreign_arguments import answers, ask_foreign
from pullback.tensor.tensor import Tensor, new_tensor


def sizes(given: tuple[Any, ...], function: str, name: str) -> tuple[int, ...]:
    """Sizes or dimensions given one by one or as one sequence, as ints; errors speak of the argument `name`."""
    if len(given) == 1:
        if isinstance(given[0], (tuple, list)):
            given = tuple(given[0])
    elif not given:
        raise TypeError(f'{function}() missing 1 required positional arguments: "{name}"')
    for n in given:
        if type(n) is not int:
            return _as_ints(given, function, name)
    return given


def _as_ints(given: tuple[Any, ...], function: str, name: str) -> tuple[int, ...]:
    try:
        return tuple([as_int(n) for n in given])
    except TypeError:
        if len(given) == 1:
            raise wrong_type(function, name, 1, "tuple of ints", given[0]) from None
        position = next(i for i, n in enumerate(given, 1) if not hasattr(n, "__index__") or hasattr(n, "ndim"))
        raise TypeError(
            f"{function}(): argument '{name}' failed to unpack the object at pos {position} with error "
            f'"type must be tuple of ints,but got {type(given[position - 1]).__name__}"'
        ) from None


def sizes_by_name(function: str, name: str, named: dict[str, Any], given: tuple[Any, ...]) -> tuple[Any, ...]:
    """The one argument of a function that takes sizes as they are or by name."""
    refuse_unknown(function, named, (name,))
    if given:
        raise TypeError(f"{function}() got multiple values for argument '{name}'")
    return (named[name],)


@declare(complex32=True, bare=True, same_values=True, moves=True, found="torch and method")
def reshape(input: Tensor, *shape: Any, **named: Any) -> Tensor:
    """The same elements in another shape: a view where that is possible, else a copy.

    One of the sizes may be -1: what is left for it. The elements keep their row-major order, and their number is the
    same.

    >>> import pullback
    >>> pullback.arange(4).reshape(2, -1)
    tensor([[0, 1],
            [2, 3]])
    """
    wanted = sizes(sizes_by_name("reshape", "shape", named, shape) if named else shape, "reshape", "shape")
    return G.reshape(input, wanted)


@declare(found="method")
def view(input: Tensor, *size: Any, **named: Any) -> Tensor:
    """The same memory in another shape or, given a dtype, its bytes read as another type.

    `shape` is given as numbers or one tuple, with -1 for what is left. It raises where the memory's order does not
    allow it; `reshape` copies there.
    """
    if "dtype" in named or (len(size) == 1 and isinstance(size[0], (Dtype, type))):
        return _view_dtype(input, as_dtype(named.get("dtype") or size[0]))
    return G.view(input, sizes(sizes_by_name("view", "size", named, size) if named else size, "view", "size"))


@structured("leading")
@interceptable
def _view_dtype(input: Tensor, wanted: Dtype) -> Tensor:
    """Bytes read as another type have no gradient, and the result counts as no view and, in inference mode, as new."""
    if wanted is input.dtype:
        return _as_if_new(input.detach())
    if input._extra is not None and input._extra.mirror is not None:
        kind = "conjugate view tensors" if input._extra.mirror.conj else "tensors with negative bit set"
        raise RuntimeError(f"torch.Tensor.view is not supported for {kind} when converting to a different dtype.")
    result = input.detach()
    result._array = view_dtype(input._array, wanted.numpy_dtype)
    return _as_if_new(result)


def _as_if_new(alias: Tensor) -> Tensor:
    """An alias that is an inference tensor where new tensors are, whatever the other one is."""
    if alias.is_inference() and not switches.inference_mode:
        return new_tensor(alias._array)
    alias._note_inference()
    return alias


@declare(bare=True, found="method")
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """The same memory in the shape of `other`.

    As `view(other.shape)`.

    >>> import pullback
    >>> pullback.arange(4).view_as(pullback.ones(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    if type(other) is not Tensor and answers("view_as", "other", other):
        return ask_foreign(view_as, (input, other))
    return G.view(input, other._array.shape)


@declare(found="method")
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """The same elements in the shape of `other`."""
    if type(other) is not Tensor and answers("reshape_as", "other", other):
        return ask_foreign(reshape_as, (input, other))
    return G.reshape(input, other._array.shape)


@declare(asks=True, bare=True, moves=True, found="torch and method")
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The dimensions from `start_dim` to `end_dim` as one.

    (2, 3, 4) becomes (24,), or (2, 12) with start_dim=1: a view where that is possible, else a copy.
    """
    if (process.modes or type(input) is not Tensor) and answers("flatten", "input", input):
        return ask_foreign(flatten, (input, start_dim, end_dim))
    shape = input._array.shape
    first, last = wrap_dim(start_dim, len(shape)), wrap_dim(end_dim, len(shape))
    if not shape:
        return G.reshape(input, (1,))
    if first > last:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if first == last:
        return input
    count = 1
    for n in shape[first : last + 1]:
        count *= n
    return G.reshape(input, (*shape[:first], count, *shape[last + 1 :]))


@declare(found="torch and method")
def ravel(input: Tensor) -> Tensor:
    """All elements in one dimension.

    A view where the memory is in that order, otherwise a copy.

    >>> import pullback
    >>> pullback.ravel(pullback.tensor([[1, 2], [3, 4]]))
    tensor([1, 2, 3, 4])
    """
    return G.reshape(contiguous(input), (-1,)) if input._array.size else G.reshape(input, (0,))


@declare(found="torch and method")
def unflatten(input: Tensor, dim: int, sizes: Any) -> Tensor:
    """One dimension as several.

    `sizes` takes the place of the size of `dim`, whose product it is; one of them may be -1, which is then found.

    >>> import pullback
    >>> pullback.unflatten(pullback.arange(6), 0, (2, -1))
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    shape = input._array.shape
    if not shape:
        raise RuntimeError(
            f"unflatten got an unexpected error: Dimension specified as {dim} but tensor has no dimensions"
        )
    at = wrap_dim(dim, len(shape))
    wanted = _as_ints(tuple(sizes) if isinstance(sizes, (tuple, list)) else (sizes,), "unflatten", "sizes")
    if not wanted:
        raise RuntimeError("unflatten: sizes must be non-empty")
    try:
        inferred = infer_shape(shape[at], wanted)
    except RuntimeError:
        raise RuntimeError(
            f"unflatten: Provided sizes {list(wanted)} don't multiply up to the size of dim {at} ({shape[at]}) in the "
            "input tensor"
        ) from None
    return G.view(input, (*shape[:at], *inferred, *shape[at + 1 :]))


@declare(found="method")
def expand(input: Tensor, *size: Any, implicit: bool = False, **named: Any) -> Tensor:
    """A view with dimensions of size 1 repeated without copying.

    Sizes are given as numbers or one tuple; -1 keeps a size, new dimensions come first: (3, 1) becomes (3, 4), or (2,
    3, 4).
    """
    return G.expand(input, sizes(sizes_by_name("expand", "size", named, size) if named else size, "expand", "size"))


@declare(bare=True, found="method")
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """A view in the shape of `other`, with dimensions of size 1 repeated.

    As `expand(other.shape)`; no memory is copied.

    >>> import pullback
    >>> pullback.tensor([[1], [2]]).expand_as(pullback.ones(2, 3))
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    if type(other) is not Tensor and answers("expand_as", "other", other):
        return ask_foreign(expand_as, (input, other))
    return G.expand(input, other._array.shape)


@declare(found="torch and method")
def broadcast_to(input: Tensor, size: Any) -> Tensor:
    """A view in the shape `size`, with dimensions of size 1 repeated.

    `size` may have more dimensions, in front. Memory is not copied: the repeated elements are one.

    >>> import pullback
    >>> pullback.broadcast_to(pullback.tensor([1, 2]), (2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    return G.expand(input, sizes((size,), "broadcast_to", "size"))


def method_broadcast_to(input: Tensor, *size: Any, **named: Any) -> Tensor:
    """As `broadcast_to`; sizes may be given one by one."""
    return G.expand(
        input, sizes(sizes_by_name("broadcast_to", "size", named, size) if named else size, "broadcast_to", "size")
    )


@declare(found="torch and method")
def squeeze(input: Tensor, dim: Any = None, *more: Any, axis: Any = None) -> Tensor:
    """A view without dimensions of size 1: all of them, or those named.

    A dimension that is named and has another size stays. The result shares the memory.
    """
    if (process.modes or type(input) is not Tensor) and answers("squeeze", "input", input):
        return ask_foreign(squeeze, (input,) if dim is None else (input, dim, *more))
    dim = dim if axis is None else axis
    if dim is None:
        return G.squeeze(input)
    if isinstance(dim, (tuple, list)):
        return G.squeeze_dims(input, _distinct_dims(dim, input._array.ndim))
    return G.squeeze_dim(input, dim)


def _distinct_dims(dims: Any, ndim: int) -> tuple[int, ...]:
    wrapped = tuple([wrap_dim(as_int(d), ndim) for d in dims])
    for d in wrapped:
        if wrapped.count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    return wrapped


@declare(found="torch and method")
def unsqueeze(input: Tensor, dim: Any = None, *, axis: Any = None) -> Tensor:
    """A view with a dimension of size 1 inserted.

    `dim` is between -(n + 1) and n for n dimensions: (3, 4) becomes (1, 3, 4) for dim=0 and (3, 4, 1) for dim=-1. The
    result shares the memory.
    """
    if (process.modes or type(input) is not Tensor) and answers("unsqueeze", "input", input):
        return ask_foreign(unsqueeze, (input, dim))
    if dim is None:
        dim = the_dim("unsqueeze", axis)
    return G.unsqueeze(input, wrap_new_dim(dim, input._array.ndim))


def wrap_new_dim(dim: int, ndim: int) -> int:
    """A dimension of the result, which has one more than the input."""
    limit = ndim + 1
    dim = as_int(dim)
    if not -limit <= dim < limit:
        raise dim_out_of_range(dim, limit)
    return dim + limit if dim < 0 else dim


@declare(found="torch and method")
def slice_inverse(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """The view of `input` that has the geometry of `src`, the tensor that a slice was taken from."""
    if input.dtype is not src.dtype:
        raise RuntimeError("slice_inverse: input and src must have the same dtype")
    return as_strided(input, src.size(), src.stride(), src.storage_offset())


@declare(found="torch and method")
def as_strided(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """A view of the tensor's storage with the given geometry, in elements.

    `size` and `stride` have a number for each dimension; element (i, j) is at storage_offset + i * stride[0] + j *
    stride[1].

    >>> import pullback
    >>> pullback.as_strided(pullback.arange(6), (2, 2), (3, 1))
    tensor([[0, 1],
            [3, 4]])
    """
    return G.as_strided(
        input,
        sizes((size,), "as_strided", "size"),
        sizes((stride,), "as_strided", "stride"),
        storage_offset,
        input.stride(),
        input.storage_offset(),
    )


@declare(found="torch")
def numel(input: Tensor) -> int:
    """The number of elements.

    The product of the sizes: 1 for a tensor without dimensions.

    >>> import pullback
    >>> pullback.numel(pullback.zeros(2, 3))
    6
    """
    return int(input._array.size)


@declare(found="torch")
def is_tensor(obj: Any) -> bool:
    """Whether `obj` is a tensor.

    True for a Tensor and what inherits from it, also for a Parameter.

    >>> import pullback
    >>> pullback.is_tensor(pullback.ones(2)), pullback.is_tensor([1.0])
    (True, False)
    """
    return isinstance(obj, Tensor)


@declare(found="method")
def sum_to_size(input: Tensor, *size: Any, **named: Any) -> Tensor:
    """The sum over the dimensions along which a tensor of `size` would be broadcast to this one."""
    wanted = sizes(sizes_by_name("sum_to_size", "size", named, size) if named else size, "sum_to_size", "size")
    if not is_expandable_to(wanted, input._array.shape):
        raise RuntimeError(f"size {{{list(wanted)}}} is not expandable to size {{{list(input._array.shape)}}}.")
    shape = input._array.shape
    lead = len(shape) - len(wanted)
    dims = (*range(lead), *[d for d in range(lead, len(shape)) if wanted[d - lead] == 1 != shape[d]])
    if not dims and shape:
        return input
    if not wanted:
        return G.sum_all(input)
    summed = G.sum(input, dims, True)
    return G.view(summed, wanted) if lead else summed
