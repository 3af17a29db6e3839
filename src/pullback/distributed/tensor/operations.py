"""What operations on DTensors do.

# Note [Operations on DTensors]
Operations element by element run on the parts; so do in-place ones, whose other operands are laid as the tensor is. All
others bring the wholes together on every rank, compute there, and return tensors that every rank has: right always, and
slow where PyTorch knows a way that needs less. Plain tensors are not mixed with DTensors, unless a program allows it.

Being asked about operations costs all operations of the process (they take two to three times as long where tensors are
small). So the class is asked from the first DTensor on that a program makes or computes with; `fully_shard` and
`parallelize_module` do not need it. What the package itself calls, its optimizers above all, computes with the own parts.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

from pullback import equal, get_rng_state
from pullback.autograd.grad_mode import no_grad
from pullback.distributed import collectives
from pullback.distributed.tensor.dtensor import DTensor, keep_part, lay_again, lay_local, placed
from pullback.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard
from pullback.distributed.tensor.redistribution import Placements
from pullback.modes.function_modes import _PACKAGE, _beyond_roads, _files
from pullback.modes.grad_mode import is_grad_enabled
from pullback.modes.interception import register_overriding_type
from pullback.overrides import DisableTorchFunctionSubclass
from pullback.overrides.operation_handlers import is_elementwise
from pullback.overrides.overriding_classes import _BINARY, told_method
from pullback.tensor.foreign_arguments import PLAIN
from pullback.tensor.tensor import Tensor, _disabled_torch_function_impl
from pullback.tensor.tensor_base import TensorBase, copy_state
from pullback.utils._pytree import tree_flatten, tree_map, tree_unflatten

__all__ = ["answer_operations", "implicit_replication", "watch_first_use"]

_RAW = frozenset(
    "__deepcopy__ __dir__ __format__ __hash__ __reduce__ __reduce_ex__ __repr__ __setstate__ backward cpu data_ptr "
    "detach_ dim element_size get_device grad_dtype is_complex is_contiguous is_floating_point is_inference "
    "is_nonzero_ is_pinned is_shared is_signed is_tensor ndimension nelement numel pin_memory register_hook "
    "register_post_accumulate_grad_hook requires_grad_ retain_grad share_memory_ storage_offset stride type "
    "untyped_storage".split()
)
"""Facts of the part that are those of the whole, and what concerns the graph."""

_COMPUTED_PROPERTIES = frozenset(["T", "mT", "H", "mH", "real", "imag"])

_FUNCTIONS = _files("functions/ nn/functional/")
"""Files whose functions call others for whoever called them."""

_LAYERS = _files("nn/modules/ nn/init.py")
"""Files of the package whose calls are those of its users: PyTorch's layers are functions of tensors."""


def _is_elementwise(name: str) -> bool:
    """Whether an operation runs on parts.

    >>> [_is_elementwise(name) for name in ("add_", "__rsub__", "__imul__", "exp", "sum", "__matmul__")]
    [True, True, True, True, False, False]
    """
    if name[:2] != "__":
        return is_elementwise(name)
    operator = f"__{name[3:]}" if name[:3] == "__i" else name
    return name in ("__invert__", "__neg__", "__pos__", "__abs__") or (operator in _BINARY and "matmul" not in name)


def _is_in_place(name: str) -> bool:
    return (name[:3] == "__i" and f"__{name[3:]}" in _BINARY) if name[:2] == "__" else name.endswith("_")


def answer_operations() -> None:
    """From now on, be asked about operations on DTensors."""
    if DTensor.__torch_function__ is not _disabled_torch_function_impl:
        return
    for name in _watched:
        delattr(DTensor, name)
    _watched.clear()
    DTensor.__torch_function__ = classmethod(_answer)  # type: ignore[assignment]  # PyTorch's protocol
    PLAIN.discard(DTensor)
    register_overriding_type(DTensor)


_watched: list[str] = []


def watch_first_use() -> None:
    """Let the first method that a program calls on a DTensor bring about that the class is asked."""
    for name, member in list(vars(Tensor).items()):
        is_operator = name[:2] == "__" and (
            _is_elementwise(name) or _is_in_place(name) or name in ("__getitem__", "__setitem__", "__matmul__")
        )
        if name in vars(DTensor) or name in _RAW or not callable(member) or isinstance(member, (type, property)):
            continue
        if is_operator or name[0] != "_":
            setattr(DTensor, name, _first_use(name))
            _watched.append(name)


