"""Quantized tensors: integers that stand for numbers, by one scale and zero point or by those of each channel.

`QuantizedTensor` is a Tensor on the integers: what moves elements (views, indices, joining) moves these. Arithmetic is
done on what `dequantize()` gives; PyTorch has little of it on quantized tensors, and the rest raises as there. The class
is loaded when it is first asked for: a subclass that overrides operations makes every operation look for it.
"""

from __future__ import annotations

from typing import Any

from pullback import functions
from pullback.autograd.function import Function
from pullback.backend.dtype import dtype as Dtype
from pullback.backend.dtype import (
    float16,
    float32,
    float64,
    int8,
    int32,
    int64,
    qint8,
    qint32,
    quint8,
    scalar_type_name,
    uint8,
)
from pullback.backend.naming import display_namespace
from pullback.creation import as_tensor, tensor
from pullback.facts import declare, fact_of
from pullback.graph.history import refuse_history
from pullback.graph.sparse_nodes import shown_as
from pullback.overrides import DisableTorchFunctionSubclass, as_subclass
from pullback.overrides.operation_handlers import Handlers, compares, moves
from pullback.tensor.foreign_arguments import any_asked_whole, ask_about, is_foreign
from pullback.tensor.tensor import Tensor

__all__ = [
    "QuantizedTensor", "dequantize", "fake_quantize_per_channel_affine", "fake_quantize_per_tensor_affine",
    "per_channel_affine", "per_tensor_affine", "quantize_per_channel",
    "quantize_per_tensor", "quantize_per_tensor_dynamic",
]  # fmt: skip

STORED = {quint8: uint8, qint8: int8, qint32: int32}
LIMITS = {quint8: (0, 255), qint8: (-128, 127), qint32: (-(2**31), 2**31 - 1)}


