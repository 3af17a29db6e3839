"""Where a tensor's memory lies: the CPU, or a device whose array library was registered (`devices/table.py`).

On "meta" tensors have a shape and a dtype, and values that do not count (`backend/meta_array.py`).
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

from pullback.errors import kind_of
from pullback.typing import Array

_FORM = re.compile(r"[a-zA-Z_]+(:(0|[1-9][0-9]*))?")
_KNOWN = (
    "cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan, mps, meta, hpu, "
    "mtia, privateuseone"
)


class device:
    """A device such as `device("cpu")`.

    >>> device("cpu").type, device("cuda:1").index
    ('cpu', 1)
    """

    __slots__ = ("index", "type")

    def __init__(self, type: Any = "cpu", index: int | None = None) -> None:
        if index is not None and not isinstance(index, int):
            raise TypeError(f"device(): argument 'index' (position 2) must be int, not {index.__class__.__name__}")
        if isinstance(type, device):
            self.type: str = type.type
            self.index: int | None = type.index if index is None else index
            return
        if isinstance(type, int) and not isinstance(type, bool):
            type, index = "cuda", type
        if not isinstance(type, str):
            raise TypeError(f"device(): argument 'type' (position 1) must be str, not {kind_of(type)}")
        name, colon, number = type.partition(":")
        is_known = name in _KNOWN.split(", ") or name in _libraries
        if not is_known or (colon and not _FORM.fullmatch(type)):
            raise RuntimeError(
                f"Expected one of {_KNOWN} device type at start of device string: {name}"
                if _FORM.fullmatch(type)
                else f"Invalid device string: '{type}'"
                if type
                else "Device string must not be empty"
            )
        if colon and index is not None:
            raise RuntimeError(f"type (string) must not include an index because index was passed explicitly: {type}")
        self.type = name
        self.index = int(number) if colon else index

    def __enter__(self) -> device:
        """Make new tensors on this device from here on. A layer above, which knows the switches, sets both methods."""
        raise NotImplementedError

    def __exit__(self, *exception: object) -> None:
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __repr__(self) -> str:
        return (
            f"device(type='{self.type}')" if self.index is None else f"device(type='{self.type}', index={self.index})"
        )

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __reduce__(self) -> tuple[Any, ...]:
        return device, ((self.type,) if self.index is None else (self.type, self.index))


_libraries: dict[str, Any] = {}
in_use: list[Any] = []
"""The libraries of devices beside the CPU, for what must be quick to see that there is none."""
"""The array library of each type of device, `Library` of devices/library.py."""

CPU = device("cpu")
META = device("meta")


def register_device_type(type: str, library: Any) -> None:
    """Make devices of a type usable: `library` makes their arrays."""
    _libraries[type] = library
    in_use[:] = _libraries.values()


def known_libraries() -> list[Any]:
    """The libraries of devices that are in use."""
    return list(_libraries.values())


def find_library(type: str) -> Any:
    """The library of a type of device; None where it has none. That of GPUs is looked for when first asked for."""
    found = _libraries.get(type)
    if found is None and type == "cuda":
        found = import_module("pullback.devices.cuda").load()  # lazy: most programs compute on the CPU
    return found


def usable_device(value: Any) -> device:
    """Return `value` as a device on which this build can make tensors."""
    if isinstance(value, int) and not isinstance(value, bool):
        if find_library("cuda") is None:
            raise RuntimeError(f"Cannot access accelerator device when none is available: {value}")
        value = device("cuda", value)
    found = CPU if value is None else value if isinstance(value, device) else device(value)
    if found.type == "cpu" or found.type == "meta":
        return found
    library = find_library(found.type)
    if library is not None:
        checked: device = library.checked_place(found)
        return checked
    if found.type == "cuda":
        raise AssertionError(
            "Torch not compiled with CUDA enabled: pullback computes on NVIDIA GPUs through CuPy, and finds "
            f"{import_module('pullback.devices.cuda').what_is_missing()}"
        )
    raise NotImplementedError(f"pullback cannot make tensors on the device '{found}': use 'cpu'")


def device_of(array: Any) -> device:
    """Where an array lies."""
    place: device = getattr(array, "place", CPU)
    return place


def lie_apart(first: Any, second: Any) -> bool:
    """Whether two arrays lie on different devices."""
    return (bool(in_use) or type(first) is not type(second)) and device_of(first) != device_of(second)


def move_array(array: Any, place: device) -> Array:
    """A copy of an array's values on another device."""
    source = device_of(array)
    if source.type == place.type != "cpu":
        return array.library.wrapper(array.library.moved(array.raw, place))
    values = array if source.type == "cpu" else array.library.download(array.raw)
    if place.type == "cpu":
        return values
    library = _libraries[place.type]
    return library.on(place, lambda: library.wrapper(library.upload(values)))
