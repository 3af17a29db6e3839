"""Tensors of one value or of uninitialised memory, of a given shape or in that of another tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.backend import array_module
from pullback.backend.device import device_of, find_library
from pullback.backend.dtype import default_float, number_dtype
from pullback.backend.sparse_array import SparseArray
from pullback.checks.new_tensors import check_layout, check_strides
from pullback.creation.options import (
    allocated,
    dtype_option,
    finish,
    made_on,
    number_of,
    show_creation,
    sizes_of,
    wrap,
)
from pullback.facts import declare
from pullback.kernels.creation import (
    channels_last_array,
    checked_fill,
    in_memory_order_of,
    permuted_array,
    strided_array,
)
from pullback.modes.function_modes import told_to_modes
from pullback.modes.interception import is_dispatching, overridable
from pullback.modes.switches import process
from pullback.tensor.sparse_tensor import SparseTensor, new_sparse_tensor
from pullback.tensor.tensor import Tensor

Maker = Callable[[tuple[int, ...], Any], Any]


def _filled(function: str, make: Maker, size: tuple[Any, ...], options: dict[str, Any]) -> Tensor:
    if "size" in options:
        size = (options.pop("size"),)
    elif not size:
        raise TypeError(f'{function}() missing 1 required positional arguments: "size"')
    shape = sizes_of(size, function)
    wanted = dtype_option(function, options.pop("dtype", None), options.get("out"))
    if process.changed or "device" in options:
        array = _on_device(make, shape, wanted or default_float(), options.get("device"))
    else:
        array = allocated(make, shape, wanted or default_float())
    order = getattr(options.pop("memory_format", None), "name", "")
    return finish(function, channels_last_array(array) if order.startswith("channels_last") else array, options)


def _on_device(make: Maker, shape: tuple[int, ...], dtype: Any, device: Any) -> Any:
    """The array that `make` makes, in the memory of the device that is wanted."""
    place = made_on(device)
    if place is None:
        return allocated(make, shape, dtype)
    library = find_library(place.type)
    return library.on(place, lambda: allocated(library.maker(make), shape, dtype))


@declare(out_resized="silently", found="torch")
def zeros(*size: Any, **options: Any) -> Tensor:
    """A tensor of zeros.

    `size` is given as numbers or as one tuple. `dtype` is float32 unless given or set as default.

    >>> import pullback
    >>> pullback.zeros(2, 2)
    tensor([[0., 0.],
            [0., 0.]])
    """
    if process.changed and (shown := show_creation(zeros, size, options)) is not None:
        return shown
    return _filled("zeros", array_module.zeros, size, options)


@declare(out_resized="silently", found="torch")
def ones(*size: Any, **options: Any) -> Tensor:
    """A tensor of ones.

    `size` is given as numbers or as one tuple: `ones(2, 3)` and `ones((2, 3))` are (2, 3). `dtype` is float32 unless
    given or set as default.
    """
    if process.changed and (shown := show_creation(ones, size, options)) is not None:
        return shown
    return _filled("ones", array_module.ones, size, options)


@declare(out_resized="silently", found="torch")
def empty(*size: Any, **options: Any) -> Tensor:
    """A tensor of uninitialised memory.

    The size is given as numbers or as one sequence. What the memory holds is not known: write to it before it is read.

    >>> import pullback
    >>> pullback.empty(2, 3).shape
    pullback.Size([2, 3])
    """
    if process.changed and (shown := show_creation(empty, size, options)) is not None:
        return shown
    return _filled("empty", array_module.empty, size, options)


@told_to_modes
@declare(out_resized="silently", found="torch")
def full(size: Any, fill_value: Any, *, dtype: Any = None, **options: Any) -> Tensor:
    """A tensor filled with one value.

    `size` is a tuple; `dtype` is that of `fill_value` (int64, bool) or the default dtype unless given.
    """
    if process.changed:
        if isinstance(fill_value, Tensor) and is_dispatching() and fill_value._array.size == 1:
            fill_value = fill_value.item()
        shown = show_creation(full, (size, fill_value), {"dtype": dtype, **options})
        if shown is not None:
            return shown
    if not isinstance(size, (tuple, list)):
        raise TypeError(f"full(): argument 'size' (position 1) must be tuple of ints, not {type(size).__name__}")
    options.pop("names", None)
    value = number_of("full", "fill_value", 2, fill_value)
    wanted = dtype_option("full", dtype, options.get("out"))
    if wanted is None:
        wanted = number_dtype(value)
    return finish("full", allocated(checked_fill, sizes_of((size,), "full"), value, wanted), options)


def _like(function: str, input: Tensor, make: Maker, options: dict[str, Any]) -> Tensor:
    if not isinstance(input, Tensor):
        raise TypeError(f"{function}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    source = input._array
    order = getattr(options.pop("memory_format", None), "name", "preserve_format") if options else "preserve_format"
    if type(source) is not array_module.ndarray and options.get("device") is None:
        options["device"] = device_of(source)
    if not options and order == "preserve_format" and source.flags.c_contiguous:
        return wrap(make(source.shape, source.dtype))
    wanted = dtype_option(function, options.pop("dtype", None)) or source.dtype
    array = _on_device(make, source.shape, wanted, options.get("device"))
    if order == "preserve_format" and not source.flags.c_contiguous:
        array = in_memory_order_of(array, source)
    elif order.startswith("channels_last"):
        array = channels_last_array(array)
    return finish(function, array, options)


@overridable
@declare(without_gradient=True, structure="elementwise", found="torch")
def zeros_like(input: Tensor, **options: Any) -> Tensor:
    """Zeros in the shape and dtype of `input`.

    `dtype`, `device` and `requires_grad` may be given.

    >>> import pullback
    >>> pullback.zeros_like(pullback.tensor([1, 2]))
    tensor([0, 0])
    """
    if type(input) is not Tensor and isinstance(input, SparseTensor) and options.get("layout") in (None, input.layout):
        return _nothing_stored(input, **options)
    return _like("zeros_like", input, array_module.zeros, options)


def _nothing_stored(
    input: SparseTensor,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """A sparse tensor that stores no values, which says that all are zero."""
    if memory_format is not None and type(input) is SparseTensor:
        raise RuntimeError("memory format option is only supported by strided tensors: leave it out for sparse ones.")
    array = input._sparse
    values = array.values[:0].astype(dtype_option("zeros_like", dtype) or array.values.dtype)
    made = new_sparse_tensor(SparseArray(array.indices[:, :0], values, array.shape, True), type(input))
    return made.requires_grad_() if requires_grad else made


@overridable
@declare(without_gradient=True, structure="elementwise", found="torch")
def ones_like(input: Tensor, **options: Any) -> Tensor:
    """Ones in the shape and dtype of `input`.

    `dtype`, `device` and `requires_grad` may be given.

    >>> import pullback
    >>> pullback.ones_like(pullback.tensor([1., 2.]))
    tensor([1., 1.])
    """
    return _like("ones_like", input, array_module.ones, options)


@overridable
@declare(without_gradient=True, structure="elementwise", found="torch")
def empty_like(input: Tensor, **options: Any) -> Tensor:
    """Uninitialised memory in the shape and dtype of `input`.

    `dtype`, `device` and `requires_grad` replace what `input` has.

    >>> import pullback
    >>> pullback.empty_like(pullback.ones(2, 3)).shape
    pullback.Size([2, 3])
    """
    return _like("empty_like", input, array_module.empty, options)


@overridable
@declare(without_gradient=True, structure="elementwise", found="torch")
def full_like(input: Tensor, fill_value: Any, **options: Any) -> Tensor:
    """One value in the shape and dtype of `input`.

    `dtype`, `device` and `requires_grad` replace what `input` has.

    >>> import pullback
    >>> pullback.full_like(pullback.ones(2), 7)
    tensor([7., 7.])
    """
    value = number_of("full_like", "fill_value", 2, fill_value)
    return _like("full_like", input, lambda shape, wanted: checked_fill(shape, value, wanted), options)


@declare(found="torch")
@told_to_modes
def empty_strided(size: Any, stride: Any, *, dtype: Any = None, **options: Any) -> Tensor:
    """Uninitialised memory with the given strides."""
    if process.changed:
        shown = show_creation(empty_strided, (size, stride), {"dtype": dtype, **options})
        if shown is not None:
            return shown
    wanted = dtype_option("empty_strided", dtype) or default_float()
    if any(isinstance(step, int) and step < 0 for step in stride):
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(size)} and strides={list(stride)}")
    sizes = sizes_of((size,), "empty_strided")
    check_strides(sizes, tuple(stride))
    return finish("empty_strided", allocated(strided_array, sizes, tuple(stride), wanted), options)


@declare(found="torch")
@told_to_modes
def empty_permuted(size: Any, physical_layout: Any, *, dtype: Any = None, **options: Any) -> Tensor:
    """Uninitialised memory whose dimensions lie in the given order, slowest first."""
    wanted = dtype_option("empty_permuted", dtype) or default_float()
    sizes = sizes_of((size,), "empty_permuted")
    check_layout(sizes, tuple(physical_layout))
    return finish("empty_permuted", allocated(permuted_array, sizes, tuple(physical_layout), wanted), options)
