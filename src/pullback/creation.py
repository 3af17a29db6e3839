"""Functions that make tensors of Python values, of arrays, or of nothing."""

from __future__ import annotations

import warnings
from typing import Any

from pullback.backend import array_module
from pullback.backend.array_module import is_array, is_number
from pullback.backend.device import usable_device
from pullback.backend.dtype import default_float, dtype, from_numpy_dtype, is_float_or_complex, number_dtype
from pullback.kernels.creation import arange_array, array_from_values, eye_array, linspace_array, strided_array
from pullback.modes.switches import process
from pullback.tensor.arguments import as_int, as_numpy_dtype
from pullback.tensor.tensor import Tensor, _LegacyConstructor, new_tensor


def wrap(array: Any, requires_grad: bool = False) -> Tensor:
    """A new leaf around `array`."""
    result = new_tensor(array)
    if process.changed:
        result._note_inference()
    if requires_grad:
        if not is_float_or_complex(array.dtype):
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        result._requires_grad = True
    return result


def tensor(
    data: Any, *, dtype: dtype | None = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
    names: Any = None,
) -> Tensor:  # fmt: skip
    """Make a tensor by copying `data`: a number, nested sequences, an array.

    >>> import pullback
    >>> pullback.tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])
    """
    usable_device(device)
    if isinstance(data, Tensor):
        warnings.warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).",
            UserWarning,
            stacklevel=2,
        )
        return wrap(array_from_values(data._array, as_numpy_dtype(dtype)), requires_grad)
    return wrap(array_from_values(_plain(data), as_numpy_dtype(dtype)), requires_grad)


def _plain(data: Any) -> Any:
    """Nested sequences with tensors replaced by their values."""
    if isinstance(data, Tensor):
        if data._array.ndim == 0:
            if data._requires_grad:
                _warn_scalar()
            return data._array[()]
        return data._array
    if isinstance(data, (list, tuple)):
        if all(type(item) in (int, float, bool, complex) for item in data):
            return data
        return [_plain(item) for item in data]
    if is_array(data) or is_number(data):
        return data
    if hasattr(data, "__array__") or hasattr(data, "__array_interface__"):
        return array_module.as_array(data.__array__() if hasattr(data, "__array__") else data)
    if hasattr(data, "__len__") and hasattr(data, "__getitem__") and not isinstance(data, (str, bytes, dict)):
        return [_plain(data[i]) for i in range(len(data))]
    return data


def _warn_scalar() -> None:
    warnings.warn(
        "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
        "Consider using tensor.detach() first.",
        UserWarning,
        stacklevel=4,
    )


