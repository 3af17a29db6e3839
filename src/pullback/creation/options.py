"""What creation functions have in common: sizes, dtype, device, requires_grad, out=."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.backend.device import device as Device
from pullback.backend.device import device_of, move_array, usable_device
from pullback.backend.dtype import is_float_or_complex, scalar_type_name
from pullback.backend.meta_array import as_meta
from pullback.backend.naming import display_namespace
from pullback.errors import kind_of, no_memory, not_a_bool, wrong_type
from pullback.graph.in_place import write_out
from pullback.modes.function_modes import is_told, tell_modes
from pullback.modes.guards import guarded
from pullback.modes.interception import dispatch_operation
from pullback.modes.switches import process, set_switch, switches
from pullback.tensor.arguments import as_int, as_numpy_dtype
from pullback.tensor.tensor import Tensor, new_tensor

_IGNORED = ("layout", "pin_memory", "memory_format")


def wrap(array: Any, requires_grad: bool = False, device: Any = None) -> Tensor:
    """A new leaf around `array`, on the device that is given or that a `with` block around names."""
    if device is not None or (process.changed and switches.new_device is not None):
        array = put_on(array, switches.new_device if device is None else usable_device(device))
    result = new_tensor(array)
    if process.changed:
        result._note_inference()
        for mode in switches.dispatch_modes:
            mode._see_data(result)
    if requires_grad:
        if not is_float_or_complex(array.dtype):
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        result._requires_grad = True
    return result


def put_on(array: Any, place: Device) -> Any:
    """An array on a device: itself where it is there already."""
    if place.type == "meta":
        return as_meta(array)
    return array if device_of(array) == place else move_array(array, place)


def made_on(device: Any) -> Device | None:
    """The device that a creation function is asked for by `device=` or a block around; None for the CPU and "meta"."""
    if device is None:
        device = switches.new_device if process.changed else None
    if device is None:
        return None
    place = usable_device(device)
    return None if place.type in ("cpu", "meta") else place


def _enter_block(device: Device) -> Device:
    """Begin a block whose tensors are made on a device. What is drawn for tensors without values is put back."""
    from pullback.backend.random import default_generator  # lazy: a program may draw nothing

    place = usable_device(device)
    drawn = default_generator.get_state() if place.type == "meta" else None
    former, around = switches.new_device, switches.devices
    try:
        set_switch("new_device", None if place.type == "cpu" else place)
        switches.devices = (*around, (former, drawn))
    except BaseException:
        set_switch("new_device", former)
        raise
    return device


@guarded
def _leave_block(device: Device, *exception: object) -> None:
    from pullback.backend.random import default_generator

    around = switches.devices
    former, drawn = around[-1]
    set_switch("new_device", former)
    if drawn is not None:
        default_generator.set_state(drawn)
    switches.devices = around[:-1]  # the last step: interrupted before it, the block is left again


setattr(Device, "__enter__", _enter_block)  # noqa: B010  # mypy: a method
setattr(Device, "__exit__", _leave_block)  # noqa: B010


def dtype_option(function: str, value: Any, out: Any = None) -> Any:
    """The NumPy dtype given as `dtype=`, or that of a tensor given as `out=`, None without one."""
    try:
        wanted = as_numpy_dtype(value)
    except TypeError:
        raise TypeError(
            f"{function}(): argument 'dtype' must be {display_namespace()}.dtype, not {kind_of(value)}"
        ) from None
    if not isinstance(out, Tensor):
        return wanted
    if wanted is not None and wanted != out._array.dtype:
        names = scalar_type_name(wanted), scalar_type_name(out._array.dtype)
        raise RuntimeError(f"dtype {names[0]} does not match dtype of out parameter ({names[1]})")
    return out._array.dtype


def allocated(make: Callable[..., Any], *arguments: Any) -> Any:
    """The array that a function makes; PyTorch's error if there is no memory for it."""
    try:
        return make(*arguments)
    except (MemoryError, ValueError) as error:
        raise no_memory(error) or error from None


def finish(function: str, array: Any, options: dict[str, Any]) -> Tensor:
    """The tensor around a made array, as the remaining options want it."""
    if not options:
        return wrap(array, False, None)
    device = options.pop("device", None)
    out = options.pop("out", None)
    requires_grad = options.pop("requires_grad", False)
    for name in _IGNORED:
        options.pop(name, None)
    if options:
        raise TypeError(f"{function}() got an unexpected keyword argument '{next(iter(options))}'")
    if requires_grad is not False and requires_grad is not True and requires_grad is not None:
        raise not_a_bool(function, "requires_grad", requires_grad)
    result = wrap(array, requires_grad is True, device)
    return result if out is None else write_out(function, out, result)


def show_creation(function: Callable[..., Tensor], args: tuple[Any, ...], options: dict[str, Any]) -> Tensor | None:
    """Let function or dispatch modes make a tensor; None if there are none. See Note [Dispatch]."""
    if process.modes and is_told():
        return tell_modes(function, args, options)
    shown = dispatch_operation(function, args, options) if switches.dispatch_modes else NotImplemented
    return None if shown is NotImplemented else shown


def sizes_of(size: tuple[Any, ...], function: str = "empty") -> tuple[int, ...]:
    """Sizes given as numbers or as one sequence."""
    in_one = len(size) == 1 and isinstance(size[0], (tuple, list))
    if in_one:
        size = tuple(size[0])
    elif len(size) == 1 and not _is_integer(size[0]):
        raise TypeError(
            f"{function}(): argument 'size' (position 1) must be tuple of ints, not {type(size[0]).__name__}"
        )
    for position, n in enumerate(size, 1):
        if not _is_integer(n):
            if position == 1 and in_one:
                found = f"found element of type {type(n).__name__} at pos 0"
                raise TypeError(f"{function}(): argument 'size' (position 1) must be tuple of ints, but {found}")
            if position == 1:
                raise TypeError(f"{function}() takes 1 positional argument but {len(size)} were given")
            raise TypeError(
                f"{function}(): argument 'size' failed to unpack the object at pos {position} with error \"type "
                "must be "
                f'tuple of ints,but got {type(n).__name__}"'
            )
    shape = tuple([as_int(n) for n in size])
    for n in shape:
        if n < 0:
            if function == "zeros":
                raise RuntimeError(f"zeros: Dimension size must be non-negative. Got {n} in {list(shape)}")
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {list(shape)}")
    return shape


def _is_integer(value: Any) -> bool:
    if type(value) is int:
        return True
    try:
        as_int(value)
    except TypeError:
        return False
    return not isinstance(value, bool)


def number_of(function: str, argument: str, position: int, value: Any) -> Any:
    """A Python number from a number, a 0-dim tensor or a NumPy scalar."""
    if type(value) is int or type(value) is float:
        return value
    if isinstance(value, (bool, int, float, complex)):
        return value.item() if hasattr(value, "item") else value
    if isinstance(value, Tensor):
        if value._array.ndim and function in ("linspace", "logspace"):
            raise RuntimeError(
                f"{function} only supports 0-dimensional start and end tensors, but got {argument} with "
                f"{value._array.ndim} dimension(s)."
            )
        if value._array.size == 1 and (not value._requires_grad or function in ("linspace", "logspace")):
            return value._array.item()
    elif hasattr(value, "item"):
        return value.item()
    raise wrong_type(function, argument, position, "Number", value)
