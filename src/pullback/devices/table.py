"""The table of devices: which library serves arrays of a device, and which kernel an operation has there."""

from __future__ import annotations

from functools import wraps
from typing import Any

from pullback.backend.device import register_device_type
from pullback.backend.device_array import DeviceArray
from pullback.backend.traced_array import plain, recorder_of
from pullback.backend.traced_device_array import TracedDeviceArray
from pullback.devices.library import Library
from pullback.devices.loading import Loader
from pullback.devices.several import on_their_device
from pullback.native import use_devices

_FORMULAS = "pullback.recording.array_formulas."
_loaders: dict[type, Loader] = {}


def register(library: Library) -> Loader:
    """Let tensors live on the device of a library."""
    loader = _loaders[library.wrapper] = Loader(library)
    library.find = loader.find  # type: ignore[method-assign]
    register_device_type(library.name, library)
    use_devices(DeviceArray, _find)
    return loader


def _find(array_type: type, reference: Any) -> Any:
    if reference.__module__.startswith(_FORMULAS):
        return reference  # its kernels are found one by one
    if issubclass(array_type, TracedDeviceArray):
        return _followed(_find(array_type.inner_type, reference), reference)
    loader = _loaders[array_type]
    kernel = loader.find(reference)
    if loader.library.is_single() or _is_about_memory(reference):
        return kernel
    return on_their_device(loader.library, kernel, hasattr(reference, "is_for_rows"))


_COMPUTING = ("cast_array", "contains_nan", "copy_array", "parts", "repeat_first", "restride")
"""The functions of backend/array_module.py that programs call; the others look at memory, or make some beside an array."""


def _is_about_memory(reference: Any) -> bool:
    """Whether a function looks at memory alone: arrays of two devices may be asked whether they overlap."""
    module, name = reference.__module__, reference.__name__
    return module == "pullback.backend.array_module" and name not in _COMPUTING and not name.endswith("_beside")


def _followed(kernel: Any, reference: Any) -> Any:
    """A kernel that is called with traced arrays: it is recorded as a whole, and what looks at memory alone is not."""
    module, name = reference.__module__, reference.__name__
    is_about_memory = module == "pullback.backend.array_module" and name not in _COMPUTING
    title = f"{module.removeprefix('pullback.').removeprefix('kernels.').removeprefix('backend.')}.{name}"

    @wraps(reference)
    def call(*args: Any, **options: Any) -> Any:
        recorder = recorder_of(args, options)
        if recorder is None:
            return kernel(*plain(args), **plain(options))
        if not is_about_memory:
            return recorder.run(title, kernel, args, options)
        found = kernel(*plain(args), **plain(options))
        is_view = isinstance(found, DeviceArray) and not name.endswith("_beside")
        return recorder.see(found) if is_view else found

    return call
