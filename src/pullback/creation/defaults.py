"""What tensors are made of where a program does not say: the device, and the dtype of Python floats."""

from __future__ import annotations

from typing import Any

from pullback.backend.device import CPU, device, usable_device
from pullback.backend.dtype import TYPE_NAME_TO_DTYPE, set_default_dtype
from pullback.modes.switches import set_switch, switches
from pullback.modes.user_warnings import warn_once


def get_default_device() -> device:
    """The device on which tensors are made.

    >>> get_default_device()
    device(type='cpu')
    """
    return switches.new_device or CPU


def set_default_device(device: Any) -> None:
    """Set the device on which tensors are made: the CPU, a GPU, or "meta" for tensors without values."""
    place = usable_device(device)
    set_switch("new_device", None if place.type == "cpu" else place)


def set_default_tensor_type(t: Any, /) -> None:
    """Set the dtype that Python floats become, by the name of a tensor type."""
    warn_once("torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and "
              "torch.set_default_device().")  # fmt: skip
    name = t if isinstance(t, str) else getattr(t, "__name__", "FloatTensor")
    set_default_dtype(TYPE_NAME_TO_DTYPE[name.rpartition(".")[2]])
