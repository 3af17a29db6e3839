"""What a node keeps for its backward, and the checks when it is read again.

# Note [Saved tensors]
For a rule that reads `other`, the node has `saved_other` and `saved_other_version`. The version is -1 for a plain value
(a number, a shape, None). For a tensor, `saved_other` is one of three things that all answer `_array` and `_counter`:
  - an input: the Tensor itself, so that reading it back gives the same object;
  - an output: a `SavedOutput`, which holds the memory but not the Tensor, whose grad_fn is this very node: no cycle;
  - a `PackedTensor`, if saved-tensor hooks were active: reading `_array` runs the unpack hook.
Generated code compares the version inline and calls `raise_stale` only when it differs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pullback.backend.dtype import type_in_errors
from pullback.errors import AutogradError, modified_in_place
from pullback.graph.accumulate_grad import AccumulateGrad
from pullback.graph.former_data import is_stale
from pullback.graph.source_lines import freed, modification_places
from pullback.modes.anomaly_mode import is_anomaly_enabled
from pullback.modes.saved_tensor_hooks import current_hooks
from pullback.modes.switches import switched
from pullback.tensor.tensor import Tensor, new_tensor
from pullback.tensor.version_counter import VersionCounter
from pullback.typing import Array

if TYPE_CHECKING:
    from pullback.graph.edge import Edge
    from pullback.graph.node import Node

Hook = Callable[[Any], Any]


class SavedOutput:
    """A saved result of the node itself."""

    __slots__ = ("_array", "_counter", "differentiable", "output_nr", "tangents", "written_slice")

    def __init__(self, tensor: Tensor, output_nr: int = 0) -> None:
        self.tangents: dict[int, Tensor] | None = None
        self.written_slice: Callable[[], Any] | None = None
        """A weak reference to the CopySlices of the base, where the result was written into a view."""
        self._array = tensor._array
        self.differentiable = tensor._requires_grad
        counter = tensor._counter
        if counter is None:
            counter = tensor._counter = VersionCounter()
        self._counter = counter
        self.output_nr = output_nr

    def as_tensor(self, node: Node) -> Tensor:
        """The result again, as a new Tensor whose grad_fn is `node`."""
        tensor = new_tensor(self._array)
        tensor._counter = self._counter
        if self.differentiable:
            tensor._requires_grad = True
            tensor._edge = (node, self.output_nr) if self.written_slice is None else self.written_slice().view_edge()
        if self.tangents:
            tensor._require_extra().tangents = dict(self.tangents)
        return tensor


class PackedTensor:
    """A saved tensor that went through a pack hook; no version check, as in PyTorch.

    Of an output of the node itself it keeps only the number: an edge to the node would be a cycle. A rule may read it once
    per input: while the engine evaluates the node, the unpack hook runs once.
    """

    __slots__ = ("edge", "output_nr", "packed", "read", "requires_grad", "tangents", "unpack_hook")

    _counter = None

    def __init__(
        self, tensor: Tensor, pack: Hook, unpack: Hook, edge: Edge | None, output_nr: int | None = None
    ) -> None:
        self.unpack_hook = unpack
        self.read: list[Tensor] | None = None
        """What the hook returned, while the engine evaluates the node."""
        self.edge = edge
        self.output_nr = output_nr
        self.requires_grad = tensor._requires_grad
        self.tangents = None if tensor._extra is None else tensor._extra.tangents
        """Kept beside what the hook returns, which need not have them."""
        self.packed = call_pack_hook(pack, tensor)

    @property
    def _array(self) -> Array:
        return self.unpacked()._array

    def unpacked(self) -> Tensor:
        """What the unpack hook returns, checked."""
        if self.read:
            return self.read[0]
        with switched("grad_mode", False):
            result = self.unpack_hook(self.packed)
        if not isinstance(result, Tensor):
            raise TypeError(
                f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
                f"{type(result).__name__}"
            )
        if self.read is not None:
            self.read.append(result)
        return result

    def as_tensor(self, node: Node) -> Tensor:
        """The unpacked value, attached to the graph where the original was."""
        result = self.unpacked()
        if not self.requires_grad and not self.tangents:
            return result
        tensor = new_tensor(result._array)
        tensor._counter = result._counter
        if self.tangents:
            tensor._require_extra().tangents = dict(self.tangents)
        if not self.requires_grad:
            return tensor
        tensor._requires_grad = True
        edge = self.edge if self.output_nr is None else (node, self.output_nr)
        if edge is not None and isinstance(edge[0], AccumulateGrad):
            tensor._accumulator = edge[0].variable._accumulator
        else:
            tensor._edge = edge
        return tensor


def call_pack_hook(pack: Hook, tensor: Tensor) -> Any:
    """Run a pack hook and refuse one that modifies what it is given."""
    before = _count_of_writes(tensor)
    with switched("grad_mode", False):
        packed = pack(tensor)
    if _count_of_writes(tensor) != before:
        raise AutogradError("A saved tensor pack hook is modifying its input in place. Tensors that are saved for "
                            "backward are shared with the forward pass: pack a copy instead.")  # fmt: skip
    return packed


def _count_of_writes(tensor: Tensor) -> int:
    """What `_version` says, which a program that `compile` records is not to see asked for."""
    return 0 if tensor._counter is None else tensor._counter.value


def pack_saved_tensors(node: Node, edge_of: Callable[[Tensor], Edge | None]) -> None:
    """Run the active pack hook over everything `node` saved; called only where hooks may be active."""
    hooks = current_hooks()
    if hooks is None:
        return
    for field, value in _saved_in_order(node):
        if isinstance(value, SavedList):
            value.pack(node, *hooks, edge_of)
        elif getattr(node, f"{field}_version", -1) >= 0 and not isinstance(value, PackedTensor):
            setattr(node, field, pack_one(node, value, *hooks, edge_of))


def _saved_in_order(node: Node) -> list[tuple[str, Any]]:
    """List what a node saved, in the order in which hooks see it: inputs, then results, each by PyTorch's names."""
    from pullback.graph.shown_values import public_name  # lazy: few programs look

    fields = [(public_name(node, name), f"saved_{name}") for name in node.saved_names]
    saved = [(field, getattr(node, field, None)) for _, field in sorted(fields)]
    return sorted(saved, key=lambda pair: _is_result(pair[1]))