class qscheme:
    """How integers stand for numbers."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"{display_namespace()}.{self.name}"


per_tensor_affine = qscheme("per_tensor_affine")
per_channel_affine = qscheme("per_channel_affine")


class QuantizedTensor(Tensor):
    """Integers with a scale and a zero point: each stands for (integer - zero_point) * scale.

    >>> import pullback
    >>> x = pullback.quantize_per_tensor(pullback.tensor([0.26, 1.0]), 0.1, 0, pullback.quint8)
    >>> x.int_repr().tolist(), x.dequantize()
    ([3, 10], tensor([0.3000, 1.0000]))
    """

    _sees_operations = True
    _kind: Dtype
    _scale: Any
    _zero_point: Any
    _axis: int | None
    is_quantized = True

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _handlers.operate(func, tuple(args), dict(kwargs or {}))

    @property
    def dtype(self) -> Dtype:
        """The quantized element type."""
        return self._kind

    def is_floating_point(self) -> bool:
        """Whether the elements are stored as floating-point numbers: never."""
        return False

    def qscheme(self) -> qscheme:
        """One scale for all, or one for each channel."""
        return per_tensor_affine if self._axis is None else per_channel_affine

    def int_repr(self) -> Tensor:
        """The integers themselves."""
        with DisableTorchFunctionSubclass():
            return as_subclass(self, Tensor).clone()

    def dequantize(self) -> Tensor:
        """The numbers that the integers stand for, in float32."""
        scale, zero_point = self._scale, self._zero_point
        if self._axis is not None:
            shape = [-1 if dim == self._axis else 1 for dim in range(self._array.ndim)]
            scale, zero_point = scale.reshape(shape), zero_point.reshape(shape)
            return ((self.int_repr().to(float64) - zero_point) * scale.to(float32)).to(float32)
        return (self.int_repr().to(float64) - zero_point).to(float32) * scale

    def q_scale(self) -> float:
        """The scale of a tensor that has one."""
        self._require(self._axis is None, "kPerTensorAffine")
        return float(self._scale)

    def q_zero_point(self) -> int:
        """The zero point of a tensor that has one."""
        self._require(self._axis is None, "kPerTensorAffine")
        return int(self._zero_point)

    def q_per_channel_scales(self) -> Tensor:
        """The scale of each channel."""
        self._require(self._axis is not None, "kPerChannelAffine")
        return self._scale

    def q_per_channel_zero_points(self) -> Tensor:
        """The zero point of each channel."""
        self._require(self._axis is not None, "kPerChannelAffine")
        return self._zero_point

    def q_per_channel_axis(self) -> int:
        """The dimension of the channels."""
        self._require(self._axis is not None, "kPerChannelAffine")
        assert self._axis is not None
        return self._axis

    def _require(self, holds: bool, wanted: str) -> None:
        if not holds:
            raise RuntimeError(
                f"Expected quantizer->qscheme() == {wanted} to be true, but got false: this tensor is {self.qscheme()}."
            )

    def copy_(self, src: Tensor, non_blocking: bool = False) -> QuantizedTensor:
        """Quantize the numbers of `src` into this tensor."""
        numbers = src.dequantize() if isinstance(src, QuantizedTensor) else src
        with DisableTorchFunctionSubclass():
            self._array[...] = _integers(numbers, self._scale, self._zero_point, self._axis, self._kind)._array
        return self

    def item(self) -> float:
        """The number that the one element stands for."""
        return float(self.dequantize().item())

    def tolist(self) -> Any:
        """Refused, as in PyTorch."""
        raise RuntimeError("load_scalar: invalid type: call dequantize() first")

    def numpy(self, *, force: bool = False) -> Any:
        """Refused: NumPy has no quantized numbers."""
        raise TypeError(f"Got unsupported ScalarType {_scalar_name(self._kind)}: call dequantize() or int_repr() first")

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """The tensor itself; another element type is refused."""
        if any(isinstance(value, Dtype) and value is not self._kind for value in (*args, *kwargs.values())):
            raise RuntimeError(
                f"Creation of quantized tensor requires quantized dtype like {display_namespace()}.quint8: call "
                "dequantize() first"
            )
        return self

    def float(self, memory_format: Any = None) -> Any:
        """Refused, as in PyTorch."""
        return self.to(float32)

    def __repr__(self, **options: Any) -> str:
        from pullback.tensor.formatting import format_quantized  # only who prints pays for it

        facts = [f"size={tuple(self._array.shape)}", f"dtype={self._kind}", f"quantization_scheme={self.qscheme()}"]
        facts += [f"scale={self._scale}", f"zero_point={self._zero_point}"]
        if self._axis is not None:
            facts.append(f"axis={self._axis}")
        return format_quantized(self.dequantize()._array, facts)

    __str__ = __repr__

    def __iter__(self) -> Any:
        return iter([self[row] for row in range(len(self))])


def _scalar_name(kind: Dtype) -> str:
    return {"quint8": "QUInt8", "qint8": "QInt8", "qint32": "QInt32"}[kind.name]


def _wrapped(integers: Tensor, like: QuantizedTensor, axis: int | None) -> QuantizedTensor:
    return _quantized(integers, like._scale, like._zero_point, axis, like._kind)


def _quantized(integers: Tensor, scale: Any, zero_point: Any, axis: int | None, kind: Dtype) -> QuantizedTensor:
    made: QuantizedTensor = as_subclass(integers, QuantizedTensor)
    made._kind, made._scale, made._zero_point, made._axis = kind, scale, zero_point, axis
    return made


def _refusal(name: str) -> NotImplementedError:
    return NotImplementedError(
        f"Could not run 'aten::{name}' with arguments from the 'QuantizedCPU' backend: it is not defined for quantized "
        "tensors. Apply it to what dequantize() gives."
    )


_handlers = Handlers(_refusal)


def _quantized_in(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[QuantizedTensor]:
    return [value for value in _flattened((*args, *kwargs.values())) if isinstance(value, QuantizedTensor)]


@_handlers.of_kind(moves)
def _move(func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Move the integers."""
    first, *others = _quantized_in(args, kwargs)
    if any(q._scale is not first._scale and q._scale != first._scale for q in others):
        raise RuntimeError(f"{name}: quantized tensors of different scales cannot be joined: dequantize() them first")
    with DisableTorchFunctionSubclass():
        result = func(*args, **kwargs)
    if isinstance(result, (tuple, list)):
        return tuple(_wrapped(part, first, first._axis) for part in result)
    return _wrapped(result, first, first._axis)