def _first_use(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _is_inside(sys._getframe(1)):
            return getattr(Tensor, name)(self, *args, **kwargs)
        answer_operations()
        return _operate(told_method(name), (self, *args), kwargs)

    return method


def _is_inside(frame: FrameType | None) -> bool:
    """Whether a call comes from the package itself, layers excepted."""
    frame = _beyond_roads(frame)
    while frame is not None and frame.f_code.co_filename.startswith(_FUNCTIONS):
        frame = _beyond_roads(frame.f_back)
    if frame is None:
        return False
    file = frame.f_code.co_filename
    return file.startswith(_PACKAGE) and not file.startswith(_LAYERS)


def _answer(cls: type, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """The `__torch_function__` of DTensor."""
    kwargs = kwargs or {}
    name = func.__name__
    if name in ("__get__", "__set__", "__delete__"):
        computed = [each for each in _COMPUTED_PROPERTIES if vars(Tensor).get(each) is func.__self__]
        raw = name != "__get__" or not computed
    else:
        raw = name in _RAW
    if raw or _is_inside(sys._getframe(1)):
        with DisableTorchFunctionSubclass():
            return func(*args, **kwargs)
    return _operate(func, tuple(args), kwargs)


def _operate(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    name = func.__name__
    if name in ("numpy", "tolist", "__array__"):
        raise RuntimeError(f".{name}() is not supported for tensor subclasses, got DTensor: call full_tensor() first")
    is_in_place = _is_in_place(name) or name == "__setitem__"
    if _mixing.is_allowed and not (is_in_place and not _is_distributed(args[0])):
        args, kwargs = _replicated(args, kwargs)
    _refuse_mixtures(name, args, kwargs)
    if kwargs.get("out") is not None:
        raise NotImplementedError(f"{name}(out=...) is not supported for DTensors")
    if is_in_place:
        if _is_elementwise(name):
            return _write_parts(func, args, kwargs)
        return _write_whole(func, name, args, kwargs)
    if _is_elementwise(name):
        return _run_on_parts(func, args, kwargs)
    if name == "sum" and len(args) == 1 and not kwargs:
        return _sum(args[0])
    return _run_on_wholes(func, args, kwargs)


def _is_distributed(value: Any) -> bool:
    return isinstance(value, DTensor)


def _given(args: Any, kwargs: Any) -> list[Any]:
    return [value for value in tree_flatten((args, kwargs))[0] if isinstance(value, Tensor)]


class _Mixing(threading.local):
    is_allowed = False


_mixing = _Mixing()


@contextmanager
def implicit_replication() -> Iterator[None]:
    """Take plain tensors beside DTensors for tensors that every rank has."""
    before, _mixing.is_allowed = _mixing.is_allowed, True
    try:
        yield
    finally:
        _mixing.is_allowed = before


def _replicated(args: Any, kwargs: Any) -> Any:
    mesh = next(value for value in _given(args, kwargs) if isinstance(value, DTensor)).device_mesh
    everywhere = (Replicate(),) * mesh.ndim

    def laid(value: Any) -> Any:
        is_plain = isinstance(value, Tensor) and not isinstance(value, DTensor) and value.ndim > 0
        return lay_local(value, mesh, everywhere) if is_plain else value

    return tree_map(laid, args), tree_map(laid, kwargs)


def _refuse_mixtures(name: str, args: Any, kwargs: Any) -> None:
    for value in _given(args, kwargs):
        if not isinstance(value, DTensor) and value.ndim > 0:
            raise RuntimeError(
                f"{name} got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor before calling "
                "distributed operators! Use distribute_tensor(tensor, mesh, placements) or DTensor.from_local."
            )


def _run_on_wholes(func: Any, args: Any, kwargs: Any) -> Any:
    tensors = [value for value in _given(args, kwargs) if isinstance(value, DTensor)]
    mesh = tensors[0].device_mesh
    everywhere = (Replicate(),) * mesh.ndim

    def whole(value: Any) -> Any:
        return lay_again(value, everywhere).to_local() if isinstance(value, DTensor) else value

    numbers = get_rng_state()
    result = func(*tree_map(whole, tuple(args)), **tree_map(whole, kwargs))
    is_random = not equal(numbers, get_rng_state())

    def wrap(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        if is_random:
            _share(value, mesh, everywhere)
        return placed(value, value.shape, mesh, everywhere)

    return tree_map(wrap, result)


def _share(values: Tensor, mesh: Any, placements: Placements) -> None:
    """Random numbers: let ranks that are to have the same have those of the first of them."""
    for index, placement in enumerate(placements):
        if isinstance(placement, Replicate):
            collectives.broadcast(values, group=mesh.get_group(index), group_src=0)


def _sum(tensor: DTensor) -> DTensor:
    """Of all elements: every rank adds up its part."""
    tensor = _without_summands(tensor)
    how = tuple(Partial() if isinstance(p, Shard) else p for p in tensor.placements)
    return placed(tensor.to_local().sum(), (), tensor.device_mesh, how)


def _without_summands(tensor: DTensor) -> DTensor:
    how = tuple(Replicate() if isinstance(p, Partial) else p for p in tensor.placements)
    return tensor if how == tensor.placements else lay_again(tensor, how)


def _run_on_parts(func: Any, args: Any, kwargs: Any) -> Any:
    """Lay all operands alike, as the largest that is divided, and run on the parts."""
    leaves, structure = tree_flatten((tuple(args), kwargs))
    leaves = [_without_summands(value) if isinstance(value, DTensor) else value for value in leaves]
    tensors = [value for value in leaves if isinstance(value, DTensor)]
    shape = _broadcast([tuple(each.shape) for each in tensors])
    full = [each for each in tensors if tuple(each.shape) == shape]
    pattern = next((each for each in full if any(isinstance(p, Shard) for p in each.placements)), None)
    mesh = tensors[0].device_mesh
    how: Placements = (Replicate(),) * mesh.ndim if pattern is None else pattern.placements
    parts = [_part_like(value, how, shape) if isinstance(value, DTensor) else value for value in leaves]
    local_args, local_kwargs = tree_unflatten(parts, structure)
    numbers = get_rng_state()
    result = func(*local_args, **local_kwargs)
    if not equal(numbers, get_rng_state()):
        _share(result, mesh, how)
    return placed(result, shape, mesh, how)


def _broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    ndim = max(len(shape) for shape in shapes)
    padded = [(1,) * (ndim - len(shape)) + shape for shape in shapes]
    return tuple(next((length for length in lengths if length != 1), 1) for lengths in zip(*padded, strict=True))


def _part_like(tensor: DTensor, how: Placements, shape: tuple[int, ...]) -> Any:
    """What this rank needs of an operand, where the result of this shape lies as `how` says."""
    wanted: list[Placement] = []
    summands: list[Placement] = []
    for placement in how:
        if isinstance(placement, Shard):
            dim = placement.dim - (len(shape) - tensor.ndim)
            repeats = dim < 0 or tensor.shape[dim] != shape[placement.dim]
            wanted.append(Replicate() if repeats else Shard(dim))
            summands.append(Partial() if repeats else Shard(dim))
        else:
            wanted.append(placement)
            summands.append(placement)
    laid = tensor if tensor.placements == tuple(wanted) else lay_again(tensor, tuple(wanted))
    return laid.to_local(grad_placements=summands)


def _write_parts(func: Any, args: Any, kwargs: Any) -> Any:
    """An in-place operation element by element, on the own part."""
    target = args[0]
    if any(isinstance(p, Partial) for p in target.placements):
        raise NotImplementedError("in-place operations on a Partial DTensor are not supported: redistribute it first")
    shape = tuple(target.shape)

    def part(value: Any) -> Any:
        return _part_like(_without_summands(value), target.placements, shape) if isinstance(value, DTensor) else value

    local = TensorBase.__new__(Tensor)
    copy_state(target, local)
    numbers = get_rng_state()
    func(local, *tree_map(part, tuple(args[1:])), **tree_map(part, kwargs))
    if not equal(numbers, get_rng_state()):
        _share(local, target.device_mesh, target.placements)
    copy_state(local, target)
    return target


def _write_whole(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Any other in-place operation, on a copy of the whole, of which this rank keeps its part."""
    target = next(value for value in _given(args, kwargs) if isinstance(value, DTensor))
    if is_grad_enabled() and any(value.requires_grad for value in _given(args, kwargs)):
        raise NotImplementedError(f"{name} on a DTensor is not recorded for autograd: call it under no_grad()")
    mesh = target.device_mesh
    whole = target.full_tensor()

    def use(value: Any) -> Any:
        return whole if value is target else value.full_tensor() if isinstance(value, DTensor) else value

    with no_grad():
        numbers = get_rng_state()
        func(*tree_map(use, tuple(args)), **tree_map(use, kwargs))
        if not equal(numbers, get_rng_state()):
            _share(whole, mesh, (Replicate(),) * mesh.ndim)
        part = keep_part(whole, mesh, target.placements)
        target.detach().to_local().copy_(part.to_local())
    return target