def _is_result(value: Any) -> bool:
    return isinstance(value, SavedOutput) or (isinstance(value, PackedTensor) and value.output_nr is not None)


def pack_one(
    node: Node, value: Any, pack: Hook, unpack: Hook, edge_of: Callable[[Tensor], Edge | None]
) -> PackedTensor:
    """Run a pack hook on one saved tensor."""
    node.require_extra().packed = True
    if isinstance(value, SavedOutput):
        return PackedTensor(value.as_tensor(node), pack, unpack, None, value.output_nr)
    return PackedTensor(value, pack, unpack, edge_of(value))


def begin_reading(node: Node) -> list[PackedTensor]:
    """Let what the node saved through hooks be unpacked once, until `read` is None again."""
    values = [value for _, value in _saved_in_order(node)]
    flat = [v for value in values for v in (value.values if isinstance(value, SavedList) else (value,))]
    packed = [value for value in flat if isinstance(value, PackedTensor)]
    for value in packed:
        value.read = []
    return packed


def unpack_saved(node: Node, name: str) -> Any:
    """The saved value as a Tensor (versions checked) or plain value. See Note [Saved tensors]."""
    if node.released:
        raise freed(node)
    value = getattr(node, f"saved_{name}")
    version = getattr(node, f"saved_{name}_version", -1)
    if version < 0:
        return value.tensors() if isinstance(value, SavedList) else value
    if value._counter is not None and value._counter.value != version:
        value = as_saved(node, name)
    return value if isinstance(value, Tensor) else value.as_tensor(node)


def raise_stale(node: Node, name: str) -> None:
    """Raise the error that names the modified tensor and both versions; return if the tensor was only given other data."""
    value = getattr(node, f"saved_{name}")
    expected = getattr(node, f"saved_{name}_version")
    if is_stale(value, expected):
        raise stale(value, expected, node)


def as_saved(node: Node, name: str) -> Any:
    """As `raise_stale`, for a node that may be fused: return what it reads then. See Note [Former data]."""
    raise_stale(node, name)
    value = getattr(node, f"saved_{name}")
    if not node.fused:
        return value
    from pullback.graph.fused_node import saved_by_steps  # lazy: it builds on this module

    return saved_by_steps(node, value, getattr(node, f"saved_{name}_version"))


def stale(value: Any, expected: int, node: Node | None) -> Exception:
    """The error for a saved tensor whose version is not the expected one."""
    from pullback.tensor.version_counter import DetachedVersion  # lazy: used only while an error is made

    if isinstance(value._counter, DetachedVersion):
        return AutogradError(
            "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_(). "
            "Use the out-of-place .detach() instead: it leaves the recorded tensor as it was."
        )
    producer, output_nr = "", 0
    if isinstance(value, SavedOutput) and node is not None:
        producer, output_nr = node.name(), value.output_nr
    elif isinstance(value, Tensor) and value.grad_fn is not None:
        producer, output_nr = value.grad_fn.name(), value.output_nr
    return modified_in_place(
        type_in_errors(value._array.dtype), value._array.shape, forward_name(producer), output_nr,
        int(value._counter.value), int(expected), anomaly=is_anomaly_enabled(),
        places=modification_places(value._counter, expected, node),
    )  # fmt: skip


def forward_name(node_name: str) -> str:
    """`Exp` for `ExpBackward0` and `Sum1` for `SumBackward1`, as 2.13 prints the producer."""
    operation, backward, number = node_name.rpartition("Backward")
    return operation + number.removeprefix("0") if backward else node_name


