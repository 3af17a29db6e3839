"""allow_mutation_on_saved_tensors: saved tensors are copied just before something writes to their memory.

A handle stands in the graph for each saved tensor. Its tensor moves from `original` to `cloned` when an operation that
writes to the same storage is about to run. What is saved twice at one version has one handle, so it is copied once.
"""

from __future__ import annotations

import contextlib
import weakref
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from pullback.backend.array_module import data_address, may_share_memory, storage_of
from pullback.graph.in_place import write_out
from pullback.graph.saved_tensor import stale
from pullback.modes.interception import push_interceptor
from pullback.modes.saved_tensor_hooks import push_hooks
from pullback.modes.switches import kept_switches
from pullback.tensor.tensor import Tensor


class _Handle:
    """Stands for one tensor at one version."""

    __slots__ = ("__weakref__", "version")

    def __init__(self, version: int) -> None:
        self.version = version


TensorKey = tuple[Any, ...]


class _AllowMutationOnSavedContext:
    """The saved tensors of one block: as they are, or copied because something wrote to them."""

    def __init__(self) -> None:
        self.cloned: weakref.WeakKeyDictionary[_Handle, Tensor] = weakref.WeakKeyDictionary()
        self.original: weakref.WeakKeyDictionary[_Handle, Tensor] = weakref.WeakKeyDictionary()
        self.tid_to_weakhandle: weakref.WeakValueDictionary[TensorKey, _Handle] = weakref.WeakValueDictionary()
        self.sid_to_tid: defaultdict[int, set[TensorKey]] = defaultdict(set)
        self._active = True
        self._pending: list[tuple[weakref.ref[Tensor], int]] = []

    def clear(self) -> None:
        """End the block: forget all tensors."""
        self._active = False
        self.cloned.clear()
        self.original.clear()
        self.tid_to_weakhandle.clear()
        self.sid_to_tid.clear()

    def pack(self, tensor: Any) -> _Handle:
        """The handle of `tensor` as it is now."""
        array, version = tensor._array, tensor._version
        key = (data_address(array), version, array.shape, array.strides, array.dtype)
        handle = self.tid_to_weakhandle.get(key)
        if self._is_being_written(tensor):
            handle = _Handle(version)
            self.cloned[handle] = tensor.clone()
        elif handle is None:
            handle = self.tid_to_weakhandle[key] = _Handle(version)
            self.original[handle] = tensor.detach()  # not the tensor: a result leads back to the node that keeps this
            self.sid_to_tid[_storage_key(tensor)].add(key)
        return handle

    def unpack(self, handle: _Handle) -> Tensor:
        """The tensor as it was when it was saved."""
        if not self._active:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the graph was "
                "originally recorded."
            )
        if handle in self.cloned:
            return self.cloned[handle]
        tensor = self.original[handle]
        if tensor._version != handle.version:  # written by something that is not an operation
            raise stale(tensor, handle.version, None)
        return tensor

    def before_operation(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Copy what the operation is about to overwrite; never takes it over."""
        written = _written(function, args, kwargs)
        for tensor in written:
            self._preserve(tensor)
        if written:
            self._pending = [(weakref.ref(tensor), tensor._version) for tensor in written]
        return NotImplemented

    def _is_being_written(self, tensor: Tensor) -> bool:
        """Whether the operation that saves `tensor` is about to write to it, as in `x.mul_(x)`."""
        for reference, version in self._pending:
            target = reference()
            if target is not None and target._version == version:
                return may_share_memory(target._array, tensor._array)
        return False

    def _preserve(self, written: Tensor) -> None:
        keys = self.sid_to_tid.get(_storage_key(written))
        if not keys:
            return
        for key in list(keys):
            handle = self.tid_to_weakhandle.get(key)
            original = self.original.get(handle) if handle is not None else None
            if handle is None or original is None:
                keys.discard(key)
            elif may_share_memory(original._array, written._array):
                self.cloned[handle] = original.clone()
                del self.original[handle], self.tid_to_weakhandle[key]
                keys.discard(key)


def _storage_key(tensor: Any) -> int:
    return data_address(storage_of(tensor._memory()))


def _written(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
    """The tensors that a call is about to write to: the first argument of an in-place form, or what stands for `out`."""
    name = getattr(function, "__name__", "")
    targets: Any = kwargs.get("out")
    if function is write_out:
        targets = args[1]
    elif name == "_view_in_place":
        targets = args[2]
    elif args and ((name.endswith("_") and not name.endswith("__")) or name == "__setitem__"):
        targets = args[0]
    targets = targets if isinstance(targets, (tuple, list)) else (targets,)
    return [target for target in targets if isinstance(target, Tensor)]


_running: list[_AllowMutationOnSavedContext] = []


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_AllowMutationOnSavedContext]:
    """Clone saved tensors just before an in-place operation modifies them, so that backward still has them.

    >>> import pullback
    >>> from pullback.autograd.graph import allow_mutation_on_saved_tensors
    >>> x = pullback.ones(2, requires_grad=True)
    >>> with allow_mutation_on_saved_tensors():
    ...     y = x * 2
    ...     z = (y * y).sum()
    ...     _ = y.detach().zero_()
    ...     z.backward()
    >>> x.grad
    tensor([8., 8.])
    """
    if _running:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    context = _AllowMutationOnSavedContext()
    try:
        with kept_switches("interceptors", "saved_tensor_hooks"):
            _running.append(context)
            push_interceptor(context.before_operation)
            push_hooks(context.pack, context.unpack)
            yield context
    finally:
        _running.clear()
        context.clear()
