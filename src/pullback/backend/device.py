"""Where a tensor's memory lies. Only the CPU so far; a `device` of another type can be named but not used.

On "meta" tensors have a shape and a dtype, and values that do not count (`backend/meta_array.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
            raise TypeError(f"device(): argument 'type' (position 1) must be str, not {type.__class__.__name__}")
        name, colon, number = type.partition(":")
        if name not in _KNOWN.split(", ") or (colon and not number.isdigit()):
            raise RuntimeError(
                f"Expected one of {_KNOWN} device type at start of device string: {name}"
                if name not in _KNOWN.split(", ")
                else f"Invalid device string: '{type}'"
            )
        if colon and index is not None:
            raise RuntimeError(f"type (string) must not include an index because index was passed explicitly: {type}")
        self.type = name
        self.index = int(number) if colon else index

    def __enter__(self) -> device:
        """Make new tensors on this device from here on."""
        blocks.enter(self)
        return self

    def __exit__(self, *exception: object) -> None:
        blocks.leave()

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


class _Blocks:
    """What happens at the two ends of `with device(...)`; a layer above, which knows the switches, sets it."""

    enter: Callable[[device], None]
    leave: Callable[[], None]


blocks = _Blocks()
CPU = device("cpu")
META = device("meta")


def usable_device(value: Any) -> device:
    """Return `value` as a device on which this build can make tensors."""
    if isinstance(value, int):
        raise RuntimeError(f"Cannot access accelerator device when none is available: {value}")
    found = CPU if value is None else value if isinstance(value, device) else device(value)
    if found.type == "cpu" or found.type == "meta":
        return found
    if found.type == "cuda":
        raise AssertionError("Torch not compiled with CUDA enabled: this build of pullback computes on the CPU only")
    raise NotImplementedError(f"pullback cannot make tensors on the device '{found}': use 'cpu'")
