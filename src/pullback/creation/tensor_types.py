"""The old names of tensors by element type: `FloatTensor([1, 2])`, `isinstance(x, LongTensor)`, and `Tensor(2, 3)`."""

from __future__ import annotations

from typing import Any

import pullback.generated as G
from pullback.backend.array_module import is_array
from pullback.backend.dtype import (
    bfloat16,
    bool_,
    default_float,
    float16,
    float32,
    float64,
    from_numpy_dtype,
    int8,
    int16,
    int32,
    int64,
    uint8,
)  # fmt: skip
from pullback.backend.dtype import dtype as Dtype
from pullback.creation.filled import empty
from pullback.creation.from_values import plain_values
from pullback.creation.options import wrap
from pullback.kernels.creation import array_from_values
from pullback.modes.switches import switches
from pullback.tensor.arguments import refuse_unknown
from pullback.tensor.size import Size
from pullback.tensor.tensor import Tensor, _LegacyConstructor
from pullback.tensor.tensor_base import TensorBase, copy_state


class TensorType(type):
    """The type of a name like `FloatTensor`: it answers `isinstance` by the element type."""

    dtype: Dtype

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return _made(args, kwargs, cls.dtype)


def _made(args: tuple[Any, ...], kwargs: dict[str, Any], dtype: Dtype, of_any_dtype: bool = False) -> Tensor:
    """Values for one sequence or array, a view of one tensor, uninitialised memory for sizes."""
    refuse_unknown("new", kwargs, ("data", "device", "size"))
    if "data" in kwargs:
        args = (kwargs["data"],)
    if len(args) != 1 or type(args[0]) is int or isinstance(args[0], Size):
        return empty(*args, dtype=dtype) if args else empty(0, dtype=dtype)
    data = args[0]
    if isinstance(data, Tensor):
        if data.dtype is not dtype and not of_any_dtype:
            raise TypeError(f"expected a tensor of dtype {dtype} (got {data.dtype}): convert it with .to({dtype})")
        return _alias(data)
    if not is_array(data) and not hasattr(data, "__len__"):
        raise TypeError(f"new(): data must be a sequence (got {type(data).__name__})")
    values = plain_values(data)
    if not is_array(values) and not len(values):
        return empty(0, dtype=dtype)
    return wrap(array_from_values(values, None).astype(dtype.numpy_dtype))


def _alias(data: Tensor) -> Tensor:
    """The same tensor, one node further in the graph; subclasses are not asked."""
    former = switches.overrides_disabled
    switches.overrides_disabled = True
    try:
        return G.alias(data)
    finally:
        switches.overrides_disabled = former


def _named(name: str, dtype: Dtype) -> Any:
    return TensorType(name, (), {"dtype": dtype, "__doc__": f"Tensors of dtype {dtype.name}."})


FloatTensor = _named("FloatTensor", float32)
DoubleTensor = _named("DoubleTensor", float64)
HalfTensor = _named("HalfTensor", float16)
BFloat16Tensor = _named("BFloat16Tensor", bfloat16)
ByteTensor = _named("ByteTensor", uint8)
CharTensor = _named("CharTensor", int8)
ShortTensor = _named("ShortTensor", int16)
IntTensor = _named("IntTensor", int32)
LongTensor = _named("LongTensor", int64)
BoolTensor = _named("BoolTensor", bool_)


def _legacy(cls: type, *args: Any, **kwargs: Any) -> Tensor:
    """`Tensor(2, 3)` is uninitialised, `Tensor([1, 2])` holds values, both in the default dtype."""
    result = _made(args, kwargs, from_numpy_dtype(default_float()), of_any_dtype=True)
    if type(result) is cls:
        return result
    made: Tensor = TensorBase.__new__(cls)
    copy_state(result, made)
    return made


_LegacyConstructor.make = staticmethod(_legacy)  # type: ignore[method-assign]  # the hook tensor.py declares
