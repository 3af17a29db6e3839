"""Pickles an object for a checkpoint: tensors by PyTorch's names, their bytes set aside as storages.

Based on pickle's Python implementation, because the C one insists on importing every class whose name it writes, and
PyTorch's names must be written where PyTorch is not installed.
"""

from __future__ import annotations

import pickle
import sys
from collections import OrderedDict
from dataclasses import dataclass
from operator import attrgetter
from types import FunctionType
from typing import Any

from pullback.backend.dtype import dtype, from_numpy_dtype
from pullback.backend.random.generator import Generator
from pullback.backend.storage import StorageView, view_of_storage
from pullback.pytorch.torch_places import place_of
from pullback.serialization import torch_names
from pullback.serialization.storage import Storage, location_tag
from pullback.serialization.tensor_access import TensorAccess, TensorDescription
from pullback.serialization.torch_names import TorchGlobal

_PLAIN_TYPES = frozenset({type(None), bool, int, float, str, bytes, tuple, list, dict, OrderedDict, TorchGlobal, dtype})


@dataclass(frozen=True, slots=True)
class _StorageReference:
    """Stands for a storage in the pickled object; the pickle gets its key."""

    view: StorageView
    dtype: dtype | None


class StorageTable:
    """The storages met while pickling, each once, in order."""

    def __init__(self, with_view_metadata: bool = False) -> None:
        self._with_view_metadata = with_view_metadata
        self._keys: dict[tuple[int, int], str] = {}
        self._dtypes: dict[str, dtype | None] = {}
        self.views: dict[str, StorageView] = {}

    def persistent_id(self, reference: _StorageReference) -> tuple[object, ...]:
        """How the pickle refers to a storage."""
        view, element = reference.view, reference.dtype
        key = self._keys.setdefault(view.key, str(len(self._keys)))
        if key in self.views and self._dtypes[key] is not element and view.data.size:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different types: "
                f"{_element_name(self._dtypes[key])} and {_element_name(element)}. Clone one of them before saving."
            )
        self.views[key] = view
        self._dtypes[key] = element
        count = view.data.size // (1 if element is None else element.itemsize)
        identifier = ("storage", _storage_name(element), key, location_tag(view), int(count))
        return (*identifier, None) if self._with_view_metadata else identifier

    def element_count(self, key: str) -> int:
        """How many elements the storage of `key` holds."""
        element = self._dtypes[key]
        return int(self.views[key].data.size) // (1 if element is None else element.itemsize)


def _element_name(element: dtype | None) -> str:
    return "bytes" if element is None else element.name


def _storage_name(element: dtype | None) -> TorchGlobal:
    if element is None or element.name not in torch_names.STORAGE_NAMES:
        return torch_names.UNTYPED_STORAGE_NAME
    return torch_names.STORAGE_NAMES[element.name]


def reduce_tensor(access: TensorAccess, tensor: TensorDescription) -> tuple[Any, ...]:
    """Say by which of PyTorch's functions a tensor is made again, and from what."""
    if tensor.stored is not None:
        return torch_names.REBUILD_SPARSE_TENSOR, tensor.stored
    element = from_numpy_dtype(tensor.array.dtype)
    view = view_of_storage(tensor.array)
    geometry = (view.offset, tuple(tensor.array.shape), view.stride)
    requires_grad = tensor.requires_grad and not tensor.is_parameter
    if element.name in torch_names.STORAGE_NAMES:
        function = torch_names.REBUILD_TENSOR
        arguments: tuple[Any, ...] = (_StorageReference(view, element), *geometry, requires_grad, OrderedDict())
    else:
        function = torch_names.REBUILD_UNTYPED_TENSOR
        arguments = (_StorageReference(view, None), *geometry, requires_grad, OrderedDict(), element)
    if tensor.bits:
        arguments = (*arguments, dict(tensor.bits))
    state = dict(tensor.state) or None
    if tensor.type is not None:
        return torch_names.REBUILD_FROM_TYPE, (function, tensor.type, arguments, state)
    if tensor.is_parameter:
        data = _Reduction((function, arguments))
        if state is None:
            return torch_names.REBUILD_PARAMETER, (data, tensor.requires_grad, OrderedDict())
        return torch_names.REBUILD_PARAMETER_WITH_STATE, (data, tensor.requires_grad, OrderedDict(), state)
    if state is not None:
        return torch_names.REBUILD_FROM_TYPE, (function, torch_names.TENSOR, arguments, state)
    return function, arguments


