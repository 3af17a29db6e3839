"""The memory behind a tensor: its storage, its address, its exchange with other libraries, another size for it."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pullback.generated as G
from pullback.backend.array_module import (
    as_strided,
    contiguous_strides,
    copy_array,
    data_address,
    element_strides,
    empty,
    flat_storage,
    storage_of,
    storage_offset,
    zeros,
)
from pullback.backend.device import device as Device
from pullback.backend.device import find_library
from pullback.backend.device_array import DeviceArray
from pullback.backend.dtype import cpp_type_name
from pullback.backend.dtype import dtype as Dtype
from pullback.backend.mirror import mirror_of
from pullback.backend.shared_memory import can_share, mapping_of, moved, shared_copy
from pullback.backend.storage_sizes import has_stated_sizes, state_size, stated_size
from pullback.errors import not_a_tensor, wrong_type
from pullback.facts import declare
from pullback.functions.shape import sizes
from pullback.functions.storages import TypedStorage, UntypedStorage, _storage_class
from pullback.graph.basic_nodes import attach_unimplemented
from pullback.graph.former_shape import keep_former_shape
from pullback.graph.history import bump_version, check_in_place, rebase_history
from pullback.graph.in_place import alias_of
from pullback.graph.tangents import forward_not_implemented, levels_of, tangents_flow
from pullback.kernels.exchange import bytes_of_storage, export_dlpack, map_elements
from pullback.modes.interception import interceptable
from pullback.modes.switches import process, switches
from pullback.modes.user_warnings import warn_once
from pullback.tensor.arguments import as_int
from pullback.tensor.tensor import Tensor, new_tensor
from pullback.tensor.tensor_base import TensorBase, copy_state


@interceptable
@declare(shows_memory=True, found="method")
def untyped_storage(input: Tensor) -> UntypedStorage:
    """The bytes this tensor is a view of."""
    return UntypedStorage(_stored_bytes(input), resize=partial(_resize_storage, input))


@interceptable
@declare(shows_memory=True, found="method")
def storage(input: Tensor) -> TypedStorage:
    """The storage this tensor is a view of, as elements."""
    warn_once("TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage "
              "class: use tensor.untyped_storage().")  # fmt: skip
    return TypedStorage(_stored_bytes(input), input.dtype, resize=partial(_resize_storage, input))


def _stored_bytes(input: Tensor) -> Any:
    memory = input._memory()
    stored = bytes_of_storage(memory)
    return stored[: stated_size(storage_of(memory), stored.size)] if has_stated_sizes() else stored


def _resize_storage(input: Tensor, size: int) -> Any:
    """Give the storage another number of bytes; returns them. See Note [Storages of another size]."""
    memory = input._memory()
    owner, stored = storage_of(memory), bytes_of_storage(memory)
    if size > stored.size:
        larger = zeros((size,), stored.dtype)
        larger[: stored.size] = stored
        _move(input, memory, owner, larger)
        return larger
    state_size(owner, size)
    return stored[:size]


@interceptable
@declare(bare=True, shows_memory=True, found="method")
def data_ptr(input: Tensor) -> int:
    """The address of the first element; 0 for an empty tensor."""
    array = input._memory()
    if isinstance(array, DeviceArray):
        array.library.shared_with_others()
    return data_address(array) if array.size else 0


const_data_ptr = data_ptr


@declare(found="method")
def is_set_to(input: Tensor, tensor: Tensor) -> bool:
    """Whether both tensors have the same storage, offset, sizes and strides."""
    if not isinstance(tensor, Tensor):
        raise not_a_tensor("is_set_to", "tensor", 1, tensor)
    a, b = input._array, tensor._array
    return a.shape == b.shape and data_ptr(input) == data_ptr(tensor) and element_strides(a) == element_strides(b)


@declare(found="torch and method")
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether both tensors have one shape."""
    if not isinstance(other, Tensor):
        raise not_a_tensor("is_same_size", "other", 1, other)
    return bool(input._array.shape == other._array.shape)


@declare(found="method")
def is_shared(input: Tensor) -> bool:
    """Whether other processes see the memory."""
    return mapping_of(input._memory()) is not None


@declare(shows_memory=True, found="method")
def share_memory_(input: Tensor) -> Tensor:
    """Move the memory, also that of the base and the views, to where other processes see it. See Note [Shared memory]."""
    memory = input._memory()
    owner = storage_of(memory)
    if mapping_of(memory) is not None or not can_share():
        return input
    if not (owner.flags.c_contiguous or owner.flags.f_contiguous):
        owner = memory = copy_array(memory)
    _move(input, memory, owner, shared_copy(owner))
    return input


def _move(input: Tensor, memory: Any, owner: Any, storage: Any) -> None:
    """Let the tensor, its base and the views of it, all in the memory of `owner`, lie in a copy of that memory."""
    base = input._base
    for tensor in {id(t): t for t in (input, input if base is None else base, *_known_views(input))}.values():
        if tensor is input or storage_of(tensor._memory()) is owner:
            tensor._array = moved(memory if tensor is input else tensor._memory(), owner, storage)
            if (mirror := tensor._extra.mirror if tensor._extra is not None else None) is not None:
                _set_mirror(tensor, mirror.conj, mirror.neg)


