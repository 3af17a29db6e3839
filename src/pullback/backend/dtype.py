"""The public dtypes and PyTorch's type promotion: the one place where either is decided.

NumPy's promotion is never relied on between two arrays: int64 with float32 is float32 here, a 0-dim tensor does not
widen a dimensioned one of its category, and a Python number widens nothing within its category.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.backend.halves import FLOAT32, cast_half
from pullback.backend.naming import display_namespace
from pullback.native import silent
from pullback.typing import Array, DType, Scalar

_BOOL, _INT, _FLOAT, _COMPLEX = range(4)


class dtype:
    """The type of a tensor's elements, such as `pullback.float32`.

    >>> import pullback
    >>> pullback.float32.is_floating_point, pullback.int64.itemsize
    (True, 8)
    """

    __slots__ = ("_numpy", "alias", "category", "name")

    def __init__(self, name: str, numpy_dtype: DType | None, category: int, alias: str = "") -> None:
        self.name = name
        self._numpy = numpy_dtype
        self.category = category
        self.alias = alias

    @property
    def numpy_dtype(self) -> DType:
        if self._numpy is None:
            self._numpy = _numpy_extension(self)
        return self._numpy

    @property
    def is_floating_point(self) -> bool:
        return self.category == _FLOAT

    @property
    def is_complex(self) -> bool:
        return self.category == _COMPLEX

    @property
    def is_signed(self) -> bool:
        return self.name not in ("bool", "float8_e8m0fnu") and not self.name.startswith("uint")

    @property
    def itemsize(self) -> int:
        return _EXTENSIONS[self.name] if self._numpy is None else self._numpy.itemsize

    def to_real(self) -> dtype:
        return from_numpy_dtype(real_of(self.numpy_dtype))

    def to_complex(self) -> dtype:
        return from_numpy_dtype(complex_of(self.numpy_dtype))

    def __repr__(self) -> str:
        return f"{display_namespace()}.{self.name}"

    def __reduce__(self) -> str:
        return "bool_" if self.name == "bool" else self.name  # the name of the constant in this module


# Dtypes that NumPy has from another package only, with their sizes in bytes. Importing that takes as long as a fifth of
# pullback, so it waits until one of them is used.
_EXTENSIONS = {
    "bfloat16": 2, "complex32": 4, "float8_e4m3fn": 1, "float8_e4m3fnuz": 1, "float8_e5m2": 1, "float8_e5m2fnuz": 1,
    "float8_e8m0fnu": 1,
}  # fmt: skip


# Of each of these that is real: resolution, step above one, greatest, least and least normal number.
_LIMITS = {
    "bfloat16": (0.01, 2.0**-7, 2.0**128 - 2.0**120, 2.0**120 - 2.0**128, 2.0**-126),
    "float8_e4m3fn": (1.0, 0.125, 448.0, -448.0, 2.0**-6),
    "float8_e4m3fnuz": (1.0, 0.125, 240.0, -240.0, 2.0**-7),
    "float8_e5m2": (1.0, 0.25, 57344.0, -57344.0, 2.0**-14),
    "float8_e5m2fnuz": (1.0, 0.125, 57344.0, -57344.0, 2.0**-15),
    "float8_e8m0fnu": (1.0, 1.0, 2.0**127, 2.0**-127, 2.0**-127),
}


def _numpy_extension(wanted: dtype) -> DType:
    """NumPy's dtype for one of the names above."""
    try:
        import ml_dtypes
    except ImportError:
        raise RuntimeError(f"{wanted.name} needs the package ml_dtypes: install pullback[bfloat16]") from None
    element_type = getattr(ml_dtypes, wanted.name, None)
    if element_type is None:
        raise RuntimeError(f"{wanted.name} needs a newer version of the package ml_dtypes: 0.6 has it")
    found = np.dtype(element_type)
    _FROM_NUMPY[found] = wanted
    for act in _WHEN_LOADED.pop(wanted.name, ()):
        act()
    return found


_WHEN_LOADED: dict[str, list[Callable[[], None]]] = {}


