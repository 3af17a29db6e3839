"""`tensor[...]` and `tensor[...] = value`: Python's index objects taken apart into views and tensors of positions.

# Note [Indexing]
Basic parts of an index (numbers, slices, None, Ellipsis) become views one after another, as PyTorch records them.
Tensors of positions, masks, lists and arrays are collected with the dimension each stands at and read or written by one
operation at the end. A number never counts as an advanced index, unlike in NumPy.
"""

from __future__ import annotations

import operator
from typing import Any

import pullback.generated as G
from pullback.backend.array_module import cast_array, has_internal_overlap, is_array, is_number, ndarray
from pullback.backend.dtype import int64, type_name
from pullback.backend.logical_array import batched_mask, has_values
from pullback.creation import tensor as tensor_of
from pullback.creation.from_values import lift_fresh
from pullback.facts import declare
from pullback.functions.direct_writes import writes_plainly
from pullback.graph.history import bump_version, check_captured
from pullback.graph.in_place import check_overlap, check_partial_overlap, warn_of_expanded
from pullback.graph.views import make_view
from pullback.kernels.creation import checked_fill
from pullback.kernels.indexing import positions_of
from pullback.kernels.scattering import index_put_into
from pullback.kernels.shape import expand
from pullback.modes.cuts import note_cut
from pullback.modes.switches import process, switches
from pullback.modes.user_warnings import warn_user
from pullback.tensor.arguments import as_int, missing_arguments, the_dim
from pullback.tensor.dims import wrap_dim
from pullback.tensor.foreign_arguments import any_foreign, ask_foreign, is_foreign
from pullback.tensor.tensor import Tensor, TensorBase, new_tensor


def getitem(input: Tensor, index: Any) -> Tensor:
    """The part of `input` that `index` describes: a view, or a copy where tensors or lists of positions are used.

    >>> import pullback
    >>> x = pullback.arange(6).reshape(2, 3)
    >>> x[0], x[:, 1:], x[x > 3]
    (tensor([0, 1, 2]), tensor([[1, 2],
            [4, 5]]), tensor([4, 5]))
    """
    if not process.changed and not input._requires_grad and _is_plain(index):
        found = _plain_view(input, index)
        if found is not None:
            return found
    kind = type(index)
    if kind is int:
        return G.select(input, 0, _checked_position(input, 0, index, 0))
    if kind is slice:
        return _apply_slice(input, 0, index)
    if index is None:
        return G.unsqueeze(input, 0)
    if index is Ellipsis:
        return G.alias(input)
    if kind is tuple and len(index) <= input._array.ndim and _BASIC.issuperset(map(type, index)):
        result = _basic_views(input, index)
        return G.alias(result) if result is input else result
    if kind is not Tensor and any_foreign((index,)):
        return ask_foreign(getitem, (input, index))
    if not process.changed and _is_mask_of(index, input) and not input._requires_grad:
        return new_tensor(input._array[index._array])
    result, positions, dims = take_apart(input, index)
    if dims:
        return G.index(result, positions, dims)
    return G.alias(result) if result is input else result


_BASIC = frozenset((int, slice))


def _basic_views(input: Tensor, index: tuple[Any, ...]) -> Tensor:
    """One view after another for an index of numbers and slices: what `take_apart` does, without the rest."""
    result, dim = input, 0
    for place, item in enumerate(index):
        if type(item) is int:
            result = G.select(result, dim, _checked_position(result, dim, item, place))
            continue
        if item.start is not None or item.stop is not None or item.step is not None:
            bounds = _slice_bounds(result, dim, item)
            if bounds != (0, result._array.shape[dim], 1) or item.start not in (None, 0):
                result = G.slice_view(result, dim, *bounds)
        dim += 1
    return result


def _is_plain(index: Any) -> bool:
    """Whether NumPy takes this index as PyTorch does: numbers, slices forward, Ellipsis."""
    kind = type(index)
    if kind is int:
        return True
    if kind is tuple:
        return all(type(item) is int or item is Ellipsis or _is_plain_slice(item) for item in index)
    return _is_plain_slice(index)


