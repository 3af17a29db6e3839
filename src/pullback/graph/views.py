"""Views: what ties them to their base, and how an in-place operation on one is recorded.

# Note [Views and in-place]
A view shares memory and version counter with its base. An in-place operation on a view changes the base, so the base's
history becomes a `CopySlices` node: it sends the gradient of the written part through the operation and the rest past
it. The edges of all views are stale then (their `attr_version` differs) and are made anew on the next access, as a
strided view of the new base. Geometry is kept in bytes relative to the base, so views of another dtype (the real part of
a complex tensor) need no case of their own. A base and its strided view have different dtypes only where one was given
other memory since (`.data = ...`): then elements are counted, as PyTorch does.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from pullback.backend.array_module import as_array, cast_array, copy_array
from pullback.backend.dtype import from_numpy_dtype
from pullback.backend.mirror import Mirror
from pullback.errors import LeafModificationError, ViewModificationError, complex_gradient
from pullback.graph.edge import Edge, Edges
from pullback.graph.hooks import NodeExtra
from pullback.graph.node import Node, begin_recording
from pullback.graph.saved_tensor import SavedOutput, begin_reading, forward_name
from pullback.graph.source_lines import freed
from pullback.kernels.scattering import as_positions
from pullback.kernels.strided import (
    Geometry,
    element_positions,
    gather_strided,
    geometry_of,
    overwrite_strided,
    scatter_strided,
)
from pullback.modes.switches import kept_switches, process, set_switch, switches
from pullback.tensor.autograd_extra import (
    CUSTOM_FUNCTION,
    DEFAULT,
    INFERENCE,
    MULTI_OUTPUT,
    NO_GRAD,
    AutogradExtra,
    ViewInfo,
)
from pullback.tensor.tensor import Tensor, _Graph, new_tensor
from pullback.tensor.version_counter import InferenceVersion, VersionCounter

_RECORDING = (("grad_mode", True), ("inference_mode", False), ("dual_level", -1))
EdgeOf = Callable[[Tensor], "Edge | None"]


def make_view(
    view: Tensor, source: Tensor, creation: int = DEFAULT, replay: Callable[[Tensor], Tensor] | None = None
) -> None:
    """Tie `view` to the base of `source`: shared version counter, known base, remembered kind of creation."""
    counter = source._counter
    if counter is None:
        counter = source._counter = VersionCounter()
    view._counter = counter
    extra = source._extra
    base = source
    if process.changed:
        view._made_in = source._made_in
    if extra is not None:
        if extra.mirror is not None:
            _inherit_mirror(view, extra.mirror)
        if extra.inference:
            view._share_inference(source, InferenceVersion)
            return
    if process.changed:
        state = switches.__dict__  # one look-up of the thread's own dictionary instead of one per attribute
        if state["below_autograd"]:
            return
        creation = INFERENCE if state["inference_mode"] else creation if state["records"] else NO_GRAD
    if extra is not None and extra.view is not None:
        info = extra.view
        base = info.base
        creation = creation or info.creation
        if replay is not None or info.replay is not None:
            replay = _chain_replays(source, info.replay, replay, view)
    extra = view._extra
    if extra is None:
        extra = view._extra = AutogradExtra()
    extra.view = ViewInfo(base, creation, counter.value, replay)
    if not base._requires_grad:
        counter.add_view(view)
    elif creation in (NO_GRAD, INFERENCE):
        view._requires_grad = True
        counter.add_view(view)


def _inherit_mirror(view: Tensor, mirror: Mirror) -> None:
    """A strided view of a conjugated view is conjugated too. See Note [Lazy conjugation]."""
    if mirror.holds(view._array):
        mirror.cover(view._array)
        view._require_extra().mirror = mirror


def _chain_replays(source: Tensor, first: Any, second: Any, view: Tensor) -> Callable[[Tensor], Tensor]:
    """Chain the ways from the base to a view of a view, where some step is not a strided view of one dtype."""
    inner = first or _strided_replay(source)
    outer = second
    if outer is None:
        size, stride = tuple(view.shape), view.stride()
        offset = _elements_between(source, view)
        return lambda base: _relative_as_strided(inner(base), size, stride, offset)
    return lambda base: outer(inner(base))


def _strided_replay(source: Tensor) -> Callable[[Tensor], Tensor]:
    assert source._extra is not None
    assert source._extra.view is not None
    base = source._extra.view.base
    size, stride, offset = tuple(source.shape), source.stride(), _elements_between(base, source)
    return lambda tensor: _relative_as_strided(tensor, size, stride, offset)


def _elements_between(base: Tensor, view: Tensor) -> int:
    """How far a view of the same dtype begins behind its base: the difference of their offsets in the storage."""
    if view._array.size == 0:
        return -base.storage_offset()
    return geometry_of(view._array, base._array).offset // view._array.itemsize


def view_like(tensor: Any, view: Tensor) -> Any:
    """Return the part of `tensor` that corresponds to `view` of its base; `tensor` has the geometry of that base."""
    extra = view._extra
    assert extra is not None
    assert extra.view is not None
    return (extra.view.replay or _strided_replay(view))(tensor)


def _relative_as_strided(tensor: Any, size: Any, stride: Any, offset: int) -> Tensor:
    return tensor.as_strided(size, stride, offset + tensor.storage_offset())


def view_edge(view: Tensor, info: ViewInfo, edge_of: EdgeOf) -> Edge | None:
    """The view's edge, made anew if the shared memory was modified since."""
    version = view._counter.value if view._counter is not None else 0
    if info.attr_version == version or (info.edge is None and not info.base._requires_grad):
        return info.edge
    if info.creation != DEFAULT:
        raise forbidden_modification(view, info, "its base or another view of its base has been modified inplace")
    former = info.edge
    info.edge = _replayed_edge(info, edge_of) if info.replay is not None else _strided_edge(view, info, edge_of)
    info.attr_version = version
    view._requires_grad = True
    if former is not None and info.edge is not None and view._extra is not None and view._extra.retains_grad:
        _move_retain(former, info.edge)
    return info.edge