def when_loaded(name: str, act: Callable[[], None]) -> None:
    """Call `act` when the dtype `name`, one of another package, is first used."""
    _WHEN_LOADED.setdefault(name, []).append(act)


def _extension_name(numpy_dtype: DType) -> str | None:
    """The name of a dtype that is not NumPy's own."""
    name = numpy_dtype.type.__name__
    return name if name in _EXTENSIONS and numpy_dtype.isbuiltin == 2 else None


bool_ = dtype("bool", np.dtype(np.bool_), _BOOL)
uint8 = dtype("uint8", np.dtype(np.uint8), _INT)
uint16 = dtype("uint16", np.dtype(np.uint16), _INT)
uint32 = dtype("uint32", np.dtype(np.uint32), _INT)
uint64 = dtype("uint64", np.dtype(np.uint64), _INT)
int8 = dtype("int8", np.dtype(np.int8), _INT)
int16 = dtype("int16", np.dtype(np.int16), _INT, "short")
int32 = dtype("int32", np.dtype(np.int32), _INT, "int")
int64 = dtype("int64", np.dtype(np.int64), _INT, "long")
float16 = dtype("float16", np.dtype(np.float16), _FLOAT, "half")
bfloat16 = dtype("bfloat16", None, _FLOAT)
float32 = dtype("float32", np.dtype(np.float32), _FLOAT, "float")
float64 = dtype("float64", np.dtype(np.float64), _FLOAT, "double")
float8_e4m3fn = dtype("float8_e4m3fn", None, _FLOAT)
float8_e4m3fnuz = dtype("float8_e4m3fnuz", None, _FLOAT)
float8_e5m2 = dtype("float8_e5m2", None, _FLOAT)
float8_e5m2fnuz = dtype("float8_e5m2fnuz", None, _FLOAT)
float8_e8m0fnu = dtype("float8_e8m0fnu", None, _FLOAT)
complex32 = dtype("complex32", None, _COMPLEX, "chalf")
complex64 = dtype("complex64", np.dtype(np.complex64), _COMPLEX, "cfloat")
complex128 = dtype("complex128", np.dtype(np.complex128), _COMPLEX, "cdouble")
# Integers that stand for other numbers; see quantized_tensors.py.
quint8 = dtype("quint8", np.dtype(np.uint8), _INT)
qint8 = dtype("qint8", np.dtype(np.int8), _INT)
qint32 = dtype("qint32", np.dtype(np.int32), _INT)

ALL = (bool_, uint8, uint16, uint32, uint64, int8, int16, int32, int64,
       float16, bfloat16, float32, float64, complex32, complex64, complex128)  # fmt: skip
FLOAT8 = (float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu)
_FROM_NUMPY: dict[DType, dtype] = {d._numpy: d for d in ALL if d._numpy is not None}

# The names of torch's legacy tensor types, which messages and Tensor.type() show.
_TYPE_NAMES = {
    "float32": "FloatTensor", "float64": "DoubleTensor", "float16": "HalfTensor", "bfloat16": "BFloat16Tensor",
    "uint8": "ByteTensor", "int8": "CharTensor", "int16": "ShortTensor", "int32": "IntTensor", "int64": "LongTensor",
    "bool": "BoolTensor", "complex32": "ComplexHalfTensor", "complex64": "ComplexFloatTensor",
    "complex128": "ComplexDoubleTensor", "uint16": "UInt16Tensor", "uint32": "UInt32Tensor", "uint64": "UInt64Tensor",
    **{d.name: f"{d.name.capitalize()}Tensor" for d in FLOAT8},
}  # fmt: skip
TYPE_NAME_TO_DTYPE = {_TYPE_NAMES[d.name]: d for d in ALL}
# What error messages of PyTorch call a scalar type ("Float", "Long", ...).
_SCALAR_TYPE_NAMES = {
    "float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16", "uint8": "Byte", "int8": "Char",
    "int16": "Short", "int32": "Int", "int64": "Long", "bool": "Bool", "complex32": "ComplexHalf",
    "complex64": "ComplexFloat", "complex128": "ComplexDouble", "uint16": "UInt16", "uint32": "UInt32",
    "uint64": "UInt64", **{d.name: d.name.capitalize() for d in FLOAT8},
}  # fmt: skip