class SavedTensor:
    """The handle of one saved tensor, as `node._raw_saved_other` and `ctx._raw_saved_tensors` show it.

    >>> import pullback
    >>> x = pullback.ones(1, requires_grad=True)
    >>> saved = (x * x).grad_fn._raw_saved_self
    >>> saved.data is x, saved.unpack() is x, saved.unpack_hook
    (True, True, None)
    """

    __slots__ = ("_name", "_node")
    _node: Any
    _name: str | int

    def __init__(self) -> None:
        raise RuntimeError("Trying to create a SavedTensor object from Python is forbidden.")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SavedTensor) and (self._node, self._name) == (other._node, other._name)

    def __hash__(self) -> int:
        return hash((self._node, self._name))

    def _read(self) -> tuple[Any, int]:
        """The saved value and the version it was saved at; -1 where it is not a tensor."""
        if isinstance(self._name, int):
            return self._node.stored[self._name]  # of a custom Function
        return getattr(self._node, f"saved_{self._name}"), getattr(self._node, f"saved_{self._name}_version")

    @property
    def data(self) -> Any:
        """What the node holds: the tensor, or what the pack hook made of it; None once it was freed."""
        if self._node.released:
            return None
        value, version = self._read()
        if version < 0:
            return None
        if isinstance(value, PackedTensor):
            return value.packed
        return new_tensor(value._array) if isinstance(value, SavedOutput) else value

    @property
    def unpack_hook(self) -> Hook | None:
        """The unpack hook, None without one."""
        value = None if self._node.released else self._read()[0]
        return value.unpack_hook if isinstance(value, PackedTensor) else None

    def unpack(self) -> Any:
        """The tensor as backward reads it."""
        node = self._node
        if node.released:
            raise freed(node)
        value, version = self._read()
        if version < 0:
            return None
        if is_stale(value, version):
            raise stale(value, version, node)
        return value if isinstance(value, Tensor) else value.as_tensor(node)

    def register_hooks(self, *hooks: Hook, **names: Hook) -> None:
        """Pack the saved value with the first hook now, and unpack it with the second when backward reads it."""
        if len(hooks) != 2 or names or not all(callable(hook) for hook in hooks):
            given = [*map(repr, hooks), *[f"{name}={hook!r}" for name, hook in names.items()]]
            raise TypeError(
                "register_hooks(): incompatible function arguments. The following argument types are supported: two "
                f"functions, by position, one to pack and one to unpack. Invoked with: {', '.join(given) or 'nothing'}"
            )
        pack_hook, unpack_hook = hooks
        node = self._node
        if node.released:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph "
                f"are freed by backward() or autograd.grad(): retain_graph=True keeps those of {node.name()}."
            )
        value, version = self._read()
        if isinstance(value, PackedTensor):
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. "
                "A saved tensor has room for one pair of hooks."
            )
        if value is None or version < 0:
            raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")
        from pullback.graph.history import gradient_edge  # lazy: history builds on this module

        def pack_detached(tensor: Tensor) -> Any:
            return pack_hook(tensor.detach())

        packed = pack_one(node, value, pack_detached, unpack_hook, gradient_edge)
        if isinstance(self._name, int):
            node.stored[self._name] = (packed, version)
        else:
            setattr(node, f"saved_{self._name}", packed)


def saved_tensor_handle(node: Any, name: str | int) -> SavedTensor:
    """The handle of what a node saved under a name, or a custom Function at an index."""
    handle = SavedTensor.__new__(SavedTensor)
    handle._node, handle._name = node, name
    return handle


def raw_saved(node: Node, name: str) -> Any:
    """The handle of a saved tensor."""
    if getattr(node, f"saved_{name}_version", None) is None:
        raise AttributeError(f"'{type(node).__name__}' object has no attribute '_raw_saved_{name}'")
    return saved_tensor_handle(node, name)


class SavedList:
    """The saved tensors of a list argument, each with the version it was saved at."""

    __slots__ = ("_versions", "values")

    def __init__(self, tensors: Any) -> None:
        self.values: tuple[Tensor | PackedTensor, ...] = tuple(tensors)
        self._versions = [t._counter.value if t._counter is not None else 0 for t in self.values]

    def tensors(self) -> list[Tensor]:
        """The tensors, their versions checked."""
        for tensor, version in zip(self.values, self._versions, strict=True):
            if is_stale(tensor, version):
                raise stale(tensor, version, None)
        return [value.unpacked() if isinstance(value, PackedTensor) else value for value in self.values]

    def pack(self, node: Node, pack: Hook, unpack: Hook, edge_of: Callable[[Tensor], Edge | None]) -> None:
        """Run a pack hook on each of the tensors."""
        self.values = tuple(
            value if isinstance(value, PackedTensor) else pack_one(node, value, pack, unpack, edge_of)
            for value in self.values
        )


def unpack_list(node: Node, name: str) -> list[Array]:
    """The arrays of a saved list."""
    return [t._array for t in getattr(node, f"saved_{name}").tensors()]
