"""Node: one recorded operation of the graph, and the base of every `...Backward0` class.

A generated subclass holds what its rule reads and computes gradients on arrays (`apply`) or on Tensors
(`apply_differentiable`). What few nodes have (hooks, metadata) lives in `NodeExtra`.

# Note [Sequence numbers]
Each node gets the next number of its thread's count when it is recorded. The engine runs ready nodes with the highest
number first, so backward mirrors forward, and sums gradients in that order, so results do not depend on the order of
arrival. The steps of a fused node (Note [Fused nodes]) share its number, each with a smallest fraction of its own, so that
they run in the order in which they were recorded among themselves. AccumulateGrad has the highest number of all: it runs
as soon as it is ready. A thread's own count is read in C:
in Python it takes 40 ns more, a thirtieth of a small operation.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pullback.backend.array_module import as_array, is_number
from pullback.graph.hooks import HookDict, NodeExtra
from pullback.graph.input_metadata import InputMetadata
from pullback.graph.removable_handle import RemovableHandle
from pullback.graph.source_lines import freed
from pullback.modes.source_lines import notes, source_line
from pullback.modes.switches import process, switches
from pullback.native import extension
from pullback.typing import DType, Shape

if TYPE_CHECKING:
    from pullback.graph.edge import Edge, Edges
    from pullback.graph.source_lines import Pass
    from pullback.modes.source_lines import SourceLine

_Kind = TypeVar("_Kind")


class _Numbers(threading.local):
    """The count of each thread."""

    def __init__(self) -> None:
        self.take = itertools.count().__next__


_numbers = _Numbers()


def _next_sequence_nr() -> int:
    return _numbers.take()


def _new_node(kind: type[_Kind]) -> _Kind:
    node = kind.__new__(kind)
    node.source = source_line()  # type: ignore[attr-defined]  # of nodes alone
    return node


next_sequence_nr: Callable[[], int] = getattr(extension, "next_sequence_nr", _next_sequence_nr)
"""The number of the node that is recorded next. See Note [Sequence numbers]."""
new_node: Callable[[type[_Kind]], _Kind] = getattr(notes, "new_node", _new_node)
"""An instance of a node's class, which users cannot make by calling it; it knows its line (Note [Source lines])."""
FIRST = 2**64 - 1
"""The sequence number of nodes that run as soon as they are ready."""
_saved_tensor: Any = None
_PUBLIC = (
    "_input_metadata", "_register_hook_dict", "_sequence_nr", "_set_sequence_nr", "metadata", "name", "next_functions",
    "register_hook", "register_prehook", "requires_grad",
)  # fmt: skip
_rules: dict[str, Callable[..., Any]] = {}
_SLOTS = ("freed_by", "source")
_FIELDS = ("next_edges", "sequence_nr", "shape", "dtype", "output_metadata", "released", "is_step", "broadcast")
PUBLIC_NAMES = {"input": "self", "output_grad": "grad_output"}
"""PyTorch's inspection attributes keep the name `self` for the first argument."""