_OLD_TYPES = frozenset("float16 float32 float64 uint8 int8 int16 int32 int64".split())
_CPP_TYPE_NAMES = {
    "bool": "bool", "uint8": "unsigned char", "int8": "signed char", "int16": "short int", "int32": "int",
    "int64": "long int", "uint16": "short unsigned int", "uint32": "unsigned int", "uint64": "long unsigned int",
    "float32": "float", "float64": "double", "complex32": "c10::complex<c10::Half>", "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}  # fmt: skip


def from_numpy_dtype(numpy_dtype: DType) -> dtype:
    """The public dtype of a NumPy dtype."""
    found = _FROM_NUMPY.get(numpy_dtype)
    if found is None:
        name = _extension_name(numpy_dtype)
        if name is not None:
            extension: dtype = globals()[name]
            assert extension.numpy_dtype == numpy_dtype  # loads it
            return extension
        if not numpy_dtype.isnative:
            raise ValueError(
                "given numpy array has byte order different from the native byte order. Conversion between byte orders is "
                "currently not supported: array.astype(array.dtype.newbyteorder()) makes a copy in the native order."
            )
        raise TypeError(
            f"can't convert np.ndarray of type numpy.{numpy_dtype.type.__name__}. The only supported types are: float64, "
            "float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool."
        )
    return found


def type_name(numpy_dtype: DType) -> str:
    """PyTorch's legacy name, as in `torch.FloatTensor`."""
    return f"{display_namespace()}.{_TYPE_NAMES[from_numpy_dtype(numpy_dtype).name]}"


def type_in_errors(numpy_dtype: DType) -> str:
    """What errors of PyTorch call a tensor's type: the legacy name for the older dtypes, `CPUBFloat16Type` for others."""
    name = from_numpy_dtype(numpy_dtype).name
    return type_name(numpy_dtype) if name in _OLD_TYPES else f"CPU{_SCALAR_TYPE_NAMES[name]}Type"


def cpp_type_name(numpy_dtype: DType) -> str:
    """What C++ calls a scalar type, as in `float` and `long int`, which some messages show."""
    name = from_numpy_dtype(numpy_dtype).name
    return _CPP_TYPE_NAMES.get(name) or f"c10::{_SCALAR_TYPE_NAMES[name]}"


def scalar_type_name(numpy_dtype: DType) -> str:
    """PyTorch's name of a scalar type in error messages, as in `Float`."""
    return _SCALAR_TYPE_NAMES[from_numpy_dtype(numpy_dtype).name]


def category(numpy_dtype: DType) -> int:
    """0 bool, 1 integer, 2 floating point, 3 complex."""
    return from_numpy_dtype(numpy_dtype).category


def is_float_or_complex(numpy_dtype: DType) -> bool:
    """Whether elements of this dtype can require grad."""
    return numpy_dtype.kind in "fcVW"


def is_complex(numpy_dtype: DType) -> bool:
    """Whether elements of this dtype are complex; complex32 has a kind of its own."""
    return numpy_dtype.kind in "cW"


def complex_of(numpy_dtype: DType) -> DType:
    """The complex dtype whose parts hold this real dtype."""
    if is_complex(numpy_dtype):
        return numpy_dtype
    if numpy_dtype.itemsize == 1 and is_float_or_complex(numpy_dtype):
        raise RuntimeError(f"Unknown Complex ScalarType for {scalar_type_name(numpy_dtype)}")
    if numpy_dtype.kind == "f" and numpy_dtype.itemsize == 2:
        return complex32.numpy_dtype
    return np.dtype(np.complex128 if numpy_dtype.itemsize == 8 else np.complex64)


def real_of(numpy_dtype: DType) -> DType:
    """The dtype of the real part."""
    if numpy_dtype.kind == "W":
        return float16.numpy_dtype
    if numpy_dtype.kind != "c":
        return numpy_dtype
    return np.dtype(np.float64 if numpy_dtype.itemsize == 16 else np.float32)


class _Defaults:
    """The default floating dtype, process-wide as in PyTorch."""

    floating: DType = np.dtype(np.float32)


def get_default_dtype() -> dtype:
    """Return the dtype that Python floats become.

    >>> import pullback
    >>> pullback.get_default_dtype() is pullback.float32
    True
    """
    return from_numpy_dtype(_Defaults.floating)


def set_default_dtype(d: dtype, /) -> None:
    """Set the dtype that Python floats become.

    It is float32 at first; float64 gives NumPy's precision, and complex128 for complex numbers.

    >>> import pullback
    >>> pullback.set_default_dtype(pullback.float64)
    >>> pullback.tensor(0.1).dtype
    pullback.float64
    >>> pullback.set_default_dtype(pullback.float32)
    """
    if not isinstance(d, dtype):
        raise TypeError(f"invalid dtype object: {d!r}")
    if not d.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    _Defaults.floating = d.numpy_dtype


def default_float() -> DType:
    """The dtype that Python floats become."""
    return _Defaults.floating


def default_complex() -> DType:
    """The dtype that Python complex numbers become."""
    return complex_of(_Defaults.floating)


def number_dtype(value: Scalar) -> DType:
    """The dtype a Python number has on its own."""
    if isinstance(value, (bool, np.bool_)):
        return bool_.numpy_dtype
    if isinstance(value, (int, np.integer)):
        return int64.numpy_dtype
    if isinstance(value, (float, np.floating)):
        return _Defaults.floating
    return default_complex()


_PROMOTED: dict[tuple[DType, DType], DType] = {}


def promote_dtypes(a: DType, b: DType) -> DType:
    """The dtype of an operation on two dimensioned tensors.

    >>> import numpy
    >>> promote_dtypes(numpy.dtype("int64"), numpy.dtype("float32"))
    dtype('float32')
    """
    if a is b:
        return a
    found = _PROMOTED.get((a, b))
    if found is None:
        found = _PROMOTED[a, b] = _promote(a, b)
    return found


def _promote(a: DType, b: DType) -> DType:
    if a == b:
        return a
    for one in (a, b):
        if one.itemsize == 1 and is_float_or_complex(one):
            raise RuntimeError(
                "Promotion for Float8 Types is not supported, attempted to promote "
                f"{scalar_type_name(a)} and {scalar_type_name(b)}"
            )
    low, high = sorted((a, b), key=category)
    low_category, high_category = category(low), category(high)
    if low_category == _BOOL:
        return high
    if low_category == _INT and high_category > _INT:
        return high
    if low_category == _INT:
        return _promote_integers(low, high)
    if high_category == _COMPLEX and low_category == _FLOAT:
        if low.itemsize == 8:
            return np.dtype(np.complex128)
        return high if high.kind == "c" or low == float16.numpy_dtype else np.dtype(np.complex64)
    if high_category == _FLOAT and low.itemsize == high.itemsize:  # float16 with bfloat16
        return np.dtype(np.float32)
    return low if low.itemsize > high.itemsize else high


def _promote_integers(a: DType, b: DType) -> DType:
    if a.kind == b.kind:
        return a if a.itemsize > b.itemsize else b
    unsigned, signed = (a, b) if a.kind == "u" else (b, a)
    if unsigned.itemsize > 1:
        raise RuntimeError(
            f"Promotion for uint16, uint32, uint64 types is not supported, attempted to promote "
            f"{scalar_type_name(a)} and {scalar_type_name(b)}"
        )
    return np.dtype(np.int16) if signed.itemsize == 1 else signed


def result_dtype(operands: Any) -> DType:
    """The dtype of an operation on arrays and Python numbers, by PyTorch's three priorities.

    Dimensioned tensors decide; 0-dim tensors matter if their category is higher; numbers likewise.
    """
    groups: list[DType | None] = [None, None, None]
    for operand in operands:
        if isinstance(operand, np.generic):
            operand = operand.item()  # a NumPy number is a number
        if isinstance(operand, np.ndarray):
            rank = 0 if operand.ndim else 1
            operand_dtype = operand.dtype
        elif hasattr(operand, "dtype"):
            rank, operand_dtype = (0 if operand.ndim else 1), operand.dtype
        else:
            rank, operand_dtype = 2, number_dtype(operand)
        known = groups[rank]
        groups[rank] = operand_dtype if known is None else promote_dtypes(known, operand_dtype)
    result: DType | None = None
    for candidate in groups:
        if candidate is None:
            continue
        if result is None:
            result = candidate
        elif category(candidate) > category(result):
            result = _lift(result, candidate)
    assert result is not None
    return result


def _lift(result: DType, candidate: DType) -> DType:
    """A lower-priority operand of a higher category: it gives the category, both give the width for complex."""
    if category(candidate) == _COMPLEX and category(result) == _FLOAT:
        return complex_of(result)
    return candidate


def promote_arrays(input: Array, other: Array | Scalar) -> tuple[Array, Any]:
    """Cast two operands of an elementwise operation to their common dtype."""
    if type(other) is int and _stays_int64(input, other):
        return input, np.int64(other)
    common = result_dtype((input, other))
    return to_dtype(input, common), to_dtype(other, common)


def _stays_int64(input: Array, number: int) -> bool:
    """Whether it is int64 beside a number that fits, as most integers are: then there is nothing to find out."""
    return input.dtype.char in "lq" and input.dtype.itemsize == 8 and -(1 << 63) <= number < 1 << 63


def promote_to_float(input: Array) -> Array:
    """Integers and bools become the default floating dtype; the rest stays."""
    return input if is_float_or_complex(input.dtype) else _cast_operand(input, _Defaults.floating)


def promote_arrays_to_float(input: Array, other: Array | Scalar) -> tuple[Array, Any]:
    """As promote_arrays, then integers and bools become the default floating dtype."""
    common = result_dtype((input, other))
    if not is_float_or_complex(common):
        common = _Defaults.floating
    return to_dtype(input, common), to_dtype(other, common)


def promote_for_product(input: Array, other: Array | Scalar) -> tuple[Array, Any]:
    """As promote_arrays, but beside float16 and bfloat16 a number stays as it is: their products are made in float32."""
    if type(other) is int and _stays_int64(input, other):
        return input, np.int64(other)
    return _promote_with_number(input, other, result_dtype((input, other)))


def promote_for_quotient(input: Array, other: Array | Scalar) -> tuple[Array, Any]:
    """As promote_for_product, then integers and bools become the default floating dtype."""
    common = result_dtype((input, other))
    return _promote_with_number(input, other, common if is_float_or_complex(common) else _Defaults.floating)


def _promote_with_number(input: Array, other: Any, common: DType) -> tuple[Array, Any]:
    is_number = other.ndim == 0 and other.dtype != common if hasattr(other, "dtype") else True
    if is_number and common.itemsize == 2 and is_float_or_complex(common):
        return to_dtype(input, common), float(other)
    return to_dtype(input, common), to_dtype(other, common)


def promote_for_subtraction(input: Array, other: Array | Scalar) -> tuple[Array, Any]:
    """As promote_arrays, refusing bools: minus has no meaning for them."""
    if any(d == bool_.numpy_dtype for d in (input.dtype, getattr(other, "dtype", None))) or isinstance(other, bool):
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, "
            "use the `~` or `logical_not()` operator instead."
        )
    return promote_arrays(input, other)


