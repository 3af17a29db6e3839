"""Normalising what users pass to operations: tensors, numbers, dimensions, shapes, dtypes."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Collection, Sequence
from itertools import combinations, pairwise
from typing import Any

from pullback.backend.array_module import as_array, is_array, is_number
from pullback.backend.dtype import (
    complex128,
    default_float,
    dtype,
    float64,
    from_numpy_dtype,
    is_float_or_complex,
    number_as,
    number_dtype,
    result_dtype,
    to_dtype,
)  # fmt: skip
from pullback.errors import not_a_tensor, refused_call
from pullback.facts import fact_of
from pullback.modes.switches import switches
from pullback.tensor.dims import wrap_dim
from pullback.tensor.tensor import Tensor, TensorBase, new_tensor
from pullback.typing import Array, Dims, DType, Shape


def as_tensor_argument(function: str, name: str, position: int, value: Any, beside: Any = None) -> Tensor:
    """Turn a number into a tensor where PyTorch allows it; raise PyTorch's error for anything else.

    A number does not widen a 0-dim tensor `beside` it, as it would if it were a 0-dim tensor of its own dtype.
    """
    if is_number(value) and fact_of(function, "number_first"):
        value = plain_number(value)
        keeps = isinstance(beside, TensorBase) and beside._array.ndim == 0 and type(value) is not bool
        if keeps and (function != "div" or is_float_or_complex(beside._array.dtype)):  # integers are divided as floats
            return _as_beside(value, beside)
        return new_tensor(as_array(number_as(value, number_dtype(value))))
    raise not_a_tensor(function, name, position, value)


def the_dim(function: str, axis: Any) -> Any:
    """Return the dimension that a function must be given: not under PyTorch's name, so perhaps under NumPy's."""
    if axis is None:
        raise TypeError(f'{function}() missing 1 required positional arguments: "dim"')
    return axis


def missing_arguments(function: str, name: str) -> TypeError:
    """Make the error about an argument that was not given, in PyTorch's words."""
    return TypeError(f'{function}() missing 1 required positional arguments: "{name}"')


NUMBERS = frozenset((int, float, bool, complex))


def refuse_unknown(function: str, named: Collection[str], known: Collection[str]) -> None:
    """Refuse a keyword that a function of any keywords does not know."""
    for name in named:
        if name not in known:
            raise TypeError(f"{function}() got an unexpected keyword argument '{name}'")


def plain_number(value: Any) -> Any:
    """Return the Python number in a NumPy number or in a 0-dim tensor that needs no gradient; other things as they are."""
    if isinstance(value, TensorBase):
        is_plain = value._array.ndim == 0 and not value._requires_grad and not switches.interceptors
        return value._array.item() if is_plain else value
    return value.item() if is_number(value) and hasattr(value, "item") else value


def plain_float(value: Any) -> Any:
    """As `plain_number`; what cannot be a number is refused, since NumPy takes None for NaN and broadcasts lists."""
    if not isinstance(value, TensorBase) and not is_number(value):
        raise refused_call(f"argument must be Number, not {type(value).__name__}")
    return plain_number(value)


def plain_int(value: Any) -> Any:
    """As `plain_number`, of integers: NumPy takes some fractions for them."""
    return plain_number(value) if isinstance(value, TensorBase) else as_int(value)


def with_keywords(function: Callable[..., Any], **names: str) -> Any:
    """The function, which takes arguments under other names too: `with_keywords(f, input="A")` takes `input=` for `A=`."""

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            kwargs = {names.get(name, name): value for name, value in kwargs.items()}
        return function(*args, **kwargs)

    return called


def number_beside(value: Any, other: Any) -> Any:
    """Turn a number in a tensor's place into a 0-dim tensor of the dtype that it promotes to beside `other`."""
    if is_number(value) and isinstance(other, TensorBase):
        return _as_beside(value.item() if hasattr(value, "item") else value, other)
    return value


def _as_beside(number: Any, other: Any) -> Tensor:
    return new_tensor(as_array(number_as(number, result_dtype((number, other._array)))))


def as_number_argument(function: str, name: str, value: Any) -> Any:
    """A number argument as a Python number; foreign objects are refused."""
    if type(value) in (bool, int, float, complex):
        return value
    if is_number(value):  # NumPy's float64 is a Python float too
        return value.item() if hasattr(value, "item") else value
    raise not_a_tensor(function, name, 2, value)


def as_tensor_list(function: str, name: str, position: int, values: Any) -> Sequence[Tensor]:
    """A tuple or list of tensors."""
    if isinstance(values, TensorBase) or not isinstance(values, (list, tuple)):
        raise TypeError(
            f"{function}(): argument '{name}' (position {position}) must be tuple of Tensors, not {type(values).__name__}"
        )
    if not values:
        raise RuntimeError(f"{function}(): expected a non-empty list of Tensors")
    for value in values:
        if not isinstance(value, TensorBase):
            index = next(i for i, other in enumerate(values) if other is value)
            raise TypeError(
                f"expected Tensor as element {index} in argument {position - 1}, but got {type(value).__name__}"
            )
    return values