def as_tensor(data: Any, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """A tensor of `data`, sharing memory and history where nothing needs to change."""
    usable_device(device)
    if isinstance(data, Tensor):
        return data if dtype is None or data.dtype is dtype else data.to(dtype)  # type: ignore[attr-defined, no-any-return]
    if is_array(data):
        wanted = as_numpy_dtype(dtype)
        return from_numpy(data) if wanted is None or data.dtype == wanted else wrap(data.astype(wanted))
    return tensor(data, dtype=dtype)


def asarray(
    obj: Any, *, dtype: dtype | None = None, device: Any = None, copy: bool | None = None, requires_grad: bool = False
) -> Tensor:
    """A tensor of `obj`; shares memory unless `copy` is True or the dtype changes."""
    if isinstance(obj, Tensor):
        result = as_tensor(obj, dtype, device)
        if copy and result is obj:
            result = obj.clone()  # type: ignore[attr-defined]
        if not requires_grad and result._requires_grad and copy:
            result = result.detach()
        return result
    result = as_tensor(obj, dtype, device)
    if copy and is_array(obj):
        result = wrap(array_module.copy_array(result._array))
    if requires_grad:
        result.requires_grad_()
    return result


def from_numpy(ndarray: Any, /) -> Tensor:
    """A tensor that shares the array's memory.

    >>> import numpy, pullback
    >>> pullback.from_numpy(numpy.zeros(2))
    tensor([0., 0.], dtype=...float64)
    """
    if not is_array(ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    from_numpy_dtype(ndarray.dtype)
    if any(stride < 0 for stride in ndarray.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
            "currently supported. (You can probably work around this by making a copy of your array  with array.copy().) "
        )
    if not ndarray.flags.writeable:
        warnings.warn(
            "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. Writing to this "
            "tensor would change memory that its owner expects to stay the same: copy the array first.",
            UserWarning,
            stacklevel=2,
        )
    return wrap(ndarray)


def _sizes(size: tuple[Any, ...]) -> tuple[int, ...]:
    """Sizes given as numbers or as one sequence."""
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = tuple(size[0])
    try:
        shape = tuple([as_int(n) for n in size])
    except TypeError:
        wrong = next(n for n in size if not isinstance(n, int))
        raise TypeError(
            f"empty(): argument 'size' (position 1) must be tuple of ints, but found element of type {type(wrong).__name__}"
        ) from None
    for n in shape:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {list(shape)}")
    return shape


def _filled(make: Any, size: tuple[Any, ...], options: dict[str, Any]) -> Tensor:
    shape = _sizes(options.pop("size")) if "size" in options else _sizes(size)
    out = options.pop("out", None)
    wanted = as_numpy_dtype(options.pop("dtype", None))
    usable_device(options.pop("device", None))
    requires_grad = options.pop("requires_grad", False)
    for name in ("layout", "pin_memory", "memory_format", "names"):
        options.pop(name, None)
    if options:
        raise TypeError(f"got an unexpected keyword argument '{next(iter(options))}'")
    result = wrap(make(shape, wanted or default_float()), requires_grad)
    if out is not None:
        from pullback.graph.in_place import write_out

        write_out("empty", out, result)
        return out  # type: ignore[no-any-return]
    return result


def zeros(*size: Any, **options: Any) -> Tensor:
    """A tensor of zeros.

    >>> import pullback
    >>> pullback.zeros(2, 2)
    tensor([[0., 0.],
            [0., 0.]])
    """
    return _filled(array_module.zeros, size, options)


def ones(*size: Any, **options: Any) -> Tensor:
    """A tensor of ones."""
    return _filled(array_module.ones, size, options)


def empty(*size: Any, **options: Any) -> Tensor:
    """A tensor of uninitialised memory."""
    return _filled(array_module.empty, size, options)


def full(
    size: Any, fill_value: Any, *, dtype: dtype | None = None, device: Any = None, requires_grad: bool = False,
    out: Any = None, layout: Any = None, pin_memory: bool = False, names: Any = None,
) -> Tensor:  # fmt: skip
    """A tensor filled with one value."""
    value = fill_value._array[()] if isinstance(fill_value, Tensor) else fill_value
    wanted = as_numpy_dtype(dtype)
    if wanted is None:
        wanted = fill_value._array.dtype if isinstance(fill_value, Tensor) else number_dtype(value)
    usable_device(device)
    shape = _sizes(tuple(size) if isinstance(size, (tuple, list)) else (size,))
    result = wrap(array_module.full(shape, value, wanted), requires_grad)
    if out is not None:
        from pullback.graph.in_place import write_out

        write_out("full", out, result)
        return out  # type: ignore[no-any-return]
    return result


def _like(input: Tensor, make: Any, options: dict[str, Any]) -> Tensor:
    if not isinstance(input, Tensor):
        raise TypeError(f"empty_like(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    wanted = as_numpy_dtype(options.get("dtype")) or input._array.dtype
    usable_device(options.get("device"))
    source = input._array
    array = make(source.shape, wanted)
    keep_order = options.get("memory_format") is None or getattr(options["memory_format"], "name", "") == "preserve_format"
    if keep_order and not source.flags.c_contiguous:
        array = _in_order_of(array, source)
    return wrap(array, options.get("requires_grad", False))


def _in_order_of(array: Any, source: Any) -> Any:
    """`array` with the memory order of `source`, as PyTorch preserves it for dense tensors."""
    from pullback.graph.accumulate_grad import copy_like

    return copy_like(array, source)


def zeros_like(input: Tensor, **options: Any) -> Tensor:
    """Zeros in the shape and dtype of `input`."""
    return _like(input, array_module.zeros, options)


def ones_like(input: Tensor, **options: Any) -> Tensor:
    """Ones in the shape and dtype of `input`."""
    return _like(input, array_module.ones, options)


def empty_like(input: Tensor, **options: Any) -> Tensor:
    """Uninitialised memory in the shape and dtype of `input`."""
    return _like(input, array_module.empty, options)


def full_like(input: Tensor, fill_value: Any, **options: Any) -> Tensor:
    """One value in the shape and dtype of `input`."""
    value = fill_value._array[()] if isinstance(fill_value, Tensor) else fill_value
    return _like(input, lambda shape, wanted: array_module.full(shape, value, wanted), options)


def arange(*bounds: Any, **options: Any) -> Tensor:
    """Values from start (0) to end, end excluded, in steps (1).

    >>> import pullback
    >>> pullback.arange(2, 8, 2)
    tensor([2, 4, 6])
    """
    for name in ("start", "end", "step"):
        if name in options and name == "start" and bounds:
            bounds = (options.pop("start"), *bounds)
    start, end, step = _bounds([_number(b) for b in bounds], options)
    wanted = as_numpy_dtype(options.get("dtype"))
    usable_device(options.get("device"))
    return _given_out(wrap(arange_array(start, end, step, wanted), options.get("requires_grad", False)), options)


def _bounds(bounds: list[Any], options: dict[str, Any]) -> tuple[Any, Any, Any]:
    named = {name: _number(options.pop(name)) for name in ("start", "end", "step") if name in options}
    if len(bounds) == 1:
        named["start" if "end" in named else "end"] = bounds[0]
    else:
        named.update(zip(("start", "end", "step"), bounds, strict=False))
    if "end" not in named:
        raise TypeError("arange() missing required argument: 'end'")
    return named.get("start", 0), named["end"], named.get("step", 1)


def _number(value: Any) -> Any:
    return value._array.item() if isinstance(value, Tensor) else value.item() if hasattr(value, "item") else value


def _given_out(result: Tensor, options: dict[str, Any]) -> Tensor:
    out = options.get("out")
    if out is None:
        return result
    from pullback.graph.in_place import write_out

    return write_out("arange", out, result)  # type: ignore[no-any-return]


def range_(start: Any = 0, end: Any = None, step: Any = 1, **options: Any) -> Tensor:
    """As `arange`, but with the end included (deprecated in PyTorch)."""
    warnings.warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with "
        "Python's range builtin. Instead, use torch.arange, which produces values in [start, end).",
        UserWarning,
        stacklevel=2,
    )
    options.setdefault("dtype", from_numpy_dtype(default_float()))
    return arange(start, end + step / 2 if isinstance(step, float) or isinstance(end, float) else end + 1, step, **options)


def linspace(start: Any, end: Any, steps: int, **options: Any) -> Tensor:
    """`steps` evenly spaced values from start to end."""
    wanted = as_numpy_dtype(options.get("dtype"))
    first, last = _number(start), _number(end)
    if wanted is None:
        wanted = number_dtype(1j) if isinstance(first, complex) or isinstance(last, complex) else default_float()
    return _given_out(wrap(linspace_array(first, last, as_int(steps), wanted), options.get("requires_grad", False)), options)


def logspace(start: Any, end: Any, steps: int, base: float = 10.0, **options: Any) -> Tensor:
    """`steps` values whose logarithms are evenly spaced."""
    wanted = as_numpy_dtype(options.get("dtype")) or default_float()
    exponents = linspace_array(_number(start), _number(end), as_int(steps), number_dtype(1.0) if wanted.kind != "f" else wanted)
    return _given_out(wrap((base**exponents).astype(wanted), options.get("requires_grad", False)), options)


def eye(n: int, m: int | None = None, **options: Any) -> Tensor:
    """A matrix with ones on the diagonal."""
    for size in (n, m):
        if size is not None and size < 0:
            raise RuntimeError(f"n must be greater or equal to 0, got {size}")
    wanted = as_numpy_dtype(options.get("dtype")) or default_float()
    return _given_out(wrap(eye_array(n, m, wanted), options.get("requires_grad", False)), options)


def empty_strided(size: Any, stride: Any, **options: Any) -> Tensor:
    """Uninitialised memory with the given strides."""
    wanted = as_numpy_dtype(options.get("dtype")) or default_float()
    return wrap(strided_array(tuple(size), tuple(stride), wanted), options.get("requires_grad", False))


def scalar_tensor(value: Any, **options: Any) -> Tensor:
    """A 0-dim tensor."""
    options.setdefault("dtype", from_numpy_dtype(default_float()))
    return tensor(value, **options)


def _legacy(cls: type, *args: Any, **kwargs: Any) -> Tensor:
    """`Tensor(2, 3)` is uninitialised, `Tensor([1, 2])` holds values, both in the default dtype."""
    if len(args) == 1 and not isinstance(args[0], int) or "data" in kwargs:
        data = args[0] if args else kwargs["data"]
        if isinstance(data, Tensor):
            result = data.detach()
        elif hasattr(data, "numel") and not is_array(data):
            result = empty(*data)
        else:
            result = wrap(array_from_values(_plain(data), default_float()))
    else:
        result = empty(*args) if args else empty(0)
    if cls is Tensor:
        return result
    made: Tensor = object.__new__(cls)
    made._array = result._array
    return made


_LegacyConstructor.make = staticmethod(_legacy)  # type: ignore[method-assign]  # the hook tensor.py declares