def _strided_edge(view: Tensor, info: ViewInfo, edge_of: EdgeOf) -> Edge:
    base, array = info.base._array, view._array
    base_geometry = geometry_of(base).in_dtype(array.dtype)
    node = AsStridedBackward0(base_geometry, geometry_of(array, base), _strided_replay(view), base.dtype)
    node.next_edges = (edge_of(info.base),)
    return (node, 0)


def _replayed_edge(info: ViewInfo, edge_of: EdgeOf) -> Edge | None:
    """The edge of a view that is not a strided view of one dtype: that of the same view, made again."""
    assert info.replay is not None
    with kept_switches(*[name for name, _ in _RECORDING]):
        for name, value in _RECORDING:
            set_switch(name, value)
        return edge_of(info.replay(info.base))


def check_view_modification(view: Tensor, info: ViewInfo, *, records: bool) -> None:
    """Refuse a recorded in-place operation on a view that cannot be followed."""
    if not records:
        return
    if info.creation != DEFAULT:
        raise forbidden_modification(view, info)
    if view._requires_grad and not info.base._is_recorded():
        raise LeafModificationError(
            "a view of a leaf Variable that requires grad is being used in an in-place operation. Modify it under "
            "pullback.no_grad(), or work on a clone()."
        )


def forbidden_modification(
    view: Tensor, info: ViewInfo, what: str = "is being modified inplace"
) -> ViewModificationError:
    """Say why this view may not be modified in place, when `what` happens to it or to its base."""
    mode = "inference mode" if info.creation == INFERENCE else "no_grad mode"
    recorded = "in normal mode" if info.creation == INFERENCE else "with grad mode enabled"
    fact = f"A view was created in {mode} and {what} {recorded}"
    if info.edge is not None:
        origin = f"Output {info.edge[1]} of {forward_name(info.edge[0].name())} is a view"
        quiet = info.creation in (NO_GRAD, INFERENCE)
        fact = (
            f"{origin} of a view which was created in {mode} and {what} {recorded}" if quiet else f"{origin} and {what}"
        )
    return ViewModificationError(f"{fact}. {_FORBIDDEN[info.creation]}")


_UNCLEAR = (
    "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the "
    "view and the inplace either both inside the {block} block, where nothing is recorded, or both outside of it."
)
_FORBIDDEN = {
    NO_GRAD: _UNCLEAR.format(block="no_grad"),
    INFERENCE: _UNCLEAR.format(block="inference_mode"),
    MULTI_OUTPUT: "This view is the output of a function that returns multiple views. Such functions do not allow the "
    "output views to be modified inplace. You should replace the inplace operation by an out-of-place one.",
    CUSTOM_FUNCTION: "This view was created inside a custom Function (or because an input was returned as-is) and the "
    "autograd logic to handle view+inplace would override the custom backward associated with the custom Function, "
    "leading to incorrect gradients. This behavior is forbidden. You can fix this by cloning the output of the custom "
    "Function.",
}