def wrap_dims(dims: Any, ndim: int) -> Dims:
    """Dimensions as a tuple counted from the front, or None for all; each may be named once."""
    if dims is None:
        return None
    if not isinstance(dims, (tuple, list)):
        return (wrap_dim(as_int(dims), ndim),)
    wrapped = tuple([wrap_dim(as_int(d), ndim) for d in dims])
    if len(set(wrapped)) != len(wrapped):
        repeated = next(d for d in wrapped if wrapped.count(d) > 1)
        raise RuntimeError(f"dim {repeated} appears multiple times in the list of dims")
    return wrapped


def as_int(value: Any) -> int:
    """A Python int from anything that is an integer."""
    if type(value) is int:
        return value
    if isinstance(value, TensorBase) and value._array.ndim == 0:
        return int(value._array)
    try:
        return operator.index(value)
    except TypeError as error:
        raise refused_call(f"argument must be int, not {type(value).__name__}: {error}") from None


def as_shape(size: Any) -> Shape:
    """A tuple of ints from an int, a tuple, a list or a Size."""
    if type(size) is tuple:
        for n in size:
            if type(n) is not int:
                break
        else:
            return size
    if isinstance(size, (tuple, list)):
        return tuple([as_int(n) for n in size])
    try:
        return (as_int(size),)
    except TypeError as error:
        raise refused_call(f"argument must be tuple of ints, not {type(size).__name__}: {error}") from None


PYTHON_TYPES = (bool, int, float, complex)
"""Types that stand for dtypes: bool, int64, float64 and complex128."""


def as_numpy_dtype(value: Any) -> Any:
    """The NumPy dtype of a public dtype; None stays None."""
    if value is None:
        return None
    if isinstance(value, dtype):
        return value.numpy_dtype
    if value is float or value is complex:
        return float64.numpy_dtype if value is float else complex128.numpy_dtype
    if value is int or value is bool:
        return number_dtype(value(0))
    if hasattr(value, "kind") and hasattr(value, "itemsize"):
        return value
    raise TypeError(f"argument 'dtype' must be a dtype, not {type(value).__name__}")


def as_dtype(value: Any) -> Any:
    """Return the public dtype, also of one of Python's own types; anything else stays as it is."""
    return from_numpy_dtype(as_numpy_dtype(value)) if value in PYTHON_TYPES else value


def promote_list(arrays: Sequence[Array]) -> list[Array]:
    """Arrays of one list argument in their common dtype."""
    first = arrays[0].dtype
    for array in arrays:
        if array.dtype is not first:
            common = result_dtype(arrays)
            return [to_dtype(a, common) for a in arrays]
    return list(arrays)


def promote_many(*operands: Any) -> tuple[list[Any], bool]:
    """Operands (arrays, numbers or None) in their common dtype, and whether one was changed."""
    if _are_alike(operands):
        return list(operands), False
    present = [o for o in operands if o is not None]
    common = result_dtype(present)
    return _cast_all(operands, common)


def promote_many_to_float(*operands: Any) -> tuple[list[Any], bool]:
    """As promote_many, then integers become the default floating dtype."""
    if _are_alike(operands) and operands[0].dtype.kind == "f":
        return list(operands), False
    common = result_dtype([o for o in operands if o is not None])
    return _cast_all(operands, common if is_float_or_complex(common) else default_float())


def _are_alike(operands: Sequence[Any]) -> bool:
    """Whether all are arrays of one dtype, so that nothing has to be promoted."""
    first = operands[0].dtype if is_array(operands[0]) else None
    others = [o for o in operands if not is_array(o) or o.dtype is not first]  # a list costs less than a generator
    return not others


def _cast_all(operands: Sequence[Any], common: DType) -> tuple[list[Any], bool]:
    changed = any(is_array(o) and o.dtype != common for o in operands)
    return [None if o is None else to_dtype(o, common) for o in operands], changed


def shapes_differ(error: ValueError, *operands: Any) -> Exception:
    """Turn an error about operands that do not broadcast into PyTorch's words; any other error stays as it is."""
    return do_not_broadcast([o.shape for o in operands if is_array(o)]) or error


def do_not_broadcast(shapes: Sequence[Shape]) -> RuntimeError | None:
    """PyTorch's words for the first two among the shapes, neighbours before others, that do not broadcast, or None."""
    for first, second in (*pairwise(shapes), *combinations(shapes, 2)):
        ndim = max(len(first), len(second))
        for back in range(1, min(len(first), len(second)) + 1):
            a, b = first[-back], second[-back]
            if a != b and a != 1 and b != 1:
                return RuntimeError(
                    f"The size of tensor a ({a}) must match the size of tensor b ({b}) at non-singleton dimension "
                    f"{ndim - back}: shapes {list(first)} and {list(second)} do not broadcast."
                )
    return None
