"""What reading and writing checkpoints must know of tensors, and no more.

The rest of this package handles arrays, bytes and names; whoever passes another `TensorAccess` can store other values
than pullback's tensors in the same files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from pullback.typing import Array


@dataclass(frozen=True, slots=True)
class TensorDescription:
    """One tensor, as it is to be written."""

    array: Array
    requires_grad: bool
    is_parameter: bool = False
    type: type | None = None
    """The class to make again, if it is neither Tensor nor Parameter."""
    state: Mapping[str, object] = field(default_factory=dict)
    """Attributes that the user has set on the tensor."""
    stored: tuple[object, tuple[object, ...]] | None = None
    """The layout and the parts of a sparse tensor, in the place of an array."""
    bits: Mapping[str, bool] = field(default_factory=dict)
    """Whether the tensor shows the memory of `array` conjugated (`conj`) or negated (`neg`)."""


class TensorAccess(Protocol):
    """The border between checkpoints and the Tensor class."""

    @property
    def tensor_type(self) -> type:
        """Tensor, or what plays its part."""

    @property
    def parameter_type(self) -> type:
        """The subclass of `tensor_type` that modules keep."""

    @property
    def size_type(self) -> type:
        """The tuple of sizes."""

    @property
    def device_type(self) -> type:
        """The class of devices."""

    def describe_tensor(self, value: object) -> TensorDescription | None:
        """Describe `value` if it is a tensor."""

    def tensor_from_array(self, array: Array, requires_grad: bool, hooks: object) -> Any:
        """Make a leaf over `array`, sharing its memory."""

    def turned(self, tensor: Any, bits: Mapping[str, object]) -> Any:
        """Make a leaf, just made, a conjugated (`conj`) or negated (`neg`) view of its memory."""

    def parameter_from_tensor(self, data: Any, requires_grad: bool, hooks: object) -> Any:
        """Make a parameter of a tensor, sharing its memory."""

    def sparse_from_stored(self, layout: object, stored: object) -> Any:
        """Make the sparse tensor of a `TensorDescription.stored`; a ValueError says that there is none."""

    def layout_name(self, value: object) -> str | None:
        """PyTorch's name of `value` if it is a layout, such as `torch.strided`."""

    def layout_from_name(self, name: str) -> object:
        """The layout that PyTorch calls `name`."""

    def as_type(self, tensor: Any, type: type) -> Any:
        """`tensor` as an instance of a subclass of Tensor."""