def rebase_view(view: Tensor, info: ViewInfo, node: Node, edge_of: EdgeOf) -> None:
    """Record an in-place operation on a view: its base gets a CopySlices, the view's own edge becomes stale."""
    base = info.base
    copy_slices = CopySlices(base, view, node, info.replay)
    copy_slices.next_edges = (edge_of(base), *node.next_edges[1:])
    former = base._edge
    base._edge = (copy_slices, 0)
    if not base._requires_grad:
        base._requires_grad = True
        base._tell_views()
    view._requires_grad = True
    retained_base = base._extra is not None and base._extra.retains_grad and former is not None
    if retained_base and former is not None:
        _move_retain(former, base._edge)
    info.attr_version = -1
    if view._extra is not None and view._extra.retains_grad:
        view_edge(view, info, edge_of)


def _move_retain(former: Edge, current: Edge) -> None:
    old: NodeExtra | None = former[0].extra
    if old is not None and former[1] in old.retain_hooks:
        current[0].require_extra().retain_hooks[current[1]] = old.retain_hooks.pop(former[1])


class CopySlices(Node):
    """The history of a base after an in-place operation on a view of it. See Note [Views and in-place]."""

    def __init__(self, base: Tensor, view: Tensor, inner: Node, replay: Any) -> None:
        begin_recording(self)
        self.shape, self.dtype = base._array.shape, base._array.dtype
        self.base_geometry: Geometry = geometry_of(base._array)
        self.view_geometry: Geometry = geometry_of(view._array, base._array)
        self.inner_dtype = self.view_geometry.dtype
        self.is_strided = replay is None
        if self.is_strided:
            self.view_geometry = self.view_geometry.in_dtype(self.dtype)
        self.turned = view._extra is not None and view._extra.mirror is not None
        self.inner = inner
        self.needs_tensors = inner.needs_tensors
        self.replay = replay or _strided_replay(view)
        self._place_saved_outputs()

    def name(self) -> str:
        return "torch::autograd::CopySlices"

    def apply(self, grads: Sequence[Any], edges: Edges, owned: bool = False) -> Sequence[Any]:
        if self.released:
            raise freed(self)
        if grads[0] is None:
            return (None,) * len(edges)
        if self.turned:
            return self._apply_turned(grads[0], edges)
        grad_slice = gather_strided(grads[0], self.base_geometry, self.view_geometry)
        inner_grads = self._apply_inner(cast_array(grad_slice, self.inner_dtype), edges)
        if edges[0] is None:
            return (None, *inner_grads[1:])
        result = overwrite_strided(grads[0], self.base_geometry, self.view_geometry, inner_grads[0])
        return (result, *inner_grads[1:])

    def _apply_inner(self, grad: Any, edges: Edges) -> Sequence[Any]:
        """The gradients of the operation on the view, as arrays."""
        if not self.inner.needs_tensors:
            return self._read_once(self.inner.apply, (grad,), edges)
        grads = self._read_once(self.inner.apply_differentiable, [new_tensor(as_array(grad))], edges)
        return [None if g is None else g._array for g in grads]

    def _read_once(self, apply: Callable[..., Sequence[Any]], grads: Sequence[Any], edges: Edges) -> Sequence[Any]:
        """Apply the operation's rule; what it saved through hooks is unpacked once, as elsewhere by the engine."""
        extra = self.inner.extra
        reading = begin_reading(self.inner) if extra is not None and extra.packed else ()
        try:
            return apply(grads, edges)
        finally:
            for value in reading:
                value.read = None

    def _apply_turned(self, grad: Any, edges: Edges) -> Sequence[Any]:
        """The gradients where the view is conjugated or negated, so that the view itself must be made again."""
        result = new_tensor(overwrite_strided(grad, self.base_geometry, self.base_geometry, grad))
        part = self.replay(result)
        inner_grads = self._apply_inner(copy_array(part._array), edges)
        if inner_grads[0] is None:
            part.zero_()
        else:
            part.copy_(new_tensor(as_array(inner_grads[0])))
        return (result._array, *inner_grads[1:])

    def apply_differentiable(self, grads: Sequence[Any], edges: Edges) -> Sequence[Any]:
        if self.released:
            raise freed(self)
        if grads[0] is None:
            return (None,) * len(edges)
        result = grads[0].clone()
        if result.stride() != self.base_geometry.element_strides():
            result = result.new_empty_strided(self.shape, self.base_geometry.element_strides()).copy_(result)
        part = self.replay(result)
        inner = (_in_dtype(part.clone(), self.inner_dtype),)
        inner_grads = self._read_once(self.inner.apply_differentiable, inner, edges)
        if inner_grads[0] is None:
            part.zero_()
        else:
            part.copy_(inner_grads[0])
        return (result, *inner_grads[1:])

    def _place_saved_outputs(self) -> None:
        """Place saved results of the operation on the view behind this node, where the view is."""
        for name in self.inner.saved_names:
            saved = getattr(self.inner, f"saved_{name}", None)
            if isinstance(saved, SavedOutput):
                saved.written_slice = weakref.ref(self)  # which holds the result itself

    def view_edge(self) -> Edge:
        """The edge of the view that was written, as it stands behind this node."""
        base, view = self.base_geometry, self.view_geometry
        if self.is_strided:
            base, view = base.in_dtype(self.inner_dtype), view.in_dtype(self.inner_dtype)
        node = AsStridedBackward0(base, view, self.replay, self.dtype)
        node.turned = self.turned
        node.next_edges = ((self, 0),)
        return (node, 0)

    def release_saved_tensors(self) -> None:
        self.released = True
        self.inner.release_saved_tensors()