def _is_plain_slice(item: Any) -> bool:
    if type(item) is not slice or (item.step is not None and (type(item.step) is not int or item.step <= 0)):
        return False
    return (item.start is None or type(item.start) is int) and (item.stop is None or type(item.stop) is int)


def _plain_view(input: Tensor, index: Any) -> Tensor | None:
    """The view without recording; None where NumPy refuses, so that the long way gives PyTorch's error."""
    array = input._array
    try:
        part = array[index]
        if type(part) is not ndarray:
            part = array[(*index, ...) if type(index) is tuple else (index, ...)]
    except IndexError:
        return None
    result = new_tensor(part)
    make_view(result, input)
    return result


def _is_mask_of(index: Any, input: Tensor) -> bool:
    """Whether an index is one mask over the leading dimensions, which NumPy reads and writes faster than positions."""
    if not isinstance(index, TensorBase):
        return False
    mask = index._array
    return bool(mask.dtype.kind == "b" and mask.ndim > 0 and mask.shape == input._array.shape[: mask.ndim])


def _checked_position(input: Tensor, dim: int, position: int, place: int) -> int:
    """A position that lies inside; the error counts dimensions as PyTorch's does, by the place in the index."""
    shape = input._array.shape
    if not -_LONGEST <= position < _LONGEST:
        raise ValueError("Overflow when unpacking long long")
    if not shape:
        raise IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a "
            "0-dim tensor to a number"
        )
    size = shape[dim]
    if not -size <= position < size:
        raise IndexError(f"index {position} is out of bounds for dimension {place} with size {size}")
    return position


def _apply_slice(input: Tensor, dim: int, part: slice) -> Tensor:
    start, end, step = _slice_bounds(input, dim, part)
    return G.slice_view(input, dim, start, end, step)


_BOUND = (int, type(None))
_LONGEST = 2**63


def _slice_bounds(input: Tensor, dim: int, part: slice) -> tuple[int, int, int]:
    shape = input._array.shape
    if shape and part.step is None and type(part.start) in _BOUND and type(part.stop) in _BOUND:
        first, last, _ = part.indices(shape[dim])
        return first, last if last > first else first, 1
    start, stop, step = [None if bound is None else _bound(bound) for bound in (part.start, part.stop, part.step)]
    step = 1 if step is None else step
    if step == 0:
        raise ValueError("slice step cannot be zero")
    if step < 0:
        raise ValueError("step must be greater than zero")
    if not shape:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    first, last, _ = slice(start, stop).indices(shape[dim])
    return first, max(first, last), step


def _bound(value: Any) -> int:
    """A bound of a slice as an int."""
    try:
        return operator.index(value)
    except TypeError:
        if isinstance(value, TensorBase):
            raise
        raise TypeError("slice indices must be integers or None or have an __index__ method") from None


def take_apart(input: Tensor, index: Any) -> tuple[Tensor, list[Tensor], tuple[int, ...]]:
    """Apply the basic parts of an index as views; return the view, the tensors of positions and their dimensions."""
    if type(index) is list and len(index) < 32 and any(_is_index_part(item) for item in index):
        warn_user(
            "Using a non-tuple sequence for multidimensional indexing is deprecated: x[tuple(seq)] says that its items "
            "stand for one dimension each, x[torch.tensor(seq)] that it is one tensor of positions."
        )
        index = tuple(index)
    items = index if isinstance(index, tuple) else (index,)
    items = tuple([_as_item(item) for item in items])
    specified = sum([_dimensions_of(item) for item in items])
    ndim = input._array.ndim
    if specified > ndim:
        if ndim == 0 and len(items) == 1 and type(items[0]) is int:
            _checked_position(input, 0, items[0], 0)
        raise IndexError(f"too many indices for tensor of dimension {ndim}")
    result, dim = input, 0
    positions: list[Tensor] = []
    dims: list[int] = []
    for place, item in enumerate(items):
        if item is None:
            result = G.unsqueeze(result, dim)
            dim += 1
        elif item is Ellipsis:
            dim += ndim - specified
        elif type(item) is int:
            result = G.select(result, dim, _checked_position(result, dim, item, place))
        elif isinstance(item, slice):
            if item.start is not None or item.stop is not None or item.step is not None:
                bounds = _slice_bounds(result, dim, item)
                if bounds != (0, result._array.shape[dim], 1) or item.start not in (None, 0):
                    result = G.slice_view(result, dim, *bounds)
            dim += 1
        else:
            if item._array.ndim == 0 and has_values(item._array) and item._array.dtype.char in _TRUTHS:
                result = G.unsqueeze(result, dim)
                found = [new_tensor(positions_of(item._array)[0])]
            else:
                found = _positions(item, result, dim)
            positions += found
            dims += range(dim, dim + len(found))
            dim += len(found)
    return result, positions, tuple(dims)