def widen_half(value: Any) -> Any:
    """A float16 or bfloat16 array as float32; anything else as it is."""
    half = getattr(value, "dtype", None)
    return cast_half(value, FLOAT32) if half is not None and half.itemsize == 2 and is_float_or_complex(half) else value


def to_dtype(operand: Any, numpy_dtype: DType) -> Any:
    """An array or number in `numpy_dtype`; integers wrap around as in C."""
    if isinstance(operand, (int, float, complex)):
        return number_as(operand, numpy_dtype)
    if operand.dtype == numpy_dtype:
        return operand
    return _cast_operand(operand, numpy_dtype)


def _cast_operand(array: Array, numpy_dtype: DType) -> Array:
    """An operand in another dtype; what is repeated in it stays so, and says nothing of how a result lies in memory."""
    if not isinstance(array, np.ndarray) or array.size < 2 or 0 not in array.strides:
        return cast_half(array, numpy_dtype)
    once = array[tuple([slice(None) if step else slice(1) for step in array.strides])]
    return np.broadcast_to(cast_half(once, numpy_dtype), array.shape)


def number_as(value: Any, numpy_dtype: DType) -> Any:
    """A Python number as a NumPy scalar of `numpy_dtype`, wrapping integers around."""
    if numpy_dtype.kind in "iu" and isinstance(value, int) and not isinstance(value, bool):
        if not -(1 << 63) <= value < 1 << 64:
            raise OverflowError("int too big to convert")
        bits = numpy_dtype.itemsize * 8
        value &= (1 << bits) - 1
        if numpy_dtype.kind == "i" and value >> (bits - 1):
            value -= 1 << bits
    if type(value) is complex or not -6e4 < value < 6e4:  # float16 may not hold it
        return _large_number_as(value, numpy_dtype)
    return numpy_dtype.type(value)