class Node:
    """A function of the backward graph."""

    __slots__ = _SLOTS  # subclasses have a dict

    source: SourceLine | None
    """Where the node was recorded, if set: see Note [Source lines]."""
    freed_by: Pass | None
    """The backward pass that released what the node had saved, if set."""
    next_edges: Edges = ()
    sequence_nr: float = 0
    shape: Shape | None = None
    dtype: DType | None = None
    output_metadata: tuple[InputMetadata, ...] | None = None
    released: bool = False
    extra: NodeExtra | None = None
    lock: Any = None
    is_step: bool = False
    """Whether it is part of a chain that computes a gradient. See Note [Gradient nodes]."""
    broadcast: tuple[Any, ...] | None = None
    """Shape and dtype of each input, where gradients must be summed to them or cast."""

    # Of the class, not of the instance (see Note [Compiled classes]).
    output_count = 1
    fresh: ClassVar[tuple[int, ...]] = ()
    tells_absent_gradients: ClassVar[bool] = True
    """Whether hooks of a result run although no gradient came for it, but for others of the node."""
    tensor_names: ClassVar[tuple[str, ...]] = ()
    value_names: ClassVar[tuple[str, ...]] = ()
    """Arguments that the rule reads and that are not tensors: numbers, sizes, switches."""
    fact_names: ClassVar[tuple[str, ...]] = ()
    """What the rule reads of tensors beside their elements: `input_shape`."""
    saved_names: ClassVar[tuple[str, ...]] = ()
    """Saved tensors and values."""
    shown: ClassVar[str] = ""
    """PyTorch's name of the node, where another operation's class has it."""
    operation = ""
    """The operation whose rule the node applies; the nodes of others have rules of their own."""
    needs_tensors = False
    fused = ""
    """The function that records the steps in its place. See Note [Fused nodes]."""

    # What subclasses define.

    def apply(self, grads: Sequence[Any], edges: Edges, owned: bool = False) -> Sequence[Any]:
        """Compute the gradients of the inputs from those of the outputs, on arrays.

        `edges` are those of the node, None in place of each along which this pass wants no gradient: the graph itself is
        never changed to say so, since several passes may run over it at once. Where the first gradient is `owned`,
        nobody else will read it: a result may be written over it.
        """
        raise NotImplementedError

    def apply_differentiable(self, grads: Sequence[Any], edges: Edges) -> Sequence[Any]:
        """Compute the same on Tensors, so that this computation is recorded too."""
        rule = _rules.get(self.operation)
        if rule is None:
            rule = _rules[self.operation] = _differentiable_rule(type(self))
        return rule(self, grads, edges)

    def release_saved_tensors(self) -> None:
        """Drop what was saved for backward."""
        for name in self.tensor_names:
            self.released = True
            setattr(self, f"saved_{name}", None)

    # The engine's view.

    def input_metadata(self, index: int) -> InputMetadata | None:
        """Shape and dtype of the gradient that enters at `index`, where known."""
        if self.output_metadata is not None:
            return self.output_metadata[index]
        if self.shape is None or self.dtype is None:
            return None
        return InputMetadata(self.shape, self.dtype)

    def require_extra(self) -> NodeExtra:
        """The companion for rare state, made on first use."""
        if self.extra is None:
            self.extra = NodeExtra()
        return self.extra

    @property
    def topological_nr(self) -> int:
        """The length of the longest path from this node to a leaf (counted on demand, without recursion)."""
        return longest_path(self)

    # What users see.

    def name(self) -> str:
        """The name of the node, such as `MulBackward0`."""
        return type(self).__name__

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {hex(id(self))}>"

    def _repr_html_(self) -> str:
        from pullback.utils.rich_display import node_html  # lazy: far above, for notebooks alone

        return node_html(self)

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The nodes that this one sends gradients to, one per forward input."""
        if self.fused:
            return self._expand().next_functions
        return tuple([(None, 0) if edge is None else seen_edge(edge) for edge in self.next_edges])

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dict for the user's notes on this node, and for what anomaly mode remembers of it."""
        extra = self.require_extra()
        if extra.metadata is None:
            extra.metadata = {}
        return extra.metadata

    @property
    def requires_grad(self) -> bool:
        return True

    @property
    def _input_metadata(self) -> tuple[InputMetadata, ...]:
        if self.fused and self.output_count > 1:
            return self._expand()._input_metadata
        return tuple(m for i in range(self.output_count) if (m := self.input_metadata(i)) is not None)

    def _sequence_nr(self) -> int:
        return int(self.sequence_nr)

    def _set_sequence_nr(self, sequence_nr: int) -> None:
        self.sequence_nr = sequence_nr

    def register_hook(self, fn: Callable[[Any, Any], Any]) -> Any:
        """Call `fn(grad_inputs, grad_outputs)` after this node ran; a returned tuple replaces grad_inputs."""
        node = self._hooked() if self.fused else self
        return node._register(node.require_extra().post_hooks, fn)

    def register_prehook(self, fn: Callable[[Any], Any]) -> Any:
        """Call `fn(grad_outputs)` before this node runs; a returned tuple replaces them."""
        node = self._hooked() if self.fused else self
        return node._register(node.require_extra().pre_hooks, fn)

    def _register_hook_dict(self, hooks: HookDict) -> None:
        self.require_extra().post_hooks.update(hooks)

    @staticmethod
    def _register(hooks: HookDict, fn: Callable[..., Any]) -> Any:
        handle = RemovableHandle(hooks)
        hooks[handle.id] = fn
        return handle

    def __init__(self) -> None:
        raise TypeError(f"cannot create '{type(self).__name__}' instances")

    def __call__(self, *grads: Any, **named: Any) -> Any:
        """Run this node alone on Tensors and return the gradients of its inputs."""
        if self.fused:
            return self._expand()(*grads, **named)
        if named:
            raise TypeError("keyword arguments are not supported")
        count = self.shown_outputs()
        if len(grads) != count:
            raise TypeError(f"expected {count} arguments, got {len(grads)} instead")
        for index, grad in enumerate(grads):
            if grad is not None and not hasattr(grad, "_array"):
                raise TypeError(f"argument {index} is not a Variable but {type(grad).__name__}")
        if all(grad is None for grad in grads):
            results: tuple[Any, ...] = (None,) * len(self.next_edges)
        else:
            missing = (None,) * (self.output_count - count)
            results = tuple(self.apply_differentiable((*grads, *missing), self.next_edges))
        return results[0] if len(results) == 1 else results

    def shown_outputs(self) -> int:
        """How many gradients users hand over or see: the last ones that are whole numbers have no gradient."""
        metadata = self.output_metadata
        count = self.output_count
        if metadata is None or self.needs_tensors:
            return count
        while count > 1 and count <= len(metadata) and metadata[count - 1].numpy_dtype.kind in "biu":
            count -= 1
        return count

    def __getattr__(self, name: str) -> Any:
        for prefix in ("_saved_", "_raw_saved_"):
            if name.startswith(prefix):
                return self._read_saved(name[len(prefix) :], raw=prefix == "_raw_saved_")
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def is_column_major(self, name: str, place: int) -> bool:
        """Whether a matrix that is the input at `place` was in column-major order, as far as that is known."""
        from pullback.graph.layouts import is_column_major  # lazy: it builds on this module

        return is_column_major(self, name, place)

    def seen(self) -> Node:
        """Return the node as users see it, who are about to look."""
        return self

    def _expand(self) -> Node:
        """The outermost step of a fused node, which records its steps on first use. See Note [Fused nodes]."""
        if self.extra is None or self.extra.outer is None:
            from pullback.graph.fused_node import expand  # lazy: it builds on this module

            expand(self)
        assert self.extra is not None
        outer: Node = self.extra.outer
        return outer if self.output_count == 1 else outer.next_edges[0][0]  # type: ignore[index]  # of the first result

    def _hooked(self) -> Node:
        """The node that runs the hooks of a fused one: the step itself, where the node stands for several results."""
        outer = self._expand()
        return self if self.output_count == 1 else outer

    def __dir__(self) -> list[str]:
        if self.fused:
            return self._expand().__dir__()
        from pullback.graph.shown_values import shown_names  # lazy: few programs look

        names = {name: PUBLIC_NAMES.get(name, name) for name in self.saved_names}
        shown = shown_names(self, list(names.values()))
        special = [name for name in object.__dir__(self) if name.startswith("__")]
        raw = [f"_raw_saved_{public}" for name, public in names.items() if hasattr(self, f"saved_{name}_version")]
        return [*special, *_PUBLIC, *[f"_saved_{public}" for public in shown], *raw]

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"cannot pickle '{type(self).__name__}' object")

    def _read_saved(self, public: str, *, raw: bool) -> Any:
        if self.fused:
            return self._expand()._read_saved(public, raw=raw)
        from pullback.graph.shown_values import NOTHING, read_derived, saved_under  # lazy: few programs look

        own = saved_under(self, public)
        for name in self.saved_names:
            if PUBLIC_NAMES.get(name, name) == own:
                if raw:
                    return self.raw_saved(name)
                if self.released:
                    raise freed(self)
                return _as_shown(public, self.unpack(name))
        derived = NOTHING if raw else read_derived(self, public)
        if derived is not NOTHING:
            return derived
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '_saved_{public}'")

    def _read_shape(self, public: str) -> Shape | None:
        """The sizes of an input that the rule reads, under PyTorch's name for the input."""
        name = "input" if public == "self" else public
        shape = getattr(self, f"saved_{name}_shape", None) if hasattr(type(self), f"saved_{name}_shape") else None
        if shape is None and self.broadcast is not None:
            from pullback.generated.registry import OPERATIONS  # lazy: above this layer

            inputs = OPERATIONS[self.operation].differentiable_inputs
            given = self.broadcast[inputs.index(name)] if name in inputs else None
            shape = None if given is None else given[0]
        return None if shape is None else tuple(shape)

    def unpack(self, name: str) -> Any:
        """Return the saved value as users know it: a Tensor, a number or a tuple, its version checked."""
        global _saved_tensor
        if _saved_tensor is None:
            from pullback.graph import saved_tensor as _saved_tensor  # lazy: saved_tensor builds on this module
        return _saved_tensor.unpack_saved(self, name)

    def raw_saved(self, name: str) -> Any:
        from pullback.graph.saved_tensor import raw_saved  # lazy: saved_tensor builds on this module

        return raw_saved(self, name)