def _is_index_part(item: Any) -> bool:
    """Whether a list with this item means a tuple, as in PyTorch: x[[[0, 1], [1, 0]]] is x[[0, 1], [1, 0]]."""
    return item is None or item is Ellipsis or isinstance(item, _PARTS) or is_array(item)


_PARTS = (slice, TensorBase, list, tuple, range, str)
_TRUTHS = "?B"
"""NumPy's letters for the dtypes of masks, bool and uint8."""


def _as_item(item: Any) -> Any:
    """One part of an index in its simplest form: None, Ellipsis, int, slice, a Tensor of positions or truth values."""
    if item is None or item is Ellipsis or type(item) is int or type(item) is slice:
        return item
    if isinstance(item, TensorBase):
        array = item._array
        if array.ndim == 0 and array.dtype.kind in "iu" and array.dtype.char not in _TRUTHS and has_values(array):
            return int(array)
        return item
    if isinstance(item, bool):
        return tensor_of(bool(item))
    if isinstance(item, slice):
        return item
    if is_array(item) or isinstance(item, (list, tuple, range)):
        made = _tensor_of_sequence(item)
        return int(made._array) if made._array.ndim == 0 and made._array.dtype.kind in "iu" else made
    if isinstance(item, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(item).__name__}'")
    try:
        return as_int(item)
    except TypeError:
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got "
            f"{type(item).__name__})"
        ) from None


def _tensor_of_sequence(item: Any) -> Tensor:
    if not is_array(item) and not len(item):
        return tensor_of([], dtype=int64)
    try:
        made = tensor_of(item if is_array(item) else list(item))
        return G.to_dtype(made, int64) if made._array.dtype.kind == "f" else made  # PyTorch reads numbers as positions
    except (TypeError, RuntimeError) as error:
        if is_array(item) or "invalid data type" in str(error):
            raise
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got "
            f"{type(item).__name__})"
        ) from None


def _dimensions_of(item: Any) -> int:
    """How many dimensions of the tensor a part of an index uses up."""
    if item is None or item is Ellipsis:
        return 0
    if isinstance(item, TensorBase) and item._array.dtype.kind in "bu" and item._array.itemsize == 1:
        return int(item._array.ndim)
    return 1


def _positions(item: Tensor, input: Tensor, dim: int) -> list[Tensor]:
    """Tensors of positions: the item itself, or one for each dimension of a mask."""
    array = item._array
    if array.dtype.kind == "b" or (array.dtype.kind == "u" and array.itemsize == 1):
        if not has_values(array):
            raise batched_mask()
        if array.dtype.kind == "u":
            warn_user("indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.")
        shape = input._array.shape[dim : dim + array.ndim]
        if shape != array.shape:
            wrong = next(i for i, n in enumerate(array.shape) if n != shape[i])
            raise IndexError(
                f"The shape of the mask {list(array.shape)} at index {wrong} does not match the shape of the "
                "indexed tensor "
                f"{list(input._array.shape)} at index {dim + wrong}"
            )
        return [new_tensor(p) for p in positions_of(array)]
    if array.dtype.kind != "i" or array.itemsize < 4:
        raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    return [item]


