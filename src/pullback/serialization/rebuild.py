"""Makes tensors again from the descriptions in a checkpoint, after checking every number of the description."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, NoReturn, Protocol

from pullback.backend.device import move_array, usable_device
from pullback.backend.dtype import dtype
from pullback.backend.storage import strided_view
from pullback.serialization.storage import Storage
from pullback.serialization.tensor_access import TensorAccess
from pullback.typing import Shape


class Budget(Protocol):
    """What limits how much a file may have copied."""

    def spend(self, amount: int) -> None:
        """Take from what is left."""


class Rebuilder:
    """PyTorch's rebuild functions by name, for one kind of tensors."""

    def __init__(self, access: TensorAccess, budget: Budget) -> None:
        self._access = access
        self._budget = budget
        self.functions: dict[str, Callable[..., object]] = {
            "torch._utils._rebuild_tensor": self._rebuild_first_version,
            "torch._utils._rebuild_tensor_v2": self.rebuild_tensor,
            "torch._utils._rebuild_tensor_v3": self._rebuild_untyped,
            "torch._utils._rebuild_parameter": self.rebuild_parameter,
            "torch._utils._rebuild_parameter_with_state": self._rebuild_parameter_with_state,
            "torch._tensor._rebuild_from_type": self._rebuild_from_type,
            "torch._tensor._rebuild_from_type_v2": self._rebuild_from_type,
            "torch._utils._rebuild_sparse_tensor": self._rebuild_sparse,
            "torch._utils._rebuild_sparse_csr_tensor": _refuse("sparse tensors"),
            "torch._utils._rebuild_qtensor": _refuse("quantized tensors"),
            "torch._utils._rebuild_nested_tensor": _refuse("nested tensors"),
            "torch._utils._rebuild_meta_tensor_no_storage": _refuse("tensors on the meta device"),
            "torch._utils._rebuild_wrapper_subclass": _refuse("wrapper subclasses"),
            "torch._utils._rebuild_device_tensor_from_numpy": _refuse("tensors of devices without storages"),
            "torch._utils._rebuild_device_tensor_from_cpu_tensor": _refuse("tensors of devices without storages"),
        }
        self._tensor_functions = set(map(id, self.functions.values()))

    def rebuild_tensor(
        self,
        storage: object,
        storage_offset: object,
        size: object,
        stride: object,
        requires_grad: object = False,
        hooks: object = None,
        metadata: object = None,
    ) -> Any:
        """A tensor over a typed storage."""
        if not isinstance(storage, Storage) or storage.dtype is None:
            raise pickle.UnpicklingError(f"a tensor needs a typed storage, but the file gives {_name(storage)}")
        return self._tensor(storage, storage.dtype, storage_offset, size, stride, requires_grad, hooks, metadata)

    def _rebuild_first_version(self, storage: object, storage_offset: object, size: object, stride: object) -> Any:
        return self.rebuild_tensor(storage, storage_offset, size, stride)

    def _rebuild_untyped(
        self,
        storage: object,
        storage_offset: object,
        size: object,
        stride: object,
        requires_grad: object,
        hooks: object,
        element: object,
        metadata: object = None,
    ) -> Any:
        if not isinstance(storage, Storage) or not isinstance(element, dtype):
            raise pickle.UnpicklingError(
                f"a tensor needs a storage and a dtype, but the file gives {_name(storage)} and {_name(element)}"
            )
        return self._tensor(storage, element, storage_offset, size, stride, requires_grad, hooks, metadata)

    def _tensor(
        self,
        storage: Storage,
        element: dtype,
        offset: object,
        size: object,
        stride: object,
        requires_grad: object,
        hooks: object,
        metadata: object,
    ) -> Any:
        data, numpy_dtype = storage.memory_of(element)
        if metadata and (not isinstance(metadata, dict) or not set(metadata) <= {"conj", "neg"}):
            raise pickle.UnpicklingError("the metadata of a tensor may only say 'conj' and 'neg'")
        array = strided_view(data, numpy_dtype, _integer(offset), _integers(size), _integers(stride))
        if metadata or storage.location != "cpu":
            # An expanded tensor is larger than its storage, and is copied here. (A part takes 32 bytes or more.)
            self._budget.spend(array.nbytes // 32)
        if storage.location != "cpu":
            array = move_array(array, usable_device(storage.location))
        tensor = self._access.tensor_from_array(array, _boolean(requires_grad), _hooks(hooks))
        return self._access.turned(tensor, metadata) if isinstance(metadata, dict) and metadata else tensor

    def _rebuild_sparse(self, layout: object, stored: object) -> Any:
        """A tensor stored as indices and values."""
        try:
            return self._access.sparse_from_stored(layout, stored)
        except (ValueError, TypeError) as error:
            raise pickle.UnpicklingError(str(error)) from error

    def rebuild_parameter(self, data: object, requires_grad: object, hooks: object) -> Any:
        """A parameter over the memory of a tensor."""
        if not isinstance(data, self._access.tensor_type):
            raise pickle.UnpicklingError(f"a parameter needs a tensor, but the file gives {_name(data)}")
        return self._access.parameter_from_tensor(data, _boolean(requires_grad), _hooks(hooks))

    def _rebuild_parameter_with_state(self, data: object, requires_grad: object, hooks: object, state: object) -> Any:
        return set_tensor_state(self.rebuild_parameter(data, requires_grad, hooks), state)

    def _rebuild_from_type(self, function: object, type: object, arguments: object, state: object) -> Any:
        """A tensor with attributes, or of a subclass."""
        if id(function) not in self._tensor_functions or not callable(function):
            raise pickle.UnpicklingError(f"a tensor cannot be rebuilt by {_name(function)}")
        if not isinstance(type, _TYPE) or not issubclass(type, self._access.tensor_type):
            raise pickle.UnpicklingError(f"a tensor cannot be of the type {_name(type)}")
        if not isinstance(arguments, tuple):
            raise pickle.UnpicklingError(f"a tensor's description must be a tuple, not {_name(arguments)}")
        tensor = function(*arguments)
        if not isinstance(tensor, type):
            tensor = self._access.as_type(tensor, type)
        return set_tensor_state(tensor, state)


_TYPE = type


def set_tensor_state(tensor: Any, state: object) -> Any:
    """Give a tensor the attributes that its user had set; pullback's own state on it cannot be overwritten."""
    if isinstance(state, tuple) and len(state) == 2:
        _set_attributes(tensor, state[1])
        state = state[0]
    _set_attributes(tensor, state)
    return tensor


def _set_attributes(tensor: Any, state: object) -> None:
    if state is None:
        return
    if not isinstance(state, dict) or not all(isinstance(name, str) for name in state):
        raise pickle.UnpicklingError(f"a tensor's state must be a dict of attributes, not {_name(state)}")
    for name, value in state.items():
        if name.startswith("__") or belongs_to_pullback(type(tensor), name):
            raise pickle.UnpicklingError(f"the attribute {name[:100]!r} of a tensor cannot be set from a file")
        if name in _MARKS and not isinstance(value, bool):
            raise pickle.UnpicklingError(f"the attribute {name!r} of a tensor must be a bool")
        setattr(tensor, name, value)


_MARKS = frozenset({"_is_param", "_is_buffer"})
"""What makes a tensor of the user's class a parameter or a buffer; PyTorch's files hold it among the attributes."""


def belongs_to_pullback(owner: type, name: str) -> bool:
    """Whether an attribute of instances of `owner` is part of pullback's own state rather than the user's."""
    if name in _MARKS:
        return False
    own_bases = [base for base in owner.__mro__ if base.__module__.partition(".")[0] in ("pullback", "torch")]
    return any(name in vars(base) or name in vars(base).get("__annotations__", ()) for base in own_bases)


def _refuse(what: str) -> Callable[..., NoReturn]:
    def refuse(*arguments: object) -> NoReturn:
        raise pickle.UnpicklingError(f"the file holds {what}, which pullback does not have")

    return refuse


def _integer(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise pickle.UnpicklingError(f"expected an integer in a tensor's description, got {_name(value)}")


def _integers(values: object) -> Shape:
    if isinstance(values, (tuple, list)):
        return tuple([_integer(value) for value in values])
    raise pickle.UnpicklingError(f"expected sizes or strides in a tensor's description, got {_name(values)}")


def _hooks(value: object) -> object:
    if value is None or (isinstance(value, dict) and all(callable(hook) for hook in value.values())):
        return value
    raise pickle.UnpicklingError(f"expected the hooks of a tensor to be a dict of functions, got {_name(value)}")


def _boolean(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise pickle.UnpicklingError(f"expected requires_grad to be a bool, got {_name(value)}")


def _name(value: object) -> str:
    # Never the value itself: its repr may be unbounded.
    return f"the class {value.__qualname__}" if isinstance(value, type) else f"a value of type {type(value).__name__}"


def checked_size(values: object = ()) -> Shape:
    """The sizes of a `torch.Size` in a file."""
    return _integers(values)
