"""Moving a Module to another dtype or device: its parameters keep their identity, their data changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pullback.autograd.grad_mode import no_grad
from pullback.backend.device import usable_device
from pullback.backend.dtype import bfloat16, dtype, float16, float32, float64
from pullback.creation import empty_like
from pullback.modes.user_warnings import warn_user
from pullback.nn.parameter import Parameter, is_lazy
from pullback.pytorch.__future__ import get_overwrite_module_params_on_conversion
from pullback.tensor.arguments import as_dtype
from pullback.tensor.assignment import may_take_data
from pullback.tensor.tensor import Tensor


class ModuleConversion:
    """The part of Module that converts its tensors."""

    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    children: Callable[[], Iterator[Any]]
    parameters: Callable[..., Iterator[Any]]
    buffers: Callable[..., Iterator[Any]]

    def _apply(self, fn: Callable[[Any], Any], recurse: bool = True) -> Any:
        """Replace every parameter's data, its gradient's data, and every buffer by what `fn` makes of it."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, parameter in self._parameters.items():
            if parameter is None:
                continue
            if is_lazy(parameter):
                self._parameters[name] = fn(parameter)
                continue
            with no_grad():
                converted = fn(parameter)
            grad = parameter._grad
            if get_overwrite_module_params_on_conversion() or not may_take_data(parameter, converted):
                parameter = self._parameters[name] = Parameter(converted, parameter.requires_grad)
            else:
                parameter.data = converted
            if grad is not None:
                with no_grad():
                    parameter._grad = fn(grad).requires_grad_(grad.requires_grad)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Convert floating-point parameters and buffers to a dtype, and move all to a device."""
        wanted, place = _parse_to(args, kwargs)
        target = None if place is None else usable_device(place)
        if target is not None and any(t.device.type != target.type for t in (*self.parameters(), *self.buffers())):
            self._apply(lambda t: t.to(target))
        if wanted is None:
            return self
        if not (wanted.is_floating_point or wanted.is_complex):
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={wanted}"
            )
        if wanted.is_complex:
            warn_user(
                "Complex modules are a new feature in PyTorch: layers that compare or order their values refuse complex "
                "parameters."
            )
        return self._apply(lambda t: t.to(wanted) if _is_inexact(t) else t)

    def type(self, dst_type: Any) -> Any:
        """Convert all parameters and buffers to `dst_type`."""
        return self._apply(lambda t: t.type(dst_type))

    def float(self) -> Any:
        """Convert floating-point parameters and buffers to float32."""
        return self._convert(float32)

    def double(self) -> Any:
        """Convert floating-point parameters and buffers to float64."""
        return self._convert(float64)

    def half(self) -> Any:
        """Convert floating-point parameters and buffers to float16."""
        return self._convert(float16)

    def bfloat16(self) -> Any:
        """Convert floating-point parameters and buffers to bfloat16."""
        return self._convert(bfloat16)

    def _convert(self, wanted: dtype) -> Any:
        return self._apply(lambda t: t.to(wanted) if t.dtype.is_floating_point else t)

    def cpu(self) -> Any:
        """Move everything to the CPU."""
        return self.to("cpu")

    def cuda(self, device: Any = None) -> Any:
        """Move everything to a GPU."""
        return self.to("cuda" if device is None else device)

    def to_empty(self, *, device: Any, recurse: bool = True) -> Any:
        """Give all parameters and buffers new memory that is not initialised."""
        usable_device(device)
        return self._apply(lambda t: empty_like(t, device=device), recurse=recurse)

    def share_memory(self) -> Any:
        """Move everything to shared memory."""
        return self._apply(lambda t: t.share_memory_())


def _is_inexact(tensor: Any) -> bool:
    return bool(tensor.dtype.is_floating_point or tensor.dtype.is_complex)


def _parse_to(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[dtype | None, Any]:
    wanted, place = as_dtype(kwargs.get("dtype")), kwargs.get("device")
    if wanted is not None and not isinstance(wanted, dtype):
        kind = type(wanted).__name__
        raise TypeError(f"to() received an invalid combination of arguments - got (dtype={kind})")
    for value in (*args, kwargs.get("tensor")):
        if isinstance(value, (dtype, type)):
            wanted = as_dtype(value)
        elif isinstance(value, Tensor):
            wanted, place = value.dtype, value.device
        elif value is not None and not isinstance(value, bool):
            place = value
    return wanted, place
