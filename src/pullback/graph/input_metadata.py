"""What a node knows about each gradient that reaches it: the shape, dtype and device of the forward result."""

from __future__ import annotations

from pullback.backend.array_module import zeros
from pullback.backend.device import CPU, move_array
from pullback.backend.device import device as device_type
from pullback.backend.dtype import dtype, from_numpy_dtype
from pullback.typing import Array, DType, Shape


class InputMetadata:
    """Shape and type of one gradient that flows into a node. (No dataclass: a frozen one takes twice as long to make.)"""

    __slots__ = ("any_dtype", "known_device", "numpy_dtype", "shape")

    def __init__(
        self, shape: Shape, numpy_dtype: DType, any_dtype: bool = False, device: device_type | None = None
    ) -> None:
        self.known_device = device
        """Where it lies; None where the node does not know."""
        self.shape = shape
        self.numpy_dtype = numpy_dtype
        self.any_dtype = any_dtype
        """Whether a gradient may have another dtype: of a leaf whose `grad_dtype` is None."""

    @property
    def dtype(self) -> dtype:
        return from_numpy_dtype(self.numpy_dtype)

    @property
    def is_nested_tensor(self) -> bool:
        return False

    @property
    def is_cpp_nested_tensor(self) -> bool:
        return False

    @property
    def device(self) -> device_type:
        """Where it lies, as far as the node knows: else the CPU."""
        return CPU if self.known_device is None else self.known_device

    def zeros(self) -> Array:
        """The gradient of an output that nothing used."""
        made = zeros(self.shape, self.numpy_dtype)
        return made if self.device is CPU else move_array(made, self.device)
