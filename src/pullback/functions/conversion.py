"""Out of a tensor and into other types: numbers, lists, arrays, dtypes, devices."""

from __future__ import annotations

import builtins
from typing import Any

import pullback.generated as G
from pullback.backend.array_module import is_plain, ndarray
from pullback.backend.device import CPU, device, move_array, usable_device
from pullback.backend.device_array import DeviceArray
from pullback.backend.dtype import (
    TYPE_NAME_TO_DTYPE,
    bfloat16,
    bool_,
    complex32,
    complex64,
    complex128,
    dtype,
    float16,
    float32,
    float64,
    get_default_dtype,
    int8,
    int16,
    int32,
    int64,
    scalar_type_name,
    uint8,
)  # fmt: skip
from pullback.backend.layout import strided
from pullback.backend.meta_array import empty_meta, is_meta
from pullback.backend.wrapper_array import WrapperArray
from pullback.errors import no_signature_fits
from pullback.facts import declare
from pullback.functions.copies import check_channels_last, format_name, is_contiguous
from pullback.kernels.shape import copy_to
from pullback.modes.cuts import note_cut
from pullback.modes.grad_mode import is_grad_enabled
from pullback.modes.interception import dispatch_operation, is_dispatching
from pullback.modes.switches import process
from pullback.modes.user_warnings import warn_of_lost_parts
from pullback.tensor.arguments import as_dtype, refuse_unknown
from pullback.tensor.assignment import describe_type
from pullback.tensor.foreign_arguments import PLAIN, answers, ask_foreign, is_foreign
from pullback.tensor.tensor import Tensor

_type = builtins.type
"""Python's own: a function of this module has the name."""
_DTYPE = dtype  # `type` has a parameter of this name


@declare(bare=True, without_gradient=True, found="method")
def item(input: Tensor) -> Any:
    """The value of a tensor with one element, as a Python number.

    The shape has sizes of 1 only, or none; other tensors raise. The number is a float, an int, a bool or a complex
    one.
    """
    if process.changed and is_dispatching() and input._array.size == 1:
        shown = dispatch_operation(item, (input,))
        if shown is not NotImplemented:
            return shown
    if input._requires_grad:
        note_cut("item", None, input)
    try:
        return input._array.item()
    except ValueError:
        if input._array.size == 1:
            raise
    raise RuntimeError(f"a Tensor with {input._array.size} elements cannot be converted to Scalar")


@declare(bare=True, found="method")
def tolist(input: Tensor) -> Any:
    """The values as nested lists of Python numbers.

    A tensor without dimensions gives the number itself; (2, 3) gives two lists of three numbers.
    """
    if input._requires_grad:
        note_cut("item", None, input)
    if _type(input) is not Tensor and input.layout is not strided:
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage: use to_dense() first.")
    return input._array.tolist()


def _without_array(input: Tensor) -> TypeError:
    if input.layout is strided:
        kind, remedy = "meta device type", "cpu() to copy the tensor to host memory"
    else:
        kind, remedy = input.layout.name.title().replace("_", "").removesuffix("Coo") + " layout", "to_dense()"
    return TypeError(f"can't convert {kind} tensor to numpy. Use Tensor.{remedy} first.")


@declare(bare=True, shows_memory=True, found="method")
def numpy(input: Tensor, *, force: builtins.bool = False) -> Any:
    """The array that shares this tensor's memory.

    `force` detaches, copies from other devices and resolves conjugates first; without it, a tensor that requires grad
    raises.
    """
    if isinstance(input._array, WrapperArray):
        raise RuntimeError(".numpy() is not supported for tensor subclasses: it has no memory of its own.")
    if input._requires_grad:
        if not force and is_grad_enabled():
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        note_cut("numpy", None, input)
    extra = input._extra
    if extra is not None and not force and (mirror := extra.mirror) is not None:
        bit = "conj" if mirror.conj else "neg"
        raise RuntimeError(
            f"Can't call numpy() on Tensor that has {'conjugate' if mirror.conj else 'negative'} bit set. Use "
            f"tensor.resolve_{bit}().numpy() instead."
        )
    array = input._array
    if (_type(array) is not ndarray and is_meta(array)) or (_type(input) is not Tensor and input.layout is not strided):
        raise _without_array(input)
    if array.dtype.kind == "W" or (array.itemsize == 1 and array.dtype.kind in "fV"):
        raise TypeError(f"Got unsupported ScalarType {scalar_type_name(array.dtype)}")
    if _type(array) is ndarray or not isinstance(array, DeviceArray):
        return array
    if not force:
        raise TypeError(
            f"can't convert {input.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
            "memory first."
        )
    return move_array(array, CPU)