class AsStridedBackward0(Node):
    """Gradient of a strided view of its base: the way back from a view whose base was modified."""

    fresh = (True,)
    turned = False

    def __init__(self, base_geometry: Geometry, view_geometry: Geometry, replay: Any, base_dtype: Any) -> None:
        begin_recording(self)
        self.shape, self.dtype = view_geometry.shape, view_geometry.dtype
        self.base_dtype = base_dtype
        self.base_geometry = base_geometry
        self.view_geometry = view_geometry
        self.replay = replay

    def apply(self, grads: Sequence[Any], edges: Edges, owned: bool = False) -> Sequence[Any]:
        if grads[0] is None:
            return (None,)
        if self.turned:
            return (self.apply_differentiable((new_tensor(as_array(grads[0])),), edges)[0]._array,)
        self._check_base_dtype()
        result = scatter_strided(grads[0], self.base_geometry, self.view_geometry)
        return (cast_array(result, self.base_dtype),)

    def apply_differentiable(self, grads: Sequence[Any], edges: Edges) -> Sequence[Any]:
        grad = grads[0]
        if grad is None:
            return (None,)
        self._check_base_dtype()
        base_geometry, view_geometry = self.base_geometry, self.view_geometry
        needs_positions = view_geometry.overlaps() or not view_geometry.lies_within(base_geometry)
        if needs_positions and view_geometry.dtype == base_geometry.dtype:
            return (_in_dtype(self._sum_at_positions(grad), self.base_dtype),)
        base = grad.new_zeros(self.base_geometry.shape, dtype=self.base_geometry.public_dtype())
        if base.stride() != self.base_geometry.element_strides():
            base = base.new_empty_strided(base.shape, self.base_geometry.element_strides()).zero_()
        self.replay(base).copy_(grad)
        return (_in_dtype(base, self.base_dtype),)

    def _check_base_dtype(self) -> None:
        """Refuse a complex gradient of a base that became real meanwhile."""
        if self.base_geometry.dtype.kind in "cW" and self.base_dtype.kind not in "cW":
            raise complex_gradient(self.name(), 0)

    def _sum_at_positions(self, grad: Any) -> Any:
        """Sum the gradient of the base at positions: the view sees elements several times, or lies beyond the base."""
        seen, own = element_positions(self.view_geometry), element_positions(self.base_geometry)
        first = min(0, int(seen.min(initial=0)))
        flat = grad.new_zeros(1 + max(int(seen.max(initial=0)), int(own.max(initial=0))) - first)
        summed = flat.put(new_tensor(as_positions(seen - first, grad._array)), grad.reshape(-1), True)
        return summed.take(new_tensor(as_positions(own - first, grad._array))).reshape(self.base_geometry.shape)


def _in_dtype(tensor: Any, dtype: Any) -> Any:
    """A tensor in another dtype; complex to real keeps the real part."""
    kind = tensor._array.dtype
    if kind == dtype:
        return tensor
    return (tensor.real if kind.kind in "cW" and dtype.kind not in "cW" else tensor).to(from_numpy_dtype(dtype))


def _view_edge_of_property(view: Tensor, info: ViewInfo) -> Edge | None:
    from pullback.graph.history import gradient_edge  # lazy: history builds on this module

    return view_edge(view, info, gradient_edge)


_Graph.view_edge = staticmethod(_view_edge_of_property)