def held_fields(node: Node) -> dict[str, Any]:
    """Return what a node holds, by name, without its hooks. A compiled class may have fields outside of a dictionary."""
    saved = [f"saved_{name}" for name in (*node.saved_names, *node.fact_names)]
    versions = [f"saved_{name}_version" for name in node.tensor_names]
    names = dict.fromkeys([*_FIELDS, *getattr(node, "__dict__", ()), *saved, *versions])
    return {name: getattr(node, name) for name in names if name not in ("extra", "lock") and hasattr(node, name)}


def begin_recording(node: Node) -> None:
    """Give a node that is made by hand its sequence number and its source line."""
    node.sequence_nr = next_sequence_nr()
    node.source = source_line()
    if process.finishing and switches.stream is not None:
        node.require_extra().stream = switches.stream


def _differentiable_rule(cls: type[Node]) -> Callable[..., Any]:
    """Find the rule of an operation on Tensors. Where its class is not compiled, it becomes a method of the class."""
    if not cls.operation:
        raise NotImplementedError
    from pullback.recording.rendered import differentiable_rule  # lazy: above this layer, for second derivatives alone

    rule = differentiable_rule(cls.operation)
    with contextlib.suppress(TypeError):
        cls.apply_differentiable = rule  # type: ignore[method-assign]
    return rule