def setitem(input: Tensor, index: Any, value: Any) -> None:
    """Write `value`, broadcast and converted, to the part of `input` that `index` describes."""
    if writes_plainly(input) and _is_plain(index) and _written_plainly(input, index, value):
        return
    if isinstance(index, bool):
        if not index:
            return
        index = ...
    if (not isinstance(value, Tensor) and is_foreign(value)) or (type(index) is not Tensor and any_foreign((index,))):
        ask_foreign(setitem, (input, index, value))
        return
    given = _as_value(input, value)
    if given is value and given._array.size == 1 and given._array.dtype != input._array.dtype and _has_one_mask(index):
        given = _filling_value(input, given)
    if writes_plainly(input, given):
        _write_unrecorded(input, index, given._array)
        if given._requires_grad:
            note_cut(None, input, given)
        return
    if isinstance(index, TensorBase) and index._array.dtype.kind == "b" and not has_values(index._array):
        _write_where(input, index, given)
        return
    part, positions, dims = _part_for_writing(input, index)
    if dims:
        G.index_put_(part, positions, dims, _without_leading_ones(given, 0))
        return
    check_captured(part, "copy")
    if given._array.ndim == 0 and part._array.ndim:
        G.fill_in_place_tensor_(part, given)
    else:
        given, shape = _without_leading_ones(given, part._array.ndim), part._array.shape
        part.copy_(given if given._array.shape == shape else G.expand(given, shape))


def _write_where(input: Tensor, mask: Any, value: Tensor) -> None:
    """Write one number where a mask under vmap is true: the number of places differs between the examples."""
    if value._array.ndim:
        raise batched_mask()
    ones = (1,) * (input._array.ndim - mask._array.ndim)
    G.masked_fill_tensor_(input, G.view(mask, (*mask._array.shape, *ones)), value)


_LARGEST = 3e38
"""Below this a Python number fits into float32 and float64."""


def _written_plainly(input: Tensor, index: Any, value: Any) -> bool:
    """Write through NumPy where it does what PyTorch does; False where it might not, with nothing written."""
    array = input._array
    kind = type(value)
    cut = None
    if kind is float or kind is int:
        if array.dtype.kind != "f" or array.itemsize < 4 or not -_LARGEST < value < _LARGEST:
            return False
        if kind is int and not -_LONGEST <= value < _LONGEST:
            return False
    elif not isinstance(value, Tensor) or not writes_plainly(input, value) or value._array.dtype != array.dtype:
        return False
    else:
        cut = value if value._requires_grad else None
        value = value._array
        base = value.base
        if base is not None and (base is array or base is array.base):
            return False
    if 0 in array.strides:
        return False
    try:
        array[index] = value
    except (IndexError, ValueError, TypeError):  # bfloat16 takes no array of one element for a number
        return False
    bump_version(input)
    if cut is not None:
        note_cut(None, input, cut)
    return True


def _part_for_writing(input: Tensor, index: Any) -> tuple[Tensor, list[Tensor], tuple[int, ...]]:
    if type(index) is slice:
        index = (index,)
    if index is Ellipsis:
        return input, [], ()
    return take_apart(input, index)