def _known_views(input: Tensor) -> list[Tensor]:
    counter = input._counter
    return [] if counter is None else counter.live_views()


def _set_mirror(input: Tensor, conj: bool, neg: bool) -> None:
    """Show the memory that `input` now has conjugated or negated."""
    mirror = mirror_of(input._array, conj=conj, neg=neg)
    input._require_extra().mirror = mirror
    input._array = input._array if mirror is None else mirror.shown


@declare(found="method")
def is_pinned(input: Tensor, device: Any = None) -> bool:
    """Whether the memory is locked for transfers to a GPU."""
    library = find_library("cuda")
    return library is not None and not isinstance(input._array, DeviceArray) and bool(library.is_pinned(input._array))


@declare(found="method")
def pin_memory(input: Tensor, device: Any = None) -> Tensor:
    """A copy in memory that a GPU reads by itself; the tensor itself where it lies there, and without a GPU."""
    if device is not None and not isinstance(device, (str, builtins.int, Device)):
        raise wrong_type("pin_memory", "device", 1, "torch.device", device)
    library = find_library("cuda")
    if library is None:
        return input
    if isinstance(input._array, DeviceArray):
        raise RuntimeError(f"cannot pin '{input.type()}' only dense CPU tensors can be pinned")
    pinned = library.pin(input._array)
    return input if pinned is input._array else new_tensor(pinned)


@declare(found="method")
def ndimension(input: Tensor) -> int:
    """The number of dimensions."""
    return builtins.int(input._array.ndim)


@declare(found="method")
def dim_order(input: Tensor, ambiguity_check: Any = False) -> tuple[int, ...]:
    """The dimensions from the slowest to the fastest varying one in memory."""
    strides = element_strides(input._array)
    return tuple(sorted(range(len(strides)), key=lambda d: -strides[d]))


@declare(found="torch and method")
def is_nonzero(input: Tensor) -> bool:
    """Whether the only element is not zero.

    A tensor of more or fewer than one element raises.

    >>> import pullback
    >>> pullback.is_nonzero(pullback.tensor([0.0]))
    False
    """
    return bool(input)


@declare(found="method")
def storage_type(input: Tensor) -> type:
    """The class of this tensor's storage."""
    return _storage_class(input.dtype)


@declare(found="method")
def record_stream(input: Tensor, stream: Any) -> None:
    """Note that a stream uses the memory, which is given to others only when that is done; of the CPU's there is no need."""
    if isinstance(input._array, DeviceArray):
        input._array.library.use_on_stream(input._array.raw, stream)


def _refuse_recorded(input: Tensor, what: str) -> None:
    if input._requires_grad and not (process.changed and switches.inference_mode):
        raise RuntimeError(f"cannot {what} variables that require grad")
    if process.changed and levels_of(input):
        raise RuntimeError(f"cannot {what} variables that has a forward grad")


@interceptable
@declare(shows_memory=True, found="method")
def resize_(input: Tensor, *size: Any, memory_format: Any = None, **named: Any) -> Tensor:
    """Give the tensor another shape in place: on its own storage where that is large enough."""
    _refuse_recorded(input, "resize")
    shape = sizes((named["size"],) if named else size, "resize_", "size")
    if any(n < 0 for n in shape):
        raise RuntimeError(f"numel: integer multiplication overflow: sizes {list(shape)} must not be negative")
    array = input._array
    if shape != array.shape or not input.is_inference():  # an inference tensor may be given the shape that it has
        check_in_place(input, "resize", records=False)
    if shape == array.shape:
        return input
    offset, count = storage_offset(array), math.prod(shape)
    flat = flat_storage(array)
    if offset + count > flat.size:
        flat = _resize_storage(input, (offset + count) * array.itemsize).view(array.dtype)
    input._array = as_strided(flat, shape, contiguous_strides(shape), offset)
    _leave_mirror(input)
    bump_version(input)
    return input


def _leave_mirror(input: Tensor) -> None:
    """A conjugated view that was given other memory is conjugated no more. See Note [Lazy conjugation]."""
    extra = input._extra
    if extra is not None and extra.mirror is not None and not extra.mirror.holds(input._array):
        extra.mirror = None