def seen_edge(edge: Edge) -> Edge:
    """Return an edge as users see it: a further result of a fused node is that of a step."""
    if not edge[0].fused:
        return edge
    edge[0].seen()
    if not edge[1]:
        return edge
    edge[0]._expand()
    assert edge[0].extra is not None
    step: Edge = edge[0].extra.outer.next_edges[edge[1]]
    return step


def _as_shown(public: str, value: Any) -> Any:
    """Return a saved value as PyTorch shows it: a list as a tuple, a number that stood for an operand as a tensor."""
    if isinstance(value, list):
        return tuple(value)
    if public in ("self", "other") and is_number(value):
        from pullback.tensor.tensor import new_tensor  # lazy: this module is compiled, and few programs look

        return new_tensor(as_array(value))
    return value


def longest_path(node: Node) -> int:
    """The number of edges on the longest path from `node` to a leaf."""
    lengths: dict[Node, int] = {}
    stack = [node]
    while stack:
        current = stack[-1]
        pending = [edge[0] for edge in current.next_edges if edge is not None and edge[0] not in lengths]
        if pending:
            stack.extend(pending)
            continue
        stack.pop()
        below = [lengths[edge[0]] for edge in current.next_edges if edge is not None]
        lengths[current] = 1 + max(below) if below else 0
    return lengths[node]


if notes is not None:
    notes.bind_node(Node)
