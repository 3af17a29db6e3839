"""The table of devices: which library serves arrays of a device, and which kernel an operation has there."""

from __future__ import annotations

from typing import Any

from pullback.backend.device import register_device_type
from pullback.backend.device_array import DeviceArray
from pullback.devices.library import Library
from pullback.devices.loading import Loader
from pullback.native import use_devices

_loaders: dict[type, Loader] = {}


def register(library: Library) -> Loader:
    """Let tensors live on the device of a library."""
    loader = _loaders[library.wrapper] = Loader(library)
    library.find = loader.find  # type: ignore[method-assign]
    register_device_type(library.name, library)
    use_devices(DeviceArray, _find)
    return loader


def _find(array_type: type, reference: Any) -> Any:
    return _loaders[array_type].find(reference)


def device_kernel(name: str, array_type: type) -> Any:
    """The kernel of that name that serves arrays of a type."""
    from pullback.kernels import _MODULES

    return getattr(_loaders[array_type].module(_MODULES[name]), name)
