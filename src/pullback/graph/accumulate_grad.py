"""AccumulateGrad: the node at which a leaf's gradient arrives and is added to `.grad`.

# Note [Accumulators]
A leaf has at most one AccumulateGrad. The node holds the leaf; the leaf holds the node only weakly (a strong reference
would be a cycle), so it lives as long as some graph leads to it. `.grad` is changed under the node's lock: backward
passes of several threads that share a leaf give the exact sum.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from typing import Any

from pullback.backend.array_module import as_array, cast_array, copy_array, has_internal_overlap, ndarray
from pullback.backend.mirror import after_write, mirrors
from pullback.backend.sparse_array import SparseArray
from pullback.errors import gradient_of_former_shape
from pullback.graph.anomaly_metadata import remember_recording
from pullback.graph.edge import Edges
from pullback.graph.input_metadata import InputMetadata
from pullback.graph.node import FIRST, Node, new_node
from pullback.kernels.accumulation import add_in_place
from pullback.kernels.broadcasting import broadcast_to, is_expandable_to
from pullback.kernels.shape import contiguous_copy
from pullback.modes.switches import process, switches
from pullback.native.locks import process_lock
from pullback.tensor.sparse_tensor import SparseTensor, new_sparse_tensor
from pullback.tensor.tensor import Tensor, new_tensor
from pullback.tensor.version_counter import InferenceVersion, VersionCounter, count_write

_creation_lock = process_lock()

USERS = -1
"""In place of a count of owned gradients: the user gave the gradient, and probably holds it."""

FILLED, IN_FULL = -2, -3
"""In place of a count: which form PyTorch gives the gradient. See Note [Owned gradients]."""


def _copied(grad: Tensor, variable: Tensor) -> Tensor:
    """A recorded copy of a gradient, in the memory order of the leaf where that is dense."""
    array = variable._array
    if not array.flags.forc and copy_array(array).strides != array.strides:
        return grad.contiguous().clone() if not grad._array.flags.c_contiguous else grad.clone()
    made: Tensor = grad.new_empty_strided(variable.shape, variable.stride()).copy_(grad)
    return made


def _is_view_with_history(variable: Tensor) -> bool:
    """Whether a view that was made a leaf got a history later, because its base was written to."""
    extra = variable._extra
    return extra is not None and extra.view is not None and variable._gradient_edge() is not None


def _moved_leaf(variable: Tensor) -> RuntimeError:
    return RuntimeError(
        f"leaf variable has been moved into the graph interior: the tensor of shape {list(variable._array.shape)} was a "
        "leaf when the graph was recorded, and an in-place operation gave it a history since. Work on a clone() of it."
    )


class AccumulateGrad(Node):
    """Adds what arrives to `variable.grad`."""

    __slots__ = ("__dict__", "__weakref__")
    variable: Tensor

    def __init__(self, *arguments: Any) -> None:
        raise RuntimeError("Cannot construct: a leaf has an AccumulateGrad once an operation on it is recorded")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), "variable"]

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    def input_metadata(self, index: int) -> InputMetadata | None:
        array, dtype = self.variable._array, self.grad_dtype()
        shape = array.shape if self.shape is None else self.shape
        return InputMetadata(shape, array.dtype if dtype is None else dtype, dtype is None, self.variable.device)

    def takes_arrays(self) -> bool:
        """Whether no hook sees the gradient, so that arrays are accumulated as soon as they are complete."""
        return self.extra is None and self.variable._extra is None

    def accumulate_array(self, grad: Any, owned: int) -> None:
        """Add an array to `.grad`; one that nobody else holds becomes `.grad` without a copy.

        See Note [Owned gradients] for `owned`.
        """
        variable = self.variable
        if not variable._requires_grad:
            return
        if variable._edge is not None or (variable._extra is not None and _is_view_with_history(variable)):
            raise _moved_leaf(variable)
        with self.lock:
            current = variable._grad
            if current is None and not isinstance(grad, SparseArray):
                array = grad if type(grad) is ndarray else as_array(grad)
                variable._grad = made = self._taken(array, owned)
                if process.changed:
                    made._note_inference()
            elif isinstance(grad, SparseArray) or isinstance(current, SparseTensor):
                variable._grad = _sum_with_sparse(current, grad)
            elif type(current) is not Tensor:
                variable._grad = current + new_tensor(as_array(grad))
            else:
                counter = current._counter
                if current._extra is not None and current._extra.inference:
                    from pullback.graph.history import check_inference  # lazy: history builds on this module

                    check_inference(current)
                try:
                    add_in_place(current._array, grad)
                except ValueError:
                    raise gradient_of_former_shape(current._array.shape, grad.shape) from None
                if counter is None:
                    current._counter = VersionCounter(1)
                elif isinstance(counter, InferenceVersion):
                    counter.count_write()
                else:
                    count_write(counter)
                if mirrors:
                    after_write(current._array, current._extra.mirror if current._extra is not None else None)

    def _taken(self, array: Any, owned: int) -> Tensor:
        """Take the first gradient: the array itself or a copy, with a version that counts the writes to it."""
        laid = self._lay_out(array, owned > 0, owned == USERS)
        made = new_tensor(laid)
        if laid is not array:
            written = array.dtype == laid.dtype and laid.strides == self.variable._array.strides
            if written and owned != IN_FULL:
                made._counter = VersionCounter(1)  # written over as a whole: PyTorch counts that
        elif owned > 1:
            made._counter = VersionCounter(owned - 1)
        return made

    def _lay_out(self, grad: Any, owned: bool, of_user: bool) -> Any:
        """Make an array that only `.grad` holds, in the leaf's dtype and, where the leaf is dense, in its memory order."""
        variable = self.variable
        leaf = variable._array
        array = grad
        wanted = leaf.dtype if variable._extra is None and self.shape is None else self.grad_dtype()
        if wanted is not None and array.dtype is not wanted and array.dtype != wanted:
            array, owned = cast_array(array, wanted), True
        if self.shape is not None and array.shape != leaf.shape:
            return _of_former_shape(array, leaf, owned, of_user)
        if array.flags.c_contiguous and leaf.flags.c_contiguous:
            if owned and array.flags.writeable:
                return array
            if array.strides == leaf.strides:
                return copy_array(array)
        if array.strides == leaf.strides and not has_internal_overlap(array):
            return array if owned and array.flags.writeable else copy_array(array)
        if not switches.layout_policy or array.ndim != leaf.ndim:
            return array if owned and array.flags.writeable else copy_array(array)
        return copy_like(array, leaf)

    def grad_dtype(self) -> Any:
        """The dtype `.grad` must have: the leaf's own unless the user chose another (None: any)."""
        extra = self.variable._extra
        if extra is not None and extra.grad_dtype is not extra.UNSET:
            return None if extra.grad_dtype is None else extra.grad_dtype.numpy_dtype
        return self.variable._array.dtype if self.dtype is None else self.dtype

    def chosen_dtype(self) -> Any:
        """The dtype that the user chose for `.grad`, None where any will do."""
        extra = self.variable._extra
        return None if extra is None or extra.grad_dtype is extra.UNSET else self.grad_dtype()

    def accumulate_tensor(self, grad: Tensor) -> None:
        """Add a recorded gradient out of place, so that `.grad` keeps its history."""
        variable = self.variable
        if not variable._requires_grad:
            return
        if variable._edge is not None or (variable._extra is not None and _is_view_with_history(variable)):
            raise _moved_leaf(variable)
        with self.lock:
            current = variable._grad
            if current is None:
                made = _copied(grad, variable) if grad._requires_grad else self._taken(grad._array, 0)
                variable._grad = made
                if process.changed:
                    made._note_inference()
            else:
                variable._grad = current + grad

    def apply(self, grads: Sequence[Any], edges: Edges, owned: bool = False) -> Sequence[Any]:
        if grads[0] is not None:
            self.accumulate_array(grads[0], 0)
        return ()

    def apply_differentiable(self, grads: Sequence[Any], edges: Edges) -> Sequence[Any]:
        if grads[0] is not None:
            self.accumulate_tensor(grads[0])
        return ()