def _as_value(input: Tensor, value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    if isinstance(value, (bool, int, float, complex)) or (is_number(value) and hasattr(value, "__index__")):
        if isinstance(value, int) and not -_LONGEST <= value < _LONGEST:
            raise ValueError("Overflow when unpacking long long")
        dtype = input._array.dtype
        made = new_tensor(checked_fill((), value.item() if hasattr(value, "item") else value, dtype))
        return lift_fresh(made) if process.changed and switches.dispatch_modes else made
    kind = type(value)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    raise TypeError(f"can't assign a {name} to a {type_name(input._array.dtype)}")


def _has_one_mask(index: Any) -> bool:
    """Whether an index is one mask, with numbers, slices and new dimensions around it."""
    items = index if isinstance(index, tuple) else (index,)
    advanced = [item for item in items if not isinstance(item, (int, slice, type(None), type(...)))]
    if len(advanced) != 1:
        return False
    only = advanced[0]
    if isinstance(only, list):
        return bool(only) and all(isinstance(item, bool) for item in only)
    return (
        bool(getattr(only, "_array", only).dtype.kind == "b")
        if isinstance(only, TensorBase) or is_array(only)
        else False
    )


def _filling_value(input: Tensor, value: Tensor) -> Tensor:
    """One element of another dtype as what a mask is filled with."""
    dtype = input._array.dtype
    if value._array.dtype.kind == "c" and dtype.kind != "c":
        checked_fill((), value._array.item(), dtype)  # refuses an imaginary part
    return G.to_dtype(G.reshape(value, ()), dtype)


def _without_leading_ones(value: Tensor, ndim: int) -> Tensor:
    """A value with more dimensions than the part it is written to loses the leading ones of size 1."""
    shape = value._array.shape
    if len(shape) <= ndim or shape[0] != 1:
        return value
    return G.view(value, shape[_leading_ones(shape) :])


def _leading_ones(shape: tuple[int, ...]) -> int:
    return next((position for position, size in enumerate(shape) if size != 1), len(shape))


def _write_unrecorded(input: Tensor, index: Any, values: Any) -> None:
    """Write without recording: nothing involved requires grad."""
    array = input._array
    if values.ndim == 0 and _is_mask_of(index, input):
        if not array.flags.c_contiguous and has_internal_overlap(array):
            warn_of_expanded("masked_fill")
        array[index._array] = cast_array(values, array.dtype)
        bump_version(input)
        return
    alias = new_tensor(array)
    part, positions, dims = _part_for_writing(alias, index)
    target = part._array
    if not dims:
        check_overlap(part)
    elif has_internal_overlap(target):
        warn_of_expanded("index_put")
    if values.ndim > (0 if dims else target.ndim):
        values = values.reshape(values.shape[_leading_ones(values.shape) :])
    if dims:
        check_partial_overlap(target, values, whole=True)
        index_put_into(target, [p._array for p in positions], dims, values, False)
    else:
        if values.ndim and values.shape != target.shape:
            values = expand(values, target.shape)
        if values.ndim:  # one number is read before anything is written
            check_partial_overlap(target, values)
        target[...] = cast_array(values, array.dtype)
    bump_version(input)


@declare(found="torch and method")
def select(input: Tensor, dim: int, index: Any) -> Tensor:
    """A view at one position of a dimension.

    The result lacks `dim`, and shares the memory of `input`; `index` may be negative.

    >>> import pullback
    >>> pullback.select(pullback.tensor([[1, 2], [3, 4]]), 1, 0)
    tensor([1, 3])
    """
    return G.select(input, dim, as_int(index))


@declare(bare=True)
def method_select(input: Tensor, dim: Any = None, index: Any = None, *, axis: Any = None) -> Tensor:
    """As `select`, with `axis` for `dim`."""
    return G.select(input, the_dim("select", axis) if dim is None else dim, as_int(index))


@declare(bare=True)
def method_narrow(input: Tensor, dim: Any = None, start: Any = None, length: Any = None, *, axis: Any = None) -> Tensor:
    """As `narrow`, with `axis` for `dim`."""
    if length is None:
        raise missing_arguments("narrow", "length")
    return narrow(input, the_dim("narrow", axis) if dim is None else dim, start, length)


@declare(moves=True, found="torch and method")
def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """A view of `length` positions of a dimension, from `start` on.

    As `input[..., start : start + length]` at `dim`, but refuses what lies outside. A negative `start` counts from the end.

    >>> import pullback
    >>> pullback.narrow(pullback.arange(6), 0, 2, 3)
    tensor([2, 3, 4])
    """
    if input._array.ndim == 0:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    at = wrap_dim(dim, input._array.ndim)
    size = input._array.shape[at]
    if isinstance(start, TensorBase) and (start._array.ndim or start._array.dtype.kind not in "iu"):
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    first = as_int(start)
    if not -size <= first <= size:
        raise IndexError(f"start out of range (expected to be in range of [-{size}, {size}], but got {first})")
    first = first + size if first < 0 else first
    if first + length > size:
        raise RuntimeError(f"start ({first}) + length ({length}) exceeds dimension size ({size}).")
    return G.slice_view(input, at, first, first + length, 1)
