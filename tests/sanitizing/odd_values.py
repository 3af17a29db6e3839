"""Makes odd arguments of ordinary ones: arrays as memory allows them to be, and numbers that no size can be."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:  # the package is imported later, with a recorder in the place of its kernels
    from pullback.typing import Array

NUMBERS = (0, 1, -1, 2, 3, 7, -2, 64, 65, 127, 1000, 2**31 - 1, 2**31, -(2**31), 2**60, 2**61 + 1, 2**62, 2**63 - 1, -(2**63),
           2**63, 2**64, -(2**70))  # fmt: skip
OTHERS: tuple[Any, ...] = (
    None, True, False, 0.0, -1.5, float("inf"), float("nan"), 1e308, 1j, "", "none", (), [], b"", (2**60,) * 3, (1,) * 70,
)  # fmt: skip
DTYPES = ("?", "b", "u1", "i2", "i4", "i8", "u8", "f2", "f4", "f8", "c8", "c16", "O", "S3", "M8[s]")


def _resized(array: Array, sizes: list[int]) -> Array:
    """Elements of `array`, repeated as often as needed, in another shape."""
    count = int(np.prod(sizes))
    if not count or not array.size:
        return np.zeros(sizes, array.dtype)
    return np.resize(array.reshape(-1), count).reshape(sizes)


def _empty(array: Array, rng: random.Random) -> Array:
    sizes = list(array.shape) or [1]
    sizes[rng.randrange(len(sizes))] = 0
    return np.zeros(sizes, array.dtype)


def _one_element(array: Array, rng: random.Random) -> Array:
    return _resized(array, [1] * array.ndim)


def _number(array: Array, rng: random.Random) -> Array:
    return _resized(array, [])


def _zero_strides(array: Array, rng: random.Random) -> Array:
    """As expand makes them: all elements of some dimensions, or of all, lie in one place."""
    steps = [0 if rng.random() < 0.6 else step for step in array.strides]
    return np.lib.stride_tricks.as_strided(array, array.shape, steps, writeable=rng.random() < 0.5)


def _negative_strides(array: Array, rng: random.Random) -> Array:
    return array[(*[slice(None, None, rng.choice([-1, 1])) for _ in array.shape], ...)]


def _huge_strides(array: Array, rng: random.Random) -> Array:
    """Steps that are never taken, since the dimension has one element, may be any number."""
    sizes = [size if rng.random() < 0.4 else 1 for size in array.shape]
    made = _resized(array, sizes)
    steps = [
        step if size > 1 else rng.choice(NUMBERS[:20]) % 2**62 for size, step in zip(sizes, made.strides, strict=True)
    ]
    return np.lib.stride_tricks.as_strided(made, sizes, steps)


def _spread(array: Array, rng: random.Random) -> Array:
    """Every second or third element of a larger array."""
    step = rng.choice([2, 3])
    large = np.zeros([size * step for size in array.shape], array.dtype)
    part = large[(*[slice(rng.randrange(step), None, step) for _ in array.shape], ...)]
    part[...] = array
    return part


def _misaligned(array: Array, rng: random.Random) -> Array:
    memory = np.zeros(array.nbytes + 8, "u1")
    shift = rng.randrange(1, 8)
    made: Array = memory[shift : shift + array.nbytes].view(array.dtype).reshape(array.shape)
    made[...] = array
    return made


def _swapped(array: Array, rng: random.Random) -> Array:
    return array.astype(array.dtype.newbyteorder())


def _read_only(array: Array, rng: random.Random) -> Array:
    made = array.copy()
    made.flags.writeable = False
    return made


def _overlapping(array: Array, rng: random.Random) -> Array:
    """Windows on one row that overlap."""
    if array.size < 2 or array.ndim < 1:
        return array
    row = np.ascontiguousarray(array).reshape(-1)
    sizes, item = list(array.shape), array.itemsize
    last = min(sizes[-1], row.size)
    steps, room = [item], row.size - last
    for position in range(len(sizes) - 2, -1, -1):
        sizes[position] = min(sizes[position], room + 1)
        room -= sizes[position] - 1
        steps.insert(0, item)
    sizes[-1] = last
    return np.lib.stride_tricks.as_strided(row, sizes, steps)


def _by_columns(array: Array, rng: random.Random) -> Array:
    return np.asfortranarray(array)


def _permuted(array: Array, rng: random.Random) -> Array:
    dims = list(range(array.ndim))
    rng.shuffle(dims)
    return array.transpose(dims)


def _other_dtype(array: Array, rng: random.Random) -> Array:
    with np.errstate(all="ignore"):
        return array.astype(rng.choice(DTYPES))


def _other_shape(array: Array, rng: random.Random) -> Array:
    sizes = list(array.shape)
    for _ in range(rng.randint(1, 2)):
        kind = rng.random()
        if kind < 0.25:
            sizes.insert(rng.randint(0, len(sizes)), rng.choice([1, 1, 2, 3]))
        elif kind < 0.5 and sizes:
            sizes.pop(rng.randrange(len(sizes)))
        elif sizes:
            sizes[rng.randrange(len(sizes))] = rng.choice([0, 1, 2, 3, 4, 5, 8, 9, 17, 33])
    return _resized(array, sizes)


def _many_dims(array: Array, rng: random.Random) -> Array:
    return array.reshape((1,) * (rng.choice([9, 33, 64]) - array.ndim) + array.shape)


def _odd_values(array: Array, rng: random.Random) -> Array:
    """Positions that do not exist; numbers that are none."""
    made = array.copy()
    flat = made.reshape(-1)
    for _ in range(rng.randint(1, 3)):
        if not flat.size:
            break
        place = rng.randrange(flat.size)
        if made.dtype.kind in "iu":
            info = np.iinfo(made.dtype)
            flat[place] = min(max(rng.choice(NUMBERS), int(info.min)), int(info.max))
        elif made.dtype.kind == "f":
            flat[place] = rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, float(np.finfo(made.dtype).max), 1e-44])
    return made


class _Subclass(np.ndarray[Any, Any]):
    pass


def _of_subclass(array: Array, rng: random.Random) -> Array:
    return array.view(_Subclass)


ARRAYS: tuple[Callable[[Array, random.Random], Array], ...] = (
    _empty, _one_element, _number, _zero_strides, _negative_strides, _huge_strides, _spread, _misaligned, _swapped,
    _read_only, _overlapping, _by_columns, _permuted, _other_dtype, _other_shape, _other_shape, _many_dims, _odd_values,
    _odd_values, _of_subclass,
)  # fmt: skip


def odd_array(array: Array, rng: random.Random) -> Array:
    """The array, odd in one or two ways, as far as it can be."""
    for _ in range(rng.choice([1, 1, 2])):
        try:
            array = np.asanyarray(rng.choice(ARRAYS)(array, rng))
        except (TypeError, ValueError, OverflowError, MemoryError, RuntimeError):
            continue
    return array


def odd_call(
    args: tuple[Any, ...], options: dict[str, Any], rng: random.Random
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call, one or several of them odd; now and then one too many, one too few, or by another name."""
    values, names = [*args, *options.values()], list(options)
    share = rng.choice([0.3, 0.6, 1.0]) if len(values) > 1 else 1.0
    values = [_odd(value, rng) if rng.random() < share else value for value in values]
    arrays = [value for value in values if isinstance(value, np.ndarray)]
    if len(arrays) > 1 and rng.random() < 0.15:  # the same memory twice, once from its second element on
        first = rng.choice(arrays)
        place = rng.choice([i for i, value in enumerate(values) if isinstance(value, np.ndarray)])
        values[place] = first if rng.random() < 0.5 or first.ndim == 0 else first[1:]
    if any(array.dtype.kind == "V" for array in arrays):  # ml_dtypes ends the process when it makes a number of a text
        values = [0 if isinstance(value, str | bytes) else value for value in values]
    given = len(args)
    if rng.random() < 0.04:
        values, given = values[: max(given - 1, 0)], max(given - 1, 0)
        names = []
    elif rng.random() < 0.02:
        return (*values[:given], rng.choice(OTHERS)), dict(zip(names, values[given:], strict=True))
    return tuple(values[:given]), dict(zip(names, values[given:], strict=False))


def _odd(value: Any, rng: random.Random) -> Any:
    if isinstance(value, np.ndarray):
        return odd_array(value, rng) if rng.random() < 0.97 else rng.choice(OTHERS)
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return _odd_sequence(list(value), type(value), rng)
    if rng.random() < 0.15:
        return rng.choice(OTHERS)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice(NUMBERS) if rng.random() < 0.8 else value + rng.choice([-1, 1])
    if isinstance(value, float):
        return rng.choice([0.0, -0.0, -1.0, 1e308, float("inf"), float("nan"), 1, 2**70])
    return value


def _odd_sequence(values: list[Any], kind: type, rng: random.Random) -> Any:
    way = rng.random()
    if way < 0.1:
        values = values[: rng.randint(0, len(values))]
    elif way < 0.2 and values:
        values = [*values, rng.choice(values)]
    elif way < 0.23:
        values = values * rng.choice([33, 65])
    elif values:
        place = rng.randrange(len(values))
        values[place] = _odd(values[place], rng)
    return (kind if rng.random() < 0.95 else rng.choice([list, tuple]))(values)