def _sum_with_sparse(current: Any, grad: Any) -> Any:
    """Add gradients of which one is sparse; the sum is sparse only if both are."""
    if current is None:
        return new_sparse_tensor(grad)
    if not isinstance(current, SparseTensor):
        current._array += grad.dense()
        return current
    total = current._sparse + grad
    return new_sparse_tensor(total) if isinstance(total, SparseArray) else new_tensor(total)


def copy_like(array: Any, leaf: Any) -> Any:
    """A copy of `array` with the memory order of `leaf` if that is dense and without overlap, else row-major."""
    order = sorted(range(leaf.ndim), key=lambda d: (-abs(leaf.strides[d]), d))
    expected = leaf.itemsize
    for d in reversed(order):
        if leaf.shape[d] > 1 and leaf.strides[d] != expected:
            return contiguous_copy(array)
        expected *= leaf.shape[d]
    inverse = sorted(range(leaf.ndim), key=order.__getitem__)
    return contiguous_copy(array.transpose(order)).transpose(inverse)


def _of_former_shape(array: Any, leaf: Any, owned: bool, of_user: bool) -> Any:
    """Take the first gradient of a leaf whose shape has changed: as it is if it has the leaf's strides, else expanded.

    One that is not owned may stand for an expanded one, which PyTorch expands further, unless it has a single element.
    """
    steps = [(a, b) for n, a, b in zip(array.shape, array.strides, leaf.strides, strict=False) if n != 1]
    if (owned or (array.size == 1 and not of_user)) and not any(a != b for a, b in steps):
        return array if owned and array.flags.writeable else copy_array(array)
    if not is_expandable_to(array.shape, leaf.shape):
        raise gradient_of_former_shape(leaf.shape, array.shape)
    return copy_like(broadcast_to(array, leaf.shape), leaf)


def accumulator_of(leaf: Tensor) -> AccumulateGrad:
    """The leaf's AccumulateGrad, made on first use. See Note [Accumulators]."""
    reference = leaf._accumulator
    node = reference() if reference is not None else None
    if node is not None:
        return node
    with _creation_lock:
        reference = leaf._accumulator
        node = reference() if reference is not None else None
        if node is None:
            node = new_node(AccumulateGrad)
            node.sequence_nr, node.variable, node.lock = FIRST, leaf, threading.Lock()
            leaf._accumulator = weakref.ref(node)
            if process.changed and switches.anomaly_mode:
                remember_recording(node, switches.current_node)
            if process.finishing and switches.stream is not None:
                node.require_extra().stream = switches.stream
    return node