@_handlers.of_kind(compares)
def _compare(func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return func(*map(_number, args), **kwargs)


@_handlers.of_kind(lambda name: bool(fact_of(name, "quantized")))
def _compute(func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Compute with the numbers, and quantize the result as the input is."""
    (first, *_) = _quantized_in(args, kwargs)
    if first._axis is not None:
        raise _refusal(name)
    result = func(first.dequantize(), *args[1:], **kwargs)
    return (_quantize(result[0], first), *result[1:]) if isinstance(result, tuple) else _quantize(result, first)


def _flattened(values: Any) -> list[Any]:
    found: list[Any] = []
    for value in values:
        found += _flattened(value) if isinstance(value, (tuple, list)) else [value]
    return found


def _number(value: Any) -> Any:
    return value.dequantize() if isinstance(value, QuantizedTensor) else value


def _quantize(numbers: Tensor, like: QuantizedTensor) -> QuantizedTensor:
    return _wrapped(_integers(numbers, like._scale, like._zero_point, None, like._kind), like, None)


def _integers(numbers: Tensor, scale: Any, zero_point: Any, axis: int | None, kind: Dtype) -> Tensor:
    """The integers that stand for numbers, rounded to even and cut off at the limits of the type."""
    if kind not in STORED:
        raise RuntimeError(
            f"ScalarType {scalar_type_name(kind.numpy_dtype)} is not supported in new_qtensor: use qint8, quint8 or qint32."
        )
    if numbers.dtype is not float32:
        raise RuntimeError(f"Quantize only works on Float Tensor, got {scalar_type_name(numbers._array.dtype)}")
    low, high = LIMITS[kind]
    if axis is not None:
        shape = [-1 if dim == axis else 1 for dim in range(numbers.ndim)]
        scale, zero_point = as_tensor(scale).reshape(shape).to(float32), as_tensor(zero_point).reshape(shape)
    inverse = 1.0 / scale if axis is not None else tensor(1.0, dtype=float32) / tensor(scale, dtype=float32)
    rounded = (numbers.detach() * inverse).round().to(float64) + zero_point
    return functions.clamp(rounded, low, high).to(STORED[kind])


@declare(found="torch")
def quantize_per_tensor(input: Any, scale: Any, zero_point: Any, dtype: Dtype) -> Any:
    """Integers that stand for the numbers of `input`: round(x / scale) + zero_point; of a list, one tensor each.

    >>> import pullback
    >>> quantize_per_tensor(pullback.tensor([0.26, 9.0]), 0.5, 1, pullback.qint8).dequantize()
    tensor([0.5000, 9.0000])
    """
    if isinstance(input, (list, tuple)):
        pairs = zip(as_tensor(scale).tolist(), as_tensor(zero_point).tolist(), strict=True)
        return tuple(quantize_per_tensor(x, s, z, dtype) for x, (s, z) in zip(input, pairs, strict=True))
    scale, zero_point = float(scale), int(zero_point)
    if dtype in LIMITS and not LIMITS[dtype][0] <= zero_point <= LIMITS[dtype][1]:
        bound = "above upper" if zero_point > 0 else "below lower"
        raise RuntimeError(f"quantize_tensor_per_tensor_affine zero_point {zero_point} is {bound} bound.")
    return _quantized(_integers(input, scale, zero_point, None, dtype), scale, zero_point, None, dtype)


@declare(found="torch")
def quantize_per_tensor_dynamic(input: Tensor, dtype: Dtype, reduce_range: bool) -> QuantizedTensor:
    """As `quantize_per_tensor`, with the scale and zero point that cover the range of `input`."""
    low, high = LIMITS[dtype]
    if reduce_range:
        low, high = low // 2, high // 2
    least, most = min(float(input.min()), 0.0), max(float(input.max()), 0.0)
    scale = float(tensor((most - least) / (high - low) or 0.1, dtype=float64))
    zero_point = min(max(round(low - least / scale), low), high)
    return quantize_per_tensor(input, scale, zero_point, dtype)


@declare(found="torch")
def quantize_per_channel(
    input: Tensor, scales: Tensor, zero_points: Tensor, axis: int, dtype: Dtype
) -> QuantizedTensor:
    """As `quantize_per_tensor`, with a scale and a zero point for each position along `axis`."""
    integers = _integers(input, scales, zero_points, axis, dtype)
    return _quantized(integers, scales.to(float64), zero_points.to(int64), axis, dtype)


def _make_per_tensor_quantized_tensor(input: Tensor, scale: float, zero_point: int) -> QuantizedTensor:
    kind = next(kind for kind, stored in STORED.items() if stored is input.dtype)
    return _quantized(input.clone(), float(scale), int(zero_point), None, kind)


class _FakeQuantization(Function):
    """Rounds as quantizing would; the gradient passes where nothing was cut off."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, scale: Any, zero_point: Any, quant_min: int, quant_max: int) -> Tensor:
        rounded = (input * (1.0 / scale)).round() + zero_point
        ctx.save_for_backward((rounded >= quant_min) & (rounded <= quant_max))
        result: Tensor = (functions.clamp(rounded, quant_min, quant_max) - zero_point) * scale
        return result.to(input.dtype)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        (inside,) = ctx.saved_tensors
        return grad_output * inside, None, None, None, None


@declare(found="torch")
def fake_quantize_per_tensor_affine(
    input: Tensor, scale: Any, zero_point: Any, quant_min: int, quant_max: int
) -> Tensor:
    """The numbers that `input` would be after quantizing; gradients pass through where nothing was cut off.

    >>> import pullback
    >>> x = pullback.tensor([0.26, 9.0], requires_grad=True)
    >>> fake_quantize_per_tensor_affine(x, 0.5, 0, -8, 7).sum().backward()
    >>> x.grad
    tensor([1., 0.])
    """
    name = "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams"
    refuse_history(name, scale=scale, zero_point=zero_point)
    result: Tensor = _FakeQuantization.apply(input, scale, zero_point, quant_min, quant_max)
    kind = "CachemaskTensorQparams" if isinstance(scale, Tensor) else "Cachemask"
    return shown_as(result, f"FakeQuantizePerTensorAffine{kind}Backward0")


@declare(found="torch")
def fake_quantize_per_channel_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> Tensor:
    """As `fake_quantize_per_tensor_affine`, with a scale and a zero point for each position along `axis`."""
    if zero_point.dtype not in (int32, float16, float32):
        raise RuntimeError(
            f"Zero-point must be Int32, Float or Half, found {scalar_type_name(zero_point._array.dtype)}"
        )
    shape = [-1 if dim == axis else 1 for dim in range(input.ndim)]
    refuse_history("fake_quantize_per_channel_affine_cachemask", scale=scale, zero_point=zero_point)
    result: Tensor = _FakeQuantization.apply(
        input, scale.reshape(shape), zero_point.reshape(shape), quant_min, quant_max
    )
    return shown_as(result, "FakeQuantizePerChannelAffineCachemaskBackward0")


def dequantize(input: Any) -> Any:
    """The numbers that quantized tensors stand for; others stay as they are."""
    if isinstance(input, (list, tuple)):
        return tuple(map(dequantize, input))
    if any_asked_whole(input) or is_foreign(input):
        return ask_about(dequantize, input)
    return input.dequantize() if isinstance(input, QuantizedTensor) else input.to(float32)