@silent
def _large_number_as(value: Any, numpy_dtype: DType) -> Any:
    return numpy_dtype.type(value)


def can_cast(from_: DType, to: DType) -> bool:
    """Whether a result of dtype `from_` may be written into a tensor of dtype `to`."""
    a, b = category(from_), category(to)
    if a == _COMPLEX and b < _COMPLEX:
        return False
    if a == _FLOAT and b < _FLOAT:
        return False
    return not (a != _BOOL and b == _BOOL)


def _described_dtype(function: str, value: Any) -> Any:
    """The dtype that is given, itself or as one of Python's own types."""
    if isinstance(value, dtype):
        return value
    found = (
        {bool: bool_, int: int64, float: float64, complex: complex128}.get(value) if isinstance(value, type) else None
    )
    if found is None:
        raise TypeError(f"{function}(): argument 'type' (position 1) must be torch.dtype, not {type(value).__name__}")
    return found


class iinfo:
    """The limits of an integer dtype.

    >>> import pullback
    >>> pullback.iinfo(pullback.int8).max
    127
    """

    def __init__(self, type: Any) -> None:
        type = _described_dtype("iinfo", type)
        if type.category == _BOOL:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        if type.category != _INT:
            raise TypeError(f"torch.iinfo() requires an integer input type. Use torch.finfo to handle '{type!r}'")
        info = np.iinfo(type.numpy_dtype)
        self.bits, self.min, self.max = info.bits, int(info.min), int(info.max)
        self.dtype = type.name

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"


class finfo:
    """The limits of a floating-point dtype.

    >>> import pullback
    >>> pullback.finfo(pullback.float32).eps
    1.1920928955078125e-07
    """

    def __init__(self, type: Any = None) -> None:
        type = get_default_dtype() if type is None else _described_dtype("finfo", type)
        if type.category < _FLOAT:
            raise TypeError(f"torch.finfo() requires a floating point input type. Use torch.iinfo to handle '{type!r}'")
        name = type.name
        if name in _LIMITS:  # libraries ask for these while they are imported, whether or not ml_dtypes is there
            self.bits = 8 * type.itemsize
            self.resolution, self.eps, self.max, self.min, self.tiny = _LIMITS[name]
        else:
            real = np.dtype(np.float16) if name == "complex32" else real_of(type.numpy_dtype)
            info = np.finfo(real)
            self.bits = real.itemsize * 8
            self.resolution, self.eps, self.max = 10.0 ** -int(info.precision), float(info.eps), float(info.max)
            self.min, self.tiny = float(info.min), float(info.smallest_normal)
            name = from_numpy_dtype(real).name
        self.smallest_normal = self.tiny
        self.dtype = name

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )
