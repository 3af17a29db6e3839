"""Entries for what PyTorch's database lacks: operators, item assignment, copy_, constructors, functions without entry.

A function here is written once against either package: the first parameter of a `build` is the package.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
import torch

import pullback

from .comparison import Measure
from .entries import DTYPES, Entry, Sample
from .families import family_of
from .own_functional import FUNCTIONAL

FLOATING = (torch.float64, torch.float32, torch.complex128)
REAL = (torch.float64, torch.float32, torch.int64)
REAL_FLOATING = (torch.float64, torch.float32)


def own_entries() -> tuple[Entry, ...]:
    """Give all of them."""
    return (*_operators(), *_assignments(), *_copies(), *_constructors(), *_functional())


def _make(shape: tuple[int, ...], dtype: Any, requires_grad: bool, low: float | None = None) -> Any:
    can_require = dtype.is_floating_point or dtype.is_complex
    return torch.testing.make_tensor(
        shape, dtype=dtype, device="cpu", low=low, high=None, requires_grad=requires_grad and can_require
    )


def _entry(
    name: str, build: Callable[[Any], Any], samples: Callable[[Any, bool], Iterable[Sample]], **more: Any
) -> Entry:
    return Entry(name, family_of(name), build(torch), lambda: build(pullback), samples, **more)


_BINARY: dict[str, tuple[Any, tuple[Any, ...], tuple[Any, ...]]] = {
    "add": (operator.add, DTYPES, FLOATING),
    "sub": (operator.sub, DTYPES, FLOATING),
    "mul": (operator.mul, DTYPES, FLOATING),
    "truediv": (operator.truediv, DTYPES, FLOATING),
    "floordiv": (operator.floordiv, REAL, ()),
    "mod": (operator.mod, REAL, REAL_FLOATING),
    "pow": (operator.pow, DTYPES, FLOATING),
    "eq": (operator.eq, DTYPES, ()),
    "ne": (operator.ne, DTYPES, ()),
    "lt": (operator.lt, REAL, ()),
    "le": (operator.le, REAL, ()),
    "gt": (operator.gt, REAL, ()),
    "ge": (operator.ge, REAL, ()),
    "and": (operator.and_, (torch.int64,), ()),
    "or": (operator.or_, (torch.int64,), ()),
    "xor": (operator.xor, (torch.int64,), ()),
    "lshift": (operator.lshift, (torch.int64,), ()),
    "rshift": (operator.rshift, (torch.int64,), ()),
    "iadd": (operator.iadd, DTYPES, FLOATING),
    "isub": (operator.isub, DTYPES, FLOATING),
    "imul": (operator.imul, DTYPES, FLOATING),
    "itruediv": (operator.itruediv, FLOATING, FLOATING),
    "ifloordiv": (operator.ifloordiv, REAL, ()),
    "imod": (operator.imod, REAL, REAL_FLOATING),
    "ipow": (operator.ipow, FLOATING, FLOATING),
    "iand": (operator.iand, (torch.int64,), ()),
    "ior": (operator.ior, (torch.int64,), ()),
    "ixor": (operator.ixor, (torch.int64,), ()),
}

_UNARY: dict[str, tuple[Any, tuple[Any, ...], tuple[Any, ...]]] = {
    "neg": (operator.neg, DTYPES, FLOATING),
    "pos": (operator.pos, DTYPES, FLOATING),
    "abs": (operator.abs, DTYPES, FLOATING),
    "invert": (operator.invert, (torch.int64,), ()),
}


def _operators() -> Iterable[Entry]:
    for name, (function, dtypes, differentiable) in _BINARY.items():
        samples = partial(_binary_samples, name.startswith("i") and name != "invert")
        modified = _on_a_copy(function) if name.startswith("i") else function
        yield _entry(
            f"operator.{name}",
            _same(modified),
            samples,
            dtypes=dtypes,
            differentiable=differentiable,
            measure=Measure(),
        )
    for name, (function, dtypes, differentiable) in _UNARY.items():
        yield _entry(f"operator.{name}", _same(function), _unary_samples, dtypes=dtypes, differentiable=differentiable)
    yield _entry("operator.matmul", _same(operator.matmul), _matmul_samples, differentiable=FLOATING)
    for name, number in {"bool": bool, "int": int, "float": float, "complex": complex, "len": len}.items():
        yield _entry(f"operator.{name}", _same(number), _number_samples, dtypes=REAL)
    yield _entry("operator.contains", _same(lambda x: 3 in x), _unary_samples)
    yield _entry("operator.iter", _same(list), _unary_samples, differentiable=FLOATING)
    yield _entry("operator.index", _same(lambda x: [10, 20, 30][x]), _position_samples, dtypes=(torch.int64,))


def _same(function: Any) -> Callable[[Any], Any]:
    return lambda package: function


def _on_a_copy(function: Any) -> Any:
    return lambda x, y: function(x.clone(), y)


def _binary_samples(in_place: bool, dtype: Any, requires_grad: bool) -> Iterable[Sample]:
    torch.manual_seed(1)
    make = partial(_make, dtype=dtype, requires_grad=requires_grad, low=1 if not dtype.is_complex else None)
    yield Sample((make((2, 3)), make((2, 3))))
    yield Sample((make((2, 3)), make((3,))))
    yield Sample((make((2, 3)), make(())))
    yield Sample((make((0, 3)), make((3,))))
    yield Sample((make(()), 2))
    yield Sample((make((3,)), 2))
    if not in_place:
        yield Sample((make((2, 1)), make((3,))))
        yield Sample((3, make((2, 3))))
    if dtype.is_floating_point or dtype.is_complex:
        yield Sample((make((3,)), 2.5))
        yield Sample((make((3,)), _make((3,), torch.int64, False, 1)))
        if not in_place:
            yield Sample((2.5, make((2, 3))))
            yield Sample((make((3,)), _make((), torch.float64, False, 1)))


def _unary_samples(dtype: Any, requires_grad: bool) -> Iterable[Sample]:
    torch.manual_seed(1)
    for shape in ((2, 3), (4,), (0, 2)):
        yield Sample((_make(shape, dtype, requires_grad),))


def _matmul_samples(dtype: Any, requires_grad: bool) -> Iterable[Sample]:
    torch.manual_seed(1)
    for left, right in (((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4))):
        yield Sample((_make(left, dtype, requires_grad), _make(right, dtype, requires_grad)))


def _number_samples(dtype: Any, requires_grad: bool) -> Iterable[Sample]:
    for value in ([3], [0], [-2]):
        yield Sample((torch.tensor(value).to(dtype),))


def _position_samples(dtype: Any, requires_grad: bool) -> Iterable[Sample]:
    yield Sample((torch.tensor(1),))
    yield Sample((torch.tensor([2]),))


def _indices() -> dict[str, Any]:
    return {
        "integer": 1,
        "negative integer": -1,
        "slice": slice(1, None),
        "strided slice": slice(None, None, 2),
        "ellipsis": (..., 0),
        "none": (None, 1),
        "tuple": (1, 2),
        "integer and slice": (0, slice(1, 3)),
        "whole": slice(None),
        "list": [0, 2],
        "index tensor": torch.tensor([2, 0]),
        "matrix of indices": torch.tensor([[0, 2], [1, 1]]),
        "two index tensors": (torch.tensor([0, 1]), torch.tensor([2, 3])),
        "index tensor and slice": (torch.tensor([0, 2]), slice(1, 3)),
        "slice and index tensor": (slice(None), torch.tensor([0, 3])),
        "mask": torch.tensor([[True, False, False, True]] * 3),
        "row mask": torch.tensor([True, False, True]),
        "empty mask": torch.zeros(3, 4, dtype=torch.bool),
        "boolean": True,
    }


def _assign(target: Any, index: Any, value: Any) -> Any:
    target = target.clone()
    target[index] = value
    return target


def _assignments() -> Iterable[Entry]:
    for name, index in _indices().items():
        samples = partial(_assignment_samples, index)
        yield _entry(f"setitem.{name}", _same(_assign), samples, differentiable=FLOATING)
        yield _entry(
            f"setitem.getitem {name}",
            _same(operator.getitem),
            partial(_reading_samples, index),
            differentiable=FLOATING,
        )


def _assignment_samples(index: Any, dtype: Any, requires_grad: bool) -> Iterable[Sample]:
    torch.manual_seed(1)
    target = _make((3, 4), dtype, requires_grad)
    shape = tuple(target.detach()[index].shape)
    yield Sample((target, index, 5))
    yield Sample((target, index, _make((), dtype, requires_grad)))
    yield Sample((target, index, _make(shape, dtype, requires_grad)))
    yield Sample((_make((4, 3), dtype, False).t(), index, _make(shape, dtype, requires_grad)))
    yield Sample((target, index, _make(shape, torch.int64, False)))


def _reading_samples(index: Any, dtype: Any, requires_grad: bool) -> Iterable[Sample]:
    torch.manual_seed(1)
    yield Sample((_make((3, 4), dtype, requires_grad), index))
    yield Sample(
        (_make((3, 4, 2), dtype, requires_grad).detach().requires_grad_(requires_grad and dtype != torch.int64), index)
    )


def _copies() -> Iterable[Entry]:
    yield _entry("copy_", _same(lambda x, y: x.clone().copy_(y)), _copy_samples, differentiable=FLOATING)
    yield _entry("type_as", lambda package: package.Tensor.type_as, _copy_samples, differentiable=FLOATING)
    yield _entry("to other", lambda package: package.Tensor.to, _copy_samples, differentiable=FLOATING)
    yield _entry("detach", _same(lambda x: x.detach()), _unary_samples)
    yield _entry("detach_", _same(lambda x: x.detach_()), _unary_samples)
    yield _entry("set_", _same(lambda x: x.clone().set_(x)), _unary_samples)
    yield _entry("tolist", lambda package: package.Tensor.tolist, _unary_samples)
    yield _entry("numpy", _same(lambda x: x.numpy().tolist()), _unary_samples)


def _copy_samples(dtype: Any, requires_grad: bool) -> Iterable[Sample]:
    torch.manual_seed(1)
    target = _make((2, 3), dtype, requires_grad)
    yield Sample((target, _make((2, 3), dtype, requires_grad)))
    yield Sample((target, _make((3,), dtype, requires_grad)))
    yield Sample((target, _make((), torch.int64, False)))
    if not dtype.is_complex:
        yield Sample((target, _make((2, 3), torch.float32, requires_grad)))


_CONSTRUCTORS: dict[str, tuple[tuple[tuple[Any, ...], dict[str, Any]], ...]] = {
    "tensor": (
        (([1, 2],), {}),
        (([1.5, 2],), {}),
        (([[True, False]],), {}),
        ((1 + 2j,), {}),
        ((3,), {"dtype": torch.float64}),
        (([],), {}),
        ((np.arange(3.0),), {}),
        ((np.int32(4),), {}),
        (([np.float64(1), 2],), {}),
    ),
    "as_tensor": (((np.arange(3),), {}), (([1, 2.0],), {}), ((2,), {"dtype": torch.float32})),
    "asarray": (((np.arange(3),), {}), (([1, 2.0],), {}), ((2,), {"dtype": torch.float32})),
    "from_numpy": (((np.arange(6.0).reshape(2, 3),), {}), ((np.array([True]),), {})),
    "zeros": (((2, 3), {}), (((2, 3),), {"dtype": torch.int64}), ((), {"size": (2,)})),
    "ones": (((2, 3), {}), (((2, 3),), {"dtype": torch.bool})),
    "full": ((((2, 3), 1.5), {}), (((2,), 3), {}), (((2,), True), {}), (((), 1j), {})),
    "arange": (((5,), {}), ((1, 4), {}), ((1.0, 2.0, 0.25), {}), ((5, 0, -2), {}), ((3,), {"dtype": torch.float32})),
    "range": (((1, 4), {}), ((0, 1, 0.25), {})),
    "linspace": (((0, 1, 5), {}), ((3, -3, 4), {"dtype": torch.float64}), ((0, 10, 1), {})),
    "logspace": (((0, 2, 3), {}), ((0, 2, 3, 2), {"dtype": torch.float64})),
    "eye": (((3,), {}), ((2, 3), {"dtype": torch.int64})),
    "tril_indices": (((3, 4), {}), ((3, 3, 1), {})),
    "triu_indices": (((3, 4), {}), ((3, 3, -1), {})),
    "hann_window": (((5,), {}), ((5,), {"periodic": False, "dtype": torch.float64})),
    "hamming_window": (((5,), {}), ((5, False, 0.6, 0.4), {})),
    "blackman_window": (((5,), {}), ((1,), {})),
    "bartlett_window": (((5,), {}), ((6, False), {})),
    "kaiser_window": (((5,), {}), ((6, False, 8.0), {})),
    "rand": (((2, 3), {}), (((20,),), {"dtype": torch.float64})),
    "randn": (((2, 3), {}), (((20,),), {"dtype": torch.float64}), ((5,), {"dtype": torch.complex128})),
    "randint": (((10, (2, 3)), {}), ((3, 7, (20,)), {})),
    "randperm": (((10,), {}), ((1,), {}), ((0,), {})),
    "frombuffer": (
        ((bytearray(8),), {"dtype": torch.int32}),
        ((bytearray(range(16)),), {"dtype": torch.int16, "offset": 4}),
    ),
    "promote_types": (((torch.int64, torch.float32), {}), ((torch.uint8, torch.int8), {})),
    "result_type": (((1, 2.0), {}), ((True, 2), {})),
    "can_cast": (((torch.float64, torch.int32), {}), ((torch.int32, torch.float16), {})),
}


def _constructors() -> Iterable[Entry]:
    for name, calls in _CONSTRUCTORS.items():
        samples = [Sample(arguments, options) for arguments, options in calls]
        yield _entry(
            f"constructor.{name}", operator.attrgetter(name), partial(_given, samples), dtypes=(torch.float32,)
        )


def _given(samples: list[Sample], dtype: Any, requires_grad: bool) -> Iterable[Sample]:
    return samples


def _functional() -> Iterable[Entry]:
    for name, draw in FUNCTIONAL.items():
        dotted = "nn.functional." + name
        samples = partial(_functional_samples, draw)
        build = operator.attrgetter(dotted)
        yield _entry(dotted, build, samples, dtypes=REAL_FLOATING, differentiable=REAL_FLOATING)


def _functional_samples(draw: Callable[..., Iterable[Sample]], dtype: Any, requires_grad: bool) -> Iterable[Sample]:
    torch.manual_seed(1)
    return draw(partial(_make, dtype=dtype, requires_grad=requires_grad))