@declare(shows_memory=True, found="torch and method")
def resize_as_(input: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """Give the tensor the shape of another one in place."""
    if not isinstance(the_template, Tensor):
        raise not_a_tensor("resize_as_", "the_template", 1, the_template)
    return resize_(input, tuple(the_template._array.shape))


@declare(found="method")
def resize(input: Tensor, *size: Any) -> Tensor:
    """The elements in another shape of the same size."""
    return input.reshape(*size)


@declare(found="method")
def resize_as(input: Tensor, tensor: Tensor) -> Tensor:
    """The elements in the shape of another tensor of the same size."""
    return input.reshape(tensor._array.shape)


@interceptable
@declare(complex32=True, shows_memory=True, found="method")
def set_(
    input: Tensor, source: Any = None, storage_offset: int | None = None, size: Any = None, stride: Any = None
) -> Tensor:
    """Make the tensor a view of another tensor's memory or of a storage, in place."""
    if process.changed and tangents_flow(input, source):
        raise forward_not_implemented("set_")
    follows = input._requires_grad or getattr(source, "_requires_grad", False)
    records = follows and (not process.changed or switches.records)
    check_in_place(input, "set", records=records)
    former = alias_of(input) if records else None
    if source is None:
        memory = empty((0,), input._array.dtype)
    elif isinstance(source, Tensor) and size is None:
        _check_same_dtype(input, source.dtype)
        memory = source._memory()
    elif isinstance(source, (str, int, float, list, tuple)):
        raise wrong_type("set_", "source", 1, "Tensor", source)
    else:
        memory = _part_of_storage(input, source, as_int(storage_offset or 0), size, stride)
    if former is not None:  # first, while a view still lies in its base
        attach_unimplemented("set_", [former], [former, source] if isinstance(source, Tensor) else [former])
        assert former._edge is not None
        rebase_history(input, former._edge[0])
    input._leave_accumulator(memory, keep=False)
    input._array = memory
    if (mirror := input._extra.mirror if input._extra is not None else None) is not None:
        _set_mirror(input, mirror.conj, mirror.neg)
    bump_version(input)
    if former is None and input._requires_grad:
        keep_former_shape(input)
    return input


def _check_same_dtype(input: Tensor, given: Dtype) -> None:
    if given is not input.dtype:
        raise RuntimeError(
            f"Could not set tensor of type {cpp_type_name(given.numpy_dtype)} to a tensor of type "
            f"{cpp_type_name(input._array.dtype)}"
        )


def _part_of_storage(input: Tensor, source: Any, offset: int, size: Any, stride: Any) -> Any:
    if isinstance(source, Tensor):
        _check_same_dtype(input, source.dtype)
        flat = flat_storage(source._memory())
    else:
        flat = source._data.view(input._array.dtype)
    shape = (flat.size - offset,) if size is None else sizes((size,), "set_", "size")
    steps = contiguous_strides(shape) if stride is None else sizes((stride,), "set_", "stride")
    return as_strided(flat, shape, steps, offset)


@interceptable
def dlpack(input: Tensor, *args: Any, **options: Any) -> Any:
    """A DLPack capsule of the tensor's memory, for other libraries to use without a copy."""
    if input._requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if input.is_conj():
        raise BufferError("Can't export tensors with the conjugate bit set")
    return export_dlpack(input._array, **{k: v for k, v in options.items() if v is not None})


def dlpack_device(input: Tensor) -> tuple[int, int]:
    """DLPack's kind (1 for the CPU, 2 for NVIDIA's GPUs) and number of the device."""
    from pullback.backend.dlpack import DLDeviceType  # lazy: few programs ask

    place = input.device
    if place.type == "cuda":
        return DLDeviceType.kDLCUDA, builtins.int(place.index or 0)
    return DLDeviceType.kDLCPU, 0


@declare(found="torch")
def to_dlpack(tensor: Tensor) -> Any:
    """A DLPack capsule of the tensor's memory."""
    return dlpack(tensor)


@declare(found="method")
def apply_(input: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replace each element by what a Python function makes of it."""
    return _mapped("apply_", input, callable, ())


@declare(found="method")
def map_(input: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replace each element by what a Python function makes of it and of the element of another tensor."""
    return _mapped("map_", input, callable, (tensor,))


@declare(found="method")
def map2_(input: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """Replace each element by what a Python function makes of it and of the elements of two other tensors."""
    return _mapped("map2_", input, callable, (x, y))


def _mapped(name: str, input: Tensor, function: Callable[..., Any], others: tuple[Tensor, ...]) -> Tensor:
    if any(t._requires_grad for t in (input, *others)):
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")
    for other in others:
        if other.dtype is not input.dtype:
            raise TypeError(f"{name}(): the tensors must have one dtype, got {input.dtype} and {other.dtype}")
    check_in_place(input, name.rstrip("_"), records=False)
    map_elements(input._array, function, [t._array for t in others])
    bump_version(input)
    return input


@declare(found="method")
def as_subclass(input: Tensor, cls: type) -> Any:
    """A view of the tensor that is an instance of a subclass."""
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a type (got {type(cls).__name__})")
    if not issubclass(cls, Tensor):
        raise TypeError(
            "Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. Make sure your "
            "class inherits from Tensor."
        )
    made: Any = TensorBase.__new__(cls)
    copy_state(G.alias(input), made)
    if input._requires_grad and not made._requires_grad:  # without recording it is a leaf beside the tensor
        made._requires_grad = True
    return made
