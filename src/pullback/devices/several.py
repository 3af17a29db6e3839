"""OnTheirDevice: the work of a library with several devices goes to the device that its arrays lie on.

# Note [Several devices]
A launch goes to the device that is current, so that of its arrays must be. As in PyTorch, a program sees none of this: the
current device says only where new tensors go that are asked for without a number. Kernels that come in from above are
wrapped (`on_their_device`): arrays of two devices are refused, and the device is current while the kernel runs, so whatever
the kernel makes lies there too. What arrays do outside of kernels goes through the library's own functions, which this class
wraps likewise. A library with one device uses neither and pays nothing.
Copies between devices let the queues of both wait for each other. Calls are put off for one device at a time (Note [Deferred
work]). Tables that are kept in a device's memory are kept for each device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

from pullback.backend.device import device
from pullback.backend.device_array import DeviceArray
from pullback.devices.library import Library
from pullback.errors import devices_differ


def common_place(values: Iterable[Any], found: device | None = None) -> device | None:
    """The device that all arrays among values lie on, also in lists; None without one. RuntimeError if they differ."""
    for value in values:
        if isinstance(value, DeviceArray):
            place = value.place
            if found is None:
                found = place
            elif place != found:
                raise devices_differ(str(found), str(place))
        elif type(value) is list or type(value) is tuple:
            found = common_place(value, found)
    return found


def on_their_device(library: Library, kernel: Callable[..., Any], takes_rows: bool = False) -> Callable[..., Any]:
    """A kernel that runs on the device of its arrays; of one that takes rows of arrays, each row may have its own."""

    @wraps(kernel)
    def call(*args: Any, **options: Any) -> Any:
        place = common_place((*args, *options.values()))
        return kernel(*args, **options) if place is None else library.on(place, lambda: kernel(*args, **options))

    @wraps(kernel)
    def call_by_device(rows: Any, *args: Any, **options: Any) -> Any:
        parts: dict[Any, list[Any]] = {}
        for row in rows:
            parts.setdefault(common_place(row), []).append(row)
        for part in parts.values():
            call(part, *args, **options)

    return call_by_device if takes_rows else call


class OnTheirDevice(Library):
    """What a library with several devices puts before its own functions."""

    def is_single(self) -> bool:
        return False

    def call(self, function: Any, args: Any, options: Any) -> Any:
        place = common_place((*args, *options.values()))
        run = super().call
        return run(function, args, options) if place is None else self.on(place, lambda: run(function, args, options))

    def call_method(self, array: DeviceArray, name: str, args: Any, options: Any) -> Any:
        run = super().call_method
        return self.on(array.place, lambda: run(array, name, args, options))

    def take(self, raw: Any, index: Any) -> Any:
        run = super().take
        return self._at(raw, lambda: run(raw, index))

    def put(self, raw: Any, index: Any, value: Any) -> None:
        run = super().put
        if isinstance(value, self.array_type) and self.place_of(value) != self.place_of(raw):
            raise devices_differ(str(self.place_of(raw)), str(self.place_of(value)))
        self._at(raw, lambda: run(raw, index, value))

    def read(self, raw: Any, why: str) -> Any:
        run = super().read
        return self._at(raw, lambda: run(raw, why))

    def download(self, raw: Any) -> Any:
        run = super().download
        return self._at(raw, lambda: run(raw))

    def park(self, raw: Any) -> Any:
        run = super().park
        return self._at(raw, lambda: run(raw))

    def _at(self, raw: Any, run: Callable[[], Any]) -> Any:
        return self.on(self.place_of(raw), run)