@dataclass(frozen=True, slots=True)
class _Reduction:
    """A value that exists only as the call that makes it again."""

    call: tuple[Any, ...]


def make_pickler(
    pickle_module: Any, output: Any, protocol: int, access: TensorAccess, storages: StorageTable
) -> pickle.Pickler:
    """A pickler of `pickle_module` that writes tensors as PyTorch does."""
    base = getattr(pickle_module, "_Pickler", pickle_module.Pickler)
    if not issubclass(base, pickle._Pickler):  # type: ignore[attr-defined,unused-ignore]  # a part of pickle that typeshed leaves out
        raise TypeError(
            f"{pickle_module.__name__}.Pickler does not derive from pickle's Python implementation, "
            "which writing a checkpoint needs: pass pickle_module=pickle"
        )

    class CheckpointPickler(base):  # type: ignore[misc,valid-type]  # the base is the caller's choice
        dispatch = {
            **base.dispatch, TorchGlobal: _save_torch_global, dtype: _save_dtype,
            type: _save_named, FunctionType: _save_named,
        }  # fmt: skip

        def persistent_id(self, value: object) -> Any:
            return storages.persistent_id(value) if isinstance(value, _StorageReference) else None

        def reducer_override(self, value: object) -> Any:
            if type(value) in _PLAIN_TYPES:
                return NotImplemented
            reduced = _reduce(access, value)
            if reduced is not NotImplemented:
                return reduced
            inherited = getattr(super(), "reducer_override", None)
            return NotImplemented if inherited is None else inherited(value)

    pickler: pickle.Pickler = CheckpointPickler(output, protocol=protocol)
    return pickler


def _reduce(access: TensorAccess, value: object) -> Any:
    if isinstance(value, _Reduction):
        return value.call
    if isinstance(value, access.size_type):
        return torch_names.SIZE, (tuple(value),)  # type: ignore[arg-type]  # a Size is a tuple
    if isinstance(value, access.device_type):
        return torch_names.DEVICE, value.__reduce__()[1]
    if isinstance(value, Generator):
        state = (value.initial_seed(), None, access.tensor_from_array(value.pack_state(), False, None))
        return torch_names.GENERATOR, (value.device,), state
    layout = access.layout_name(value)
    if layout is not None:
        return torch_names.LAYOUT, (layout,)
    if isinstance(value, Storage):
        raise TypeError("a storage cannot be saved by itself: save a tensor over it")
    tensor = access.describe_tensor(value)
    return NotImplemented if tensor is None else reduce_tensor(access, tensor)


def _save_dtype(pickler: Any, value: dtype) -> None:
    pickler.save(torch_names.DTYPE_NAMES[value.name])


def _save_torch_global(pickler: Any, value: TorchGlobal) -> None:
    """Write a name as pickle writes a class, but without importing its module."""
    _write_name(pickler, value.module, value.name)
    pickler.memoize(value)


def _write_name(pickler: Any, module: str, name: str) -> None:
    if pickler.proto >= 4:
        pickler.save(module)
        pickler.save(name)
        pickler.write(pickle.STACK_GLOBAL)
    else:
        pickler.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())


def _save_named(pickler: Any, value: Any) -> None:
    """Write a class or a function of pullback's under PyTorch's name, any other as pickle does."""
    place = place_of(value)
    if place is None:
        pickle._Pickler.dispatch[type if isinstance(value, type) else FunctionType](pickler, value)  # type: ignore[attr-defined,unused-ignore]  # a part of pickle that typeshed leaves out
    elif "." in place[1] and pickler.proto < 4:
        owner, _, name = value.__qualname__.rpartition(".")
        pickler.save_reduce(getattr, (attrgetter(owner)(sys.modules[value.__module__]), name), obj=value)
    else:
        _write_name(pickler, *place)
        pickler.memoize(value)


def dump(
    value: object, output: Any, access: TensorAccess, storages: StorageTable, pickle_module: Any, protocol: int
) -> None:
    """Pickle `value` into `output` and the memory of its tensors into `storages`."""
    make_pickler(pickle_module, output, protocol, access, storages).dump(value)
