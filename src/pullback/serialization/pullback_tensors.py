"""Checkpoints of pullback's own tensors, and their plain pickles."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Mapping
from typing import Any

from pullback.backend import layout as layouts
from pullback.backend.device import device
from pullback.backend.dtype import from_numpy_dtype
from pullback.backend.mirror import mirror_of
from pullback.backend.storage import strided_view, view_of_storage
from pullback.modes.user_warnings import warn_user
from pullback.serialization.rebuild import belongs_to_pullback, set_tensor_state
from pullback.serialization.tensor_access import TensorDescription
from pullback.serialization.torch_names import DTYPES
from pullback.tensor.size import Size
from pullback.tensor.sparse_tensor import SparseTensor, sparse_from_stored
from pullback.tensor.tensor import Tensor, new_tensor
from pullback.tensor.tensor_base import TensorBase, copy_state
from pullback.typing import Array, Shape


class PullbackTensors:
    """The `TensorAccess` of Tensor and Parameter."""

    tensor_type: type = Tensor
    size_type: type = Size
    device_type: type = device

    @property
    def parameter_type(self) -> type:
        """Parameter, which lies above this layer."""
        from pullback.nn.parameter import Parameter  # lazy: parameters are rebuilt only if a file holds one

        return Parameter

    def describe_tensor(self, value: object) -> TensorDescription | None:
        """Describe `value` if it is a tensor."""
        if not isinstance(value, Tensor):
            return None
        kind = type(value)
        if isinstance(value, SparseTensor):
            return TensorDescription(value._values()._array, False, stored=(value.layout, value._stored()))
        if kind.__reduce_ex__ is not Tensor.__reduce_ex__ and not hasattr(kind.__reduce_ex__, "is_asking"):
            return None  # the class says itself how it is pickled
        _warn_of_hooks(value)
        is_parameter = _is_parameter_type(kind)
        return TensorDescription(
            array=value._memory(),
            requires_grad=value.requires_grad,
            is_parameter=is_parameter,
            type=None if kind is Tensor or is_parameter else kind,
            state=user_state(value),
            bits=_bits(value),
        )

    def tensor_from_array(self, array: Array, requires_grad: bool, hooks: object) -> Tensor:
        """Make a leaf over `array`, sharing its memory."""
        tensor = new_tensor(array)
        if requires_grad:
            tensor.requires_grad_()
        if hooks:
            tensor._backward_hooks = hooks
        return tensor

    def turned(self, tensor: Tensor, bits: Mapping[str, object]) -> Tensor:
        """Make a leaf, just made, a conjugated or negated view of its memory. See Note [Lazy conjugation]."""
        mirror = mirror_of(tensor._array, conj=bool(bits.get("conj")), neg=bool(bits.get("neg")))
        assert mirror is not None
        tensor._array = mirror.shown
        tensor._require_extra().mirror = mirror
        return tensor

    def parameter_from_tensor(self, data: Tensor, requires_grad: bool, hooks: object) -> Tensor:
        """Make a parameter of a tensor, sharing its memory."""
        parameter: Tensor = self.parameter_type(data, requires_grad)
        if hooks:
            parameter._backward_hooks = hooks
        return parameter

    def sparse_from_stored(self, layout: object, stored: object) -> Tensor:
        """Make the sparse tensor of a `TensorDescription.stored`; a ValueError says that there is none."""
        return sparse_from_stored(getattr(layout, "name", ""), stored)

    def layout_name(self, value: object) -> str | None:
        """PyTorch's name of `value` if it is a layout."""
        return f"torch.{value.name}" if isinstance(value, layouts.layout) else None

    def layout_from_name(self, name: str) -> object:
        """The layout that PyTorch calls `name`."""
        found = getattr(layouts, name.removeprefix("torch."), None)
        if not isinstance(found, layouts.layout):
            raise pickle.UnpicklingError("a layout that pullback does not have")
        return found

    def as_type(self, tensor: Tensor, type: type) -> Tensor:
        """`tensor` as an instance of a subclass of Tensor."""
        converted: Tensor = TensorBase.__new__(type)
        copy_state(tensor, converted)
        vars(converted).update(vars(tensor))
        return converted


def _bits(tensor: Tensor) -> dict[str, bool]:
    mirror = tensor._extra.mirror if tensor._extra is not None else None
    if mirror is None:
        return {}
    return {name: True for name, is_set in (("conj", mirror.conj), ("neg", mirror.neg)) if is_set}


def _is_parameter_type(kind: type) -> bool:
    module = sys.modules.get("pullback.nn.parameter")
    return module is not None and kind is module.Parameter


def user_state(tensor: Tensor) -> dict[str, object]:
    """The attributes that a tensor has from its user, not from pullback."""
    kind = type(tensor)
    return {name: value for name, value in vars(tensor).items() if not belongs_to_pullback(kind, name)}


def _warn_of_hooks(tensor: Tensor) -> None:
    for hook in (tensor._backward_hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warn_user(
                f"backward hook {hook!r} on tensor will not be serialized. If that is as it should be, mark the "
                "function with @torch.utils.hooks.unserializable_hook."
            )


def reduce_tensor(tensor: Tensor) -> tuple[Any, ...]:
    """What `Tensor.__reduce_ex__` returns: the call that makes the tensor again from a plain pickle.

    The array that owns the memory is pickled, not the view: pickle writes it once however many tensors share it.
    """
    if isinstance(tensor, SparseTensor):
        return sparse_from_stored, (tensor._layout_name, tensor._stored())
    array = tensor._memory()
    view = view_of_storage(array)
    name = from_numpy_dtype(array.dtype).name
    arguments = (view.owner, name, view.offset, tuple(array.shape), view.stride, tensor.requires_grad)
    _warn_of_hooks(tensor)
    bits = _bits(tensor)
    kind = None if type(tensor) is Tensor else type(tensor)  # None: the class may go by another name where it is read
    return _rebuild_tensor, (kind, *arguments, user_state(tensor) or None, *([bits] if bits else []))


def _rebuild_tensor(
    kind: type | None,
    owner: Array,
    dtype_name: str,
    offset: int,
    size: Shape,
    stride: Shape,
    requires_grad: bool,
    state: object,
    bits: Mapping[str, bool] | None = None,
) -> Tensor:
    """Make a tensor again over the memory of `owner`."""
    array = strided_view(view_of_storage(owner).data, DTYPES[dtype_name].numpy_dtype, offset, size, stride)
    access = PullbackTensors()
    if kind is not None and _is_parameter_type(kind):
        tensor = access.parameter_from_tensor(new_tensor(array), requires_grad, None)
    else:
        tensor = access.tensor_from_array(array, requires_grad, None)
        tensor = tensor if kind in (None, Tensor) else access.as_type(tensor, kind)
    if state is not None:
        set_tensor_state(tensor, state)
    return access.turned(tensor, bits) if bits else tensor