@declare(bare=True, structure="elementwise", found="method")
def to(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The tensor in another dtype or on another device: itself if nothing changes.

    >>> import pullback
    >>> pullback.tensor([1.9]).to(pullback.int64)
    tensor([1])
    """
    if len(args) == 1 and not kwargs:
        given = args[0]
        if builtins.type(given) is dtype:
            return input if given is input.dtype else convert(input, given)
        if builtins.type(given) not in PLAIN and is_foreign(given):
            return ask_foreign(to, (input, given))
        if isinstance(given, Tensor) and given.dtype is input.dtype:
            return input
    wanted, copy, place = _parse_to(args, kwargs)
    if place is not None and place != input.device and not _is_same_place(place, input.device):
        return _move(input, place, wanted)
    order = format_name(kwargs.get("memory_format")) or "preserve_format"
    result = input if wanted is None or wanted is input.dtype else convert(input, wanted)
    if order.startswith("channels_last"):
        check_channels_last(input, order)
    if result is input and not copy and (order == "preserve_format" or is_contiguous(input, kwargs["memory_format"])):
        return input
    if result is not input and (order == "preserve_format" or is_contiguous(result, kwargs["memory_format"])):
        return result
    if result is not input and not process.changed and is_plain(result._array):
        result._array = copy_to(result._array, order)  # nobody else has it: one node, as in PyTorch
        return result
    return G.copy_to(result, order)


def convert(input: Tensor, wanted: dtype) -> Tensor:
    """The tensor in another dtype, recorded only where the result can require grad."""
    if input.dtype.is_complex and not wanted.is_complex and wanted is not bool_:
        warn_of_lost_parts()
    if wanted.is_floating_point or wanted.is_complex:
        return G.to_copy(input, wanted.numpy_dtype)
    return G.to_integer(input, wanted.numpy_dtype)


def _move(input: Tensor, place: device, wanted: dtype | None) -> Tensor:
    """The tensor on another device: "meta" takes no values and gives none."""
    if input.is_meta:
        raise NotImplementedError(
            "Cannot copy out of meta tensor; no data! Make the tensor anew with empty_like(tensor, device='cpu'), or a "
            "module with Module.to_empty(), and then fill it."
        )
    if place.type != "meta":
        moved = G.to_device(input, place, input.device)
        return moved if wanted is None or wanted is input.dtype else convert(moved, wanted)
    moved = G.alias(input) if wanted is None else convert(input, wanted)
    moved._array = empty_meta(moved._array)
    return moved


def _is_same_place(place: device, other: device) -> builtins.bool:
    """Whether two devices are one: a device without a number is the CPU, or any of its type."""
    return place.type == other.type and (place.index is None or other.index is None or place.type == "cpu")


_WORDS_OF_TO = frozenset(("dtype", "copy", "device", "other", "non_blocking", "memory_format"))


def _parse_to(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[dtype | None, builtins.bool, device | None]:
    if kwargs:
        refuse_unknown("to", kwargs, _WORDS_OF_TO)
    wanted = as_dtype(kwargs.get("dtype"))
    copy = builtins.bool(kwargs.get("copy", False))
    place = kwargs.get("device")
    flags: list[builtins.bool] = []
    for given in (*args, kwargs.get("other")):
        value = as_dtype(given) if isinstance(given, builtins.type) else given
        if isinstance(value, dtype):
            wanted = value
        elif isinstance(value, Tensor):
            wanted, place = value.dtype, value.device
        elif isinstance(value, builtins.bool):
            flags.append(value)
        elif isinstance(value, (str, device, builtins.int)):
            if place is not None:
                raise no_signature_fits("to", [v.__class__.__name__ for v in args])
            place = value
        elif value is not None:
            raise no_signature_fits("to", [v.__class__.__name__ for v in args])
    return wanted, copy or (len(flags) > 1 and flags[1]), None if place is None else usable_device(place)


@declare(bare=True, found="method")
def type(input: Tensor, dtype: Any = None, non_blocking: builtins.bool = False) -> Any:
    """The name of the tensor's type, or the tensor in another type.

    Without `dtype` a string; a dtype, or the name of a tensor type, converts.

    >>> import pullback
    >>> pullback.ones(2).type()
    'pullback.FloatTensor'
    >>> pullback.tensor([1.5]).type(pullback.int64)
    tensor([1])
    """
    if dtype is None:
        return describe_type(input)
    if isinstance(dtype, str):
        found = TYPE_NAME_TO_DTYPE.get(dtype.rpartition(".")[2])
        if found is None:
            raise ValueError(f"invalid type: '{dtype}'")
        dtype = found
    elif isinstance(dtype, builtins.type):
        dtype = _dtype_of_type(dtype)
    elif not isinstance(dtype, _DTYPE):
        raise TypeError("dtype must be a type, str, or dtype object")
    return to(input, dtype)


def _dtype_of_type(kind: Any) -> dtype:
    """The element type that a tensor type stands for; `Tensor` itself stands for the default one."""
    found = get_default_dtype() if issubclass(kind, Tensor) else getattr(kind, "dtype", None)
    if not isinstance(found, dtype):
        raise ValueError(f"invalid type: '{kind.__name__}'")
    return found


@declare(bare=True, found="method")
def type_as(input: Tensor, other: Tensor) -> Tensor:
    """The tensor in the dtype of `other`.

    The tensor itself where it has that dtype already.

    >>> import pullback
    >>> pullback.tensor([1, 2]).type_as(pullback.ones(1))
    tensor([1., 2.])
    """
    if builtins.type(other) is not Tensor and answers("type_as", "other", other):
        return ask_foreign(type_as, (input, other))
    return to(input, other.dtype)


@declare(found="torch and method")
def dequantize(input: Tensor) -> Tensor:
    """The tensor in float32: what is not quantized stands for its own numbers."""
    return to(input, float32)


@declare(bare=True)
def method_cpu(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """The tensor on the CPU."""
    return to(input, "cpu") if input.device.type != "cpu" else input


def method_cuda(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The tensor on a GPU."""
    given = args[0] if args else kwargs.get("device")
    return to(input, "cuda" if given is None else given)


def _cast(input: Tensor, wanted: dtype, memory_format: Any) -> Tensor:
    """`to`, where mostly nothing is to be done: models cast to what they have in every layer."""
    if memory_format is None:
        return input if input.dtype is wanted else convert(input, wanted)
    return to(input, wanted, memory_format=memory_format)


@declare(bare=True, structure="elementwise", found="method")
def double(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """The tensor as float64.

    The tensor itself where it is float64 already; gradients flow through a conversion.

    >>> import pullback
    >>> pullback.tensor([1, 2]).double()
    tensor([1., 2.], dtype=pullback.float64)
    """
    return _cast(input, float64, memory_format)


@declare(bare=True, structure="elementwise", found="method")
def float(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """The tensor as float32.

    The tensor itself where it is float32 already; gradients flow through a conversion.

    >>> import pullback
    >>> pullback.tensor([1, 2]).float()
    tensor([1., 2.])
    """
    return _cast(input, float32, memory_format)


@declare(bare=True, structure="elementwise", found="method")
def half(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """The tensor as float16.

    The tensor itself where it is float16 already; gradients flow through a conversion.

    >>> import pullback
    >>> pullback.tensor([1, 2]).half()
    tensor([1., 2.], dtype=pullback.float16)
    """
    return _cast(input, float16, memory_format)


@declare(structure="elementwise")
def method_bfloat16(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """The tensor as bfloat16."""
    return _cast(input, bfloat16, memory_format)


@declare(bare=True, found="method")
def long(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """The tensor as int64.

    The tensor itself where it is int64 already; fractions are cut off.

    >>> import pullback
    >>> pullback.tensor([1.5, -1.5]).long()
    tensor([ 1, -1])
    """
    return _cast(input, int64, memory_format)


@declare(bare=True, found="method")
def int(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """The tensor as int32.

    The tensor itself where it is int32 already; fractions are cut off.

    >>> import pullback
    >>> pullback.tensor([1.5, -1.5]).int()
    tensor([ 1, -1], dtype=pullback.int32)
    """
    return _cast(input, int32, memory_format)


@declare(found="method")
def short(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """The tensor as int16."""
    return _cast(input, int16, memory_format)


@declare(found="method")
def char(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """The tensor as int8."""
    return _cast(input, int8, memory_format)


@declare(found="method")
def byte(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """The tensor as uint8."""
    return _cast(input, uint8, memory_format)


@declare(found="method")
def bool(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """The tensor as bool.

    The tensor itself where it is bool already; everything but zero is True, nan too.

    >>> import pullback
    >>> pullback.tensor([0., 2.]).bool()
    tensor([False,  True])
    """
    return _cast(input, bool_, memory_format)


@declare(found="method")
def chalf(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """The tensor as complex32."""
    return _cast(input, complex32, memory_format)


@declare(found="method")
def cfloat(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """The tensor as complex64."""
    return _cast(input, complex64, memory_format)


@declare(found="method")
def cdouble(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """The tensor as complex128."""
    return _cast(input, complex128, memory_format)


@declare(found="torch and method")
def get_device(input: Tensor) -> Any:
    """The number of the device, -1 on the CPU."""
    place = input.device
    return -1 if place.type in ("cpu", "meta") else place.index


@declare(bare=True, found="torch and method")
def is_complex(input: Tensor) -> Any:
    """Whether the elements are complex.

    complex64, complex128 and complex32 are.

    >>> import pullback
    >>> pullback.is_complex(pullback.tensor(1j))
    True
    """
    return input.dtype.is_complex


@declare(bare=True, found="torch and method")
def is_floating_point(input: Tensor) -> Any:
    """Whether the elements are floating-point numbers.

    True for float16, bfloat16, float32, float64 and the 8-bit ones; complex dtypes are not.

    >>> import pullback
    >>> pullback.ones(2).is_floating_point()
    True
    """
    return input.dtype.is_floating_point


@declare(found="torch and method")
def is_signed(input: Tensor) -> Any:
    """Whether the dtype has negative numbers.

    All dtypes but bool and the unsigned integers have.

    >>> import pullback
    >>> pullback.is_signed(pullback.tensor(1, dtype=pullback.uint8))
    False
    """
    return input.dtype.is_signed
